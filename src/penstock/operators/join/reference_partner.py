"""Which events of a join belong together, what the partner of an event must look like, and what a result looks like."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any

import pyarrow as pa

from penstock.operators.join.operator import Join, Joined, Taken
from penstock.pattern.restriction import NOTHING, Restriction, between
from penstock.pattern.schema import Schema
from penstock.reference.failure import FAILURES, Note, ignore
from penstock.reference.item import Event
from penstock.reference.moment import from_tick, to_tick
from penstock.reference.promises import Value, Wanted
from penstock.reference.summary import identity
from penstock.sql.expression import evaluate_row

Row = Mapping[str, Any]


@dataclass
class HeldEvent:
    """An event in the state of a join. `matched` tells whether it has had a partner."""

    row: Row
    input: int
    matched: bool = field(default=False, compare=False)

    def copy(self) -> HeldEvent:
        """The event as it is now."""
        return HeldEvent(self.row, self.input, self.matched)

    def __str__(self) -> str:
        return f"input {self.input}: {Event(self.row)}{' (has had a partner)' if self.matched else ''}"


class Partners:
    """The condition of a join of two inputs: equal keys, times in the band, and the residual predicate."""

    def __init__(self, declared: Joined) -> None:
        self.declared = declared
        self.band = declared.band if isinstance(declared, Join) else None
        self.schemas = tuple(i.schema for i in declared.inputs)
        self.keys = tuple(tuple(pair[side] for pair in declared.keys) for side in (0, 1))
        self.on_failure: Note = ignore

    def match(self, left: Row, right: Row) -> bool:
        """Whether two events belong together.

        Null equals nothing unless the join says so; NaN equals NaN, as in SQL.
        """
        for a, b in self.declared.keys:
            if identity(left[a]) != identity(right[b]) or (left[a] is None and not self.declared.null_safe):
                return False
        band = self.band
        if band is not None:
            if left[band.left] is None or right[band.right] is None:
                return False
            distance = to_tick(right[band.right]) - to_tick(left[band.left])
            if (band.low is not None and distance < band.low) or (band.high is not None and distance > band.high):
                return False
        if self.declared.residual is None:
            return True
        pair = {name: (left, right)[side][attribute] for side, attribute, name in self.declared.pair}
        try:
            return evaluate_row(self.declared.residual, pair) is True
        except FAILURES as error:
            self.on_failure(pair, str(error))  # A pair that cannot be told to match does not.
            return False

    def wanted(self, side: int, row: Row) -> Wanted | None:
        """What a partner of an event of this side must look like on the other side; None if there can be none."""
        other = 1 - side
        values = [row[name] for name in self.keys[side]]
        if None in values and not self.declared.null_safe:
            return None
        found: dict[str, list[Value | Restriction]] = {}
        for name, value in zip(self.keys[other], values):
            found.setdefault(name, []).append(Value(value))
        band = self.band
        if band is not None:
            mine, theirs = (band.left, band.right) if side == 0 else (band.right, band.left)
            if row[mine] is None:
                return None
            now = to_tick(row[mine])
            low, high = (band.low, band.high) if side == 0 else (_minus(band.high), _minus(band.low))
            kind = self.schemas[other].type_of(theirs)
            ticks = None if low is None else now + low, None if high is None else now + high
            found.setdefault(theirs, []).append(moments(*ticks, kind))
        return found

    def same_key(self, side: int, row: Row) -> tuple[Any, ...] | None:
        """What tells keys apart; None for a key that equals nothing."""
        values = [row[name] for name in self.keys[side]]
        return None if None in values and not self.declared.null_safe else tuple(map(identity, values))


def _minus(ticks: int | None) -> int | None:
    return None if ticks is None else -ticks


def moments(low: int | None, high: int | None, kind: pa.DataType) -> Restriction:
    """The moments from one tick to another, both included; None is open.

    >>> print(moments(3, None, pa.int32()), moments(0, 1, pa.date32()), moments(None, 10**20, pa.timestamp("us")))
    >= 3 ['1970-01-01', '1970-01-02'] (, )
    """
    if not pa.types.is_integer(kind):
        calendar = date if pa.types.is_date(kind) else datetime
        first, last = to_tick(calendar.min), to_tick(calendar.max)
        if (low is not None and low > last) or (high is not None and high < first):
            return NOTHING
        low, high = (None if low is None or low < first else low), (None if high is None or high > last else high)
    first_value, last_value = (None if tick is None else from_tick(tick, kind) for tick in (low, high))
    return between(first_value, last_value, True, True)


def joined(columns: Sequence[Taken], rows: Sequence[Row | None], schema: Schema) -> Event:
    """The result of one event of each input; None stands for the one that is missing."""
    out: dict[str, Any] = {}
    for column in columns:
        values = [row[attribute] for side, attribute in column.origins if (row := rows[side]) is not None]
        out[column.name] = next((v for v in values if v is not None), None)
    return Event({name: out[name] for name in schema.names})
