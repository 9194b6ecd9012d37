"""Cases that all contestants run: what they are, what each is given, and what it should find."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.aggregates import workload as windows
from benchmarks.aggregates.workload import Windows, short
from benchmarks.contest import DUCKDB, FLINK, ONE_CORE, PATHWAY, PENSTOCK, POLARS, Contestant
from benchmarks.joins import workload as pairs
from benchmarks.joins.contest import found_pairs
from benchmarks.joins.turn import Job
from benchmarks.joins.workload import Workload

BATCH_AND_STREAMS = (DUCKDB, POLARS, FLINK, PATHWAY)
#: By the module of a contestant, how its groups are written.
_WRITTEN = {"on_spark": "native", "on_penstock": "window_start", "on_pathway": "headed", "on_flink": "plain"}


@dataclass(frozen=True)
class Race:
    """One case; `limit` is when native gives up, and who has used more than `patience` seconds is not asked again.

    `minutes` is how long all of it takes, by which a run is kept within its time.
    """

    slug: str
    name: str
    work: Windows | Workload
    others: tuple[Contestant, ...] = BATCH_AND_STREAMS
    repetitions: int = 5
    limit: float = 90.0
    patience: float = 40.0
    minutes: float = 2.0

    @property
    def package(self) -> str:
        return "aggregates" if isinstance(self.work, Windows) else "joins"

    @property
    def rows(self) -> int:
        """Rows in all, of both inputs."""
        return self.work.rows * self.work.epochs * (1 if isinstance(self.work, Windows) else 2)

    @property
    def contestants(self) -> tuple[Contestant, ...]:
        return (PENSTOCK, *self.others)

    def prefix(self) -> Race:
        """Less of the same, by which settings are chosen."""
        if isinstance(self.work, Windows):
            return replace(self, work=self.work.prefix())
        return replace(self, work=replace(self.work, rows=min(self.work.rows, 100_000), epochs=3))

    def warm_up(self, epochs: int = 30) -> Race:
        """What everybody runs once before."""
        pairs = Workload("warm-up", 5_000, min(epochs, 10))
        small = Windows(20_000, epochs, 1_000) if isinstance(self.work, Windows) else pairs
        return replace(self, work=small, limit=3600.0)

    def prepared(self, contestant: Contestant, root: Path) -> tuple[Job, Callable[[Path], list[str]]]:
        """The job of a contestant, data made if need be; and what says what is in its results."""
        if isinstance(self.work, Windows):
            return self._windows(self.work, contestant, root)
        return self._pairs(self.work, contestant, root / "join")

    def _windows(self, work: Windows, contestant: Contestant, root: Path) -> tuple[Job, Callable[[Path], list[str]]]:
        data = windows.make(work, root)
        own = data if contestant.reads == "parquet" else windows.as_csv(data, whole=contestant.reads == "whole")
        job = {"data": str(own), "rows_per_epoch": work.rows, "limit": self.limit}
        return job, lambda out: windows.found(out, data, _WRITTEN.get(contestant.module, "w"))

    def _pairs(self, work: Workload, contestant: Contestant, root: Path) -> tuple[Job, Callable[[Path], list[str]]]:
        data = pairs.make(work, root)
        own = data if contestant.reads == "parquet" else pairs.as_csv(data, whole=contestant.reads == "whole")
        job = {
            "kind": "pairs",
            "band": None if work.band is None else work.band * 1000,
            "rows": work.rows,
            "left": str(own / "left"),
            "right": str(own / "right"),
            "limit": self.limit,
        }
        return job, lambda out: found_pairs(out, "parquet" if contestant.reads == "parquet" else "csv")


def _big(keys: int, minutes: float) -> Race:
    name = f"10 M rows in epochs of 5 M, {short(keys)} keys"
    return Race(f"big-{short(keys).replace(' ', '')}", name, Windows(5_000_000, 2, keys), minutes=minutes)


def _small(keys: int, minutes: float, others: tuple[Contestant, ...] = BATCH_AND_STREAMS) -> Race:
    name = f"1 M rows in epochs of 50 k, {short(keys)} keys"
    return Race(f"small-{short(keys).replace(' ', '')}", name, Windows(50_000, 20, keys), others, minutes=minutes)


RACES = (
    _big(1_000, 2.5),
    _big(100_000, 4),
    _big(1_000_000, 4.5),
    _small(1_000, 2, (ONE_CORE, *BATCH_AND_STREAMS)),
    _small(100_000, 2),
    _small(1_000_000, 3),
    Race("tiny", "epochs of 10 rows", Windows(10, 60, 10), (ONE_CORE,), patience=25.0, minutes=1),
    Race("join", "2 × 5 M rows joined, ten epochs", Workload("join", 500_000, 10), limit=120.0, minutes=5),
)
