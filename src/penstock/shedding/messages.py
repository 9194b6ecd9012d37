"""From what is to be dropped to what the engine understands: patterns for feedback, or a sample at the source.

A drop is feedback that nobody but the controller has asked for. Dropped windows and worthless values are patterns over
the results, and go upstream as others do. `not` cannot be taken back, so patterns must be over with the time they speak
of: values are dropped `during` windows or times only. A random drop is no pattern over results: which events go is a
hash of the event itself. It stands at sources, epoch by epoch, and only where all results of an event are its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
import pyarrow as pa

from penstock.errors import UserError
from penstock.kernels.hash import hash_keys, mix
from penstock.pattern.pattern import Pattern
from penstock.pattern.restriction import Restriction, between
from penstock.pattern.schema import Schema
from penstock.plan.window import TimeWindow, from_tick
from penstock.shedding.drop_grid import DropGrid
from penstock.shedding.worthless import Removal

Runs = Iterable[tuple[int, int]]


def windows_of_stretches(stretches: Runs, grid: DropGrid, window: TimeWindow) -> list[tuple[int, int]]:
    """The windows of one output in stretches of a grid that several share.

    >>> from penstock.plan.window import Window
    >>> windows_of_stretches([(1, 2)], DropGrid(7, 6), Window.sliding(3, 2, on="n"))
    [(3, 8)]
    """
    per = grid.slide // window.slide
    return [(low * per, (high + 1) * per - 1) for low, high in stretches]


def dropped_windows(
    schema: Schema, label: str, window: TimeWindow, runs: Runs, group: Mapping[str, Restriction | object] | None = None
) -> tuple[Pattern, ...]:
    """Patterns over results for runs of windows, first and last number of each; of one group, or of all.

    >>> from penstock.plan.window import Window
    >>> results = Schema.parse("window_start int, segment int, mean double")
    >>> minutes = Window.sliding(20, 10, on="ts")
    >>> print(*dropped_windows(results, "window_start", minutes, [(3, 7), (9, 9)], {"segment": 4}))
    [[30, 70], 4, *] [90, 4, *]
    """
    found = []
    for low, high in runs:
        first, last = (from_tick(window.start(number), window.unit) for number in (low, high))
        found.append(Pattern.by_name(schema, {**(group or {}), label: between(first, last, True, True)}))
    return tuple(found)


def worthless_values(schema: Schema, removal: Removal, during: Mapping[str, Restriction]) -> tuple[Pattern, ...]:
    """Patterns over results for values that are given up, in some windows or times.

    >>> from penstock.shedding.value import Span
    >>> speeds = Removal("speed", (Span(0, 50),), cut=Span(51, 75))
    >>> results = Schema.parse("ts int, speed int")
    >>> print(*worthless_values(results, speeds, {"ts": between(100, 200, True, False)}))
    [[100, 200), [0, 50]] [[100, 200), [51, 75)]
    """
    if not during:
        raise UserError(
            f"shedding by '{removal.attribute}' has no end",
            hint="say for which windows or times: what is said with `not` cannot be taken back",
        )
    return tuple(Pattern.by_name(schema, {**during, removal.attribute: r}) for r in removal.restrictions)


@dataclass(frozen=True)
class RandomDrop:
    """A share of the events of a source, chosen by a hash of who they are: the same events whoever runs it again.

    Who an event is, some columns say that no two events share, such as file and row; where there are none, all of its
    attributes, and then equal events share their fate. A larger share drops what a smaller one does, and more.

    >>> rows = pa.table({"id": range(8)})
    >>> RandomDrop(seed=7, of="cars", share=0.5).dropped(rows, ["id"]).to_pylist()
    [False, False, True, True, False, False, False, True]
    """

    seed: int
    of: str
    share: float

    def __post_init__(self) -> None:
        if not 0 <= self.share <= 1:
            raise UserError(f"shedding '{self.of}': a share of {self.share}", hint="from 0 to 1")

    def dropped(self, rows: pa.Table, identity: Sequence[str]) -> pa.BooleanArray:
        """Which rows go."""
        text = f"{self.seed}\x1f{self.of}".encode()
        salt = np.uint64(int.from_bytes(blake2b(text, digest_size=8).digest()))
        if not self.share or not rows.num_rows:
            return pa.repeat(False, rows.num_rows)
        if self.share == 1:
            return pa.repeat(True, rows.num_rows)
        hashes = mix(hash_keys(rows, identity) ^ salt)
        return pa.array(hashes < np.uint64(min(int(self.share * 2.0**64), 2**64 - 1)))
