"""A clock gone wrong: one event of the year 9999 is told, or set aside, and then makes nobody late."""

from __future__ import annotations

import os
import random
import time
from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import penstock as ps
from penstock.engine.run import Run
from penstock.engine.source import PromiseState, Split, plan_tasks
from penstock.errors import UserError, ViolationError
from penstock.operators.source.operator import Source
from penstock.pattern.schema import Schema
from penstock.plan.promise import Ahead, Disorder
from penstock.portal.testing import local_session

START = datetime(2024, 1, 1)
WRONG = datetime(9999, 12, 31)


def fill(folder: Path, files: int = 4, wrong: int = 1) -> None:
    """A reading a minute, ten a file; one of them comes from a clock gone wrong."""
    folder.mkdir()
    for n in range(files):
        moments = [START + timedelta(minutes=10 * n + i) for i in range(10)]
        if n == wrong:
            moments.insert(4, WRONG)
        path = folder / f"{n}.parquet"
        pq.write_table(pa.table({"ts": pa.array(moments, pa.timestamp("us"))}), path, row_group_size=5)
        os.utime(path, (n + 1, n + 1))


def counted(folder: Path, **guard: Any) -> ps.Stream:
    stream = ps.stream("s", "ts timestamp", time="ts").read_parquet(str(folder)).disorder("30 s", **guard)
    return stream.window("10 min").agg(n="count(*)")


def run(query: ps.Stream, home: Path | None = None, **options: Any) -> Run:
    sink = ps.memory() if home is None else ps.parquet(str(home / "out"))
    return query.start(sink, trigger="available_now", spark=local_session(), **options).wait()


def test_it_is_told_with_stream_value_file_and_what_to_write(tmp_path: Path) -> None:
    fill(tmp_path / "in")
    done = run(counted(tmp_path / "in"), max_rows=10)
    (warning,) = done.warnings
    for part in ("stream 's'", "'ts' is 9999-12-31", "in/1.parquet'", 'ahead="1 h"'):
        assert part in warning
    assert Counter(done.dead_letters()["reason"].to_pylist()) == {"late": 26}


@pytest.mark.parametrize("max_rows", [1, 7, None])
def test_it_is_set_aside_if_declared(tmp_path: Path, max_rows: int | None) -> None:
    fill(tmp_path / "in")
    done = run(counted(tmp_path / "in", ahead="1 h"), tmp_path, max_rows=max_rows)
    assert done.warnings == []
    (letter,) = done.dead_letters().to_pylist()
    assert (letter["reason"], letter["row"], letter["time"]) == ("ahead", 4, WRONG)
    assert letter["detail"] == "[> '2024-01-01 01:13:00']"  # the newest before it, 00:13, and an hour
    found = [r["n"] for p in (tmp_path / "out").glob("part-*") for r in pq.read_table(p).to_pylist()]
    assert found == [10, 10, 10]
    assert done.progress is not None and done.progress.frontier == {"s": "2024-01-01 00:38:30"}


def test_a_run_may_fail_at_it(tmp_path: Path) -> None:
    fill(tmp_path / "in")
    stream = ps.stream("s", "ts timestamp", time="ts").read_parquet(str(tmp_path / "in"))
    with pytest.raises(ViolationError, match="ahead"):
        run(stream.disorder("30 s", ahead="1 h").on_violation("fail").window("10 min").agg(n="count(*)"))


def test_what_is_old_or_has_no_clock_is_not_told(tmp_path: Path) -> None:
    fill(tmp_path / "in", wrong=-1)
    assert run(counted(tmp_path / "in")).warnings == []
    (tmp_path / "n.csv").write_text("n\n1\n9000000000000000000\n")
    numbers = ps.stream("n", "n bigint", time="n").read_csv(str(tmp_path / "n.csv")).disorder(5)
    assert run(numbers.where("n > 0")).warnings == []


