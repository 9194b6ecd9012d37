"""What a snapshot operator keeps of the tuples that hold at one time: the plug-in of the engine.

A state takes payloads in and out in any order and says which result payloads they give: none, one or many. Whoever
writes these four methods has a new snapshot operator, with retractions, at all three levels.

>>> best = STATES["top2"]()
>>> for score in (5, 9, 7):
...     best.add(score)
>>> best.payloads()
[9, 7]
>>> other = best.copy()
>>> other.remove(9)
>>> other.payloads(), best.payloads()
([7, 5], [9, 7])
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left, insort
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Protocol, Self

from penstock.reference.lifetimes.event import Payload
from penstock.reference.summary import rounded


class State(Protocol):
    """The payloads of one snapshot, folded as far as can be undone."""

    def add(self, payload: Payload, /) -> None: ...

    def remove(self, payload: Payload, /) -> None:
        """Take out one that was put in."""
        ...

    def payloads(self) -> Sequence[Payload]:
        """The results; of an empty state, those that the policy `zero` shows."""
        ...

    def copy(self) -> Self: ...


class CountState:
    def __init__(self, count: int = 0) -> None:
        self.count = count

    def add(self, payload: Payload) -> None:
        self.count += 1

    def remove(self, payload: Payload) -> None:
        self.count -= 1

    def payloads(self) -> list[Payload]:
        return [self.count]

    def copy(self) -> Self:
        return type(self)(self.count)


class SumState:
    """The sum of whole numbers and floats, with their count: three and minus three are 0, and not nothing.

    It is exact inside and rounded once, so what was put in and taken out again leaves no trace.

    >>> state = SumState()
    >>> for number in (1e16, 0.1, 1):
    ...     state.add(number)
    >>> state.remove(1e16)
    >>> state.remove(1)
    >>> state.payloads()
    [0.1]
    """

    def __init__(self, total: Fraction = Fraction(0), count: int = 0, floats: int = 0) -> None:
        self.total, self.count, self.floats = total, count, floats

    def add(self, payload: Payload) -> None:
        self._move(payload, 1)

    def remove(self, payload: Payload) -> None:
        self._move(payload, -1)

    def _move(self, payload: Payload, weight: int) -> None:
        self.total += weight * Fraction(payload)
        self.count += weight
        self.floats += weight * isinstance(payload, float)

    def payloads(self) -> list[Payload]:
        return [rounded(self.total) if self.floats else int(self.total)]

    def copy(self) -> Self:
        return type(self)(self.total, self.count, self.floats)


class AvgState(SumState):
    def payloads(self) -> list[Payload]:
        return [rounded(self.total / self.count)] if self.count else []


class _BagState(ABC):
    """All payloads, in order: for what cannot be undone without them. A copy costs as much as there are."""

    def __init__(self, bag: Sequence[Payload] = ()) -> None:
        self.bag = list(bag)

    def add(self, payload: Payload) -> None:
        insort(self.bag, payload)

    def remove(self, payload: Payload) -> None:
        del self.bag[bisect_left(self.bag, payload)]

    @abstractmethod
    def payloads(self) -> list[Payload]: ...

    def copy(self) -> Self:
        return type(self)(self.bag)


class MinState(_BagState):
    def payloads(self) -> list[Payload]:
        return self.bag[:1]


class MaxState(_BagState):
    def payloads(self) -> list[Payload]:
        return self.bag[-1:]


class RankState(_BagState):
    """Each payload with its rank from the greatest downwards, as in SQL: equal ones share a rank, the next one skips.

    >>> state = RankState([3, 5, 5])
    >>> state.payloads()
    [(1, 5), (1, 5), (3, 3)]
    """

    def payloads(self) -> list[Payload]:
        falling = self.bag[::-1]
        return [(falling.index(payload) + 1, payload) for payload in falling]


class CountDistinctState(_BagState):
    def payloads(self) -> list[Payload]:
        return [len(set(self.bag))]


def top(k: int) -> Callable[[], State]:
    """The k greatest payloads."""

    class Greatest(_BagState):
        def payloads(self) -> list[Payload]:
            return self.bag[: -k - 1 : -1]

    return Greatest


#: Name → a new empty state; `oracle.COMBINE` has the same names.
STATES: dict[str, Callable[[], State]] = {
    "count": CountState,
    "sum": SumState,
    "avg": AvgState,
    "min": MinState,
    "max": MaxState,
    "rank": RankState,
    "count_distinct": CountDistinctState,
    "top2": top(2),
}
