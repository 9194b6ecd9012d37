"""A pace that is killed goes on where it was: the same floors, the same results, the same dead letters."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import penstock as ps
from penstock.checkpoint.fault import Crash, hooked
from penstock.portal.testing import local_session

FILES, ROWS = 7, 6


@pytest.fixture
def home() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="penstock-pace-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None))
    for name, step, start in (("fast", 10, 0), ("slow", 3, 2)):
        for number in range(FILES):
            (folder / name).mkdir(exist_ok=True)
            places = range(number * ROWS, (number + 1) * ROWS)
            rows = [{"ts": start + step * i + (i * 7) % 11, "k": i % 3} for i in places]
            table = pa.Table.from_pylist(rows, schema=pa.schema([("ts", pa.int64()), ("k", pa.int64())]))
            pq.write_table(table, folder / name / f"{number}.parquet")
    yield folder
    shutil.rmtree(folder)


def query(home: Path, behind_state: bool) -> ps.Stream:
    fast, slow = (
        ps.stream(n, "ts bigint, k bigint", time="ts").read_parquet(str(home / n), order="name").ends()
        for n in ("fast", "slow")
    )
    other = slow.distinct() if behind_state else slow
    paced = fast.pace(other, on="ts", bound=60).feedback(propagate=False)
    return paced.window(50).group_by("k").agg(n="count(*)")


def run(home: Path, place: Path, behind_state: bool) -> Any:
    started = query(home, behind_state).start(
        ps.parquet(str(place / "out")),
        checkpoint=str(place / "checkpoint"),
        trigger="available_now",
        spark=local_session(),
        max_rows=ROWS,
        buckets=2,
        fuse_below=0 if behind_state else 1 << 20,
    )
    return started.wait()


def told(place: Path) -> tuple[Counter[str], Counter[str]]:
    """Results and dead letters: which file each is in counts, for that is the epoch."""
    found = []
    for folder in (place / "out", place / "checkpoint" / "dead_letters"):
        rows = [(p.name, str(r)) for p in sorted(folder.glob("part-*")) for r in pq.read_table(p).to_pylist()]
        found.append(Counter(map(str, rows)))
    return found[0], found[1]


@pytest.mark.parametrize("behind_state", [False, True])
def test_a_crash_at_any_step_changes_nothing(home: Path, behind_state: bool) -> None:
    points: list[str] = []
    with hooked(points.append):
        run(home, home / "undisturbed", behind_state)
    expected = told(home / "undisturbed")
    assert expected[0] and sum(expected[1].values()) > 10

    def crash_after(steps: int) -> Any:
        def hook(point: str) -> None:
            nonlocal steps
            steps -= 1
            if steps == 0:
                raise Crash(point)

        return hook

    # Every few steps, at another distance each time: a crash during recovery, or after one more epoch.
    step, crashes, place = 5, 0, home / "disturbed"
    while crashes < 100:
        try:
            with hooked(crash_after(step)):
                run(home, place, behind_state)
            break
        except Crash:
            crashes += 1
            step = 5 + (step * 7 + crashes) % 31
    assert crashes > 3
    assert told(place) == expected


def test_what_a_rehearsal_would_drop_is_no_partial_result_and_no_dead_letter(home: Path) -> None:
    fast, slow = (
        ps.stream(n, "ts bigint, k bigint", time="ts").read_parquet(str(home / n), order="name").ends()
        for n in ("fast", "slow")
    )
    counts = slow.window(4).group_by("k").agg(n="count(*)")
    seen = fast.select("k", window_start="ts", n="cast(1 as bigint)")
    # After the first epoch time has got to 51 and to 18: of the windows that are open, only the latest would pass.
    paced = counts.pace(seen, on="window_start", bound=36).feedback(propagate=False)
    started = paced.start(
        ps.parquet(str(home / "out")),
        checkpoint=str(home / "checkpoint"),
        trigger="available_now",
        spark=local_session(),
        max_rows=ROWS,
        overlap=False,
        feedback=["now [*, *, *]"],
    )
    started.wait()
    (partial,) = (home / "checkpoint" / "partials").glob("*.parquet")
    rows = pq.read_table(partial).to_pylist()
    assert rows and all(r["partial"] and r["as_of_epoch"] == 1 for r in rows)
    high = max(r["ts"] for r in pq.read_table(home / "fast" / "0.parquet").to_pylist())
    assert all(r["window_start"] >= high - 36 for r in rows)
    letters = [r for p in (home / "checkpoint" / "dead_letters").glob("part-*") for r in pq.read_table(p).to_pylist()]
    finals = [r for p in (home / "out").glob("part-*") for r in pq.read_table(p).to_pylist()]
    # One letter for each window that came too late in the end, none for those that would have.
    windows = {
        (r["ts"] // 4, r["k"]) for n in range(FILES) for r in pq.read_table(home / "slow" / f"{n}.parquet").to_pylist()
    }
    assert len(letters) + len(finals) == len(windows) + FILES * ROWS
