"""How fast is the engine? Windowed count and sum per key, against Spark's own operator and against DuckDB in batch.

    python -m benchmarks.engine             five repetitions, all sizes
    python -m benchmarks.engine --quick     two repetitions, the sizes of the targets

Contestants run in processes of their own and take turns within each repetition, on the same files, 2 cores each:
Structured Streaming with its default and its RocksDB state store (checkpoints tuned for local disk, as many shuffle
partitions as cores), Penstock, and DuckDB over all files at once as the ceiling.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.process import Process

RESULTS = Path(__file__).parent / "results"
CONTESTANTS = ("native default", "native rocksdb", "penstock", "duckdb")


@dataclass(frozen=True)
class Case:
    """Rows per epoch, number of epochs, number of keys, and the least ratio to reach (0: none named)."""

    rows: int
    epochs: int
    keys: int
    target: float = 0.0

    @property
    def name(self) -> str:
        return f"{_short(self.rows)} rows × {self.epochs}, {_short(self.keys)} keys"


FLOOR = Case(10, 30, 10)
WARM_UP = Case(20_000, 30, 1_000)
QUICK = (
    FLOOR,
    Case(5_000_000, 2, 1_000, 6),
    Case(500_000, 10, 1_000, 4),
    Case(50_000, 20, 1_000, 2),
    Case(5_000_000, 2, 1_000_000, 3),
    Case(500_000, 10, 1_000_000, 3),
)
CASES = (
    *QUICK,
    Case(5_000_000, 2, 100_000),
    Case(500_000, 10, 100_000),
    Case(50_000, 20, 100_000),
    Case(50_000, 20, 1_000_000),
)


def _short(n: int) -> str:
    return f"{n // 1_000_000} M" if n >= 1_000_000 else f"{n // 1_000} k" if n >= 1_000 else str(n)


def make_data(case: Case, root: Path) -> Path:
    """One file per epoch: 8,333 events a second of event time, up to one second out of order, values normal."""
    folder = root / f"{case.rows}x{case.epochs}x{case.keys}"
    if folder.exists():
        return folder
    folder.mkdir(parents=True)
    rng = np.random.default_rng(7)
    for epoch in range(case.epochs):
        first = epoch * case.rows
        ts = (np.arange(first, first + case.rows, dtype=np.int64)) * 120 + rng.integers(0, 1_000_000, case.rows)
        table = pa.table(
            {
                "ts": pa.array(ts + 1_700_000_000_000_000, pa.timestamp("us", tz="UTC")),
                "key": pa.array(rng.integers(0, case.keys, case.rows), pa.int32()),
                "value": rng.normal(size=case.rows),
            }
        )
        path = folder / f"{epoch:04d}.parquet"
        pq.write_table(table, path, row_group_size=max(1, min(250_000, case.rows // 2)))
        os.utime(path, (1_700_000_000 + epoch, 1_700_000_000 + epoch))
    return folder


def started(kind: str) -> Process:
    """A contestant's process."""
    log = Path(tempfile.mkdtemp(prefix="engine-contest-")) / f"{kind}.log"
    return Process(["benchmarks.contestant", kind], log)


@dataclass
class Series:
    """The repetitions of one contestant on one case."""

    runs: list[dict[str, Any]] = field(default_factory=list)

    def median(self, what: str) -> float:
        return statistics.median(float(r[what]) for r in self.runs)

    @property
    def spread(self) -> tuple[float, float]:
        values = [float(r["seconds"]) for r in self.runs]
        return min(values), max(values)

    @property
    def epoch(self) -> float:
        """The median epoch, the first of each run left out: it carries the start of the query."""
        return statistics.median([e for r in self.runs for e in r["epochs"][1:]] or [0.0])


def measure(
    cases: tuple[Case, ...],
    repetitions: int,
    root: Path,
    sink: str,
    note: Callable[[dict[Case, dict[str, Series]]], None],
) -> dict[Case, dict[str, Series]]:
    processes = {kind: started(kind) for kind in ("native", "penstock", "duckdb")}
    results: dict[Case, dict[str, Series]] = {}
    try:
        # The JVM compiles what it has seen often: enough epochs that nobody is measured while that goes on.
        for contestant in CONTESTANTS * 2:
            _one(processes, contestant, WARM_UP, make_data(WARM_UP, root), sink)
            print(f"  warming up: {contestant}", flush=True)
        for case in cases:
            data = make_data(case, root)
            series = results.setdefault(case, {c: Series() for c in CONTESTANTS})
            for repetition in range(repetitions):
                # A different order each time, so that nobody always runs after the same neighbour.
                turn = repetition % len(CONTESTANTS)
                for contestant in (*CONTESTANTS[turn:], *CONTESTANTS[:turn]):
                    answer = _one(processes, contestant, case, data, sink)
                    series[contestant].runs.append(answer)
                    print(
                        f"  {case.name:32} {repetition + 1}/{repetitions} {contestant:15} {answer['seconds']:8.2f} s",
                        flush=True,
                    )
            note(results)
    finally:
        for process in processes.values():
            process.close()
    return results


