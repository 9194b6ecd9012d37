"""What the statistics of a Parquet file say of patterns: that every row of a row group matches, or that none can.

Least and greatest value of a column are taken for what they are by the format: bounds. Those of texts may be cut short,
but then outwards. They ignore nulls, which the count of nulls tells, and NaN, which nothing tells: so of a column of
floating point numbers it is never certain that all its values match anything.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.engine.source.formats.fit import Fit, fit
from penstock.errors import UserError
from penstock.kernels.ticks import from_tick, to_tick
from penstock.pattern.pattern import Pattern
from penstock.pattern.restriction import Equal, Range, Restriction, between
from penstock.pattern.restriction_set import jointly_contain
from penstock.pattern.schema import Schema
from penstock.pattern.types import canonical_type, coerce_value

# Ticks per unit are a ratio: (multiply, divide).
TO_MICROSECONDS = {"s": (1_000_000, 1), "ms": (1_000, 1), "us": (1, 1), "ns": (1, 1_000)}
#: Of files with more row groups than that, not all are looked at before the first is read.
_GROUPS = 256
_NOT_VALUES = (UserError, ValueError, OverflowError, ArithmeticError, TypeError, NotImplementedError)


@dataclass(frozen=True)
class Values:
    """What is known of the values of an attribute in a row group.

    All of them lie `within` (None: that is not known), but for nulls and NaN; `full` says that there are none of
    those, `void` that there are only nulls.
    """

    within: Restriction | None = None
    full: bool = False
    void: bool = False

    @property
    def fits(self) -> bool:
        """Whether the least and the greatest value are values of the declared type."""
        return self.void or self.within is not None

    def all_match(self, restriction: Restriction, t: pa.DataType) -> bool:
        """Whether every row is certain to match."""
        if not self.full:
            return False
        if type(restriction) is Range and restriction.low is None and restriction.high is None:
            return True
        return self.within is not None and restriction.contains(self.within, t)

    def may_match(self, restriction: Restriction, t: pa.DataType) -> bool:
        """Whether some row may match."""
        if self.void or self.within is None:
            return not self.void
        if type(restriction) is Range and restriction.high is None and pa.types.is_floating(t):
            return True  # There may be NaN.
        return not restriction.intersect(self.within).is_empty(t)


class FileStatistics:
    """The statistics of one file, row group by row group, in terms of the declared schema."""

    def __init__(self, metadata: pq.FileMetaData, schema: Schema) -> None:
        self.schema = schema
        self._metadata = metadata
        arrow = metadata.schema.to_arrow_schema()
        paths = [metadata.schema.column(i).path for i in range(metadata.num_columns)]
        # By name only where it is clear which column is meant: `a.b` may also be a field of a record `a`.
        counts = Counter(paths)
        self.leaves = {p: i for i, p in enumerate(paths) if counts[p] == 1 and arrow.get_field_index(p) >= 0}
        self.types = {p: arrow.field(p).type for p in self.leaves}
        self._values: dict[tuple[int, str], Values] = {}
        self._spans: dict[str, Values] = {}
        self._ranked: tuple[tuple[Pattern, ...], dict[int, int]] = ((), {})
        self._found: tuple[Sequence[Pattern], Sequence[Pattern]] = ((), [])

    @cached_property
    def drifted(self) -> bool:
        """Whether the file cannot hold events of the schema: whoever reads it is to say so."""
        found = self.types
        return any(n not in found or fit(found[n], self.schema.type_of(n)) is Fit.NEVER for n in self.schema.names)

    def values(self, group: int, name: str) -> Values:
        """What is known of an attribute in a row group."""
        key = (group, name)
        if key not in self._values:
            self._values[key] = self._look_up(group, name)
        return self._values[key]

    def in_question(self, patterns: Sequence[Pattern]) -> Sequence[Pattern]:
        """The patterns that some row of the file may match: as a rule few of them, which one look at each tells."""
        if self._metadata.num_row_groups > _GROUPS:
            return patterns
        if self._found[0] is not patterns:
            found = [p for p in patterns if all(self._anywhere(n, p[n]) for n in p.restricted)]
            self._found = (patterns, found)
        return self._found[1]

    def _anywhere(self, name: str, restriction: Restriction) -> bool:
        if name not in self._spans:
            self._spans[name] = _span([self.values(g, name) for g in range(self._metadata.num_row_groups)])
        return self._spans[name].may_match(restriction, self.schema.type_of(name))

    def is_certain(self, group: int, patterns: Sequence[Pattern]) -> bool:
        """Whether every row of a row group matches one of the patterns."""
        if not patterns or self.drifted:
            return False
        rest: dict[str, list[Restriction]] = {}
        for pattern in self.in_question(patterns):
            open_ = [n for n in pattern.restricted if not self._all_match(group, n, pattern[n])]
            if not open_:
                return True
            # One that holds no value of the row group adds nothing, and to put restrictions together costs much more.
            if len(open_) == 1 and self._may_match(group, open_[0], pattern[open_[0]]):
                rest.setdefault(open_[0], []).append(pattern[open_[0]])
        # Each of these needs one attribute more, and what one of them leaves of it another may hold.
        return any(len(r) > 1 and self._jointly_match(group, name, r) for name, r in rest.items())

    def rank(self, group: int, patterns: tuple[Pattern, ...]) -> int:
        """The place of the first pattern that a row of the row group may match; the number of patterns if none."""
        if self._ranked[0] != patterns:
            self._ranked = (patterns, {})
        known = self._ranked[1]
        if group not in known:
            found = (i for i, pattern in enumerate(patterns) if self.may_match(group, pattern))
            known[group] = next(found, len(patterns))
        return known[group]

    def may_match(self, group: int, pattern: Pattern) -> bool:
        """Whether some row of a row group may match a pattern."""
        return all(self._may_match(group, n, pattern[n]) for n in pattern.restricted)

    def _may_match(self, group: int, name: str, restriction: Restriction) -> bool:
        return self.values(group, name).may_match(restriction, self.schema.type_of(name))

    def _all_match(self, group: int, name: str, restriction: Restriction) -> bool:
        return self.values(group, name).all_match(restriction, self.schema.type_of(name))

    def _jointly_match(self, group: int, name: str, restrictions: Sequence[Restriction]) -> bool:
        found = self.values(group, name)
        if not found.full or found.within is None:
            return False
        return jointly_contain(restrictions, found.within, self.schema.type_of(name))

    def _look_up(self, group: int, name: str) -> Values:
        if name not in self.leaves:
            return Values()
        found = self._metadata.row_group(group)
        statistics = found.column(self.leaves[name]).statistics
        if statistics is None:
            return Values()
        nulls = statistics.null_count if statistics.has_null_count else None
        if nulls is not None and nulls == found.num_rows:
            return Values(void=True)
        held, wanted = self.types[name], self.schema.type_of(name)
        within = _within(statistics, held, wanted) if statistics.has_min_max else None
        # A value that does not fit the declared type is none of its values.
        # Nor is one between two microseconds, which least and greatest do not tell, or one beyond the calendar.
        sure = fit(held, wanted) is Fit.SURE and not pa.types.is_temporal(wanted)
        fits = (within is not None or sure) and getattr(held, "unit", None) != "ns"
        return Values(within, full=nulls == 0 and fits and not pa.types.is_floating(held))


def _span(groups: Sequence[Values]) -> Values:
    """What is known of an attribute in several row groups together: where its values lie, if that is known of all."""
    known = [v for v in groups if not v.void]
    if not known:
        return Values(void=True)
    ends = [_ends_of(v.within) for v in known if v.within is not None]
    if len(ends) < len(known):
        return Values()
    return Values(between(min(low for low, _ in ends), max(high for _, high in ends), True, True))


def _ends_of(within: Restriction) -> tuple[Any, Any]:
    if isinstance(within, Equal):
        return within.value, within.value
    assert isinstance(within, Range)
    return within.low, within.high


def _within(statistics: Any, held: pa.DataType, wanted: pa.DataType) -> Restriction | None:
    """Least and greatest value in the declared type; None where they say nothing of the values in it."""
    if pa.types.is_dictionary(held):
        held = held.value_type
    try:
        low, high = _ends(statistics, held, wanted)
    except _NOT_VALUES:
        return None
    return between(low, high, True, True) if low <= high else None


def _ends(statistics: Any, held: pa.DataType, wanted: pa.DataType) -> tuple[Any, Any]:
    if pa.types.is_timestamp(held) and pa.types.is_timestamp(wanted):
        times, over = TO_MICROSECONDS[held.unit]
        low, high = statistics.min_raw * times // over, statistics.max_raw * times // over
        return _from_tick(low, wanted), _from_tick(high, wanted)
    if pa.types.is_date32(held) and wanted == held:
        return _from_tick(statistics.min_raw, wanted), _from_tick(statistics.max_raw, wanted)
    if held == wanted and pa.types.is_integer(held):
        return statistics.min, statistics.max
    whole = pa.types.is_integer(held) and (pa.types.is_integer(wanted) or pa.types.is_floating(wanted))
    float_ = pa.types.is_floating(held) and pa.types.is_floating(wanted) and not pa.types.is_float16(held)
    if not whole and not float_ and canonical_type(held) != wanted:
        raise ValueError(f"{held} says nothing of {wanted}")
    low, high = statistics.min, statistics.max
    ends = coerce_value(low, wanted), coerce_value(high, wanted)
    if ends != (low, high):
        raise ValueError("rounded")
    return ends


def _from_tick(tick: int, t: pa.DataType) -> Any:
    value = from_tick(tick, t)
    if to_tick(value) != tick:
        raise ValueError("beyond the calendar")
    return value
