"""Whole runs, in this process, in which a feedback reaches the scan: what is never read, and that nobody can tell."""

from __future__ import annotations

import pickle
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import penstock as ps
from penstock.checkpoint.fault import Crash, hooked
from penstock.engine.progress import Progress
from penstock.portal.testing import local_session

GROUP = 20


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Six files of five row groups: each has one segment, and times a little out of order."""
    monkeypatch.chdir(tmp_path)
    Path("in").mkdir()
    for f in range(6):
        groups = []
        for g in range(5):
            first = (f * 5 + g) * GROUP
            ts = [t - (23 if t % 17 == 0 else t % 4) for t in range(first, first + GROUP)]
            groups.append(pa.table({"ts": ts, "segment": pa.array([g] * GROUP, pa.int32()), "speed": [40.0] * GROUP}))
        pq.write_table(pa.concat_tables(groups), f"in/{f:02}.parquet", row_group_size=GROUP)
    return tmp_path


def traffic(slack: int | None = 5) -> ps.Stream:
    schema = "ts bigint, segment int, speed double"
    read = ps.stream("traffic", schema, time="ts").read_parquet("in", order="name")
    return read if slack is None else read.disorder(slack)


def run(query: ps.Stream, feedback: Sequence[str] = (), **settings: Any) -> tuple[list[Any], list[Progress]]:
    told: list[Progress] = []
    settings = {"max_rows": 150, "checkpoint": "cp", "spark": local_session(), "listener": told.append, **settings}
    query.start(ps.parquet("out"), trigger="available_now", feedback=feedback, **settings).wait()
    rows = [tuple(r.values()) for f in sorted(Path("out").glob("*.parquet")) for r in pq.read_table(f).to_pylist()]
    return sorted(rows), told


def fresh(query: ps.Stream, feedback: Sequence[str] = (), **settings: Any) -> tuple[list[Any], list[Progress]]:
    for name in ("out", "cp"):
        shutil.rmtree(name, ignore_errors=True)
    return run(query, feedback, **settings)


@pytest.mark.parametrize("settings", [{}, {"fuse_below": 0}, {"fuse_below": 0, "overlap": False}, {"max_rows": 13}])
def test_rows_that_nobody_wants_are_never_read(settings: dict[str, Any]) -> None:
    query = traffic().where("speed > 0")
    free, before = fresh(query, **settings)
    told, after = fresh(query, ["not [*, {1, 3}, *]"], **settings)
    assert told == [row for row in free if row[1] not in (1, 3)]
    assert after[-1].total_saved == {
        "source:traffic never read": 12 * GROUP,
        "source:traffic row groups skipped": 12,
    }
    assert after[-1].frontier == before[-1].frontier
    assert 0 < after[-1].total_dead["late"] < before[-1].total_dead["late"]
    assert after[-1].total_rows_in == len(told)
    assert len(after) < len(before)  # the budget is for what is read


def test_who_is_not_to_count_counts_nothing_of_it() -> None:
    counted, _ = fresh(traffic().where("speed > 0"), ["not [*, {1, 3}, *]"])
    silent, told = fresh(traffic().feedback(log=False).where("speed > 0"), ["not [*, {1, 3}, *]"])
    assert silent == counted
    assert told[-1].total_saved == {}


def test_a_message_to_a_run_that_has_ended_says_so_and_is_kept_as_it_is() -> None:
    done = traffic().start(ps.parquet("out"), trigger="available_now", checkpoint="cp", spark=local_session()).wait()
    receipt = done.feedback("not [< 7, *, *]")
    assert "the run has ended" in receipt.remarks[0]
    kept = pickle.loads(pickle.dumps(receipt))
    assert (kept, kept.remarks) == (receipt, receipt.remarks)


def test_groups_that_nobody_wants_are_never_read() -> None:
    query = traffic().window(100).group_by("segment").agg(n="count(*)")
    free, before = fresh(query)
    told, after = fresh(query, ["not [*, {1, 3}, *]"])
    assert told == [row for row in free if row[1] not in (1, 3)]
    assert after[-1].total_saved["source:traffic never read"] == 12 * GROUP
    assert after[-1].frontier == before[-1].frontier


def test_whole_files_are_passed_over_and_the_frontier_moves() -> None:
    query = traffic().where("speed > 0")
    free, before = fresh(query)
    told, after = fresh(query, ["not [< 510, *, *]"])
    assert told == [row for row in free if row[0] >= 510]
    saved = after[-1].total_saved
    assert saved["source:traffic files skipped"] == 5
    spared_letters = before[-1].total_dead["late"] - after[-1].total_dead["late"]
    assert saved["source:traffic dropped"] > 0
    assert (
        len(free) - len(told) == saved["source:traffic dropped"] + saved["source:traffic never read"] - spared_letters
    )
    nothing, after = fresh(query, ["not [*, *, *]"])
    assert nothing == []
    assert after[-1].total_saved["source:traffic files skipped"] == 6
    assert after[-1].frontier == before[-1].frontier


@pytest.mark.parametrize("point", ["planned", "scanned", "commit", "committed", "published"])
@pytest.mark.parametrize("at", [1, 2])
def test_a_crash_changes_nothing(point: str, at: int) -> None:
    query = traffic().where("speed > 0")
    feedback = ["not [*, {1, 3}, *]"]
    free, _ = fresh(query, feedback)
    seen = 0

    def crash(reached: str) -> None:
        nonlocal seen
        seen += reached == point
        if seen == at:
            raise Crash(point)

    with hooked(crash), pytest.raises(BaseException):  # noqa: B017 - the plug is pulled
        fresh(query, feedback)
    assert seen == at
    found, told = run(query)
    assert found == free
    if told:
        assert told[-1].total_saved["source:traffic never read"] == 12 * GROUP


def test_what_somebody_prefers_comes_out_first() -> None:
    query = traffic(slack=None).where("speed > 0")
    free, _ = fresh(query)
    out: list[set[int]] = []

    def look(told: Progress) -> None:
        out.append({s for f in Path("out").glob("*.parquet") for s in pq.read_table(f).column("segment").to_pylist()})

    found, _ = fresh(query, ["prefer [*, 3, *]"], max_rows=6 * GROUP, listener=look)
    assert out[0] == {3}
    assert out[-1] == {0, 1, 2, 3, 4}
    assert found == free