def _one(processes: dict[str, Process], contestant: str, case: Case, data: Path, sink: str) -> dict[str, Any]:
    kind, _, store = contestant.partition(" ")
    job = {"data": str(data), "rows_per_epoch": case.rows, "store": store or "default", "sink": sink}
    return processes[kind].run(job)


def summary(results: dict[Case, dict[str, Series]]) -> list[dict[str, Any]]:
    rows = []
    for case, series in results.items():
        native = min(("native default", "native rocksdb"), key=lambda c: series[c].median("seconds"))
        ratio = series[native].median("seconds") / series["penstock"].median("seconds")
        per_epoch = series[native].epoch / series["penstock"].epoch if series["penstock"].epoch else float("nan")
        rows.append(
            {
                "case": case.name,
                "rows": case.rows,
                "epochs": case.epochs,
                "keys": case.keys,
                "target": case.target,
                "faster native": native,
                "ratio": ratio,
                "ratio per epoch": per_epoch,
                **{
                    c: {
                        "seconds": s.median("seconds"),
                        "spread": s.spread,
                        "epoch": s.epoch,
                        "cpu": s.median("cpu"),
                        "peak": s.median("peak"),
                        "state": s.median("state_bytes"),
                    }
                    for c, s in series.items()
                },
            }
        )
    return rows


def table(rows: list[dict[str, Any]]) -> str:
    """The results as a Markdown table."""
    head = ["case", *CONTESTANTS, "faster native ÷ Penstock", "per epoch", "target"]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for row in rows:
        cells = [row["case"]]
        for c in CONTESTANTS:
            r = row[c]
            low, high = r["spread"]
            cells.append(
                f"**{r['seconds']:.2f} s** ({low:.2f}–{high:.2f}); CPU {r['cpu']:.1f} s; "
                f"{r['peak'] / 2**20:.0f} MiB; state {r['state'] / 2**20:.1f} MiB"
            )
        met = "" if not row["target"] else f"≥ {row['target']:g} {'✓' if row['ratio'] >= row['target'] else '✗'}"
        lines.append(
            "| " + " | ".join([*cells, f"{row['ratio']:.1f} ×", f"{row['ratio per epoch']:.1f} ×", met]) + " |"
        )
    return "\n".join(lines)


def plot(rows: list[dict[str, Any]], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    rows = [row for row in rows if row["rows"] > FLOOR.rows]
    figure, axis = plt.subplots(figsize=(11, 0.7 * len(rows) + 2))
    colours = {"native default": "#c0504d", "native rocksdb": "#e39a97", "penstock": "#1f6f8b", "duckdb": "#9aa5b1"}
    height = 0.2
    for k, contestant in enumerate(CONTESTANTS):
        rate = [row["rows"] * row["epochs"] / row[contestant]["seconds"] / 1e6 for row in rows]
        places = [i + (k - 1.5) * height for i in range(len(rows))]
        axis.barh(places, rate, height, label=contestant, color=colours[contestant])
    axis.set_yticks(range(len(rows)), [row["case"] for row in rows])
    axis.invert_yaxis()
    axis.set_xscale("log")
    axis.set_xlabel("million rows per second (logarithmic), median of the repetitions")
    axis.set_title("Windowed count and sum per key: whole run, start of the query included")
    axis.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    figure.tight_layout()
    figure.savefig(path, dpi=130)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="two repetitions, the sizes that have a target")
    parser.add_argument("--repetitions", type=int, default=None)
    parser.add_argument("--sink", choices=["parquet", "noop"], default="parquet", help="where native results go")
    parser.add_argument("--data", type=Path, default=Path(tempfile.gettempdir()) / "penstock-bench")
    parser.add_argument("--only", default="", help="cases whose name contains this text")
    arguments = parser.parse_args()
    repetitions = arguments.repetitions or (2 if arguments.quick else 5)
    cases = tuple(c for c in (QUICK if arguments.quick else CASES) if arguments.only in c.name)
    rows: list[dict[str, Any]] = []

    def note(results: dict[Case, dict[str, Series]]) -> None:
        """Written after every case, so that a run that is stopped has not been for nothing."""
        rows[:] = summary(results)
        RESULTS.mkdir(exist_ok=True)
        machine = f"{os.cpu_count()} cores, {platform.machine()}"
        record = {"machine": machine, "repetitions": repetitions, "native sink": arguments.sink, "rows": rows}
        (RESULTS / "engine.json").write_text(json.dumps(record, indent=1) + "\n")
        (RESULTS / "engine.md").write_text(table(rows) + "\n")
        plot(rows, RESULTS / "engine.png")

    measure(cases, repetitions, arguments.data, arguments.sink, note)
    print("\n" + table(rows))
    for row in rows:
        if row["rows"] == FLOOR.rows:
            ours, theirs = row["penstock"]["epoch"] * 1e3, row[row["faster native"]]["epoch"] * 1e3
            print(f"\nfixed cost of an epoch: Penstock {ours:.0f} ms, native {theirs:.0f} ms ({row['faster native']})")
    print(f"\nwritten: {RESULTS}/engine.json, engine.md, engine.png")


if __name__ == "__main__":
    main()
