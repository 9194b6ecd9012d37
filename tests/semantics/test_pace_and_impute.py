"""A pace behind an expensive function: what would come too late is not computed."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import penstock as ps
from penstock.portal.testing import local_session

ROWS = 40


def run(folder: Path, told: bool) -> tuple[set[int], int, ps.Progress]:
    """Events at 0, 1, 2 …; every other one is for the function, which has one turn in an epoch of six events."""
    stream = ps.stream("s", "ts int", time="ts").read_parquet(str(folder)).disorder(0).ends()
    mended = stream.where("ts % 2 = 1").impute(lambda rows: rows, budget=1, keeps=["ts"])
    query = stream.where("ts % 2 = 0").pace(mended, on="ts", bound=5).feedback(propagate=told)
    target = ps.memory()
    found = query.start(target, trigger="available_now", max_rows=6, spark=local_session()).wait()
    assert found.progress is not None
    results = target.table()
    assert results is not None
    calls = sum(p.work.get("impute-1 processed", 0) for p in found.history)
    return set(results["ts"].to_pylist()), calls, found.progress


def test_the_function_is_not_called_for_what_is_too_late(tmp_path: Path) -> None:
    pq.write_table(pa.table({"ts": pa.array(range(ROWS), pa.int32())}), tmp_path / "1.parquet")
    results, calls, last = run(tmp_path, told=False)
    told_results, told_calls, told = run(tmp_path, told=True)
    assert calls == ROWS // 2
    assert told_calls < calls
    assert told.total_saved["impute-1 purged"] + told_calls == ROWS // 2
    # Nothing is computed to be thrown away, and the turns that are free go to events that are in time.
    assert last.total_dead["paced"] > 0
    assert not told.total_dead
    assert results < told_results
    assert set(range(0, ROWS, 2)) <= results


def test_a_queue_that_is_told_may_get_ahead_but_every_event_is_accounted_for(tmp_path: Path) -> None:
    """Fed by another stream, which is far behind at first: told, it comes to late times sooner, and the first stream
    is the one that is too far behind. What that costs is in the dead letters, or counted as saved."""

    def go(told: bool) -> tuple[int, int, int]:
        streams = []
        for name, times in (("slow", range(100, 160)), ("fast", range(0, 600, 10))):
            (tmp_path / name).mkdir(exist_ok=True)
            pq.write_table(pa.table({"ts": pa.array(times, pa.int32())}), tmp_path / name / "1.parquet")
            streams.append(ps.stream(name, "ts int", time="ts").read_parquet(str(tmp_path / name)).ends())
        slow, fast = streams
        query = slow.pace(fast.impute(lambda rows: rows, budget=2, keeps=["ts"]), on="ts", bound=20)
        found = query.feedback(propagate=told).start(
            target := ps.memory(), trigger="available_now", max_rows=3, spark=local_session()
        )
        last = found.wait().progress
        assert last is not None
        saved = sum(n for what, n in last.total_saved.items() if what.endswith(("dropped", "never read", "purged")))
        results = target.table()
        assert results is not None
        return (
            sum(t < 160 for t in results["ts"].to_pylist()),
            last.total_dead.get("paced", 0),
            results.num_rows + saved,
        )

    (quiet, letters, rest), (told, told_letters, told_rest) = go(False), go(True)
    assert letters + rest == told_letters + told_rest == 120
    assert told < quiet
