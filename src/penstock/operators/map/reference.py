"""Map, one event at a time."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from penstock.errors import UserError
from penstock.operators.map import operator
from penstock.pattern.pattern import Pattern
from penstock.plan.weight import WEIGHT, without_weight
from penstock.reference.item import Assertion, Event, Item


class MapReference:
    """Calls the user's function with a table of one row; it may return any number of rows.

    Nothing is known of what the function does, so only punctuation on the attributes it keeps passes.
    """

    def __init__(self, declared: operator.Map) -> None:
        self.declared = declared

    def on_event(self, event: Event, input: int = 0) -> Iterable[Item]:
        # The function knows nothing of weights: what it makes of a row that is taken back is taken back.
        weight = {WEIGHT: event.row[WEIGHT]} if WEIGHT in event.row else {}
        given, expected = (without_weight(o.schema) for o in (self.declared.inputs[0], self.declared))
        row = {n: event.row[n] for n in given.names}
        result = self.declared.function(pa.Table.from_pylist([row], schema=given.arrow))
        if not isinstance(result, pa.Table) or set(result.column_names) != set(expected.names):
            raise UserError(
                f"map {self.declared.detail}: the function did not return a table with the declared attributes",
                hint=f"the declared schema is: {expected}",
            )
        return [
            Event({**row, **weight}) for row in result.select(list(expected.names)).cast(expected.arrow).to_pylist()
        ]

    def on_punctuation(self, pattern: Pattern, input: int = 0) -> Iterable[Item]:
        if not set(pattern.restricted) <= set(self.declared.keeps):
            return []
        restrictions = {attribute: pattern[attribute] for attribute in pattern.restricted}
        return [Assertion(Pattern.by_name(self.declared.schema, restrictions))]

    def state(self) -> list[Any]:
        return []
