"""What promises say together along one attribute.

`[< 5, 'A']` and `[[5, 9), *]` together promise `[< 9, 'A']`, though neither does alone. Whoever asks whether a whole
stretch of an attribute is promised away (a window of time, the reach of a join) must take promises together: along
that attribute all those count that hold for the same values of the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from penstock.pattern.pattern import Pattern
from penstock.pattern.restriction import ANY, Restriction, one_of, values_of
from penstock.pattern.schema import Schema

#: How many ways to overlap are followed for one promise: beyond it some are not found, which delays answers and never
#: makes a wrong one.
LIMIT = 256
#: Fewer promises are searched one by one; longer lists of values are not worth an entry for each.
_FEW_PATTERNS = 8
_LONG_LIST = 1_000

_Row = tuple[Restriction, ...]


def along(known: Sequence[Pattern], fresh: Iterable[Pattern], name: str) -> Iterator[tuple[Pattern, list[Restriction]]]:
    """For new ones among the known promises: patterns that leave attribute `name` free, and what is promised of it.

    All known promises count that hold for every event of such a pattern.

    >>> s = Schema.parse("ts int, k string")
    >>> known = [Pattern.parse(text, s) for text in ("[< 5, 'A']", "[[5, 9), *]", "[< 7, 'B']")]
    >>> for beside, times in along(known, known[:1], "ts"):
    ...     print(beside, *times)
    [*, 'A'] < 5 [5, 9)
    """
    fresh = list(fresh)
    if not fresh:
        return
    schema = fresh[0].schema
    i = schema.index(name)
    index = _Index(known, schema, i)
    told: set[_Row] = set()
    for p in fresh:
        for row, near in index.near(_free(p, i)):
            beside = [(_free(q, i), q.restrictions[i]) for q in near]
            for part in _overlaps(row, [other for other, _ in beside], schema):
                if part not in told:
                    told.add(part)
                    yield Pattern(schema, part), [r for other, r in beside if _contains(other, part, schema)]


class _Index:
    """Finds the promises that may overlap a given one: by the values that most of them name for one attribute."""

    def __init__(self, patterns: Sequence[Pattern], schema: Schema, i: int) -> None:
        self.others = list(patterns)
        self.listed: dict[object, list[int]] = {}
        beside = [j for j in range(len(schema)) if j != i]
        counts = {j: sum(_few(p.restrictions[j]) for p in patterns) for j in beside}
        self.pivot = max(beside, key=lambda j: counts[j], default=None)
        if self.pivot is None or counts[self.pivot] <= _FEW_PATTERNS:
            self.pivot = None
            return
        self.named = [p for p in patterns if _few(p.restrictions[self.pivot])]
        self.others = [p for p in patterns if not _few(p.restrictions[self.pivot])]
        for k, p in enumerate(self.named):
            for value in values_of(p.restrictions[self.pivot]):
                self.listed.setdefault(value, []).append(k)

    def near(self, row: _Row) -> Iterator[tuple[_Row, list[Pattern]]]:
        """The row in parts, and with each part all that may overlap it."""
        values = () if self.pivot is None else values_of(row[self.pivot])
        if self.pivot is None:
            yield row, self.others
        elif not values:
            yield row, [*self.named, *self.others]
        else:
            # Values that the same promises name are one part.
            parts: dict[tuple[int, ...], list[object]] = {}
            for value in values:
                parts.setdefault(tuple(self.listed.get(value, ())), []).append(value)
            for found, some in parts.items():
                part = (*row[: self.pivot], one_of(some), *row[self.pivot + 1 :])
                yield part, [*(self.named[k] for k in found), *self.others]


def _few(restriction: Restriction) -> bool:
    return 0 < len(values_of(restriction)) <= _LONG_LIST


def _free(p: Pattern, i: int) -> _Row:
    return (*p.restrictions[:i], ANY, *p.restrictions[i + 1 :])


def _overlaps(row: _Row, others: Iterable[_Row], schema: Schema) -> list[_Row]:
    """The row, and what it has in common with some of the others."""
    found = {row: None}
    for other in dict.fromkeys(others):
        for known in list(found):
            if len(found) >= LIMIT:
                return list(found)
            met = tuple(a.intersect(b) for a, b in zip(known, other, strict=True))
            if not any(r.is_empty(a.type) for r, a in zip(met, schema, strict=True)):
                found[met] = None
    return list(found)


def _contains(outer: _Row, inner: _Row, schema: Schema) -> bool:
    return all(a is b or a.contains(b, x.type) for a, b, x in zip(outer, inner, schema, strict=True))
