"""Sorted prefixes: which first part of the sorted output punctuations complete.

An event may leave a sort once no event that sorts before it can come any more. So what counts is a region that begins
where the order begins, has no gap, and whose every possible event is promised away. It is the region of the first
attribute alone, then, at the value right behind it, the region of the second attribute, and so on: `a <= 5`, and with
`a = 6` those with `b < 3`. Null sorts last, ascending and descending, and NaN right before it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa

from penstock.pattern.gap import BEFORE_ALL, BEHIND_ALL, Cut, cutter
from penstock.pattern.pattern import Pattern
from penstock.pattern.restriction import ANY, Range, Restriction, at_least, at_most, equal, values_of
from penstock.pattern.restriction_set import union
from penstock.pattern.schema import Schema
from penstock.pattern.types import TIMESTAMP, integer_range
from penstock.plan.domain import Domains
from penstock.plan.whole_groups import described


def prefix(
    patterns: Iterable[Pattern], by: Sequence[tuple[str, bool]], schema: Schema, domains: Domains
) -> tuple[Pattern, ...]:
    """The longest complete prefix of the order `by`, a list of (attribute, descending), as patterns over the schema.

    >>> s = Schema.parse("a int, b int, c int")
    >>> given = [Pattern.parse(text, s) for text in ("[<= 5, *, *]", "[{6, 9}, < 3, *]", "[8, *, *]")]
    >>> print(*prefix(given, [("a", False), ("b", False)], s, {}))
    [<= 5, *, *] [6, < 3, *]
    """
    found: list[Pattern] = []
    fixed: dict[str, Restriction] = {}
    rest = list(patterns)
    for name, descending in by:
        i = schema.index(name)
        t = schema.attributes[i].type
        alone = [p.restrictions[i] for p in described(rest, [name], domains)]
        region = _Region(union(alone, t), domains.get(name), t, descending)
        if region.covered is not None:
            found.append(Pattern.by_name(schema, {**fixed, name: region.covered}))
        if region.covered is ANY or not region.has_next:
            break
        # Behind the region lies one value (or null), of which the next attribute may tell a part.
        rest = [_free(p, i) for p in rest if p.restrictions[i].matches(region.next)]
        if region.next is not None:
            fixed[name] = equal(region.next)
        if not rest:
            break
    return tuple(found)


def _free(p: Pattern, i: int) -> Pattern:
    return Pattern(p.schema, (*p.restrictions[:i], ANY, *p.restrictions[i + 1 :]))


class _Region:
    """The part of one attribute's order that is covered from its beginning, and the value right behind it."""

    def __init__(self, pieces: list[Restriction], domain: Restriction | None, t: pa.DataType, descending: bool) -> None:
        self.covered: Restriction | None = None
        self.has_next = False
        self.next: Any = None
        if ANY in pieces:
            self.covered = ANY
        elif domain is not None:
            self._of_domain(pieces, values_of(domain), descending)
        else:
            self._of_type(pieces, t, descending)

    def _of_domain(self, pieces: list[Restriction], values: tuple[Any, ...], descending: bool) -> None:
        ordered = values[::-1] if descending else values
        count = 0
        while count < len(ordered) and any(r.matches(ordered[count]) for r in pieces):
            count += 1
        if count == len(ordered):
            self.covered = ANY  # There is nothing else, not even null.
            return
        if count:
            self.covered = (at_least if descending else at_most)(ordered[count - 1])
        self.has_next, self.next = True, ordered[count]

    def _of_type(self, pieces: list[Restriction], t: pa.DataType, descending: bool) -> None:
        start, end = (BEHIND_ALL, BEFORE_ALL) if descending else (BEFORE_ALL, BEHIND_ALL)
        backwards = descending and pa.types.is_floating(t)
        if backwards:
            start = cutter(t)(math.inf, 1)  # NaN is the greatest value and yet comes behind all others.
        at, found = start, False
        for r in pieces:
            # The pieces do not touch each other, so at most one begins where the order begins.
            for low, high in _intervals_at(r, start, t):
                if (high >= start > low) if descending else low == start:
                    at, found = low if descending else high, high == BEHIND_ALL
                    self.covered = r if type(r) is Range else None
        if at == end:
            self.covered = Range(None, None) if found else at_most(math.inf)
            self.has_next = found  # Only null is left, and as `*` it can be told together with everything before.
            return
        if backwards and self.covered is not None:
            self.covered = self.covered.intersect(at_most(math.inf))
        if at != start and self.covered is None:
            self.covered = Range(_value(at, t), None, True) if descending else Range(None, _value(at, t))
        self.next = _beyond(at, t, descending)
        self.has_next = self.next is not None


def _intervals_at(r: Restriction, start: Cut, t: pa.DataType) -> list[tuple[Cut, Cut]]:
    """The extent of a restriction, if it may begin or end at the start; lists are long and hardly ever do."""
    if values := values_of(r):
        cut = cutter(t)
        if start not in (cut(values[0], 0), cut(values[-1], 1)):
            return []
    return r.extent(t)


def _beyond(at: Cut, t: pa.DataType, descending: bool) -> Any:
    """The value right behind a cut, in the direction of the order; None if there is no such value."""
    bounds: tuple[Any, Any] | None = None
    step: Any = None
    if pa.types.is_integer(t):
        bounds, step = integer_range(t), 1
    elif t == pa.bool_():
        bounds, step = (False, True), 1
    elif t == TIMESTAMP or pa.types.is_date(t):
        step = timedelta(microseconds=1) if t == TIMESTAMP else timedelta(days=1)
    elif pa.types.is_decimal(t):
        step = Decimal(1).scaleb(-t.scale)
    if at in (BEFORE_ALL, BEHIND_ALL):
        return None if bounds is None else bounds[descending]
    _, value, side = at
    if step is None:
        # The cut before a value, met from below, is followed by that value; what follows the value itself is unknown.
        return value if side == descending else None
    try:
        return _value((0, value - step, 0) if descending else at, t)
    except (OverflowError, ArithmeticError):
        return None


def _value(at: Cut, t: pa.DataType) -> Any:
    return bool(at[1]) if t == pa.bool_() else at[1]
