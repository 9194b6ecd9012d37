"""What a row in the tables of functions says: how a function is called, and what DuckDB computes for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from penstock.pattern.types import TIMESTAMP
from penstock.sql.cast import cast
from penstock.sql.term import (
    BIG,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    INTEGERS,
    NULL,
    SMALL,
    STRING,
    TEXTS,
    TINY,
    UNIT,
    Term,
    Unfit,
    fill,
    is_decimal,
    is_number,
    shown,
)

#: The types that an argument may have, by the word for it in the tables; the first is what null becomes.
KINDS: dict[str, tuple[pa.DataType, ...]] = {
    "string": (STRING,),
    "text": (STRING,),
    "binary": (BINARY,),
    "boolean": (BOOLEAN,),
    "int": (INT, SMALL, TINY),
    "bigint": (BIG, INT, SMALL, TINY),
    "date": (DATE, TIMESTAMP),
    "timestamp": (TIMESTAMP, DATE),
    "texts": (TEXTS,),
    "moment": (TIMESTAMP,),
    "day": (DATE,),
}


@dataclass(frozen=True)
class Signature:
    """One way to call a function: its arguments by kind, its result, and what DuckDB computes.

    A kind ends in `?` if the argument may be left out, in `*` if there may be more of it, in `!` if it must be a
    literal. `make` is a template over the arguments or a function of their terms.
    """

    takes: tuple[str, ...]
    gives: pa.DataType
    make: str | Callable[..., Term]

    def apply(self, arguments: Sequence[Term]) -> Term | None:
        """The call with these arguments, or None if it takes others."""
        kinds = list(self.takes)
        if kinds and kinds[-1].endswith("*"):
            kinds = [*kinds[:-1], *[kinds[-1][:-1]] * max(1, len(arguments) - len(kinds) + 1)]
        needed = [k for k in kinds if not k.endswith("?")]
        if not len(needed) <= len(arguments) <= len(kinds):
            return None
        fitted = []
        for argument, kind in zip(arguments, kinds, strict=False):
            term = fit(argument, kind.rstrip("?"))
            if term is None:
                return None
            fitted.append(term)
        if isinstance(self.make, str):
            return fill(self.make, *fitted, type=self.gives)
        return self.make(*fitted)


def fit(term: Term, kind: str) -> Term | None:
    """The term as an argument of a kind, cast where Spark would cast it unasked, or None."""
    if kind.endswith("!"):
        return term if term.literal and fit(term, kind[:-1]) == term else None
    if kind == "any":
        return term
    # A bare NULL has no type of its own, and the type of these decides that of the result.
    if kind == "number":
        return term if is_number(term.type) else None
    if kind == "integral":
        return term if term.type in INTEGERS else None
    if kind == "decimal":
        return term if is_decimal(term.type) else None
    if kind == "double":
        return cast(term, DOUBLE) if is_number(term.type) or term.type == NULL else None
    if kind == "unit":
        return term if term.type == UNIT else None
    types = KINDS[kind]
    if term.type in types or term.type == NULL:
        return cast(term, types[0])
    if kind == "string" and (is_number(term.type) or term.type in (BOOLEAN, DATE, TIMESTAMP)):
        return cast(term, STRING)
    if kind in ("date", "timestamp") and term.type == STRING:
        return cast(term, types[0])
    return None


@dataclass(frozen=True)
class Function:
    """A function of Spark that is available here: a row of the tables, and of the documentation.

    `close` says in how many units in the last place a result may differ.
    """

    name: str
    family: str
    forms: tuple[Signature, ...]
    note: str = ""
    close: int = 0

    def apply(self, arguments: Sequence[Term]) -> Term:
        for form in self.forms:
            made = form.apply(arguments)
            if made is not None:
                return made
        given = ", ".join(("a literal " if a.literal else "") + shown(a.type) for a in arguments)
        raise Unfit(f"{self.name}({given}) is not available", f"write {' or '.join(self.calls())}")

    def calls(self) -> list[str]:
        """How it is written, one text per form.

        >>> Function("left", "strings", (Signature(("string", "int"), STRING, "left({0}, {1})"),)).calls()
        ['left(string, int)']
        """
        return [f"{self.name}({', '.join(_kind_text(k) for k in form.takes)})" for form in self.forms]


def _kind_text(kind: str) -> str:
    if kind.endswith("?"):
        return f"[{_kind_text(kind[:-1])}]"
    if kind.endswith("*"):
        return f"{_kind_text(kind[:-1])}, …"
    if kind.endswith("!"):
        return f"'{kind[:-1]}'" if kind == "string!" else f"literal {kind[:-1]}"
    return {"moment": "timestamp", "day": "date", "text": "string"}.get(kind, kind)


def function(
    names: str,
    family: str,
    *forms: tuple[str, pa.DataType, str | Callable[..., Term]],
    note: str = "",
    close: int = 0,
) -> tuple[Function, ...]:
    """The rows for a function under all its names, which are the same by construction."""
    made = tuple(Signature(tuple(k for k in takes.split(", ") if k), gives, make) for takes, gives, make in forms)
    first, *others = names.split()
    return (
        Function(first, family, made, note, close),
        *(Function(name, family, made, note or f"the same as {first}", close) for name in others),
    )
