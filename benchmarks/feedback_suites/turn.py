"""A contestant of the feedback benchmark, in a process of its own: waits for a job, runs its query, answers.

    python -m benchmarks.feedback_suites.turn

The code from before there was feedback is a contestant too: the same process with another Penstock on its path.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterable
from itertools import pairwise
from queue import SimpleQueue
from threading import Thread
from typing import Any

import numpy as np
import pyarrow as pa

import penstock as ps
from benchmarks.feedback_suites.expensive import Ledger, Tap
from benchmarks.feedback_suites.queries import build, useless
from benchmarks.feedback_suites.traffic import Traffic
from benchmarks.joins.turn import Answer, Job, take_turns

MINUTE = 60_000_000


class Results:
    """What comes out: how many rows, and for the suites on late work whether they are still of use."""

    def __init__(self, time: str, late: int | None) -> None:
        self.time, self.late = time, late
        self.rows = self.useful = self.imputed = self.useful_imputed = 0
        self.high: int | None = None

    def __call__(self, rows: pa.Table, epoch: int) -> None:
        self.rows += rows.num_rows
        if self.late is None or not rows.num_rows:
            return
        # Within an epoch rows have no order among each other: each is of use by what came out in the epochs before.
        ticks = np.asarray(rows[self.time].cast(pa.int64()))
        imputed = np.asarray(rows["imputed"])
        useful = np.ones(len(ticks), bool) if self.high is None else ticks >= self.high - self.late
        self.useful += int(useful.sum())
        self.imputed += int(imputed.sum())
        self.useful_imputed += int((useful & imputed).sum())
        self.high = int(ticks.max()) if self.high is None else max(self.high, int(ticks.max()))


def run(spark: Any, job: Job) -> Answer:
    folder = tempfile.mkdtemp(prefix="feedback-")
    ledger, taps = (tempfile.mkdtemp(prefix=name, dir=folder) for name in ("ledger", "taps"))
    try:
        question = build({**job, "ledger": ledger, "taps": taps if job.get("tapped") else ""})
        late = {"3": 5 * MINUTE, "flights": 60 * MINUTE}.get(job["suite"])
        results = Results("sched" if job["suite"] == "flights" else "ts", late)
        stamps: list[float] = []
        running: list[ps.Run] = []

        done: SimpleQueue[int] = SimpleQueue()
        said: list[int] = []

        def heard(progress: ps.Progress) -> None:
            stamps.append(time.perf_counter())
            done.put(progress.epoch)

        def talk() -> None:
            """Say something useless after every epoch, but not after the last two: it would get an epoch of its own."""
            last = job.get("useless", 0) - 2
            while (epoch := done.get()) <= last:
                now = running[0].progress
                if now is None or now.epoch > last:
                    return  # The machine is busy, and the run is ahead of its client.
                # It holds for the next epochs, in which nobody can know yet that it is of no use.
                until = (epoch + 3) * job["rows"] // Traffic().a_minute
                running[0].feedback(useless(question.query.schema, epoch, until))
                said.append(epoch)

        told = {"feedback": list(question.feedback)} if question.feedback else {}
        began = time.perf_counter()
        running.append(
            question.query.start(
                ps.deliver(results),
                trigger="available_now",
                checkpoint=f"{folder}/checkpoint",
                max_rows=job["rows"],
                spark=spark,
                listener=heard,
                **told,
            )
        )
        if job.get("useless"):
            Thread(target=talk, daemon=True).start()
        running[0].wait()
        seconds = time.perf_counter() - began
        history = list(running[0].history)
        calls, cost = Ledger(ledger).total
        last = history[-1]
        return {
            "seconds": seconds,
            "epochs": len(history),
            "epoch_seconds": [b - a for a, b in pairwise(stamps)],
            "said": len(said),
            "rows_in": last.total_rows_in,
            "rows_out": results.rows,
            "read": _sum(p.read for p in history),
            "saved": _sum(getattr(p, "saved", {}) for p in history),
            "dead": last.total_dead,
            "guards": max((getattr(p, "guards", 0) for p in history), default=0),
            "operators": {**Tap.counts(taps), question.last: results.rows},
            "useful": results.useful,
            "imputed": results.imputed,
            "useful_imputed": results.useful_imputed,
            "calls": calls,
            "call_seconds": cost,
            "warnings": list(running[0].warnings)[:5],
        }
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _sum(counts: Iterable[dict[str, int]]) -> dict[str, int]:
    total: dict[str, int] = {}
    for count in counts:
        for name, number in count.items():
            total[name] = total.get(name, 0) + number
    return total


def main() -> None:
    spark = ps.spark_session("local[2]", memory="2g")
    take_turns(ps.__file__, lambda job: run(spark, job))
    spark.stop()


if __name__ == "__main__":
    main()
