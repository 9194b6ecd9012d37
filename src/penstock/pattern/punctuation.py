"""Punctuations: promises in a stream that no further event matches a pattern.

A punctuated stream is *grammatical* if no event follows a punctuation that it matches. A `PunctuationSet` is what has
been promised so far, kept small: what is contained in something else is not stored twice, and ranges that touch grow
together, so a frontier that advances a million times stays one pattern.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.pattern.minimise import Containers, contains_beside, forgetting, jointly_cover, smallest, without
from penstock.pattern.pattern import Pattern
from penstock.pattern.restriction_set import jointly_contain
from penstock.pattern.schema import Schema

Event = Mapping[str, Any] | Sequence[Any]


@dataclass(frozen=True)
class PunctuationSet:
    """Patterns over one schema, of which none contains another.

    >>> s = Schema.parse("wid int, key string")
    >>> seen = PunctuationSet(s).add(Pattern.parse("[< 3, *]", s), Pattern.parse("[[3, 5], *]", s))
    >>> print(seen, seen.covers(Pattern.parse("[4, 'a']", s)))
    [<= 5, *] True
    """

    schema: Schema
    patterns: tuple[Pattern, ...] = ()

    def add(self, *patterns: Pattern) -> PunctuationSet:
        """This set with more punctuations; the same set if they say nothing new."""
        stored = Containers(self.patterns)
        fresh: list[Pattern] = []
        for pattern in patterns:
            if pattern.schema is not self.schema and pattern.schema.attributes != self.schema.attributes:
                raise ValueError(f"punctuation {pattern} is not over ({self.schema})")
            if not pattern.is_empty and not stored.contain(pattern):
                fresh.append(pattern)
        if not fresh:
            return self
        return PunctuationSet(self.schema, tuple(smallest([*self.patterns, *fresh], self.schema)))

    def without(self, *patterns: Pattern, keep_ranges: bool = False) -> PunctuationSet:
        """This set without what some patterns say, where what is left can be written down.

        That is so for patterns that differ in one attribute: a list without some of its values, a range without a
        part of it (unless `keep_ranges`). What cannot be taken away stays.

        >>> s = Schema.parse("trip int, v double")
        >>> seen = PunctuationSet(s).add(Pattern.parse("[{3, 5, 9}, *]", s), Pattern.parse("[< 3, *]", s))
        >>> print(seen.without(Pattern.parse("[{1, 5}, *]", s)))
        [<= 0, *] [[2, 3], *] [9, *]
        """
        left = list(self.patterns)
        for q in patterns:
            left = [piece for p in left for piece in without(p, q, keep_ranges=keep_ranges)]
        if len(left) == len(self.patterns) and all(a is b for a, b in zip(left, self.patterns, strict=True)):
            return self
        return PunctuationSet(self.schema, tuple(p for p in left if not p.is_empty))

    def forget(self, *patterns: Pattern) -> PunctuationSet:
        """This set without what some patterns say, where that makes it smaller: ranges get no holes but short ones.

        >>> s = Schema.parse("k int")
        >>> seen = PunctuationSet(s).add(*(Pattern.parse(text, s) for text in ("[< 9]", "[{12, 14}]", "[[20, 22]]")))
        >>> print(seen.forget(Pattern.parse("[{1, 12, 21}]", s)))
        [< 9] [20] [22] [14]
        """
        left = list(self.patterns)
        for q in patterns:
            left = [piece for p in left for piece in forgetting(p, q)]
        return PunctuationSet(self.schema, tuple(left))

    def covers(self, pattern: Pattern) -> bool:
        """Whether every event that matches `pattern` matches one of these.

        Exact, unless so many patterns must come together that the search is given up: then the answer is no.

        >>> s = Schema.parse("a int")
        >>> seen = PunctuationSet(s).add(Pattern.parse("[< 3]", s), Pattern.parse("[9]", s))
        >>> seen.covers(Pattern.parse("[{1, 9}]", s)), seen.covers(Pattern.parse("[{1, 8}]", s))
        (True, False)
        """
        if pattern.is_empty or any(p.contains(pattern) for p in self.patterns):
            return True
        for i, wanted in enumerate(pattern.restrictions):
            beside = [p.restrictions[i] for p in self.patterns if contains_beside(p, pattern, i)]
            if len(beside) > 1 and jointly_contain(beside, wanted, self.schema.attributes[i].type):
                return True
        return len(pattern.restricted) > 1 and jointly_cover(self.patterns, pattern)

    def matches(self, table: pa.Table | pa.RecordBatch) -> pa.BooleanArray:
        """Which rows match some punctuation, that is, come too late."""
        result: pa.BooleanArray | None = None
        for pattern in self.patterns:
            mask = pattern.matches(table)
            result = mask if result is None else pc.or_(result, mask)
        return pa.repeat(False, table.num_rows) if result is None else result

    def matches_row(self, row: Mapping[str, Any]) -> bool:
        """Whether one event matches some punctuation."""
        return any(p.matches_row(row) for p in self.patterns)

    def to_sql(self) -> str:
        """A DuckDB predicate, never null: which events match some punctuation."""
        return " OR ".join(f"({p.to_sql()})" for p in self.patterns) or "FALSE"

    def __iter__(self) -> Iterator[Pattern]:
        return iter(self.patterns)

    def __len__(self) -> int:
        return len(self.patterns)

    def __str__(self) -> str:
        return " ".join(map(str, self.patterns)) or "(none)"

    def to_json(self) -> list[Any]:
        return [p.to_json() for p in self.patterns]

    @classmethod
    def from_json(cls, stored: Iterable[list[Any]], schema: Schema) -> PunctuationSet:
        return cls(schema, tuple(Pattern.from_json(p, schema) for p in stored))
