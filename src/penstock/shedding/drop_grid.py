"""Which windows to drop together, so that the message gets far up.

An event may go only if all windows that it is in may go, at every operator that shares it. Single windows here and
there seldom leave such an event. So what is dropped are stretches of a grid that all aggregates below a place share:
its size is how much of the stream one kept stretch needs, its slide how much of the results it gives.

Sizes and slides count in ticks of the attribute that windows are over, or in events, for windows by count.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import lcm

from penstock.errors import UserError


@dataclass(frozen=True)
class DropGrid:
    """Stretches that are kept or dropped whole; at most `gap` in a row are dropped, any number if that is None.

    >>> DropGrid(3, 3).behind(3, 2), DropGrid(3, 3).behind_counted(3, 2)
    (DropGrid(size=5, slide=3, gap=None), DropGrid(size=7, slide=6, gap=None))
    """

    size: int
    slide: int
    gap: int | None = None

    def __post_init__(self) -> None:
        if not 0 < self.slide <= self.size:
            raise UserError(f"windows of {self.size} every {self.slide}", hint="0 < slide <= size")

    def behind(self, size: int, slide: int, tick: int = 1) -> DropGrid:
        """The grid in front of an aggregate, if this is the one behind it; windows by time.

        The last result that a stretch needs starts a tick before its end, and is of a whole window of the aggregate.
        """
        DropGrid(size, slide)
        return replace(self, size=self.size + size - tick)

    def behind_counted(self, size: int, slide: int) -> DropGrid:
        """The same for windows by count: each result of the aggregate stands for `slide` events."""
        DropGrid(size, slide)
        return replace(self, size=self.size * slide + size - slide, slide=self.slide * slide)

    @property
    def drops_early(self) -> bool:
        """Whether there are events of dropped stretches alone, so that something can go before the first aggregate.

        >>> DropGrid(100, 10, gap=9).drops_early, DropGrid(100, 10, gap=10).drops_early
        (False, True)
        """
        return self.gap is None or self.gap >= self.size // self.slide

    def read_still(self, share: float) -> float:
        """The share of the events that are read when that share of the stretches is dropped, in whole batches of `gap`.

        >>> DropGrid(10, 10, gap=5).read_still(0.2), DropGrid(10, 1, gap=10).read_still(0.5)
        (0.8, 0.95)
        """
        if self.gap is None or not self.drops_early:
            return 1.0 if self.gap else 1 - share
        alone = (self.gap + 1) * self.slide - self.size
        return 1 - share * alone / (self.gap * self.slide)


def before_split(grids: Sequence[DropGrid]) -> DropGrid | None:
    """The grid in front of a split with these grids behind its branches; None if no gap leaves room for one.

    Each stretch is a whole number of results of every branch.

    >>> before_split([DropGrid(3, 2, gap=9), DropGrid(3, 3, gap=4)])
    DropGrid(size=7, slide=6, gap=2)
    >>> print(before_split([DropGrid(3, 2, gap=2), DropGrid(3, 3, gap=4)]))
    None
    """
    slide = lcm(*(g.slide for g in grids))
    size = slide + max(g.size - g.slide for g in grids)
    gaps = [g.gap // (slide // g.slide) for g in grids if g.gap is not None]
    if 0 in gaps:
        return None
    return DropGrid(size, slide, min(gaps, default=None))


#: A coin about more windows than this leaves nothing to choose.
MOST = 256


def shared_batches(grids: Mapping[str, DropGrid]) -> dict[str, int]:
    """How many windows of each output share a coin, so that all coins are about the same stretches of time.

    Then what one output drops the others drop too, as far as they drop anything, and what they share need not be done.
    Empty if there are no such stretches, or only very long ones: each output is then shed apart.

    >>> shared_batches({"a": DropGrid(10, 10, gap=9), "b": DropGrid(20, 20, gap=2), "c": DropGrid(60, 20, gap=5)})
    {'a': 4, 'b': 2, 'c': 2}
    >>> shared_batches({"a": DropGrid(10, 10, gap=1), "b": DropGrid(20, 20)})
    {}
    """
    joined = before_split(list(grids.values()))
    if joined is None:
        return {}
    # Long enough that most of a stretch is of nothing else; where windows do not overlap, each is.
    stretches = joined.gap or (1 if joined.size == joined.slide else 4 * -(-joined.size // joined.slide))
    found = {name: stretches * (joined.slide // grid.slide) for name, grid in grids.items()}
    return found if max(found.values()) <= MOST else {}