def test_dates_are_told_too(tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text("day\n2024-01-01\n9999-01-01\n")
    days = ps.stream("d", "day date", time="day").read_csv(str(tmp_path / "d.csv")).disorder("1 day")
    (warning,) = run(days).warnings
    assert "'day' is 9999-01-01" in warning


def test_it_can_be_corrected_without_a_new_checkpoint(tmp_path: Path) -> None:
    """After a silence that is longer than declared nothing is let in any more: so there is a way out."""
    fill(tmp_path / "in", files=1, wrong=-1)
    later = pa.table({"ts": pa.array([START + timedelta(days=2)], pa.timestamp("us"))})
    pq.write_table(later, tmp_path / "in/silence.parquet")
    assert run(counted(tmp_path / "in", ahead="1 h"), tmp_path).dead_letters()["reason"].to_pylist() == ["ahead"]
    pq.write_table(later, tmp_path / "in/again.parquet")
    done = run(counted(tmp_path / "in", ahead="3 days"), tmp_path)
    assert done.dead_letters().num_rows == 1 and done.progress is not None and done.progress.rows_in == 1


def test_as_a_policy_and_as_text() -> None:
    stream = ps.stream("s", "ts timestamp, n bigint", time="ts")
    one, other = stream.disorder("5 s", ahead="1 h"), stream.punctuate(ps.Punctuate.ahead("1 h")).disorder("5 s")
    assert isinstance(one.operator, Source) and isinstance(other.operator, Source)
    assert one.operator.promises == other.operator.promises == (Ahead("ts", 3_600_000_000), Disorder("ts", 5_000_000))
    assert "ts at most 1 h ahead" in one.operator.detail
    assert str(ps.Punctuate.ahead("1 h")) == "ahead('1 h')"
    with pytest.raises(UserError, match="declared twice"):
        one.punctuate(ps.Punctuate.ahead("2 h"))
    with pytest.raises(UserError):
        stream.disorder("5 s", ahead="soon")


def test_statistics_that_show_no_jump_leave_splits_to_tasks_of_their_own() -> None:
    schema = Schema.parse("ts bigint", time="ts")
    source = Source((), schema, name="s", promises=(Disorder("ts", 0), Ahead("ts", 10)))
    state = PromiseState(source)
    splits = [
        Split("s", "", n, "f", "parquet", 0, 9, 9, 1 << 20, 0, 0, (), 5 * n, 5 * n + 4, last=True) for n in range(4)
    ]
    # Nobody knows yet what comes before the first: one task reads them all.
    assert [len(task) for task in plan_tasks(state, splits, 4)] == [4]
    told = {
        "keys": [],
        "punctuations": [],
        "values": [],
        "over": [],
        "tops": {},
        "seen": {},
        "tallies": {},
        "counted": None,
    }
    state.absorb([{"partition": "", "ordinal": -1, "highs": {"ts": 0}, **told}])
    assert [len(task) for task in plan_tasks(state, splits, 4)] == [1, 1, 1, 1]
    assert [len(task) for task in plan_tasks(state, [splits[0], *splits[3:], splits[1]], 4)] == [1, 2]


def test_the_clock_of_the_machine_may_jump(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Days ahead, years back, at every look at it: the results are those of a clock that goes right."""
    fill(tmp_path / "in", wrong=-1)
    run(counted(tmp_path / "in"), tmp_path / "steady", max_rows=7)
    dice = random.Random(5)
    monkeypatch.setattr(time, "time", lambda: dice.uniform(0, 4e9))
    monkeypatch.setattr(time, "time_ns", lambda: dice.randrange(4 * 10**18))
    run(counted(tmp_path / "in"), tmp_path / "jumping", max_rows=7)
    results = [pq.read_table(tmp_path / home / "out").sort_by("window_start") for home in ("steady", "jumping")]
    assert results[0].num_rows == 3 and results[0].equals(results[1])
