"""The windowed counts and the flights in Pathway. Runs in an environment of its own.

`how` says how. *windows*: its temporal library, with a cutoff; *computed*: groups of a computed window, which spares it
a way through Python, row by row. Without more it is CSV in one commit. *epochs*: a commit for each, so that results are
told at once and corrected, as in the others; rows then come from memory, which is how Pathway plays a stream again.
"""

from __future__ import annotations

import csv
import os
import time
from typing import Any

# Read when the library is imported.
os.environ.setdefault("PATHWAY_THREADS", "2")

import pandas as pd
import pathway as pw
from pathway.internals.parse_graph import G

from benchmarks.joins.turn import Answer, Job, take_turns


class Row(pw.Schema):  # type: ignore[misc]  # not there to look at
    ts: int
    key: int
    value: int


def counts(rows: Any, how: str, width: int, cutoff: int | None) -> Any:
    if how.startswith("windows"):
        behavior = None if cutoff is None else pw.temporal.common_behavior(cutoff=cutoff, keep_results=True)
        grouped = rows.windowby(
            rows.ts, window=pw.temporal.tumbling(duration=width, origin=0), behavior=behavior, instance=rows.key
        )
        return grouped.reduce(
            w=pw.this._pw_window_start,
            key=pw.this._pw_instance,
            n=pw.reducers.count(),
            s=pw.reducers.sum(pw.this.value),
        )
    placed = rows.select(w=rows.ts // width * width, key=rows.key, value=rows.value)
    return placed.groupby(placed.w, placed.key).reduce(
        placed.w, placed.key, n=pw.reducers.count(), s=pw.reducers.sum(placed.value)
    )


def run(job: Job) -> Answer:
    G.clear()
    return told(job) if "changes" in job else whole(job)


def whole(job: Job) -> Answer:
    """As fast as it can; epochs are read into memory before the clock starts."""
    frame = None
    if "epochs" in job["how"]:
        names = sorted(os.listdir(job["data"]))
        frames = [pd.read_csv(f"{job['data']}/{n}").assign(__time__=2 * i) for i, n in enumerate(names)]
        frame = pd.concat(frames, ignore_index=True)
    began = time.perf_counter()
    if frame is None:
        rows = pw.io.csv.read(job["data"], schema=Row, mode="static")
    else:
        rows = pw.debug.table_from_pandas(frame, schema=Row)
        began = time.perf_counter()  # Only debugging needs what it did until now.
    pw.io.csv.write(counts(rows, job["how"], job["width"], job["cutoff"]), f"{job['out']}/all.csv")
    pw.run(monitoring_level=pw.MonitoringLevel.NONE)
    return {"seconds": time.perf_counter() - began, "done": True, "epochs": []}


def told(job: Job) -> Answer:
    """Every change, as [epoch, window, key, count, sum, +1 or -1]; `data` is a CSV with the epoch of each row."""
    with open(job["data"], newline="") as file:
        given = [{k: int(v) for k, v in row.items()} for row in csv.DictReader(file)]
    frame = pd.DataFrame(given).rename(columns={"epoch": "__time__"})
    frame["__time__"] *= 2
    changes: list[list[int]] = []

    def note(key: Any, row: dict[str, Any], time: int, is_addition: bool) -> None:
        changes.append([time // 2, row["w"], row["key"], row["n"], row["s"], 1 if is_addition else -1])

    began = time.perf_counter()
    rows = pw.debug.table_from_pandas(frame, schema=Row)
    pw.io.subscribe(counts(rows, job["how"], job["width"], job["cutoff"]), on_change=note)
    pw.run(monitoring_level=pw.MonitoringLevel.NONE)
    return {"seconds": time.perf_counter() - began, "done": True, "epochs": [], "told": changes}


if __name__ == "__main__":
    take_turns("pathway", run)
