"""Stretches of a file: which rows, or bytes, of it have been taken."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

#: From a position up to another one, exclusive.
Stretch = tuple[int, int]


def gaps(taken: Sequence[Stretch], start: int, stop: int) -> Iterator[Stretch]:
    """What is left between two positions; the stretches that are taken are sorted.

    >>> list(gaps([(0, 3), (5, 6)], 2, 10))
    [(3, 5), (6, 10)]
    """
    for low, high in taken:
        if start < min(low, stop):
            yield start, min(low, stop)
        start = max(start, high)
    if start < stop:
        yield start, stop


def joined(taken: Sequence[Stretch], start: int, stop: int) -> tuple[Stretch, ...]:
    """The stretches with one more, sorted, those that touch as one.

    >>> joined([(0, 3), (5, 6)], 3, 5), joined([(2, 3)], 7, 9)
    (((0, 6),), ((2, 3), (7, 9)))
    """
    found: list[Stretch] = []
    for low, high in sorted((*taken, (start, stop))):
        if found and low <= found[-1][1]:
            found[-1] = (found[-1][0], max(high, found[-1][1]))
        else:
            found.append((low, high))
    return tuple(found)
