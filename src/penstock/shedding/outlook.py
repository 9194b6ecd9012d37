"""Which windows of an output are dropped while a run goes on, however out of order its events come.

All windows that have begun by the time of the newest event are *settled*: what was planned for them holds. Those ahead
are planned anew before every epoch, as far as a horizon; one that begins beyond it, by an event further ahead than
anybody expected, is kept. So no window is ever half dropped, and wherever the stream is cut its fate is decided before
its first event is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from penstock.shedding.fates import FateRecord, Fates

#: Numbers of windows, from the first to the last of each.
Spans = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Settled:
    """Windows whose time has come, from the first to the last, and which of them are dropped."""

    first: int
    last: int
    dropped: Spans = ()

    @property
    def windows(self) -> int:
        return self.last - self.first + 1

    @property
    def lost(self) -> int:
        return size(self.dropped)


@dataclass(frozen=True)
class Outlook:
    """Where one output stands: plain data, written into the plan of every epoch.

    >>> fates = Fates(seed=1, of="minutes", gap=3)
    >>> outlook = Outlook().planned(fates, 0.5, first=0, ahead=12)
    >>> outlook.ahead, outlook.until
    (((6, 8),), 12)
    >>> settled, outlook = outlook.passed(fates, 7)  # The newest event is in window 7.
    >>> settled, outlook.outstanding, outlook.ahead
    (Settled(first=0, last=7, dropped=((6, 7),)), ((6, 7),), ((8, 8),))
    >>> outlook.planned(fates, 0.0, first=0, ahead=12).unwanted  # The load has fallen; what was settled stays so.
    ((6, 7),)
    >>> outlook.final(8).unwanted  # Nothing more can come of the windows before 8.
    ((8, 8),)
    """

    #: What the fates know of all windows that are settled.
    record: FateRecord = field(default_factory=FateRecord)
    #: The share under which those ahead are planned, and the first window beyond the horizon.
    share: float = 0.0
    until: int = 0
    #: Settled windows that are dropped, of which results could still come.
    outstanding: Spans = ()
    #: Windows ahead that are dropped.
    ahead: Spans = ()

    @property
    def next(self) -> int | None:
        """The first window that is not settled; None as long as nothing is known of the stream."""
        return self.record.next

    def planned(self, fates: Fates, share: float, first: int, ahead: int) -> Outlook:
        """The same with so many windows ahead planned anew; `first` is where the stream begins, if that is news."""
        record = replace(self.record, next=first) if self.record.next is None else self.record
        start = record.next or 0
        # Where nothing is to go nobody need be asked, window by window.
        dropped = fates.decide(record, start, start + ahead, share)[1] if share else ()
        return replace(self, record=record, share=share, until=start + ahead, ahead=tuple(dropped))

    def passed(self, fates: Fates, newest: int) -> tuple[Settled | None, Outlook]:
        """What is settled now that an event of window `newest` may have come. What lay beyond the horizon is kept."""
        if self.next is None or newest < self.next:
            return None, self
        record, dropped = self.record, list[tuple[int, int]]()
        if self.share:
            record, dropped = fates.decide(record, self.next, min(newest + 1, self.until), self.share)
        else:
            record = replace(record, next=newest + 1, share=0.0, owed=0, missing=())
        if newest >= self.until:
            record = replace(record, next=newest + 1, missing=())
        settled = Settled(self.next, newest, tuple(dropped))
        left = tuple((max(a, newest + 1), b) for a, b in self.ahead if b > newest)
        outstanding = joined((*self.outstanding, *settled.dropped))
        return settled, replace(self, record=record, outstanding=outstanding, ahead=left)

    def final(self, first_open: int) -> Outlook:
        """The same without those dropped windows, all before this one, of which nothing can come any more."""
        left = tuple((max(a, first_open), b) for a, b in self.outstanding if b >= first_open)
        return self if left == self.outstanding else replace(self, outstanding=left)

    @property
    def unwanted(self) -> Spans:
        """All windows that are dropped now."""
        return joined((*self.outstanding, *self.ahead))

    def to_json(self) -> dict[str, Any]:
        spans = {"outstanding": [list(s) for s in self.outstanding], "ahead": [list(s) for s in self.ahead]}
        return {"record": self.record.to_json(), "share": self.share, "until": self.until, **spans}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Outlook:
        outstanding, ahead = (tuple((int(a), int(b)) for a, b in stored[n]) for n in ("outstanding", "ahead"))
        return cls(FateRecord.from_json(stored["record"]), stored["share"], stored["until"], outstanding, ahead)


def joined(spans: Iterable[tuple[int, int]]) -> Spans:
    """Spans in their order, neighbours made one.

    >>> joined([(5, 6), (1, 2), (3, 4)])
    ((1, 6),)
    """
    found: list[tuple[int, int]] = []
    for first, last in sorted(spans):
        if found and found[-1][1] >= first - 1:
            found[-1] = (found[-1][0], max(last, found[-1][1]))
        else:
            found.append((first, last))
    return tuple(found)


def size(spans: Iterable[tuple[int, int]]) -> int:
    """How many numbers are in spans."""
    return sum(last - first + 1 for first, last in spans)


def numbers(spans: Iterable[tuple[int, int]]) -> Iterator[int]:
    """The numbers in spans."""
    return (n for first, last in spans for n in range(first, last + 1))
