"""The aggregate in Pathway. Runs in an environment of its own; reads CSV in one commit, which is faster than epochs.

Grouped by a computed window, since the windows of its temporal library go through Python, row by row.
"""

from __future__ import annotations

import os
import time

# Read when the library is imported.
os.environ.setdefault("PATHWAY_THREADS", "2")

import pathway as pw
from pathway.internals.parse_graph import G

from benchmarks.joins.turn import Answer, Job, take_turns

WIDTH = 10_000_000


class Row(pw.Schema):  # type: ignore[misc]  # not there to look at
    ts: int
    key: int
    value: float


def run(job: Job) -> Answer:
    G.clear()
    began = time.perf_counter()
    rows = pw.io.csv.read(job["data"], schema=Row, mode="static")
    placed = rows.select(w=rows.ts // WIDTH * WIDTH, key=rows.key, value=rows.value)
    groups = placed.groupby(placed.w, placed.key).reduce(
        placed.w, placed.key, n=pw.reducers.count(), s=pw.reducers.sum(placed.value)
    )
    pw.io.csv.write(groups, f"{job['out']}/all.csv")
    pw.run(monitoring_level=pw.MonitoringLevel.NONE)
    return {"seconds": time.perf_counter() - began, "done": True, "epochs": []}


if __name__ == "__main__":
    take_turns("pathway", run)
