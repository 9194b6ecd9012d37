"""What is aggregated: a stream of files, one per epoch, and what comes out of it."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass, replace
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

SCHEMA = "ts timestamp, key int, value double"
WINDOW_SECONDS = 10
WATERMARK_SECONDS = 1
ORIGIN = 1_700_000_000_000_000


def short(n: int) -> str:
    """A number as people say it.

    >>> short(5_000_000), short(50_000), short(10)
    ('5 M', '50 k', '10')
    """
    return f"{n // 1_000_000} M" if n >= 1_000_000 else f"{n // 1_000} k" if n >= 1_000 else str(n)


@dataclass(frozen=True)
class Windows:
    """Rows per epoch, number of epochs, number of keys."""

    rows: int
    epochs: int
    keys: int

    @property
    def slug(self) -> str:
        return f"windows-{self.rows}x{self.epochs}x{self.keys}"

    @property
    def name(self) -> str:
        return f"{short(self.rows)} rows × {self.epochs}, {short(self.keys)} keys"

    def prefix(self) -> Windows:
        """Less of the same: enough to see which settings suit it."""
        return replace(self, rows=min(self.rows, 500_000), epochs=min(self.epochs, 2 if self.rows > 50_000 else 8))


def make(work: Windows, root: Path) -> Path:
    """One file per epoch: 8,333 events a second of event time, up to one second out of order, values normal."""
    folder = root / work.slug
    if (folder / "complete").exists():
        return folder / "parquet"
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "parquet").mkdir(parents=True)
    rng = np.random.default_rng(7)
    for epoch in range(work.epochs):
        first = epoch * work.rows
        ts = np.arange(first, first + work.rows, dtype=np.int64) * 120 + rng.integers(0, 1_000_000, work.rows)
        table = pa.table(
            {
                "ts": pa.array(ts + ORIGIN, pa.timestamp("us", tz="UTC")),
                "key": pa.array(rng.integers(0, work.keys, work.rows), pa.int32()),
                "value": rng.normal(size=work.rows),
            }
        )
        path = folder / "parquet" / f"{epoch:04d}.parquet"
        pq.write_table(table, path, row_group_size=max(1, min(250_000, work.rows // 2)))
        # Structured Streaming takes files in the order of their times, which must not be all the same.
        os.utime(path, (1_700_000_000 + epoch, 1_700_000_000 + epoch))
    (folder / "complete").touch()
    return folder / "parquet"


def as_csv(parquet: Path, *, whole: bool) -> Path:
    """The same rows as CSV, `ts` in microseconds: with a header and a file per epoch, or without and in one file."""
    folder = parquet.parent / ("whole" if whole else "csv")
    if not (folder / "complete").exists():
        shutil.rmtree(folder, ignore_errors=True)
        (folder / "rows").mkdir(parents=True)
        with duckdb.connect(config={"threads": 2}) as db:
            for path in [parquet / "*.parquet"] if whole else sorted(parquet.glob("*.parquet")):
                name = "all" if whole else path.stem
                db.sql(
                    f"COPY (SELECT epoch_us(ts) AS ts, key, value FROM '{path}') "
                    f"TO '{folder}/rows/{name}.csv' (HEADER {not whole})"
                )
        (folder / "complete").touch()
    return folder / "rows"


def found(out: Path, data: Path, kind: str) -> list[str]:
    """Of the groups that no later event can change: how many, a checksum of their counts, and the sum of the sums.

    Who works on a stream has not closed the last windows, who works in batch has. `kind` is what was written: groups
    with `window.start` (native), `w` in microseconds, or CSV with (`headed`) or without names.
    """
    if kind not in ("headed", "plain") and not any(out.rglob("*.parquet")):
        return ["0", "0", "0.00"]  # In a few small epochs no window ends.
    with duckdb.connect(config={"threads": 2}) as db:
        ((last,),) = db.sql(f"SELECT max(epoch_us(ts)) FROM '{data}/*.parquet'").fetchall()
        rows = f"'{out}/**/*.parquet'"
        w = {"native": 'epoch_us("window".start)', "window_start": "epoch_us(window_start)"}.get(kind, "w")
        if kind in ("headed", "plain"):
            files = [str(p) for p in sorted(out.rglob("*")) if p.is_file() and p.stat().st_size]
            names = {"w": "BIGINT" if kind == "headed" else "TIMESTAMP", "key": "INT", "n": "BIGINT", "s": "DOUBLE"}
            names |= {"time": "BIGINT", "diff": "BIGINT"} if kind == "headed" else {}
            rows = f"read_csv({files}, header = {kind == 'headed'}, columns = {names}, auto_detect = false)"
            w = "w" if kind == "headed" else "epoch_us(w)"
        closed = last - WATERMARK_SECONDS * 1_000_000 - WINDOW_SECONDS * 1_000_000
        ((count, total, sums),) = db.sql(
            f"SELECT count(*), coalesce(sum(hash(w, key, n)), 0), coalesce(sum(s), 0) FROM (SELECT ({w})::BIGINT AS w, "
            f"key::BIGINT AS key, n::BIGINT AS n, s FROM {rows}) WHERE w <= {closed}"
        ).fetchall()
    return [str(count), str(total), f"{sums:.2f}"]
