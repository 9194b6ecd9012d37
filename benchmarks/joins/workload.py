"""What is joined: two streams of files, one file of each per epoch, with partners that are known by construction.

Both inputs have the columns `ts, key, seq, value`. An epoch is a minute of event time, whatever its number of rows, so
a band of ten seconds always holds the same share of an epoch. Times are whole milliseconds, for not every contestant
knows shorter ones, and events come up to a second out of order.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

EPOCH = 60_000
"""Milliseconds of event time in an epoch."""
DISORDER = 1_000
SPREAD = 4_000
"""How far apart partners are, at most, in milliseconds."""
ORIGIN = 1_700_000_000_000
SIDES = ("left", "right")


@dataclass(frozen=True)
class Workload:
    """Rows per input and epoch, epochs, and who finds how many partners.

    `rate` is the share of rows with a partner, and each of these has `matches` of them. With `skew`, left keys follow
    Zipf's law with that exponent while the right side has each key about once in a band. `band` is in seconds: partners
    are at most so far apart; None joins over all time. Keys come back after a minute at the earliest, so without
    the band there would be more results.
    """

    name: str
    rows: int
    epochs: int
    rate: float = 0.5
    matches: int = 1
    skew: float | None = None
    band: int | None = 10

    @property
    def group_rows(self) -> int:
        return self.rows - self.rows % self.matches

    @property
    def slug(self) -> str:
        kind = f"z{self.skew:g}" if self.skew else f"r{self.rate:g}m{self.matches}"
        return f"{kind}-{'again' if self.period == EPOCH else 'once'}-{self.rows}x{self.epochs}"

    @property
    def period(self) -> int:
        """Milliseconds after which a key comes back."""
        return EPOCH if self.band is not None and 2 * self.band * 1000 <= EPOCH - 2 * SPREAD else 1 << 40

    def first(self, epochs: int) -> Workload:
        """The same, but fewer epochs of it."""
        return replace(self, epochs=epochs)


def make(work: Workload, root: Path) -> Path:
    """Folders `left` and `right` with one Parquet file per epoch; made once, then found again."""
    folder = root / work.slug
    if (folder / "complete").exists():
        return folder
    shutil.rmtree(folder, ignore_errors=True)
    rng = np.random.default_rng(11)
    make_sides = _skewed if work.skew else _paired
    left, right = make_sides(work, rng)
    for side, (ts, key) in zip(SIDES, (left, right), strict=True):
        _write(folder / side, work, ts, key, rng)
    (folder / "complete").touch()
    return folder


def _paired(work: Workload, rng: np.random.Generator) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
    """Groups of `matches` left and as many right rows, close in time; in `rate` of them the keys are the same."""
    total, m = work.group_rows * work.epochs, work.matches
    group = np.arange(total, dtype=np.int64) // m
    begins = group * m * EPOCH // work.group_rows
    cycle = max(1, work.group_rows // m * work.period // EPOCH)
    key = group % cycle
    partnered = rng.random(total // m) < work.rate
    stranger = np.where(partnered[group], 0, cycle)
    return (
        (begins + rng.integers(0, SPREAD, total), key),
        (begins + rng.integers(0, SPREAD, total), key + stranger),
    )


def _skewed(work: Workload, rng: np.random.Generator) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
    """Left keys by Zipf's law; on the right the keys take turns, once around in two bands."""
    assert work.skew is not None and work.band is not None
    total = work.rows * work.epochs
    keys = max(1, work.rows * work.band * 2_000 // EPOCH)
    weight = np.cumsum(np.arange(1, keys + 1, dtype=float) ** -work.skew)
    drawn = np.searchsorted(weight, rng.random(total) * weight[-1])
    # The most frequent keys are not neighbours, as they would not be in life.
    shuffled = rng.permutation(keys)
    ts = np.arange(total, dtype=np.int64) * EPOCH // work.rows
    return (ts, shuffled[drawn]), (ts, np.arange(total, dtype=np.int64) % keys)


def _write(folder: Path, work: Workload, ts: Any, key: Any, rng: np.random.Generator) -> None:
    folder.mkdir(parents=True)
    arrival = np.argsort(ts + rng.integers(0, DISORDER, len(ts)), kind="stable")
    ts, key = ts[arrival], key[arrival]
    rows = len(ts) // work.epochs
    for epoch in range(work.epochs):
        part = slice(epoch * rows, (epoch + 1) * rows)
        table = pa.table(
            {
                "ts": pa.array((ts[part] + ORIGIN) * 1000, pa.timestamp("us", tz="UTC")),
                "key": pa.array(key[part], pa.int64()),
                "seq": pa.array(np.arange(part.start, part.stop), pa.int64()),
                "value": rng.normal(size=rows).round(6),
            }
        )
        path = folder / f"{epoch:04d}.parquet"
        pq.write_table(table, path, row_group_size=max(1, min(250_000, rows // 2)))
        # Structured Streaming takes files in the order of their times, which must not be all the same.
        os.utime(path, (1_700_000_000 + epoch, 1_700_000_000 + epoch))


def part_of(folder: Path, epochs: int) -> Path:
    """The first epochs of a folder, as a folder of links."""
    short = folder.with_name(f"{folder.name}-first{epochs}")
    if not short.exists():
        for side in SIDES:
            (short / side).mkdir(parents=True)
            for path in sorted((folder / side).glob("*.parquet"))[:epochs]:
                os.link(path, short / side / path.name)
    return short


def as_csv(folder: Path, *, whole: bool) -> Path:
    """The same rows as CSV, `ts` in milliseconds: for contestants whose package on PyPI reads no Parquet.

    With a header and a file per epoch, or `whole`: without a header and in one file, for Flink's file source takes
    files in no particular order and its watermark would then drop most rows.
    """
    import duckdb

    text = folder.with_name(f"{folder.name}-{'whole' if whole else 'csv'}")
    if not (text / "complete").exists():
        shutil.rmtree(text, ignore_errors=True)
        with duckdb.connect(config={"threads": 2}) as db:
            for side in SIDES:
                (text / side).mkdir(parents=True)
                for path in [Path("*.parquet")] if whole else sorted((folder / side).glob("*.parquet")):
                    name = "all" if whole else path.stem
                    db.sql(
                        f"COPY (SELECT epoch_ms(ts) AS ts, key, seq, value FROM '{folder / side / path.name}') "
                        f"TO '{text / side / name}.csv' (HEADER {not whole})"
                    )
        (text / "complete").touch()
    return text
