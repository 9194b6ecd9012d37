"""Which punctuations a join may pass on.

Everything follows from what a join emits: rows made of one event of each input, and, in outer joins, rows made of an
event of one input alone. No further row of the first form matches a pattern if some input is *through* with it: it has
promised that no such event comes any more, and holds none. For rows of the second form that very input must be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import product

from penstock.errors import UserError
from penstock.operators.join.operator import Taken
from penstock.operators.join.reference_partner import HeldEvent
from penstock.pattern.pattern import Pattern
from penstock.pattern.restriction import ANY, Restriction
from penstock.pattern.schema import Schema
from penstock.reference.item import Assertion
from penstock.reference.promises import Promises, widest

Origin = tuple[int, str]


class Outlet:
    """Collects what the inputs have promised and says what holds for the output.

    `equal` lists groups of (input, attribute) that have the same value in every row made of all inputs. `alone` are
    the inputs whose events may leave without a partner. `held` are the events of an input that may still leave.
    """

    def __init__(
        self,
        schema: Schema,
        columns: Sequence[Taken],
        promised: Sequence[Promises],
        held: Callable[[int], Iterable[HeldEvent]],
        equal: Iterable[Iterable[Origin]],
        *,
        alone: Iterable[int] = (),
    ) -> None:
        self.schema, self.columns, self.promised, self.held = schema, tuple(columns), tuple(promised), held
        self.equal = _classes(equal)
        self.alone = frozenset(alone)
        #: Per input, its promises in terms of the output.
        self.heard: list[list[Pattern]] = [[] for _ in promised]
        self.waiting: list[Pattern] = []
        self.said: list[Pattern] = []

    def hear(self, input: int, patterns: Iterable[Pattern]) -> None:
        """Take note of what is newly promised by one input."""
        for pattern in patterns:
            for moved in self._moved(input, pattern):
                others = [p for i, heard in enumerate(self.heard) if i != input for p in heard] if self.alone else []
                # Where rows of one input alone may match too, only what both have promised can hold.
                for candidate in [moved, *(moved.intersect(p) for p in others)]:
                    known = candidate in self.waiting or any(said.contains(candidate) for said in self.said)
                    if not candidate.is_empty and not known:
                        self.waiting.append(candidate)
                self.heard[input].append(moved)

    def speak(self) -> list[Assertion]:
        """The punctuations that hold now and were not said before."""
        out = widest(p for p in self.waiting if self.holds(p))
        self.said = widest([*self.said, *out])
        self.waiting = [p for p in self.waiting if not any(known.contains(p) for known in self.said)]
        return [Assertion(p) for p in out]

    def holds(self, pattern: Pattern) -> bool:
        """Whether no further row of the output can match."""
        inputs = range(len(self.promised))
        if not any(self._through(i, self._inward(i, pattern)) for i in inputs):
            return False
        return all(self._through(i, self._inward_alone(i, pattern), alone=True) for i in self.alone)

    def _through(self, input: int, pattern: Pattern | None, *, alone: bool = False) -> bool:
        if pattern is None:
            return True
        held = [h for h in self.held(input) if not (alone and h.matched)]
        return self.promised[input].covers(pattern) and not any(pattern.matches_row(h.row) for h in held)

    def _moved(self, input: int, pattern: Pattern) -> list[Pattern]:
        """A promise of one input as patterns of the output, one for each choice of columns that carry its values."""
        carriers = []
        for attribute in pattern.restricted:
            same = self.equal.get((input, attribute), {(input, attribute)})
            carriers.append([c.name for c in self.columns if set(c.origins) <= same])
        found = []
        for names in product(*carriers):
            moved = _restricted(self.schema, [(n, pattern[a]) for n, a in zip(names, pattern.restricted)])
            found += [] if moved is None else [moved]
        return found

    def _inward(self, input: int, pattern: Pattern) -> Pattern:
        """What events of one input look like that are part of a matching row made of all inputs."""
        conditions = []
        for column in self.columns:
            if pattern[column.name] is not ANY:
                same = self.equal.get(column.origins[0], {column.origins[0]})
                mine = [a for i, a in sorted(same) if i == input] if set(column.origins) <= same else []
                conditions += [(a, pattern[column.name]) for a in mine[:1]]
        return _restricted(self.promised[input].schema, conditions) or Pattern.all(self.promised[input].schema)

    def _inward_alone(self, input: int, pattern: Pattern) -> Pattern | None:
        """What events of one input look like that are a matching row by themselves; None if they cannot be one."""
        conditions = []
        for column in self.columns:
            if pattern[column.name] is not ANY:
                mine = [a for i, a in column.origins if i == input]
                if not mine:
                    return None  # Padded with null, which only `*` matches.
                conditions += [(a, pattern[column.name]) for a in mine if len(mine) == 1]
        return _restricted(self.promised[input].schema, conditions) or Pattern.all(self.promised[input].schema)


def _restricted(schema: Schema, conditions: Sequence[tuple[str, Restriction]]) -> Pattern | None:
    """The pattern of these conditions, all of which hold; None if a value is none of its attribute's type."""
    found: dict[str, Restriction] = {}
    for name, restriction in conditions:
        found[name] = found[name].intersect(restriction) if name in found else restriction
    try:
        return Pattern.by_name(schema, found)
    except UserError:
        return None  # Integers of two widths may be compared: a value of the wider need not exist in the narrower.


def _classes(equal: Iterable[Iterable[Origin]]) -> dict[Origin, set[Origin]]:
    found: dict[Origin, set[Origin]] = {}
    for group in equal:
        members = set(group).union(*(found.get(origin, set()) for origin in group))
        found.update(dict.fromkeys(members, members))
    return found
