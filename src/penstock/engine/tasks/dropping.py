"""What a task sheds: patterns by place, events by chance, and what it tells of the time it has come to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2b

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.source.formats.fit import Mask
from penstock.engine.source.split import Split
from penstock.kernels.hash import mix
from penstock.kernels.ticks import to_tick
from penstock.pattern.pattern import Pattern
from penstock.pattern.restriction import Restriction
from penstock.plan.place import Place


@dataclass(frozen=True)
class Dropping:
    """What is shed in an epoch.

    `clocks`: by source, the attributes of which the newest value is to be told. `chances`: by source, the share of
    events that go whatever they are.
    """

    places: Mapping[Place, tuple[Pattern, ...]] = field(default_factory=dict)
    clocks: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    chances: Mapping[str, float] = field(default_factory=dict)
    seed: int = 0
    #: By sink, the attribute of its results that is worth something, and the values of which rows are to be counted.
    valued: Mapping[str, tuple[str, tuple[Restriction, ...]]] = field(default_factory=dict)

    def values(self, sink: str, results: pa.Table) -> list[int]:
        """Rows by what they are worth, and last the others."""
        attribute, spans = self.valued[sink]
        found = [int(r.mask(results[attribute]).true_count) for r in spans]
        return [*found, max(0, results.num_rows - sum(found))]

    def newest(self, source: str, events: pa.Table) -> dict[str, int]:
        """The newest tick of each of the source's clocks."""
        found = {}
        for name in self.clocks.get(source, ()):
            latest = pc.max(events[name]).as_py() if events.num_rows else None
            if latest is not None:
                found[f"{source}.{name}"] = to_tick(latest)
        return found

    def by_chance(self, source: str, split: Split, rows: int, kept: Mask | None) -> Mask | None:
        """Which rows of a split chance leaves, of those that are `kept`: again the same ones, by where each stands."""
        share = self.chances.get(source, 0.0)
        if not share or not rows:
            return kept
        left = chance(self.seed, split, np.arange(rows, dtype=np.uint64)) >= share
        return left if kept is None else left & kept


def chance(seed: int, split: Split, rows: npt.NDArray[np.uint64]) -> npt.NDArray[np.float64]:
    """From 0 up to 1 for each of these rows of a split. A row of a Parquet file has the same in whatever split it is.

    >>> a, b = (Split("s", "", 0, "a", "parquet", first, 9, 9, 1, 1, 1) for first in (0, 4))
    >>> bool((chance(1, a, np.arange(9, dtype=np.uint64))[4:] == chance(1, b, np.arange(5, dtype=np.uint64))).all())
    True
    """
    counted = split.format in ("parquet", "generated")
    text = f"{seed}/{split.stream}/{split.partition}/{split.path}/{0 if counted else split.start}"
    base = np.uint64(int.from_bytes(blake2b(text.encode(), digest_size=8).digest()))
    first = np.uint64(split.start if counted else 0)
    return np.asarray(mix(mix(rows + first) ^ base) / 2.0**64, np.float64)
