"""Things in order of a time, several at one time in order of arrival: what POS, ECQ and the buffers are made of.

A sorted list: a search takes log n comparisons. Each search and each element that is looked at counts as a step, so
that tests can see how the work grows without a clock. (Moving the tail of the list on an insert is one call and is not
counted; a balanced tree would do without it and be harder to read.)

>>> ends = Ordered[str]()
>>> for time, name in [(8, "b"), (6, "a"), (8, "c")]:
...     ends.add(time, name)
>>> ends.head(), ends.pop(), list(ends)
(6, 'a', [(8, 'b'), (8, 'c')])
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import Generic, TypeVar

from penstock.reference.lifetimes.event import Time

T = TypeVar("T")


class Ordered(Generic[T]):
    def __init__(self) -> None:
        self.times: list[Time] = []
        self.items: list[T] = []
        self.steps = 0

    def __len__(self) -> int:
        return len(self.times)

    def __iter__(self) -> Iterator[tuple[Time, T]]:
        return iter(list(zip(self.times, self.items)))

    def head(self) -> Time:
        """The least time."""
        return self.times[0]

    def last(self) -> Time:
        """The greatest time."""
        return self.times[-1]

    def pop(self, index: int = 0) -> T:
        del self.times[index]
        return self.items.pop(index)

    def add(self, time: Time, item: T) -> None:
        index = self.before_or_at(time) + 1
        self.times.insert(index, time)
        self.items.insert(index, item)

    def before_or_at(self, time: Time) -> int:
        """The index of the last element that is not later, or −1."""
        self.steps += 1 + len(self).bit_length()
        return bisect_right(self.times, time) - 1

    def before(self, time: Time) -> int:
        """The index of the last element that is earlier, or −1."""
        self.steps += 1 + len(self).bit_length()
        return bisect_left(self.times, time) - 1

    def find(self, time: Time, item: T) -> int | None:
        """The index of an equal item at this time."""
        for index in range(self.before(time) + 1, len(self)):
            self.steps += 1
            if self.times[index] != time:
                break
            if self.items[index] == item:
                return index
        return None

    def remove(self, time: Time, item: T) -> bool:
        """Whether there was one to take out."""
        index = self.find(time, item)
        if index is not None:
            self.pop(index)
        return index is not None
