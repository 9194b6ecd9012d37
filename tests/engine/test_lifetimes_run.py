"""Streams whose rows hold for a time, from files to sinks: the log, the table as it is, what is final; and crashes."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import penstock as ps
from penstock.checkpoint.fault import Crash, hooked
from penstock.pattern.schema import SYNC
from penstock.plan.weight import WEIGHT
from penstock.portal.testing import local_session

#: Two guests of room 7 and one of room 8; one leaves earlier than was said, one never came.
EVENTS: list[dict[str, Any]] = [
    {"room": 7, "since": 1, "until": 10, "op": "c"},
    {"room": 8, "since": 2, "until": None, "op": "c"},
    {"room": 7, "since": 4, "until": 8, "op": "c"},
    {"room": 9, "since": 6, "until": 6, "op": "c"},
    {"room": 7, "since": 1, "until": 10, "op": "d", "now": 6},
    {"room": 8, "since": 9, "until": 12, "op": "?"},
    {"room": 8, "since": 2, "until": None, "op": "d", "now": 9},
    {"room": 9, "since": 7, "until": 9, "op": "c"},
    {"room": 9, "since": 7, "until": 9, "op": "d"},
    {"room": 7, "since": 20, "until": 25, "op": "c"},
    {"room": 7, "since": 3, "until": 9, "op": "c"},
]
COUNTS = sorted([(1, 4, 7, 1), (2, 9, 8, 1), (4, 6, 7, 2), (6, 8, 7, 1), (20, 25, 7, 1)], key=str)


def taken(home: Path, events: list[dict[str, Any]] = EVENTS) -> ps.Stream:
    folder = home / "in"
    if not folder.exists():
        folder.mkdir()
        for number, event in enumerate(events):
            (folder / f"{number:03}.json").write_text(json.dumps(event) + "\n")
    stays = ps.stream("stays", "room int, since int, until int, op string, now int", lifetime=("since", "until"))
    stays = stays.read_json(str(folder), order="name").disorder(5).ends().changes("op", new_end="now")
    return stays.snapshot().group_by("room").agg(n="count(*)")


def start(query: ps.Stream, sink: Any, home: Path, **more: Any) -> ps.Run:
    settings = {"trigger": "available_now", "checkpoint": str(home / "kept"), "max_rows": 1, "spark": local_session()}
    return query.start(sink, consistency=ps.Consistency.middle(), **{**settings, **more})


def rows(folder: Path) -> Iterator[dict[str, Any]]:
    return (row for file in folder.rglob("*.parquet") for row in pq.read_table(file).to_pylist())


def plain(found: Iterator[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return sorted(((r["since"], r["until"], r["room"], r["n"]) for r in found), key=str)


def holding(folder: Path) -> list[tuple[Any, ...]]:
    held: Counter[tuple[Any, ...]] = Counter()
    for row in rows(folder):
        held[row["since"], row["until"], row["room"], row["n"]] += row[WEIGHT]
    assert min(held.values()) >= 0
    return sorted(held.elements(), key=str)


def test_the_log_says_what_holds_and_dead_letters_say_why(tmp_path: Path) -> None:
    run = start(taken(tmp_path), ps.parquet(str(tmp_path / "out")), tmp_path).wait()
    assert holding(tmp_path / "out") == COUNTS
    assert all({SYNC, WEIGHT} <= row.keys() for row in rows(tmp_path / "out"))
    letters = {(r["reason"], r["detail"]) for r in run.dead_letters().to_pylist()}
    assert ("malformed", "its lifetime ends before it begins: from 6 to 6") in letters
    assert ("malformed", "no kind of change: ?") in letters
    assert sorted(reason for reason, _ in letters) == ["late", "malformed", "malformed"]


def test_only_what_is_final(tmp_path: Path) -> None:
    start(taken(tmp_path), ps.parquet(str(tmp_path / "out"), changes="final"), tmp_path).wait()
    assert plain(rows(tmp_path / "out")) == COUNTS
    assert not any({SYNC, WEIGHT} & row.keys() for row in rows(tmp_path / "out"))


def test_the_table_as_it_is_now(tmp_path: Path) -> None:
    start(taken(tmp_path), ps.parquet(str(tmp_path / "out"), changes="fold"), tmp_path).wait()
    assert plain(rows(tmp_path / "out")) == COUNTS


def crashing(home: Path, seed: int, **settings: Any) -> list[tuple[Any, ...]]:
    """What holds in the end of many random stays, with crashes at any step."""
    rng = random.Random(seed)
    events: list[dict[str, Any]] = []
    for number in range(30):
        since = number + rng.randint(-2, 2)
        until = rng.choice([None, since + rng.randint(1, 9)])
        events.append({"room": rng.randint(1, 3), "since": since, "until": until, "op": "c"})
        if rng.random() < 0.4:
            longest = 9 if until is None else until - since
            events.append({**events[-1], "op": "d", "now": since + rng.randrange(longest)})
    query, left = taken(home, events), 6

    def hook(point: str) -> None:
        nonlocal left
        if left and rng.random() < 0.05:
            left -= 1
            raise Crash(point)

    plain_run = {"checkpoint": str(home / "other"), "max_rows": None}
    start(query, ps.parquet(str(home / "plain")), home, **{**settings, **plain_run}).wait()
    for _ in range(20):
        try:
            with hooked(hook):
                start(query, ps.parquet(str(home / "out")), home, **{"max_rows": 7, **settings}).wait()
            break
        except Crash:
            continue
    start(query, ps.parquet(str(home / "out")), home, **{"max_rows": 7, **settings}).wait()
    assert left < 6, "nothing ever went wrong"
    assert moments(holding(home / "out")) == moments(holding(home / "plain"))
    return holding(home / "out")


def moments(held: list[tuple[Any, ...]]) -> dict[tuple[int, int], list[int]]:
    """What holds of each room at each moment: where lifetimes meet depends on the cut into epochs."""
    found: dict[tuple[int, int], list[int]] = {}
    for since, until, room, n in held:
        for at in range(since, 60 if until is None else until):
            found.setdefault((room, at), []).append(n)
    return found


@pytest.mark.parametrize("seed", range(3))
def test_nothing_is_lost_or_doubled_through_crashes(tmp_path: Path, seed: int) -> None:
    assert crashing(tmp_path, seed)


@pytest.mark.spark
def test_on_spark_through_crashes(tmp_path: Path, spark: Any) -> None:
    assert crashing(tmp_path, 7, spark=spark)
