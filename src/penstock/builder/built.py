"""What all parts of the builder stand on: the operator built so far, and how a call finds its attributes there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from penstock.builder.extent import declared_ticks, measurable
from penstock.errors import UserError, did_you_mean, shortly
from penstock.operators.aggregate.operator import Aggregate
from penstock.operators.union.operator import Union
from penstock.operators.window.operator import Bucket
from penstock.pattern.schema import Schema
from penstock.plan.operator import Operator
from penstock.plan.policy import Extent
from penstock.plan.spec import spec_of
from penstock.plan.table import Table
from penstock.plan.weight import is_weighted
from penstock.plan.window import GatheredWindow


@dataclass(frozen=True, eq=False)
class Built:
    """An operator on top of others; every call gives a new one."""

    operator: Operator

    @property
    def schema(self) -> Schema:
        return self.operator.schema

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.operator.kind} ({self.schema})>"

    def _with(self, operator: Operator) -> Self:
        below = self.operator
        if is_weighted(below):
            raise UserError(
                f"{operator.word}() behind at(…): what it would be given can be taken back",
                hint="turn the dial last: query.where(…).at(…), or start(…, consistency=…)",
            )
        check_lifetimes(operator)
        if (
            isinstance(below, Bucket)
            and isinstance(below.window, GatheredWindow)
            and below.window.label in operator.schema
            and not isinstance(operator, Aggregate)
        ):
            raise UserError(
                f"{below.window!r} must be followed by group_by(…).agg(…), not {operator.word}()",
                hint="put where/select/map before the window",
            )
        return replace(self, operator=operator)

    def _unite(self, others: Sequence[Built], call: str) -> Self:
        if not others:
            raise UserError(f"{call}() needs another stream", hint=f"name the other streams: a.{call}(b)")
        schema = self._united(others, call)
        return self._with(Union((self.operator, *(o.operator for o in others)), schema))

    def _united(self, others: Sequence[Built], call: str) -> Schema:
        """The schema of several streams together, which must have the same attributes."""
        for other in others:
            self._same_attributes(other, call)
        times = tuple(t for t in self.schema.times if all(t in o.schema.times for o in others))
        for other in others:
            if other.schema.lifetime != self.schema.lifetime:
                raise UserError(
                    f"{call}: of one stream rows hold for a time, of the other they do not, or they call it otherwise",
                    hint="ps.stream(…, lifetime=('from', 'to')) for both, with the same names",
                )
        return Schema(self.schema.attributes, times, self.schema.lifetime)

    def _same_attributes(self, other: Built, call: str) -> None:
        """Complain unless another stream has the same attributes of the same types."""
        mine, theirs = ({a.name: a.type for a in s.schema} for s in (self, stream_of(other, call)))
        if mine != theirs:
            raise UserError(
                f"{call}: the streams differ: ({self.schema}) and ({other.schema})",
                hint="use select(…) to give both the same attributes",
            )

    # --- attributes ---------------------------------------------------------------------------------------------

    def _named(self, name: str, call: str) -> str:
        """An attribute as the schema spells it."""
        if not isinstance(name, str):
            raise UserError(f"{call}: {shortly(name)} is not a name", hint=f"one of {', '.join(self.schema.names)}")
        spelled = self.schema.resolve(name)
        if spelled is None:
            raise UserError(f"{call}: unknown column '{name}'", hint=did_you_mean(name, self.schema.names))
        return spelled

    def _known(self, names: Sequence[str], call: str) -> tuple[str, ...]:
        return tuple(self._named(name, call) for name in names)

    def _ordering(self, by: Sequence[str], call: str, hint: str) -> tuple[tuple[str, bool], ...]:
        """Attributes with their directions, from texts such as "speed desc"."""
        order = []
        for text in by:
            if not isinstance(text, str):
                raise UserError(f"{call}: {text!r} is not a column", hint=hint)
            name, _, direction = text.strip().partition(" ") if text not in self.schema else (text, "", "")
            if direction.strip().lower() not in ("", "asc", "desc"):
                raise UserError(f"{call}: '{text}' is not an order", hint="write 'name', 'name asc' or 'name desc'")
            order.append((self._named(name, call), direction.strip().lower() == "desc"))
        return tuple(order)

    def _time(self, name: str | None, call: str) -> str:
        if name is not None:
            return self._named(name, call)
        if len(self.schema.times) != 1:
            known = ", ".join(self.schema.times) or "none is declared"
            raise UserError(f"{call}: which time attribute? ({known})", hint="ps.stream(…, time='…') or on='…'")
        return self.schema.times[0]

    def _measurable(self, name: str | None, call: str) -> str:
        """The time attribute, or the one named, in which distances are measured."""
        return measurable(self.schema, self._time(name, call), call)

    def _ticks(self, extent: Extent, attribute: str, call: str) -> int:
        return declared_ticks(extent, attribute, self.schema.type_of(attribute), call)


def check_lifetimes(operator: Operator) -> None:
    """Complain if an operator is given rows that hold for a time and knows nothing of that."""
    for given in operator.inputs:
        if given.schema.lifetime and not spec_of(operator).heeds_lifetimes(operator):
            raise UserError(
                f"{operator.word}() knows nothing of rows that hold for a time, which {given.word}() before it has",
                hint="snapshot().group_by(…).agg(…), join(…), where(…), select(…) and lookup(…) do",
            )


def whole(value: Any, what: str, hint: str, *, least: int = 1, most: float = float("inf")) -> int:
    """A whole number within bounds; `what` is how the call reads, up to the value."""
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise UserError(what, hint=hint)
    return value


def stream_of(given: object, call: str) -> Built:
    """Complain unless it is a stream: whatever else is given here has neither schema nor operator."""
    if isinstance(given, Built):
        return given
    if isinstance(given, Table):
        raise UserError(
            f"{call}: '{given.name}' is a table, not a stream",
            hint=f"what a table says is added by lookup: stream.lookup({given.name}, on='key')",
        )
    what = repr(given) if isinstance(given, str) else type(given).__name__
    raise UserError(
        f"{call}: {what} is not a stream", hint="streams themselves, one by one, as ps.stream(…) returns them"
    )
