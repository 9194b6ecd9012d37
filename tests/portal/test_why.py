"""`penstock state` says what every unit waits for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import penstock as ps
from penstock.portal.show import Snapshot
from penstock.portal.testing import local_session


def _write(folder: Path, *records: dict[str, object]) -> str:
    folder.mkdir(parents=True)
    (folder / "1.json").write_text("".join(json.dumps(r) + "\n" for r in records))
    return str(folder)


def _waits(query: ps.Stream, home: Path) -> dict[str, str]:
    kept = str(home / "checkpoint")
    query.start(ps.memory(), trigger="once", checkpoint=kept, spark=local_session(), buckets=1).wait()
    return {u.operator: u.waits for u in Snapshot.open(kept).units()}


@pytest.fixture
def sensor(tmp_path: Path) -> ps.Stream:
    path = _write(
        tmp_path / "sensor",
        {"ts": "2026-01-01 10:00:00", "segment": 7, "speed": 50.0},
        {"ts": "2026-01-01 10:01:30", "segment": 8, "speed": 40.0},
    )
    return ps.stream("sensor", "ts timestamp, segment int, speed double", time="ts").read_json(path).disorder("1 s")


@pytest.fixture
def probe(tmp_path: Path) -> ps.Stream:
    path = _write(tmp_path / "probe", {"ts": "2026-01-01 10:00:30", "segment": 9, "speed": 45.0})
    return ps.stream("probe", "ts timestamp, segment int, speed double", time="ts").read_json(path).disorder("1 s")


def test_a_join_waits_for_the_other_side(sensor: ps.Stream, probe: ps.Stream, tmp_path: Path) -> None:
    found = _waits(sensor.where("speed > 0").join(probe, "segment", within="2 min"), tmp_path)
    assert found["join-1#0"] == "probe, segment 7 and 1 more, ts ≤ '2026-01-01 10:02:00'"
    assert found["join-1#1"] == "sensor, segment 9, ts ≤ '2026-01-01 10:02:30'"


def test_a_join_without_a_window_waits_for_the_key(sensor: ps.Stream, probe: ps.Stream, tmp_path: Path) -> None:
    found = _waits(sensor.select("segment", "speed").join(probe, "segment"), tmp_path)
    assert found["join-1#1"] == "sensor, segment 9"


def test_windows_wait_for_their_end(sensor: ps.Stream, tmp_path: Path) -> None:
    found = _waits(sensor.window("5 min").group_by("segment").agg(n="count(*)"), tmp_path)
    assert found == {"aggregate-1": "sensor, ts < '2026-01-01 10:05:00'"}


def test_sessions_wait_until_nothing_comes_at_their_end(sensor: ps.Stream, tmp_path: Path) -> None:
    found = _waits(sensor.window(session="1 min").group_by("segment").agg(n="count(*)"), tmp_path)
    assert found == {"aggregate-1": "sensor, ts ≤ '2026-01-01 10:02:30'"}


def test_groups_wait_for_their_key(sensor: ps.Stream, tmp_path: Path) -> None:
    found = _waits(sensor.group_by("segment").agg(n="count(*)"), tmp_path)
    assert found == {"aggregate-1": "sensor, segment 7 and 1 more"}


def test_the_best_wait_for_their_group_and_a_count_for_the_end(sensor: ps.Stream, tmp_path: Path) -> None:
    assert _waits(sensor.window("5 min").top(1, by="speed"), tmp_path / "windows") == {
        "top-1": "sensor, ts < '2026-01-01 10:05:00'"
    }
    assert _waits(sensor.top(1, by="speed", per="segment"), tmp_path / "groups") == {
        "top-1": "sensor, segment 7 and 1 more"
    }
    found = _waits(sensor.limit(5).top(1, by="speed"), tmp_path / "end")
    assert found == {"limit-1": "the end of sensor", "top-1": "the end of limit-1"}


def test_others_wait_for_what_matches(sensor: ps.Stream, tmp_path: Path) -> None:
    assert _waits(sensor.select("segment").distinct(), tmp_path) == {
        "distinct-1": "a punctuation of sensor that matches"
    }
