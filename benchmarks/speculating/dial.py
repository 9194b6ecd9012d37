"""(b) and (c) What one gets for waiting and for remembering: the same disordered events at many points of the dial.

Everything is counted in the time of the events, so it does not matter how fast the machine is. A window is right from
when it was told its last value, if that is the true one.
"""

from __future__ import annotations

import shutil
import statistics
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import penstock as ps
from benchmarks.speculating.streams import SCHEMA, Late, disordered
from penstock.plan.weight import WEIGHT
from penstock.portal.testing import local_session

WINDOW = 60
KEYS = 5
RATE = 5.0
STEP = 100
"""Events in an epoch: 20 seconds of them."""
_HOME = "/dev/shm" if Path("/dev/shm").is_dir() else None
Point = tuple[int | None, int | None]


def told(events: pa.Table, block: int | None, remember: int | None, promise: int) -> dict[str, Any]:
    """One point: what was told, taken back and lost, how much was held, and when windows were told and right."""
    home = Path(tempfile.mkdtemp(prefix="dial-", dir=_HOME))
    try:
        (home / "in").mkdir()
        pq.write_table(events.select(["ts", "key", "value"]), home / "in" / "all.parquet")
        stream = ps.stream("events", SCHEMA, time="ts").read_parquet(str(home / "in"), order="name")
        query = stream.disorder(promise).ends().window(WINDOW).group_by("key").agg(n="count(*)")
        target = ps.memory()
        done = query.start(
            target,
            trigger="available_now",
            checkpoint=str(home / "checkpoint"),
            max_rows=STEP,
            consistency=ps.Consistency.at(block=block, remember=remember),
            spark=local_session(),
        ).wait()
        held = max(p.state_rows for p in done.history)
        assert done.progress is not None
        lost = sum(done.progress.total_dead.values())
    finally:
        shutil.rmtree(home, ignore_errors=True)
    return {"block": block, "remember": remember, "held": held, "lost": lost, **_judged(events, target.tables)}


def _judged(events: pa.Table, tables: Iterable[tuple[int, pa.Table]]) -> dict[str, Any]:
    newest = np.maximum.accumulate(events["ts"].to_numpy())
    rows, back = 0, 0
    first: dict[tuple[int, int], int] = {}
    last: dict[tuple[int, int], tuple[int, int]] = {}
    for epoch, table in tables:
        now = int(newest[min(epoch * STEP, len(newest)) - 1])
        for row in table.to_pylist():
            rows += 1
            if row.get(WEIGHT, 1) < 0:
                back += 1
                continue
            group = (row["window_start"], row["key"])
            first.setdefault(group, now)
            last[group] = (now, row["n"])
    truth = Counter(zip((events["ts"].to_numpy() // WINDOW * WINDOW).tolist(), events["key"].to_pylist()))
    # The end of the stream closes the last windows, so when they come says nothing.
    over = int(newest[-1]) - 2 * WINDOW
    inside = [g for g in truth if g[0] < over]
    right = [last[g][0] - g[0] for g in inside if g in last and last[g][1] == truth[g]]
    return {
        "windows": len(truth),
        "rows": rows,
        "back": back,
        "right": sum(last.get(g, (0, 0))[1] == n for g, n in truth.items()) / len(truth),
        "error": sum(abs(n - last.get(g, (0, 0))[1]) for g, n in truth.items()) / events.num_rows,
        "first": _middle([first[g] - g[0] for g in inside if g in first]),
        "last": _middle(right),
        "last_p90": float(np.quantile(right, 0.9)) if right else None,
    }


def _middle(values: Sequence[int]) -> float | None:
    return statistics.median(values) if values else None


def sweep(quick: bool) -> dict[str, Any]:
    """(b) Blocks of all lengths, with nothing forgotten before its time: 20 % come up to five minutes late."""
    most = 300
    events = disordered(2_000 if quick else 20_000, KEYS, Late(0.2, most), RATE)
    blocks: list[int | None] = [0, 10, 20, 40, 60, 120, 180, 240, 300, None]
    found = [told(events, b, None, most) for b in blocks[:: 3 if quick else 1]]
    return {"events": events.num_rows, "most": most, "points": found}


def tails(quick: bool) -> dict[str, Any]:
    """(c) Memories of all lengths, for events of which 20 % come by a heavy tail: half of these within a minute."""
    events = disordered(2_000 if quick else 20_000, KEYS, Late(0.2, 60, tail=0.7), RATE)
    late = np.maximum.accumulate(events["ts"].to_numpy()) - events["ts"].to_numpy()
    longest = int(late.max()) + 1
    memories = [10, 30, 60, 120, 300, 600, 1200, longest]
    found = [told(events, 0, m, longest) for m in memories[:: 3 if quick else 1]]
    quantiles = {q: float(np.quantile(late, q)) for q in (0.5, 0.9, 0.99, 0.999)}
    return {"events": events.num_rows, "longest": longest, "late": quantiles, "points": found}


def triangle(quick: bool) -> dict[str, Any]:
    """Both at once, over the events of the heavy tail: every block with every memory that is not shorter."""
    events = disordered(2_000 if quick else 10_000, KEYS, Late(0.2, 60, tail=0.7), RATE)
    steps = [0, 30, 60, 120, 300, 600, 1200]
    steps = steps[::3] if quick else steps
    late = np.maximum.accumulate(events["ts"].to_numpy()) - events["ts"].to_numpy()
    found = [told(events, b, m, int(late.max()) + 1) for m in steps for b in steps if b <= m]
    return {"events": events.num_rows, "steps": steps, "points": found}


def quakes() -> dict[str, Any]:
    """(c) For real: how much of what was said of a week of earthquakes is lost by who remembers less."""
    path = Path(__file__).parents[2] / "examples" / "earthquakes.csv"
    with duckdb.connect() as db:
        said = db.sql(
            f"""WITH quakes AS (SELECT * FROM read_csv('{path}')), said AS (
                  SELECT time, time AS known, false AS magnitude FROM quakes
                  UNION ALL SELECT time, updated, true FROM quakes)
                SELECT magnitude, epoch(max(time) OVER (ORDER BY known ROWS UNBOUNDED PRECEDING) - time) / 3600 AS late
                FROM said"""
        ).fetchall()
    late = np.array([hours for magnitude, hours in said if magnitude])
    hours = [1, 3, 6, 12, 24, 48, 96, 168]
    return {"magnitudes": len(late), "hours": hours, "lost": [float((late > h).mean()) for h in hours]}
