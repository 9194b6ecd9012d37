"""Has a small epoch become cheaper, and does an event wait less for its result? Two versions of the code, in turn.

    python -m benchmarks.epochs --before ../before    against another checkout: git worktree add ../before main
    python -m benchmarks.epochs --only "10 rows"      cases by name

Both run in processes of their own, each with a warm Spark on two cores, and take turns within each round:

- *10 rows*, *50 k rows*: windowed count and sum by 1 k keys, a file per epoch; wall and CPU seconds of an epoch, the
  latter apart by process: driver, JVM, Python workers;
- *filter*, *window*: five files a second are dropped into a folder; from there to the visible result.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.aggregates.on_penstock import whole
from benchmarks.aggregates.workload import ORIGIN, SCHEMA, Windows, make
from benchmarks.joins.turn import take_turns
from benchmarks.measure import _TICK, _stat, tree
from benchmarks.process import ROOT, Process

EPOCHS = {"10 rows": Windows(10, 150, 1_000), "50 k rows": Windows(50_000, 60, 1_000)}
LATENCY = ("filter", "window")
WARM_UP = Windows(10, 60, 1_000)
FILES = 40


def cpu_by_process(root: int) -> dict[str, float]:
    """CPU seconds so far of the driver, the JVM and the Python workers."""
    found = {"driver": 0.0, "jvm": 0.0, "workers": 0.0}
    for pid in tree(root):
        if stat := _stat(pid):
            java = Path(f"/proc/{pid}/comm").read_text().startswith("java")
            found["jvm" if java else "driver" if pid == root else "workers"] += sum(map(int, stat[11:15])) / _TICK
    return found


# --- in the process of a contestant ---------------------------------------------------------------------------------


def epochs(spark: Any, job: dict[str, Any]) -> dict[str, Any]:
    """A whole run over files that are there; CPU is what it took from beginning to end, so begin with many epochs."""
    before = cpu_by_process(os.getpid())
    with tempfile.TemporaryDirectory() as out:
        answer = whole(spark, {**job, "out": out})
    after = cpu_by_process(os.getpid())
    each = answer["epochs"]
    return {
        "epochs": each[len(each) // 5 :],  # The first ones carry the start of the query.
        "cpu_by": {name: (after[name] - before[name]) / len(each) for name in before},
    }


def latency(spark: Any, job: dict[str, Any]) -> dict[str, Any]:
    """Start a query over a folder, have a process of its own drop files there, and take the times it saw."""
    folder = Path(tempfile.mkdtemp(prefix="latency-"))
    (folder / "in").mkdir()
    drop(folder / "in", 0)
    stop = start(spark, job["case"], folder)
    out = folder / "out"
    feeder = [sys.executable, "-m", "benchmarks.epochs", "--feed", str(folder / "in"), str(out), str(FILES)]
    try:
        before = cpu_by_process(os.getpid())
        found = json.loads(subprocess.run(feeder, check=True, capture_output=True, cwd=ROOT).stdout)
        after = cpu_by_process(os.getpid())
    finally:
        stop()
        shutil.rmtree(folder, ignore_errors=True)
    found = sorted(found[10:])
    busy = sum(after.values()) - sum(before.values())
    return {
        "p50": statistics.median(found),
        "p99": found[int(0.99 * len(found))],
        "epochs": found,
        "busy": busy / (FILES / 5),
    }


def start(spark: Any, case: str, folder: Path) -> Any:
    import penstock as ps

    stream = ps.stream("files", SCHEMA, time="ts").read_parquet(str(folder / "in")).disorder("1 s")
    if case == "window":
        query = stream.window("10 s").group_by("key").agg(n="count(*)", s="sum(value)")
    else:
        query = stream.where("value > 0")
    run = query.start(ps.parquet(str(folder / "out")), every="1 ms", checkpoint=str(folder / "checkpoint"), spark=spark)
    return run.stop


# --- in the process that drops files ----------------------------------------------------------------------------------


def drop(folder: Path, number: int, rows: int = 100) -> float:
    """A file whose events close the window of the one before; when it was there."""
    rng = np.random.default_rng(number)
    ts = ORIGIN + number * 20_000_000 + rng.integers(0, 5_000_000, rows)
    keys = pa.array(rng.integers(0, 50, rows), pa.int32())
    table = pa.table({"ts": pa.array(ts, pa.timestamp("us", tz="UTC")), "key": keys, "value": rng.normal(size=rows)})
    hidden = folder / f".{number:06d}.tmp"
    pq.write_table(table, hidden)
    began = time.perf_counter()
    hidden.rename(folder / f"{number:06d}.parquet")
    return began


def feed(source: Path, out: Path, files: int) -> list[float]:
    """Drop five files a second and wait for a new result after each; the seconds that took."""

    def results() -> set[str]:
        names = os.listdir(out) if out.exists() else []
        return {n for n in names if n.startswith("part-")}

    found = []
    time.sleep(2)  # What the first file came to is not of interest.
    for number in range(1, files + 1):
        before = results()
        began = drop(source, number)
        while not results() - before:
            if time.perf_counter() - began > 30:
                raise TimeoutError(f"no result of file {number}")
            time.sleep(0.0003)
        found.append(time.perf_counter() - began)
        time.sleep(max(0.0, 0.2 - found[-1]))
    return found


def contest() -> None:
    """Answer jobs, a line of JSON each."""
    import penstock as ps

    spark = ps.spark_session("local[2]", memory="4g")
    take_turns("penstock", lambda job: latency(spark, job) if job["case"] in LATENCY else epochs(spark, job))
    spark.stop()


# --- the contest --------------------------------------------------------------------------------------------------


def measure(cases: list[str], versions: dict[str, Path], rounds: int, data: Path) -> dict[str, Any]:
    """By case and version the answers of all rounds."""
    logs = Path(tempfile.mkdtemp(prefix="epochs-"))
    processes = {
        name: Process(["benchmarks.epochs", "--contestant"], logs / f"{name}.log", env={"PYTHONPATH": f"{path}/src"})
        for name, path in versions.items()
    }
    found: dict[str, Any] = {case: {name: [] for name in versions} for case in cases}
    try:
        for name in [*versions] * 2:
            _one(processes[name], "10 rows", WARM_UP, data)
        for turn in range(rounds):
            for case in cases:
                for name in sorted(versions, reverse=turn % 2 == 1):
                    answer = _one(processes[name], case, EPOCHS.get(case), data)
                    found[case][name].append(answer)
                    print(f"  {turn + 1}/{rounds} {case:10} {name:10} {_said(answer)}", flush=True)
    finally:
        for process in processes.values():
            process.close()
    return found


def _one(process: Process, case: str, size: Windows | None, data: Path) -> dict[str, Any]:
    job: dict[str, Any] = {"case": case}
    if size is not None:
        job |= {"data": str(make(size, data)), "rows_per_epoch": size.rows}
    return process.run(job)


def _said(answer: dict[str, Any]) -> str:
    middle = statistics.median(answer["epochs"]) * 1e3
    if "p99" in answer:
        return f"p50 {middle:6.1f} ms, p99 {answer['p99'] * 1e3:6.1f} ms, busy {answer['busy']:.2f} cores"
    each = ", ".join(f"{name} {1e3 * seconds:.1f}" for name, seconds in answer["cpu_by"].items())
    return f"{middle:6.1f} ms, CPU {1e3 * sum(answer['cpu_by'].values()):6.1f} ms ({each})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", type=Path, help="a checkout of other code to compare with")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="", help="cases whose name contains this text")
    parser.add_argument("--data", type=Path, default=Path(tempfile.gettempdir()) / "penstock-bench")
    parser.add_argument("--contestant", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--feed", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.contestant:
        contest()
        return
    if arguments.feed:
        source, out, files = arguments.feed
        print(json.dumps(feed(Path(source), Path(out), int(files))))
        return
    versions = {"now": ROOT}
    if arguments.before:
        versions["before"] = arguments.before.resolve()
    cases = [c for c in (*EPOCHS, *LATENCY) if arguments.only in c]
    found = measure(cases, versions, arguments.rounds, arguments.data)
    for case in cases:
        for name, answers in found[case].items():
            middles = sorted(statistics.median(a["epochs"]) * 1e3 for a in answers)
            said: dict[str, Any] = {"median_ms": statistics.median(middles), "spread_ms": [middles[0], middles[-1]]}
            if case in LATENCY:
                said["p99_ms"] = statistics.median(a["p99"] for a in answers) * 1e3
            else:
                said["cpu_ms"] = statistics.median(sum(a["cpu_by"].values()) for a in answers) * 1e3
            print(f"{case:10} {name:10} " + ", ".join(f"{k} {v}" for k, v in said.items()))


if __name__ == "__main__":
    main()
