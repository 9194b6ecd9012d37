"""Random expressions: those of the tables, with constants, other columns and each other in the place of columns."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from penstock.errors import UserError
from penstock.pattern.schema import Schema
from penstock.sql.expression import Expression

CONSTANTS = [
    "0", "1", "-1", "2147483647", "1L", "1Y", "3S", "1.5", "0.05", "1e3", "1.5D", "-2.25", "99999999.99",
    "12345678901234567890", "1.005BD", "'a'", "''", "'12'", "' 7 '", "'true'", "'2020-02-29'", "date '2020-02-29'",
    "date '1582-10-10'", "timestamp '2020-02-29 01:02:03.5'", "true", "false", "null", "cast(null as int)",
    "cast(null as string)", "x'0aff'",
]  # fmt: skip
_REAL = (pa.float32(), pa.float64())
_TEXT = r"'(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.)*\""


@dataclass(frozen=True)
class Composer:
    """Puts expressions together from templates, at most `width` columns in one."""

    schema: Schema
    templates: Sequence[str]
    width: int = 3

    def columns(self, text: str) -> set[str]:
        return set(re.findall(self._place, text)) - {""}

    @property
    def _place(self) -> str:
        """A column that is not part of a text, a call or a clause; the group is its name."""
        names = "|".join(self.schema.names)
        return rf"{_TEXT}|\b(?:from|in)\b|\b({names})\b(?!\s*[('])"

    def compose(self, dice: random.Random) -> str | None:
        """A random expression that is understood here, or None if this attempt is not."""
        near = dice.sample(list(self.schema.names), 2)
        text = self._compose(dice, dice.choice([1, 1, 2]), near)
        if text is None or len(self.columns(text)) > self.width or self._type(text) is None:
            return None
        return text

    def _compose(self, dice: random.Random, depth: int, near: Sequence[str]) -> str | None:
        template = dice.choice(self.templates)
        inner: list[pa.DataType] = []

        def put(found: re.Match[str]) -> str:
            if found[1] is None or (chance := dice.random()) < 0.35:
                return found[0]
            if chance < 0.5:
                return dice.choice(CONSTANTS)
            if chance < 0.65 or depth == 0:
                return dice.choice(near)
            part = self._compose(dice, depth - 1, near)
            t = None if part is None else self._type(part)
            if t is None:
                return found[0]
            inner.append(t)
            # As a text a computed double has the digits of this Java.
            return found[0] if t in _REAL and self.schema.type_of(found[1]) not in _REAL else f"({part})"

        made = re.sub(self._place, put, template)
        t = self._type(made)
        shows_digits = t is None or t in (pa.string(), pa.binary()) or pa.types.is_decimal(t) or "round(" in template
        return None if t is None or (shows_digits and any(i in _REAL for i in inner)) else made

    def _type(self, text: str) -> pa.DataType | None:
        try:
            return Expression.parse(text, self.schema).type
        except UserError:
            return None


def many(compose: Callable[[random.Random], str | None], count: int, dice: random.Random) -> list[str]:
    found: dict[str, None] = {}
    while len(found) < count:
        text = compose(dice)
        if text is not None:
            found[text] = None
    return list(found)
