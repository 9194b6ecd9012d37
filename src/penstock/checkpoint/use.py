"""What is known of a unit of state without opening a file of it: how large it is, and what it is good for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from penstock.checkpoint.runs import StoredRun, UnitKey, Units


@dataclass(frozen=True)
class Use:
    """How a unit is used: the epoch in which it was last looked at or added to, and what came of it.

    `results` are those that its operator has given in its bucket in the epochs in which the unit took part: which of
    several units a result of a join is due to, nobody could tell. With its rows and bytes it says what a unit is worth.
    """

    epoch: int
    results: int = 0


@dataclass(frozen=True)
class UnitStatistics:
    """What a manifest tells of a unit without opening a file of it.

    `low` and `high` bound the time of its rows, in ticks; None if nothing does.
    """

    rows: int
    bytes: int
    low: int | None
    high: int | None
    used: int
    results: int


Uses = dict[UnitKey, Use]


def used(before: Uses, told: Iterable[Mapping[UnitKey, int]], epoch: int, units: Units) -> Uses:
    """The uses of those units that there are after an epoch; `told` are the results of the units it has used.

    >>> k, gone = UnitKey("join-1#0", 0), UnitKey("join-1#0", 1)
    >>> runs = (StoredRun("a", rows=5, bytes=100, epoch=1),)
    >>> used({k: Use(3, 10), gone: Use(3)}, [{k: 7}], 4, {k: runs})
    {UnitKey(operator='join-1#0', bucket=0, group=0, share=1): Use(epoch=4, results=17)}
    """
    after = dict(before)
    for results in told:
        for key, count in results.items():
            after[key] = Use(epoch, count + (after[key].results if key in after else 0))
    return {key: after.get(key) or Use(max(r.epoch for r in runs)) for key, runs in units.items()}


def statistics(runs: Sequence[StoredRun], use: Use) -> UnitStatistics:
    """What there is to know of a unit.

    >>> runs = [StoredRun("a", rows=5, bytes=100, epoch=1, low=3, high=7), StoredRun("b", 2, 50, 2, 5, 9, skip=1)]
    >>> statistics(runs, Use(2, 40))
    UnitStatistics(rows=6, bytes=150, low=3, high=9, used=2, results=40)
    """
    lows, highs = [r.low for r in runs], [r.high for r in runs]
    known = [n for n in lows if n is not None], [n for n in highs if n is not None]
    return UnitStatistics(
        sum(r.live for r in runs),
        sum(r.bytes for r in runs),
        min(known[0]) if len(known[0]) == len(lows) else None,
        max(known[1]) if len(known[1]) == len(highs) else None,
        use.epoch,
        use.results,
    )
