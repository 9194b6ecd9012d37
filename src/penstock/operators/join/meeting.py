"""What a join may release and promise, given the promises of its inputs.

Everything follows from what a future result needs: at least one event that is still to come, and for every other input
an event that is stored or to come. So

- a stored row of input k is *settled* once all other inputs have promised away every event that could join it: their
  promises on the join key, and on time as far as the band reaches, translated to the attributes of k;
- no further result has a k-part that matches P once k has promised P and what is stored of P is settled. The part of P
  where all inputs agree follows from the promises alone. Otherwise the state is asked: if nothing stored matches, or
  once the latest match has left its window, P goes out.

With m inputs this is the m-way join; the binary one is m = 2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa

from penstock.operators.join.operator import PADDED, Join, Joined
from penstock.operators.multijoin.operator import MultiJoin
from penstock.pattern.fit import fitted
from penstock.pattern.minimise import lists_values
from penstock.pattern.pattern import Pattern
from penstock.pattern.restriction import (
    ANY,
    Equal,
    OneOf,
    Range,
    Restriction,
    at_most,
    between,
    equal,
    one_of,
)
from penstock.pattern.schema import Schema
from penstock.plan.window import Unit, from_tick, to_tick

#: From a row of one input at time t, its partners in another lie in [t + low, t + high]; None is open.
Reach = tuple[int | None, int | None]


@dataclass(frozen=True)
class Side:
    """One input of a join: its attributes that matter for meeting, and where its attributes go in the output."""

    schema: Schema
    keys: tuple[str, ...]
    time: str | None
    lifted: Mapping[str, str]
    guarded: bool
    """Whether a promise on keys alone needs the other side too: that side's rows may come out padded."""

    @cached_property
    def unit(self) -> Unit | None:
        return None if self.time is None else unit_of(self.schema.type_of(self.time))

    def lift(self, pattern: Pattern, output: Schema) -> Pattern | None:
        """The promise in terms of the output, None if it speaks of attributes that are not there."""
        if not all(n in self.lifted for n in pattern.restricted):
            return None
        moved = ((self.lifted[n], pattern[n]) for n in pattern.restricted)
        return Pattern.by_name(output, {name: fitted(r, output.type_of(name)) for name, r in moved})

    def speaks_of_keys_alone(self, pattern: Pattern) -> bool:
        return pattern.describes(self.keys)

    def until(self, tick: int) -> Pattern:
        """Everything up to a moment."""
        assert self.time is not None and self.unit is not None
        return Pattern.by_name(self.schema, {self.time: at_most(from_tick(tick, self.unit))})


@dataclass(frozen=True)
class Meeting:
    """The inputs of a join and how far they reach for each other in time."""

    sides: tuple[Side, ...]
    reach: Mapping[tuple[int, int], Reach]
    output: Schema

    def translate(self, pattern: Pattern, of: int, to: int) -> Pattern | None:
        """The rows of one side that a promise of another settles, as far as that other side is concerned.

        None if it settles nothing by itself.
        """
        mine, other = self.sides[of], self.sides[to]
        found: dict[str, Restriction] = {}
        for name in pattern.restricted:
            restriction = pattern[name]
            if name in mine.keys:
                key = other.keys[mine.keys.index(name)]
                known = found.get(key, ANY)
                found[key] = known.intersect(restriction)
            elif name == mine.time and other.time is not None and other.unit is not None:
                moved = shift(restriction, self.reach[to, of], other.unit)
                if moved is None:
                    return None
                found[other.time] = found.get(other.time, ANY).intersect(moved)
            else:
                return None
        result = Pattern.by_name(other.schema, {n: fitted(r, other.schema.type_of(n)) for n, r in found.items()})
        return None if result.is_empty else result

    def is_outlived(self, k: int) -> bool:
        """Whether rows of an input are settled by time alone, once that of all others has come far enough."""
        others = (h for h in range(len(self.sides)) if h != k)
        return self.sides[k].time is not None and all(self.reach[k, h][1] is not None for h in others)


