"""The join in Pathway, as an interval join of its temporal library. Runs in an environment of its own.

Reading and writing Parquet goes through Delta Lake there, which wants a licence key, so the rows come from and go to
CSV. Static mode reads all of it in one commit: faster than epochs would be.
"""

from __future__ import annotations

import os
import time

# Read when the library is imported.
os.environ.setdefault("PATHWAY_THREADS", "2")

import pathway as pw
from pathway.internals.parse_graph import G

from benchmarks.joins.turn import Answer, Job, take_turns


class Row(pw.Schema):  # type: ignore[misc]  # not there to look at
    ts: int
    key: int
    seq: int
    value: float


def run(job: Job) -> Answer:
    G.clear()
    began = time.perf_counter()
    left, right = (pw.io.csv.read(job[side], schema=Row, mode="static") for side in ("left", "right"))
    if job["band"] is None:
        joined = left.join(right, left.key == right.key)
    else:
        width = pw.temporal.interval(-job["band"], job["band"])
        joined = left.interval_join(right, left.ts, right.ts, width, left.key == right.key)
    result = joined.select(
        left.key, left.ts, left.seq, left.value, ts_right=right.ts, seq_right=right.seq, value_right=right.value
    )
    pw.io.csv.write(result, f"{job['out']}/all.csv")
    pw.run(monitoring_level=pw.MonitoringLevel.NONE)
    return {"seconds": time.perf_counter() - began, "done": True, "epochs": []}


if __name__ == "__main__":
    take_turns("pathway", run)
