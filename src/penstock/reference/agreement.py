"""What several parties have promised together: the punctuation that all of them have given."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from itertools import product

from penstock.pattern.pattern import Pattern


class Agreement:
    """Collects the punctuations of each party and tells which ones hold for all.

    A punctuation holds for the whole once every party has given one that covers it. With `< 10` from one and `< 7`
    from the other, both have given `< 7`: so what is common to one punctuation of each is agreed, and a frontier
    moves with the slowest.

    >>> from penstock.pattern.schema import Schema
    >>> schema = Schema.parse("hour int")
    >>> two = Agreement(["north", "south"])
    >>> two.give("north", Pattern.parse("[<= 3]", schema))
    []
    >>> [str(p) for p in two.give("south", Pattern.parse("[<= 2]", schema))]
    ['[<= 2]']
    """

    def __init__(self, parties: Iterable[Hashable]) -> None:
        self.given: dict[Hashable, list[Pattern]] = {party: [] for party in parties}
        self.agreed: list[Pattern] = []

    def give(self, party: Hashable, pattern: Pattern) -> list[Pattern]:
        """Take one party's punctuation; return what is agreed now and was not before, the widest only."""
        if any(known.contains(pattern) for known in self.given[party]):
            return []
        self.given[party] = [p for p in self.given[party] if not pattern.contains(p)] + [pattern]
        others = [patterns for other, patterns in self.given.items() if other != party]
        found: list[Pattern] = []
        for combination in product(*others):
            common = pattern
            for each in combination:
                common = common.intersect(each)
            covered = any(known.contains(common) for known in [*self.agreed, *found])
            if not common.is_empty and not covered:
                found = [p for p in found if not common.contains(p)] + [common]
        self.agreed = [p for p in self.agreed if not any(f.contains(p) for f in found)] + found
        return found

    def pending(self) -> list[tuple[Hashable, Pattern]]:
        """What some party has given that is not agreed yet."""
        return [
            (party, pattern)
            for party, patterns in self.given.items()
            for pattern in patterns
            if not any(known.contains(pattern) for known in self.agreed)
        ]