def meeting_of(operator: Joined | MultiJoin) -> Meeting:
    """What matters for meeting, from the definition of a join."""
    count = len(operator.inputs)
    schemas = [i.schema for i in operator.inputs]
    if isinstance(operator, Joined):
        keys: Sequence[tuple[str, ...]] = [tuple(a for a, _ in operator.keys), tuple(b for _, b in operator.keys)]
        band = operator.band if isinstance(operator, Join) else None
        times: Sequence[str | None] = [None, None] if band is None else [band.left, band.right]
        reach: dict[tuple[int, int], Reach] = {(0, 1): (None, None), (1, 0): (None, None)}
        if band is not None:
            reach[0, 1] = band.low, band.high
            reach[1, 0] = _minus(band.high), _minus(band.low)
        silent = (1,) if operator.how in ("semi", "anti") else ()
        padded = PADDED[operator.how].difference(silent)
    else:
        keys, times = operator.keys, operator.times
        reach = {
            (k, h): (_minus(operator.windows[h]), operator.windows[k])
            for k in range(count)
            for h in range(count)
            if k != h
        }
        padded, silent = frozenset(), ()
    sides = []
    for k in range(count):
        lifted = {a: c.name for c in operator.columns for port, a in c.origins if port == k}
        for i, key in enumerate(keys[k]):
            # A key goes out under one name, whichever side it is taken from.
            name = next(
                (c.name for c in operator.columns if any((p, keys[p][i]) in c.origins for p in range(count))), None
            )
            if name is not None:
                lifted.setdefault(key, name)
        sides.append(Side(schemas[k], tuple(keys[k]), times[k], {} if k in silent else lifted, k in padded))
    return Meeting(tuple(sides), reach, operator.schema)


def used_by(operator: Join | MultiJoin, port: int) -> set[str]:
    """The attributes of an input that are read and kept: those that decide about partners or go out."""
    side = meeting_of(operator).sides[port]
    used = set(side.keys) | ({side.time} if side.time is not None else set())
    used |= {n for column in operator.columns for k, n in column.origins if k == port}
    if isinstance(operator, Join) and operator.residual is not None:
        used |= {a for k, a, n in operator.pair if k == port and n in operator.residual.columns}
    return used


def held_by(operator: Join | MultiJoin) -> dict[str, Any]:
    """What decides when rows of a join are released, as plain data."""
    meeting = meeting_of(operator)
    return {
        "kind": "join",
        "keys": [list(s.keys) for s in meeting.sides],
        "times": [s.time for s in meeting.sides],
        "reach": {f"{a},{b}": list(reach) for (a, b), reach in meeting.reach.items()},
    }


def _minus(ticks: int | None) -> int | None:
    return None if ticks is None else -ticks


def unit_of(t: pa.DataType) -> Unit:
    """What a tick of a time attribute is."""
    return "us" if pa.types.is_timestamp(t) else "day" if pa.types.is_date(t) else "unit"


def shift(restriction: Restriction, reach: Reach, unit: Unit) -> Restriction | None:
    """The moments t for which all of [t + low, t + high] matches; None if there are none, or none that can be named.

    >>> from penstock.pattern.restriction import less
    >>> print(shift(less(10), (-2, 3), "unit"), shift(between(1, 9, True, True), (0, 3), "unit"))
    < 7 [1, 6]
    """
    low, high = reach
    try:
        if isinstance(restriction, Range):
            start = stop = None
            if restriction.low is not None:
                if low is None:
                    return None
                start = from_tick(to_tick(restriction.low, unit) - low, unit)
            if restriction.high is not None:
                if high is None:
                    return None
                stop = from_tick(to_tick(restriction.high, unit) - high, unit)
            return between(start, stop, restriction.low_closed, restriction.high_closed)
        if low is None or low != high:
            return None
        if isinstance(restriction, Equal):
            return equal(from_tick(to_tick(restriction.value, unit) - low, unit))
        if isinstance(restriction, OneOf):
            return one_of([from_tick(to_tick(v, unit) - low, unit) for v in restriction.values])
    except OverflowError:
        return None  # Beyond the calendar: nothing is settled by it.
    return ANY if restriction is ANY else None


def lists_keys(pattern: Pattern, side: Side) -> bool:
    """Whether a promise names values of one key attribute, single ones or neighbours, and nothing else."""
    return len(pattern.restricted) == 1 and pattern.restricted[0] in side.keys and lists_values(pattern)
