"""Does an epoch ever take long while much is held? Ten million groups, 500 epochs that change 20,000 each."""

from __future__ import annotations

import shutil
import statistics
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.aggregates.workload import ORIGIN
from benchmarks.contest import PENSTOCK, pool

HELD, FILL = 10_000_000, 2_500_000
DELTA, EPOCHS = 20_000, 500
#: Of the median an epoch may take at most so much.
TARGET = 3.0


def _write(folder: Path, name: str, first: int, keys: Any, rng: np.random.Generator) -> None:
    ts = ORIGIN + (first + np.arange(len(keys), dtype=np.int64)) * 120
    table = pa.table(
        {
            "ts": pa.array(ts, pa.timestamp("us", tz="UTC")),
            "key": pa.array(keys, pa.int32()),
            "value": rng.normal(size=len(keys)),
        }
    )
    pq.write_table(table, folder / f"{name}.parquet", row_group_size=250_000)


def make(root: Path, held: int, epochs: int) -> tuple[Path, Path]:
    """What fills the state, every key once, and what then changes it; made once, then found again."""
    folder = root / f"stalls-{held}-{DELTA}x{epochs}"
    fill, more = folder / "fill", folder / "more"
    if not (folder / "complete").exists():
        shutil.rmtree(folder, ignore_errors=True)
        fill.mkdir(parents=True)
        more.mkdir()
        rng = np.random.default_rng(9)
        keys = rng.permutation(held)
        for k, at in enumerate(range(0, held, FILL)):
            _write(fill, f"0-{k:05d}", at, keys[at : at + FILL], rng)
        for k in range(epochs):
            _write(more, f"1-{k:05d}", held + k * DELTA, rng.choice(held, DELTA, replace=False), rng)
        (folder / "complete").touch()
    return fill, more


def measure(data: Path, say: Callable[[str], None], *, quick: bool) -> dict[str, Any]:
    held, epochs = (HELD // 10, EPOCHS // 10) if quick else (HELD, EPOCHS)
    fill, more = make(data, held, epochs)
    root = Path(tempfile.mkdtemp(prefix="stalls-", dir=data))
    try:
        shutil.copytree(fill, root / "in")
        (root / "out").mkdir()
        with pool("aggregates", {}) as those:
            job = {
                "data": str(root / "in"),
                "more": str(more),
                "out": str(root / "out"),
                "fill": FILL,
                "rows_per_epoch": DELTA,
            }
            say(f"stalls     filling {held:,} groups, then {epochs} epochs of {DELTA:,} rows")
            answer = those.run(PENSTOCK, job)
    finally:
        shutil.rmtree(root, ignore_errors=True)
    if answer["filled"] != held or len(answer["epochs"]) < epochs:
        raise RuntimeError(f"{answer['filled']:,} groups held, {len(answer['epochs'])} epochs")
    times = answer["epochs"][1:]  # The first carries the start of the query.
    middle = statistics.median(times)
    say(f"stalls     median {middle * 1e3:.0f} ms, longest {max(times) * 1e3:.0f} ms")
    return {
        "held": answer["filled"],
        "delta": DELTA,
        "epochs": [round(t, 4) for t in times],
        "cpu_epoch": round(answer["cpu_epoch"], 4),
        "state": answer["state"],
        "paths": answer["paths"],
        "peak": answer["peak"],
    }
