"""Behaviours: what operators with a memory do with punctuation.

The classical three questions have their answers here. *Pass*: what may a blocking operator emit? *Keep*: what must stay
in state? *Propagate*: which punctuations go out? Each behaviour remembers what its inputs have promised, as far as that
still matters, and turns new promises into orders for the operator's kernel and into punctuations behind it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from penstock.pattern import minimise as compact
from penstock.pattern.feedback import Feedback
from penstock.pattern.pattern import Pattern
from penstock.pattern.punctuation import PunctuationSet
from penstock.pattern.schema import Schema
from penstock.plan.orders import Answer, Orders


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

    def listen(self) -> None:
        """Somebody waits for punctuation behind the operator, where otherwise nobody would ask its state for it."""
        return

    def unqueued(self) -> Behaviour:
        """How it would behave if nothing waited in its queue."""
        return self

    def tell(self) -> Any:
        """What tasks must know of what the driver knows, as plain JSON; None if there is nothing to say."""
        return None

    def turn(self, slack: int, block: int) -> None:
        """The dial of the source below was turned: its events come so late, and are to be held back so long."""
        return

    @property
    def holds_back(self) -> bool:
        """Whether events stay here until time has come past them."""
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


class ThroughBehaviour(Behaviour):
    """Of operators for which what becomes of one punctuation depends on no other."""

    def __init__(self, through: Callable[[Pattern], Iterable[Pattern]]) -> None:
        self.through = through

    def receive(self, arrived: Sequence[tuple[Pattern, ...]]) -> tuple[Pattern, ...]:
        (patterns,) = arrived
        return maximal(q for p in patterns for q in self.through(p))

    def to_json(self) -> dict[str, Any]:
        return {}

    def restore(self, stored: Mapping[str, Any]) -> None: ...


def empty_orders(schemas: Sequence[Schema]) -> Orders:
    """Orders that ask for nothing."""
    return Orders(tuple(() for _ in schemas), tuple(PunctuationSet(s) for s in schemas))
