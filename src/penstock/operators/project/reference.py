"""Project, one event at a time."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from itertools import product
from typing import Any

from penstock.operators.project import operator as project_operator
from penstock.pattern.pattern import Pattern
from penstock.reference.domain import domains
from penstock.reference.item import Assertion, Event, Item
from penstock.reference.promises import Promises
from penstock.sql import carried as sql_carried
from penstock.sql.expression import Expression, evaluate_row


class ProjectReference:
    """One output attribute per (name, expression).

    A punctuation passes when every attribute it restricts is still there, under whatever name. If one of them is gone,
    a later event could look just like those promised absent, unless it was promised for all its values.

    What nobody looks at (not `wanted`) is not computed by anybody, and cannot fail: here it is null.
    """

    def __init__(self, declared: project_operator.Project, wanted: Collection[str] | None = None) -> None:
        (source,) = declared.inputs
        self.declared = declared
        self.wanted = declared.schema.names if wanted is None else wanted
        carried = [name for _, e in declared.columns if (name := sql_carried.carried(e)) is not None]
        self.promised = Promises(source.schema, domains(source, but=carried))

    def on_event(self, event: Event, input: int = 0) -> Iterable[Item]:
        return [Event({name: self._value(name, e, event) for name, e in self.declared.columns})]

    def _value(self, name: str, expression: Expression, event: Event) -> Any:
        looked_at = name in self.wanted or sql_carried.carried(expression) is not None
        return evaluate_row(expression, event.row) if looked_at else None

    def on_punctuation(self, pattern: Pattern, input: int = 0) -> Iterable[Item]:
        return [item for known in self.promised.add(pattern) for item in self._pass_on(known)]

    def _pass_on(self, pattern: Pattern) -> Iterable[Item]:
        carriers = [
            [name for name, e in self.declared.columns if sql_carried.carried(e) == attribute]
            for attribute in pattern.restricted
        ]
        # Two carriers of one attribute are always equal: restricting either says the same, but an aggregate may
        # group by one of them only, so each choice of carriers is a punctuation of its own.
        return [
            Assertion(pattern.onto(self.declared.schema, dict(zip(pattern.restricted, names))))
            for names in product(*carriers)
        ]

    def state(self) -> list[Any]:
        return []
