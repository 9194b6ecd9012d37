"""Does a join cost more when many epochs have gone before it? Keys that end, against a window of time of one hour.

    python -m benchmarks.long_join [--epochs 5000] [--spark]

Trips start and end, each once in each stream, minutes apart. In the first run both streams say behind every event that
the trip is over, and the join lets go of it; in the second the join knows only that partners are within an hour, so it
holds an hour of events. In this process, unless `--spark` is given: then Spark's own cost per epoch is measured too.
Writes rows held, files, bytes of the manifest and milliseconds per epoch (the median of each tenth).
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

RESULTS = Path(__file__).parent / "results"
ROWS = 40
"""Rows of each stream in an epoch: events and punctuations, or events alone."""
RATE = 1.0
"""Trips that start in a second."""
_SECOND = 1_000_000


def write(folder: Path, epochs: int, punctuated: bool) -> None:
    """Both streams, as many rows to each epoch; trips take ten minutes at most."""
    count = epochs * ROWS // (2 if punctuated else 1)
    rng = np.random.default_rng(5)
    begin = np.arange(count) / RATE
    for side, at in (("starts", begin), ("ends", begin + rng.uniform(60, 600, count))):
        order = np.argsort(at)
        # Names without any order: whole numbers in a row would be remembered as one range.
        names = pa.array([f"{n * 0x9E3779B97F4A7C15 % (1 << 64):016x}" for n in order.tolist()])
        ts = pa.array((at[order] * _SECOND).astype(np.int64), pa.timestamp("us"))
        table = pa.table({"ts": ts, "trip": names})
        if punctuated:
            twice = pa.array(np.repeat(np.arange(count), 2))
            table = table.take(twice)
            told = [f"[*, '{n}']" if i % 2 else None for i, n in enumerate(table["trip"].to_pylist())]
            table = table.append_column("punctuation", pa.array(told, pa.string()))
        (folder / side).mkdir(parents=True)
        pq.write_table(table, folder / side / "all.parquet", row_group_size=ROWS * 50)


def run(epochs: int, punctuated: bool, spark: Any) -> list[dict[str, float]]:
    """What every epoch took, and what was held after it."""
    import penstock as ps

    seen: list[dict[str, float]] = []
    home = "/dev/shm" if os.path.isdir("/dev/shm") else None
    with tempfile.TemporaryDirectory(dir=home) as folder:
        write(Path(folder), epochs, punctuated)
        streams = [
            ps.stream(side, "ts timestamp, trip string", time="ts").read_parquet(f"{folder}/{side}")
            for side in ("starts", "ends")
        ]
        if punctuated:
            starts, ends = (s.punctuated(remember=1_000) for s in streams)
            query = starts.join(ends, "trip")
        else:
            starts, ends = (s.disorder("0 s") for s in streams)
            query = starts.join(ends, "trip", within="1 h")
        checkpoint = Path(folder) / "checkpoint"
        last = time.perf_counter()

        def note(progress: ps.Progress) -> None:
            nonlocal last
            now = time.perf_counter()
            manifest = (checkpoint / "epochs" / f"{progress.epoch:06d}.commit.json").stat().st_size
            record = {"epoch": progress.epoch, "seconds": now - last, "state": progress.state_rows}
            files = sum(len(names) for _, _, names in os.walk(checkpoint))
            seen.append({**record, "files": files, "manifest": manifest})
            last = time.perf_counter()

        query.start(
            ps.parquet(f"{folder}/out"),
            trigger="available_now",
            checkpoint=str(checkpoint),
            max_rows=ROWS,
            buckets=2,
            spark=spark,
            listener=note,
        ).wait()
    return seen


def tenths(seen: list[dict[str, float]], what: str) -> list[float]:
    """The median of each tenth of the run."""
    size = max(1, len(seen) // 10)
    return [statistics.median(r[what] for r in seen[k * size : (k + 1) * size]) for k in range(10)]


def plot(runs: dict[str, list[dict[str, float]]], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    shown = (("state", 1, "state, rows"), ("files", 1, "files"), ("manifest", 1e-3, "manifest, kB"))
    figure, axes = plt.subplots(4, 1, figsize=(9, 9), sharex=True)
    for (name, seen), colour in zip(runs.items(), ("#1f6f8b", "#c0504d")):
        at = [r["epoch"] for r in seen]
        size = max(1, len(seen) // 10)
        middles = [at[k * size + size // 2] for k in range(10)]
        axes[0].plot(middles, [t * 1e3 for t in tenths(seen, "seconds")], "o-", color=colour, label=name)
        for axis, (what, scale, _) in zip(axes[1:], shown):
            axis.plot(at, [r[what] * scale for r in seen], color=colour, linewidth=0.8)
    axes[0].set_ylabel("epoch, ms\n(median of tenth)")
    axes[0].set_title("A join over many epochs")
    axes[0].legend()
    for axis, (_, _, label) in zip(axes[1:], shown):
        axis.set_ylabel(label)
    for axis in axes:
        axis.set_ylim(bottom=0)
    axes[-1].set_xlabel("epoch")
    figure.tight_layout()
    figure.savefig(path, dpi=130)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=5000)
    parser.add_argument("--spark", action="store_true", help="on Spark instead of in this process")
    arguments = parser.parse_args()
    if arguments.spark:
        import penstock as ps

        spark = ps.spark_session("local[2]")
    else:
        from penstock.portal.testing import local_session

        spark = local_session()
    runs = {"keys that end": run(arguments.epochs, True, spark), "within 1 h": run(arguments.epochs, False, spark)}
    record: dict[str, Any] = {"epochs": arguments.epochs, "rows": ROWS, "spark": arguments.spark}
    for name, seen in runs.items():
        medians = {what: tenths(seen, what) for what in ("state", "files", "manifest")}
        record[name] = {"tenths_ms": [t * 1e3 for t in tenths(seen, "seconds")], **medians}
        print(f"{name}: ms {[round(t) for t in record[name]['tenths_ms']]}")
        for what, values in medians.items():
            print(f"  {what}: {[round(v) for v in values]}, at most {max(r[what] for r in seen):.0f}")
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "long_join.json").write_text(json.dumps(record, indent=1) + "\n")
    plot(runs, RESULTS / "long_join.png")


if __name__ == "__main__":
    main()
