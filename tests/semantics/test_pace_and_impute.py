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
