"""Which groups punctuations speak of: the test "P describes A".

Punctuations describe a group, that is, values of some attributes A, if every event of that group which is possible at
all matches one of them. One that restricts nothing but A does so alone. Several can do it together: with sensors 1 and
2 and no others, `[1, < 7]` and `[2, < 5]` together describe all times below 5. For that the attributes beyond A need
declared finite domains. Without one, null is possible, and null is matched by `*` alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice, product
from typing import Any

from penstock.pattern.pattern import Pattern
from penstock.pattern.punctuation import PunctuationSet
from penstock.pattern.restriction import ANY, Restriction, values_of
from penstock.pattern.schema import Schema
from penstock.plan.domain import Domains

#: How many ways to combine punctuations are tried for one value of a domain. The number of groups that several
#: punctuations describe can grow exponentially with the domains; beyond the limit some are not found, which delays
#: answers and never makes a wrong one.
LIMIT = 4_000

_Row = tuple[Restriction, ...]


def described(patterns: Iterable[Pattern], attributes: Sequence[str], domains: Domains) -> tuple[Pattern, ...]:
    """Patterns that restrict only `attributes`, as large as possible: every possible event that matches one of them
    matches one of the given punctuations. `domains` holds finite domains of the other attributes.

    >>> from penstock.pattern.restriction import one_of
    >>> s = Schema.parse("sensor int, ts int")
    >>> given = [Pattern.parse(text, s) for text in ("[1, < 7]", "[2, < 5]", "[*, 9]")]
    >>> print(*described(given, ["ts"], {"sensor": one_of([1, 2])}), "and", *described(given, ["ts"], {}))
    [*, < 5] [*, 9] and [*, 9]
    """
    given = list(patterns)
    if not given:
        return ()
    schema = given[0].schema
    scope = _Scope(schema, attributes, domains)
    whole, partial = scope.sort(given)
    return PunctuationSet(schema).add(*scope.jointly(partial), *whole).patterns


class Describer:
    """Tells, punctuation after punctuation, which groups have become described.

    Punctuations that describe groups on their own go straight through: only those that need others are remembered.

    >>> from penstock.pattern.restriction import one_of
    >>> s = Schema.parse("sensor int, ts int")
    >>> groups = Describer(s, ["ts"], {"sensor": one_of([1, 2])})
    >>> [[str(p) for p in groups.add([Pattern.parse(text, s)])] for text in ("[1, < 7]", "[2, < 5]", "[*, 9]")]
    [[], ['[*, < 5]'], ['[*, 9]']]
    """

    def __init__(self, schema: Schema, attributes: Sequence[str], domains: Domains) -> None:
        self._scope = _Scope(schema, attributes, domains)
        self._waiting = PunctuationSet(schema)
        self._said = PunctuationSet(schema)

    def add(self, patterns: Iterable[Pattern]) -> tuple[Pattern, ...]:
        """More punctuations → patterns over the attributes that are described now and were not before."""
        whole, partial = self._scope.sort(patterns)
        if partial:
            self._waiting = self._waiting.add(*partial)
        if not self._waiting:
            return tuple(whole)
        said = self._said.add(*whole)
        joint: tuple[Pattern, ...] = ()
        if partial:
            joint = tuple(p for p in self._scope.jointly(self._waiting) if not said.covers(p))
            said = said.add(*joint)
        if said is not self._said:
            self._said = said
            # Ranges stay whole: of times up to 7 those up to 5 may be known, and yet "up to 7" says more than "5 to 7".
            self._waiting = self._waiting.without(*said, keep_ranges=True)
        return (*whole, *joint)

    def to_json(self) -> dict[str, Any]:
        return {"waiting": self._waiting.to_json(), "said": self._said.to_json()}

    def restore(self, stored: Mapping[str, Any]) -> None:
        schema = self._waiting.schema
        self._waiting = PunctuationSet.from_json(stored["waiting"], schema)
        self._said = PunctuationSet.from_json(stored["said"], schema)


class _Scope:
    """The attributes to describe, and the finite domains of those beyond."""

    def __init__(self, schema: Schema, attributes: Sequence[str], domains: Domains) -> None:
        inside = {schema.index(n) for n in attributes}
        self.schema = schema
        self.beyond = [i for i in range(len(schema)) if i not in inside]
        self.finite = {i: domains[schema.names[i]] for i in self.beyond if schema.names[i] in domains}

    def sort(self, patterns: Iterable[Pattern]) -> tuple[list[Pattern], list[Pattern]]:
        """Punctuations that describe groups on their own, and those that can do so together with others."""
        whole: list[Pattern] = []
        partial: list[Pattern] = []
        for pattern in patterns:
            if pattern.is_empty:
                continue
            row = pattern.restrictions
            limited = [i for i in self.beyond if row[i] is not ANY]
            if limited:
                if any(i not in self.finite for i in limited):
                    continue  # An event with null there escapes this punctuation, whatever the others say.
                wide = {i for i in limited if self._spans(row[i], i)}
                if wide:
                    row = tuple(ANY if i in wide else r for i, r in enumerate(row))
                    pattern = Pattern(self.schema, row)
                if len(wide) < len(limited):
                    partial.append(pattern)
                    continue
            whole.append(pattern)
        return whole, partial

    def _spans(self, restriction: Restriction, i: int) -> bool:
        return all(restriction.matches(v) for v in values_of(self.finite[i]))

    def jointly(self, patterns: Iterable[Pattern]) -> list[Pattern]:
        """What the patterns describe: the attributes beyond are eliminated one after the other."""
        found = PunctuationSet(self.schema, tuple(patterns))
        for i in self.finite:
            if not found:
                break
            found = self._eliminate(found, i)
        return list(found)

    def _eliminate(self, patterns: PunctuationSet, i: int) -> PunctuationSet:
        """For each value of attribute i, one pattern that matches it; what all these have in common holds for all."""
        free = [p for p in patterns if p.restrictions[i] is ANY]
        bound = [p for p in patterns if p.restrictions[i] is not ANY]
        choices = _fitting(values_of(self.finite[i]), [p.restrictions[i] for p in bound])
        if () in choices:
            return PunctuationSet(self.schema).add(*free)
        rows = [_with(p.restrictions, i, ANY) for p in bound]
        common = PunctuationSet(self.schema).add(Pattern.all(self.schema))
        for choice in sorted(choices, key=lambda c: (len(c), c)):
            pairs = islice(product(common, choice), LIMIT)
            met = (_intersection(c.restrictions, rows[k]) for c, k in pairs)
            common = PunctuationSet(self.schema).add(*(Pattern(self.schema, row) for row in met))
            if not common:
                break
        return common.add(*free)


def _fitting(values: tuple[Any, ...], restrictions: list[Restriction]) -> set[tuple[int, ...]]:
    """For each value, which of the restrictions match it; values for which the same do count once."""
    matched: dict[Any, list[int]] = {v: [] for v in values}
    for k, restriction in enumerate(restrictions):
        # A list is looked up, since there is often one pattern for each of a thousand values.
        listed = values_of(restriction)
        for value in listed if listed else [v for v in values if restriction.matches(v)]:
            if value in matched:
                matched[value].append(k)
    return {tuple(m) for m in matched.values()}


def _with(row: _Row, i: int, restriction: Restriction) -> _Row:
    return (*row[:i], restriction, *row[i + 1 :])


def _intersection(a: _Row, b: _Row) -> _Row:
    return tuple(x.intersect(y) for x, y in zip(a, b, strict=True))
