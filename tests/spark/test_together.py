"""Independent queries in one session at the same time: none hears of the others, whatever happens to them."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scenario import SCENARIOS, Outcome, outcome

import penstock as ps
from penstock.checkpoint.fault import Crash, hooked
from penstock.errors import UserError
from penstock.portal.testing import local_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAMES = ("windows", "joined", "two-levels", "by-value")


def prepared(folders: pytest.TempPathFactory) -> dict[str, tuple[Path, Outcome]]:
    """The input of each query, and what it gives alone."""
    found = {}
    for name in NAMES:
        home = folders.mktemp(name)
        SCENARIOS[name].prepare(home)
        SCENARIOS[name].start(home, home, local_session()).wait()
        found[name] = home, outcome(home)
    return found


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, Outcome]]:
    return prepared(tmp_path_factory)


def together(alone: dict[str, tuple[Path, Outcome]], home: Path, session: Any) -> dict[str, ps.Run]:
    return {name: SCENARIOS[name].start(source, home / name, session) for name, (source, _) in alone.items()}


def check(alone: dict[str, tuple[Path, Outcome]], home: Path) -> None:
    for name, (_, expected) in alone.items():
        assert outcome(home / name).rows == expected.rows, name
        assert outcome(home / name).totals == expected.totals, name


def test_each_gives_what_it_gives_alone(
    spark: SparkSession, alone: dict[str, tuple[Path, Outcome]], tmp_path: Path
) -> None:
    runs = together(alone, tmp_path, spark)
    assert sum(run.active for run in runs.values()) >= 2  # They are under way at the same time.
    for run in runs.values():
        run.wait()
    check(alone, tmp_path)


def test_in_this_process_too(alone: dict[str, tuple[Path, Outcome]], tmp_path: Path) -> None:
    for run in together(alone, tmp_path, local_session()).values():
        run.wait()
    check(alone, tmp_path)


def test_one_that_fails_or_is_stopped_takes_no_other_along(
    spark: SparkSession, alone: dict[str, tuple[Path, Outcome]], tmp_path: Path
) -> None:
    def broken(rows: pa.Table, epoch: int) -> None:
        raise ValueError("no room")

    endless = ps.generate("endless", rate=1000).window("1 s").agg(n="count(*)")
    stopped = endless.start(ps.memory(), every="50 ms", spark=spark)
    failing = ps.generate("few", rate=10, rows=40).ends().window("1 s").agg(n="count(*)")
    failed = failing.start(ps.deliver(broken), trigger="available_now", spark=spark)
    runs = together(alone, tmp_path, spark)
    with pytest.raises(UserError, match="no room"):
        failed.wait(60)
    stopped.stop()
    for run in runs.values():
        run.wait()
    check(alone, tmp_path)


def test_one_that_crashes_goes_on_while_others_run(alone: dict[str, tuple[Path, Outcome]], tmp_path: Path) -> None:
    """Pulled out in the middle of a commit, and started again beside the others."""
    victim, left = "windows", [1, 3, 2]
    source, _ = alone[victim]

    def hook(point: str) -> None:
        if threading.current_thread() in mine and point == "committed" and left:
            left[0] -= 1
            if not left[0]:
                left.pop(0)
                raise Crash(point)

    mine: set[threading.Thread] = set()
    with hooked(hook):
        others = {
            name: SCENARIOS[name].start(home, tmp_path / name, local_session())
            for name, (home, _) in alone.items()
            if name != victim
        }
        while left:
            run = SCENARIOS[victim].start(source, tmp_path / victim, local_session())
            mine.add(run._thread)
            try:
                run.wait()
                break
            except Crash:
                time.sleep(0.01)
        SCENARIOS[victim].start(source, tmp_path / victim, local_session()).wait()
        for run in others.values():
            run.wait()
    check(alone, tmp_path)


def test_one_reads_what_the_other_writes(spark: SparkSession, tmp_path: Path) -> None:
    """The sink of one is the source of the other: whole files only, each once."""
    events = ps.generate("events", rate=10, rows=400).ends()
    first = events.select("ts", "key").start(
        ps.parquet(str(tmp_path / "between")),
        trigger="available_now",
        max_rows=50,
        checkpoint=str(tmp_path / "one"),
        spark=spark,
    )
    behind = ps.stream("between", "ts timestamp, key int", time="ts").disorder("0 s")
    behind = behind.read_parquet(str(tmp_path / "between"), order="name", wait=True)
    second = behind.where("key >= 0").start(
        ps.parquet(str(tmp_path / "out")), every="20 ms", checkpoint=str(tmp_path / "two"), spark=spark
    )
    first.wait()
    deadline = time.monotonic() + 60
    while (second.progress is None or second.progress.total_rows_in < 400) and time.monotonic() < deadline:
        time.sleep(0.05)
    second.stop()
    assert sum(pq.read_table(p).num_rows for p in (tmp_path / "out").glob("part-*")) == 400
