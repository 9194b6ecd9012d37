"""Keeping sets of patterns small: merged where they differ in one attribute, and nothing stored twice.

A set of promises lives as long as its stream. So it must not grow with the number of epochs, and adding to it must not
compare everything with everything: candidates are looked up by which attributes they restrict and by listed values.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from penstock.pattern.pattern import Pattern
from penstock.pattern.restriction import ANY, Equal, Range, Restriction, values_of
from penstock.pattern.restriction_set import LONG_RANGE, subtract, union
from penstock.pattern.schema import Schema

#: Groups of fewer patterns are searched one by one; longer lists of values are not worth an entry for each.
_FEW_PATTERNS = 8
_LONG_LIST = 1_000
#: How many pieces of a pattern are followed to find out whether others cover it together.
_PIECES = 256

_Row = tuple[Restriction, ...]


def smallest(patterns: Sequence[Pattern], schema: Schema) -> list[Pattern]:
    """Patterns that match the same events, of which none contains another."""
    return _trimmed(maximal(_merged(patterns, schema)))


def _merged(patterns: Sequence[Pattern], schema: Schema) -> list[Pattern]:
    """Patterns that differ in one attribute as one, where their values there make one restriction."""
    given = {id(p.restrictions): p for p in patterns}
    rows = [p.restrictions for p in patterns]
    for i, attribute in enumerate(schema):
        groups: dict[_Row, list[_Row]] = {}
        if len(rows) < 2:
            break
        for row in rows:
            groups.setdefault(row[:i] + row[i + 1 :], []).append(row)
        if len(groups) == len(rows):
            continue
        rows = []
        for rest, together in groups.items():
            if len(together) == 1:
                rows += together
            else:
                rows += [(*rest[:i], r, *rest[i:]) for r in union([row[i] for row in together], attribute.type)]
    return [given.get(id(row)) or Pattern(schema, row) for row in rows]


def maximal(patterns: Sequence[Pattern]) -> list[Pattern]:
    """Those not contained in another, in their order; of equal ones the first.

    >>> s = Schema.parse("a int, b int")
    >>> print(*maximal([Pattern.parse(text, s) for text in ("[3, *]", "[< 7, 2]", "[< 7, *]", "[*, 4]")]))
    [< 7, *] [*, 4]
    """
    containers = Containers(patterns)
    kept: list[Pattern] = []
    for k, p in enumerate(patterns):
        for m, q in containers.candidates(p):
            if m != k and q.contains(p) and (m < k or not p.contains(q)):
                break
        else:
            if not p.is_empty:
                kept.append(p)
    return kept


class Containers:
    """Finds those of many patterns that may contain a given one, without looking at all of them."""

    def __init__(self, patterns: Iterable[Pattern]) -> None:
        grouped: dict[tuple[int, ...], list[tuple[int, Pattern]]] = {}
        for k, p in enumerate(patterns):
            grouped.setdefault(_restricted(p), []).append((k, p))
        self._groups = [(set(where), _Group(where, members)) for where, members in grouped.items()]

    def candidates(self, p: Pattern, but: int | None = None) -> Iterator[tuple[int, Pattern]]:
        """Numbers and patterns; with `but`, those that may contain a part of it along that attribute."""
        where = set(_restricted(p))
        for restricted, group in self._groups:
            # Whoever restricts an attribute that `p` does not restrict contains none of it.
            if restricted <= where:
                yield from group.candidates(p, but)

    def contain(self, p: Pattern) -> bool:
        """Whether one of the patterns contains `p`."""
        return any(q.contains(p) for _, q in self.candidates(p))


class _Group:
    """Patterns that restrict the same attributes, by the values they list for one of them."""

    def __init__(self, where: tuple[int, ...], members: list[tuple[int, Pattern]]) -> None:
        self.members = members
        self.pivot: int | None = None
        if len(members) > _FEW_PATTERNS and where:
            self.pivot = max(where, key=lambda i: sum(is_named(p.restrictions[i]) for _, p in members))
            self.listed: dict[object, list[tuple[int, Pattern]]] = {}
            self.others: list[tuple[int, Pattern]] = []
            for member in members:
                values = _named(member[1].restrictions[self.pivot])
                if not 0 < len(values) <= _LONG_LIST:
                    self.others.append(member)
                    continue
                for value in values:
                    self.listed.setdefault(value, []).append(member)

    def candidates(self, p: Pattern, but: int | None) -> Iterable[tuple[int, Pattern]]:
        if self.pivot is None:
            return self.members
        values = _named(p.restrictions[self.pivot])
        if not values or (self.pivot == but and len(values) > _LONG_LIST):
            return self.members
        if self.pivot != but:
            return [*self.listed.get(values[0], ()), *self.others]
        found = {k: (k, q) for v in values for k, q in self.listed.get(v, ())}
        return [*found.values(), *self.others]


def lists_values(pattern: Pattern) -> bool:
    """Whether a pattern names single values or neighbours in whatever it restricts."""
    return all(r is ANY or is_named(r) for r in pattern.restrictions)


def grows(pattern: Pattern) -> bool:
    """Whether a later pattern of its kind contains it, as with frontiers; others only come beside each other."""
    return not any(r is not ANY and is_named(r) for r in pattern.restrictions)


def is_named(restriction: Restriction) -> bool:
    """A value, a list, or the range that neighbouring integers have become; other ranges stay as they were given."""
    return type(restriction) is not Range or (
        type(restriction.low) is int and restriction.low_closed and restriction.high_closed
    )


def _named(restriction: Restriction) -> Sequence[object]:
    """The values of such a restriction."""
    if type(restriction) is Range:
        return range(restriction.low, restriction.high + 1) if is_named(restriction) else ()
    return values_of(restriction)


def _restricted(p: Pattern) -> tuple[int, ...]:
    return tuple(i for i, r in enumerate(p.restrictions) if r is not ANY)


def _trimmed(patterns: list[Pattern]) -> list[Pattern]:
    """Without listed values that other patterns speak of anyway.

    With `[{1, 2}, < 5]`, `[1, < 7]` and `[2, < 8]`, the first says nothing any more though neither of the others
    contains it. Without this, the promises of many keys that advance at their own pace would pile up.
    """
    lists = [
        (k, i)
        for k, p in enumerate(patterns)
        if len(where := _restricted(p)) > 1
        for i in where
        if is_named(p.restrictions[i]) and type(p.restrictions[i]) is not Equal
    ]
    if not lists or len(patterns) < 2:
        return patterns
    containers = Containers(patterns)
    current: list[list[Pattern]] = [[p] for p in patterns]
    for k, i in lists:
        for m, _ in containers.candidates(patterns[k], i):
            # Both as they are by now, or two patterns might each leave to the other what both say.
            for q in current[m] if m != k else ():
                current[k] = [piece for p in current[k] for piece in _along(p, q, i)]
    return [p for pieces in current for p in pieces]


def _along(p: Pattern, q: Pattern, i: int) -> list[Pattern]:
    """What is left of `p` without `q`, if that contains it but for attribute i."""
    if not contains_beside(q, p, i):
        return [p]
    left = subtract(p.restrictions[i], q.restrictions[i], p.schema.attributes[i].type)
    return [p] if left == [p.restrictions[i]] else [_with(p, i, r) for r in left]


def contains_beside(q: Pattern, p: Pattern, i: int) -> bool:
    """Whether `q` contains `p` in all attributes but one.

    >>> s = Schema.parse("a int, b int")
    >>> contains_beside(Pattern.parse("[1, < 7]", s), Pattern.parse("[{1, 2}, < 5]", s), 0)
    True
    """
    return all(
        j == i or mine is its or mine.contains(its, p.schema.attributes[j].type)
        for j, (mine, its) in enumerate(zip(q.restrictions, p.restrictions, strict=True))
    )


def without(p: Pattern, q: Pattern, *, keep_ranges: bool = False) -> list[Pattern]:
    """What is left of `p` without the events of `q`, if both differ in one attribute at most; otherwise `p`."""
    if q.contains(p):
        return []
    for i, (mine, its) in enumerate(zip(p.restrictions, q.restrictions, strict=True)):
        if its is not ANY and mine is not ANY and contains_beside(q, p, i):
            if keep_ranges and isinstance(mine, Range):
                return [p]
            return _along(p, q, i)
    return [p]


def forgetting(p: Pattern, q: Pattern) -> list[Pattern]:
    """What is left of `p` without `q`, unless that makes a hole in a frontier or in a long range.

    With a hole for every key in it, a range would grow without end.
    """
    left = without(p, q)
    return [p] if len(left) > 1 and any(_is_long(r) for r in p.restrictions) else left


def _is_long(restriction: Restriction) -> bool:
    if type(restriction) is not Range:
        return False
    return not is_named(restriction) or restriction.high - restriction.low >= LONG_RANGE


def jointly_cover(patterns: Sequence[Pattern], wanted: Pattern) -> bool:
    """Whether the patterns together match every event that `wanted` matches.

    What each leaves of it is followed piece by piece. `*` without some values cannot be written down and counts as
    `*`, and there is a limit to the number of pieces: then the answer is no, though it might be yes.
    """
    pieces = [wanted]
    for q in patterns:
        pieces = [piece for p in pieces for piece in _outside(p, q)]
        if not pieces or len(pieces) > _PIECES:
            break
    return not pieces


def _outside(p: Pattern, q: Pattern) -> list[Pattern]:
    """Patterns that cover the events of `p` outside `q`, and none of them twice."""
    inside = p.intersect(q)
    if inside.is_empty:
        return [p]
    pieces: list[Pattern] = []
    inner = p
    for i, (mine, its) in enumerate(zip(p.restrictions, q.restrictions, strict=True)):
        if its is ANY or mine is its:
            continue
        left = [mine] if mine is ANY else subtract(mine, its, p.schema.attributes[i].type)
        if left == [mine]:
            return [p]
        pieces += [_with(inner, i, r) for r in left]
        inner = _with(inner, i, inside.restrictions[i])
    return pieces


def _with(p: Pattern, i: int, restriction: Restriction) -> Pattern:
    return Pattern(p.schema, (*p.restrictions[:i], restriction, *p.restrictions[i + 1 :]))
