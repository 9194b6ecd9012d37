"""Behaviours: what operators with a memory do with punctuation.

The classical three questions have their answers here. *Pass*: what may a blocking operator emit? *Keep*: what must stay
in state? *Propagate*: which punctuations go out? Each behaviour remembers what its inputs have promised, as far as that
still matters, and turns new promises into orders for the operator's kernel and into punctuations behind it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from penstock.algebra import compact
from penstock.algebra.describe import Describer
from penstock.algebra.domain import domains
from penstock.algebra.feedback import Feedback
from penstock.algebra.operator import Distinct, Operator, OrderBy
from penstock.algebra.orders import Answer, Orders
from penstock.algebra.pattern import Pattern
from penstock.algebra.prefix import prefix
from penstock.algebra.punctuation import PunctuationSet
from penstock.algebra.schema import Schema
from penstock.algebra.through import through


def maximal(patterns: Iterable[Pattern]) -> tuple[Pattern, ...]:
    """Those that can match and are not contained in another, in their order."""
    return tuple(compact.maximal([p for p in patterns if not p.is_empty]))


class Behaviour(ABC):
    """How one operator treats the punctuations of its inputs, epoch after epoch."""

    @abstractmethod
    def receive(self, arrived: Sequence[tuple[Pattern, ...]]) -> tuple[Pattern, ...]:
        """New punctuations per input → new punctuations behind the operator."""

    def orders(self) -> Orders | None:
        """What the operator is to do with its state, given all that was received since the last call."""
        return None

    def answered(self, answers: Sequence[Sequence[Answer]]) -> None:
        """Take in what the state said to the questions of the last orders."""
        assert not any(answers), "nobody asked"

    @property
    def pending(self) -> bool:
        """Whether there is something to say without waiting for new input."""
        return False

    def saw(self, value: int) -> None:
        """Take in what a task reports of the events that the operator has seen there."""
        raise AssertionError("nobody watches")

    def issued(self) -> list[tuple[int, Feedback]]:
        """What the operator tells upstream that it has not told yet: (input, feedback over what that input brings)."""
        return []

    @abstractmethod
    def to_json(self) -> dict[str, Any]: ...

    @abstractmethod
    def restore(self, stored: Mapping[str, Any]) -> None: ...


class UnionBehaviour(Behaviour):
    """What all inputs have promised: the intersections of one promise of each."""

    def __init__(self, operator: Operator) -> None:
        self.schema = operator.schema
        self.given = [PunctuationSet(self.schema) for _ in operator.inputs]
        self.said = PunctuationSet(self.schema)

    def receive(self, arrived: Sequence[tuple[Pattern, ...]]) -> tuple[Pattern, ...]:
        if not any(arrived):
            return ()
        for k, patterns in enumerate(arrived):
            moved = (p.onto(self.schema, {n: n for n in p.restricted}) for p in patterns)
            self.given[k] = self.given[k].add(*moved)
        common: list[Pattern] = list(self.given[0])
        for promised in self.given[1:]:
            common = list(maximal(a.intersect(b) for a in common for b in promised))
        fresh = tuple(p for p in maximal(common) if not self.said.covers(p))
        # Values that all have promised cannot come again: there would be ever more of them to remember.
        over = [p for p in fresh if p.restricted and compact.lists_values(p)]
        self.said = self.said.add(*(p for p in fresh if p not in over))
        self.given = [g.forget(*over) for g in self.given]
        return fresh

    def to_json(self) -> dict[str, Any]:
        return {"given": [g.to_json() for g in self.given], "said": self.said.to_json()}

    def restore(self, stored: Mapping[str, Any]) -> None:
        self.given = [PunctuationSet.from_json(g, self.schema) for g in stored["given"]]
        self.said = PunctuationSet.from_json(stored["said"], self.schema)


class DescribingBehaviour(Behaviour):
    """For group-by and projection: only promises about whole groups, or about what is left of an event, say anything.

    A promise speaks of whole groups by itself, or together with others that cover the rest of a finite domain.
    """

    def __init__(self, operator: Operator, attributes: Sequence[str]) -> None:
        (below,) = operator.inputs
        self.operator = operator
        self.describer = Describer(below.schema, attributes, domains(below))

    def receive(self, arrived: Sequence[tuple[Pattern, ...]]) -> tuple[Pattern, ...]:
        (patterns,) = arrived
        if not patterns:
            return ()
        return maximal(q for p in self.describer.add(patterns) for q in through(self.operator, p))

    def to_json(self) -> dict[str, Any]:
        return self.describer.to_json()

    def restore(self, stored: Mapping[str, Any]) -> None:
        self.describer.restore(stored)


class DistinctBehaviour(Behaviour):
    """Keeps what no punctuation has matched so far; passes every punctuation on."""

    def __init__(self, operator: Distinct) -> None:
        self.schema = operator.schema
        self.fresh: list[Pattern] = []

    def receive(self, arrived: Sequence[tuple[Pattern, ...]]) -> tuple[Pattern, ...]:
        (patterns,) = arrived
        moved = tuple(Pattern(self.schema, p.restrictions) for p in patterns)
        self.fresh += moved
        return moved

    def orders(self) -> Orders:
        release, self.fresh = maximal(self.fresh), []
        return Orders((release,), (PunctuationSet(self.schema),))

    def to_json(self) -> dict[str, Any]:
        return {}

    def restore(self, stored: Mapping[str, Any]) -> None: ...


class OrderBehaviour(Behaviour):
    """Passes the sorted prefix that punctuation completes, and promises that prefix.

    With slack the operator does not wait for punctuation, so it knows nothing about what is to come but the end.
    """

    def __init__(self, operator: OrderBy) -> None:
        self.operator, self.schema, self.domains = operator, operator.schema, domains(operator)
        self.given = PunctuationSet(self.schema)
        self.done = PunctuationSet(self.schema)
        self.fresh: list[Pattern] = []

    def receive(self, arrived: Sequence[tuple[Pattern, ...]]) -> tuple[Pattern, ...]:
        (patterns,) = arrived
        if not patterns:
            return ()
        if self.operator.slack is not None:
            found = tuple(Pattern(self.schema, p.restrictions) for p in patterns if not p.restricted)
        else:
            # What also restricts something else can help only where that has a finite domain.
            known = {*self.domains, *(name for name, _ in self.operator.by)}
            self.given = self.given.add(*(Pattern(self.schema, p.restrictions) for p in patterns if p.describes(known)))
            complete = prefix(self.given, self.operator.by, self.schema, self.domains)
            found = tuple(p for p in complete if not self.done.covers(p))
            self.done = self.done.add(*found)
        self.fresh += found
        return found

    def orders(self) -> Orders:
        release, self.fresh = maximal(self.fresh), []
        return Orders((release,), (PunctuationSet(self.schema),))

    def to_json(self) -> dict[str, Any]:
        return {"given": self.given.to_json(), "done": self.done.to_json()}

    def restore(self, stored: Mapping[str, Any]) -> None:
        self.given = PunctuationSet.from_json(stored["given"], self.schema)
        self.done = PunctuationSet.from_json(stored["done"], self.schema)


def empty_orders(schemas: Sequence[Schema]) -> Orders:
    """Orders that ask for nothing."""
    return Orders(tuple(() for _ in schemas), tuple(PunctuationSet(s) for s in schemas))
