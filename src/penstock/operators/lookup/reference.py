"""The join with a table, one event at a time: all rows of the table are looked at, every time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from penstock.errors import UserError
from penstock.operators.lookup import operator as algebra
from penstock.pattern.pattern import Pattern
from penstock.reference.item import Assertion, Event, Item
from penstock.reference.moment import to_tick
from penstock.reference.summary import identity


class TableJoinReference:
    """An event with each row of its key; of a versioned table, with the one of greatest version that holds at its time.

    Rows of the table come and go, so nothing is promised about them; every result carries its event, so what is
    promised about events holds for results.
    """

    def __init__(self, declared: algebra.TableJoin, rows: Sequence[Mapping[str, Any]]) -> None:
        self.declared = declared
        self.rows = [declared.table.schema.event(row) for row in rows]
        table = declared.table
        if table.version is not None:
            seen: set[Any] = set()
            for row in self.rows:
                if any(row[k] is None for k in table.key):
                    continue
                if row[table.version] is None:
                    raise UserError(f"table '{table.name}': '{table.version}' is null in {row}")
                version = (*(identity(row[k]) for k in table.key), to_tick(row[table.version]))
                if version in seen:
                    raise UserError(f"table '{table.name}': several rows of one version: {row}")
                seen.add(version)

    def on_event(self, event: Event, input: int = 0) -> Iterable[Item]:
        found = [row for row in self.rows if self._has_key(row, event)]
        if self.declared.as_of is not None:
            found = self._holding(found, event.row[self.declared.as_of])
        if not found and self.declared.how == "left":
            found = [dict.fromkeys(self.declared.table.schema.names)]
        sides = [(event.row, row) for row in found]
        return [
            Event({c.name: pair[c.origins[0][0]][c.origins[0][1]] for c in self.declared.columns}) for pair in sides
        ]

    def _has_key(self, row: Mapping[str, Any], event: Event) -> bool:
        pairs = [(event.row[a], row[b]) for a, b in self.declared.keys]
        return all(a is not None and b is not None and identity(a) == identity(b) for a, b in pairs)

    def _holding(self, rows: list[dict[str, Any]], moment: Any) -> list[dict[str, Any]]:
        if moment is None:
            return []
        table = self.declared.table
        assert table.version is not None
        holding = {}
        for row in rows:
            begun = to_tick(row[table.version]) <= to_tick(moment)
            over = table.until is not None and row[table.until] is not None
            over = over and to_tick(moment) >= to_tick(row[table.until or ""])
            if begun and not over:
                holding[to_tick(row[table.version])] = row
        return [holding[max(holding)]] if holding else []

    def on_punctuation(self, pattern: Pattern, input: int = 0) -> Iterable[Item]:
        same = {name: name for name in pattern.restricted}
        return [Assertion(pattern.onto(self.declared.schema, same))]

    def state(self) -> list[Any]:
        return []
