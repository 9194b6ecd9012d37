"""What one input of an operator has promised, and the question that everything turns on: can such an event still come?

A set of punctuations *describes* some values when every event with these values matches one of them. One punctuation
with `*` elsewhere does; so do several that together leave no room. The test here takes the definition at its word:
it cuts each attribute into pieces that no punctuation tells apart and tries them all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pyarrow as pa

from penstock.pattern.pattern import Pattern
from penstock.pattern.restriction import ANY, Restriction
from penstock.pattern.schema import Schema
from penstock.reference.domain import Domains
from penstock.reference.summary import identity


@dataclass(frozen=True)
class Value:
    """Exactly this value, which may be null."""

    value: Any

    def matched_by(self, restriction: Restriction, kind: pa.DataType) -> bool:
        return restriction.matches(self.value)


@dataclass(frozen=True)
class Stretch:
    """The values between two cuts, none of which is null."""

    low: tuple[int, Any, int]
    high: tuple[int, Any, int]

    def matched_by(self, restriction: Restriction, kind: pa.DataType) -> bool:
        return any(low <= self.low and self.high <= high for low, high in restriction.extent(kind))


#: What an event looks like that we ask for: per attribute one or more conditions, all of which hold.
Wanted = Mapping[str, Sequence[Value | Restriction]]


class Promises:
    """The punctuations of one input, the widest only.

    >>> schema = Schema.parse("sensor int, hour int")
    >>> promised = Promises(schema, {"sensor": (3, 4)})
    >>> [str(p) for p in promised.add(Pattern.parse("[3, <= 2]", schema))]
    ['[3, <= 2]']
    >>> promised.could_come({"hour": [Value(1)]})
    True
    >>> [str(p) for p in promised.add(Pattern.parse("[4, 1]", schema))]
    ['[*, 1]']
    >>> promised.could_come({"hour": [Value(1)]})
    False
    """

    def __init__(self, schema: Schema, domains: Domains | None = None) -> None:
        self.schema, self.domains = schema, dict(domains or {})
        self.patterns: list[Pattern] = []

    def add(self, pattern: Pattern) -> list[Pattern]:
        """Take note of a punctuation; return what is known now and was not before, the widest only.

        That may be more than was said: what has been promised for each value of a finite domain holds for all.
        """
        if self.covers(pattern):
            return []
        fresh = [pattern]
        for attribute in self.domains:
            fresh = widest([*fresh, *(w for p in fresh for w in self._for_every_value(attribute, p, fresh))])
        fresh = [p for p in fresh if not self.covers(p)]
        self.patterns = widest([*self.patterns, *fresh])
        return fresh

    def covers(self, pattern: Pattern) -> bool:
        """Whether one punctuation alone says as much."""
        return any(known.contains(pattern) for known in self.patterns)

    def could_come(self, wanted: Wanted) -> bool:
        """Whether an event with these values is possible that matches no punctuation."""
        return self._escapes(list(self.schema.names), self.patterns, wanted)

    def _escapes(self, names: list[str], patterns: list[Pattern], wanted: Wanted) -> bool:
        if any(all(p[name] is ANY for name in names) for p in patterns):
            return False  # It has matched so far and restricts nothing of the rest.
        if not names:
            return True
        first, *rest = names
        kind = self.schema.type_of(first)
        return any(
            self._escapes(rest, [p for p in patterns if piece.matched_by(p[first], kind)], wanted)
            for piece in self._pieces(first, wanted.get(first, ()), patterns)
        )

    def _pieces(
        self, name: str, conditions: Sequence[Value | Restriction], patterns: Iterable[Pattern]
    ) -> Sequence[Value | Stretch]:
        """Values of one attribute, such that each punctuation matches all of a piece or nothing of it."""
        exact = [c for c in conditions if isinstance(c, Value)]
        ranges = [c for c in conditions if isinstance(c, Restriction)]
        listed = [Value(v) for v in self.domains[name]] if name in self.domains else exact[:1]
        if listed:
            same = all(identity(e.value) == identity(exact[0].value) for e in exact)
            candidates = [v for v in listed if not exact or identity(v.value) == identity(exact[0].value)]
            return [v for v in candidates if same and all(r.matches(v.value) for r in ranges)]
        if not ranges:
            return [Value(None)]  # Whatever matches null is `*` and matches everything.
        common = ranges[0]
        for each in ranges[1:]:
            common = common.intersect(each)
        kind = self.schema.type_of(name)
        cuts = sorted({cut for p in patterns if p[name] is not ANY for ends in p[name].extent(kind) for cut in ends})
        pieces: list[Value | Stretch] = []
        for low, high in common.extent(kind):
            inside = [low, *(c for c in cuts if low < c < high), high]
            pieces += [Stretch(a, b) for a, b in pairwise(inside)]
        return pieces

    def _for_every_value(self, attribute: str, pattern: Pattern, fresh: list[Pattern]) -> list[Pattern]:
        """What this punctuation and known ones promise together for all values of an attribute."""
        if pattern[attribute] is ANY:
            return []
        common = [_without(pattern, attribute)]
        for value in self.domains[attribute]:
            if not pattern[attribute].matches(value):
                others = [_without(p, attribute) for p in [*self.patterns, *fresh] if p[attribute].matches(value)]
                common = widest(a.intersect(b) for a in common for b in others)
        return common


def widest(patterns: Iterable[Pattern]) -> list[Pattern]:
    """Those that are not empty nor contained in another."""
    kept: list[Pattern] = []
    for pattern in patterns:
        if not pattern.is_empty and not any(k.contains(pattern) for k in kept):
            kept = [k for k in kept if not pattern.contains(k)] + [pattern]
    return kept


def _without(pattern: Pattern, attribute: str) -> Pattern:
    restrictions = {name: pattern[name] for name in pattern.restricted if name != attribute}
    return Pattern.by_name(pattern.schema, restrictions)
