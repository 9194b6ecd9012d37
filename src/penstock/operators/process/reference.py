"""Process, one event at a time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from penstock.errors import UserError
from penstock.operators.process import operator
from penstock.pattern.pattern import Pattern
from penstock.pattern.schema import Schema
from penstock.reference.domain import domains
from penstock.reference.grouping import group_key
from penstock.reference.item import Assertion, Event, Item
from penstock.reference.promises import Promises


class ProcessReference:
    """Calls the user's function with one event and the state of its key; with a key that is over, and no event.

    A punctuation that restricts nothing but the key says that keys are over. Behind their last results it passes, if
    results have these attributes.
    """

    def __init__(self, declared: operator.Process) -> None:
        (source,) = declared.inputs
        self.declared, self.source = declared, source.schema
        self.promised = Promises(source.schema, domains(source, but=declared.by))
        self.keys: dict[tuple[Any, ...], Mapping[str, Any]] = {}

    def on_event(self, event: Event, input: int = 0) -> Iterable[Item]:
        key = group_key(event.row, self.declared.by)
        results, state = self._call([event.row], [self.keys[key]] if key in self.keys else [], [])
        if len(state) > 1 or any(group_key(row, self.declared.by) != key for row in state):
            raise UserError(f"process {self.declared.detail}: the function returned state of other keys, or twice")
        self.keys.pop(key, None)
        if state:
            self.keys[key] = state[0]
        return results

    def on_punctuation(self, pattern: Pattern, input: int = 0) -> Iterable[Item]:
        return [item for known in self.promised.add(pattern) for item in self._close(known)]

    def _close(self, pattern: Pattern) -> Iterable[Item]:
        if not set(pattern.restricted) <= set(self.declared.by):
            return []
        out: list[Item] = []
        for key, row in list(self.keys.items()):
            if all(pattern[name].matches(row[name]) for name in pattern.restricted):
                out += self._call([], [row], [{n: row[n] for n in self.declared.by}])[0]
                del self.keys[key]
        if set(pattern.restricted) <= set(self.declared.kept):
            restrictions = {name: pattern[name] for name in pattern.restricted}
            out.append(Assertion(Pattern.by_name(self.declared.schema, restrictions)))
        return out

    def state(self) -> list[Any]:
        return [Event(row) for row in self.keys.values()]

    def _call(self, events: list[Any], state: list[Any], over: list[Any]) -> tuple[list[Event], list[dict[str, Any]]]:
        held = self.declared.held
        results, kept = self.declared.function(
            pa.Table.from_pylist([dict(row) for row in events], schema=self.source.arrow),
            pa.Table.from_pylist([dict(row) for row in state], schema=held.arrow),
            pa.Table.from_pylist(over, schema=self.source.select(self.declared.by).arrow),
        )
        return [Event(row) for row in self._rows(results, self.declared.schema)], self._rows(kept, held)

    def _rows(self, table: Any, expected: Schema) -> list[dict[str, Any]]:
        if not isinstance(table, pa.Table) or set(table.column_names) != set(expected.names):
            raise UserError(
                f"process {self.declared.detail}: the function did not return a table with the declared attributes",
                hint=f"the declared schema is: {expected}",
            )
        found: list[dict[str, Any]] = table.select(list(expected.names)).cast(expected.arrow).to_pylist()
        return found
