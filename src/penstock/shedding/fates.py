"""Which windows are dropped: decided once, in order, before their first event is read.

A coin is tossed for each batch of windows: hashes of a seed, of whose windows they are and of the number of the batch.
So whoever decides again decides the same, and a larger share drops what a smaller one does. Never are more than `gap`
windows in a row dropped: where two batches meet, a window is kept and owed, and the next batch that is kept gives one
for it. So in the long run the share is what was asked for, or `gap` of `gap + 1`, if that is less.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any

from penstock.errors import UserError

#: Of windows further back than this nobody decides any more: they are kept.
FURTHEST = 100_000
_ALL = 2.0**64


@dataclass(frozen=True)
class FateRecord:
    """What has been decided so far: plain data, for the checkpoint.

    `next`: the number of the first window that is undecided. `share`: that was asked for last. `owed`: windows that
    were kept for the gap's sake. `missing`: windows that were dropped since the last that came out.
    """

    next: int | None = None
    share: float = 0.0
    owed: int = 0
    missing: tuple[int, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {"next": self.next, "share": self.share, "owed": self.owed, "missing": list(self.missing)}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> FateRecord:
        return cls(stored["next"], stored["share"], stored["owed"], tuple(stored["missing"]))

    def delivered(self, number: int) -> FateRecord:
        """A result of this window came out."""
        return replace(self, missing=tuple(n for n in self.missing if n > number))


@dataclass(frozen=True)
class Fates:
    """Who decides about the windows of an output, or about the stretches that several outputs share (`of`).

    `group`: of one group of it, if each group has its own. `gap`: at most so many are missing in a row; None: any
    number. `batch`: how many share a coin. `confirmed`: a window that is kept ends a gap only once a result of it has
    come out (`FateRecord.delivered`), for streams with windows that are empty.

    >>> fates = Fates(seed=1, of="minutes", gap=3)
    >>> record, dropped = fates.decide(FateRecord(), 0, 24, share=0.5)
    >>> dropped
    [(6, 8), (12, 14), (16, 18)]
    >>> fates.decide(record, 0, 30, share=0)[1]
    []
    """

    seed: int
    of: str
    gap: int | None = None
    group: str = ""
    batch: int = 0
    confirmed: bool = False

    def __post_init__(self) -> None:
        if self.gap is not None and self.gap < 1:
            raise UserError(f"shedding '{self.of}': gap {self.gap}", hint="at least 1 window")
        if self.batch < 1:
            object.__setattr__(self, "batch", self.gap or 10)

    def coin(self, number: int) -> float:
        """From 0 up to 1, the same for all windows of a batch; windows below the share are dropped."""
        text = f"{self.seed}\x1f{self.of}\x1f{self.group}\x1f{number // self.batch}"
        return int.from_bytes(blake2b(text.encode(), digest_size=8).digest()) / _ALL

    def decide(
        self, record: FateRecord, first: int, until: int, share: float
    ) -> tuple[FateRecord, list[tuple[int, int]]]:
        """Decide about all windows before number `until` that are undecided; `first` is where the stream begins.

        Returns what to remember, and the dropped windows: the first and the last number of each run of them.
        """
        if not 0 <= share <= 1:
            raise UserError(f"shedding '{self.of}': a share of {share}", hint="from 0 to 1")
        start = first if record.next is None else record.next
        if until <= start:
            return record, []
        missing, owed = record.missing, record.owed if share >= record.share else 0
        if until - start > FURTHEST:
            start, missing, owed = until - FURTHEST, (), 0
        dropped: list[tuple[int, int]] = []
        for number in range(start, until):
            within = self.gap is None or len(missing) < self.gap
            drop = self.coin(number) < share or (owed > 0 and within)
            if drop and not within:
                drop, owed = False, owed + 1
            elif drop and self.coin(number) >= share:
                owed -= 1
            if not drop:
                missing = missing if self.confirmed else ()
                continue
            missing = (*missing, number) if self.gap is not None else ()
            if dropped and dropped[-1][1] == number - 1:
                dropped[-1] = (dropped[-1][0], number)
            else:
                dropped.append((number, number))
        return FateRecord(until, share, owed, missing), dropped
