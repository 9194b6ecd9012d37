"""Consumers who say anything at any step, and a plug that is pulled at any step: the guarantee holds.

Every result is one that comes without feedback too, unaltered and once; those that nobody ignores are all there; and no
message is left lying.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import penstock as ps
from penstock.checkpoint.fault import Crash, hooked
from penstock.pattern.feedback import Feedback
from penstock.portal.testing import local_session

QUERIES: dict[str, tuple[Callable[[ps.Stream], ps.Stream], list[str]]] = {
    "hours": (
        lambda s: s.group_by("hour", "k").agg(n="count(*)", m="max(v)"),
        [
            *("not [{4, 6, 8}, *, *, *]", "not [*, 3, *, *]", "not [*, *, > 2, *]", "not [[5, 9], 2, *, *]"),
            *("not [*, *, *, > 8]", "not [{3, 5}, {0, 1}, *, *]", "prefer [*, 4, *, *]"),
        ],
    ),
    "keys": (
        lambda s: s.group_by("k").agg(n="count(*)", m="sum(v)"),
        ["not [3, *, *]", "not [> 3, *, *]", "not [*, > 20, *]", "not [{0, 1}, *, *]"],
    ),
    "distinct": (
        lambda s: s.select("hour", "k").distinct(),
        ["not [{4, 6, 8}, *]", "not [*, 3]", "not [> 9, 2]"],
    ),
    "two levels": (
        lambda s: s.group_by("hour", "k").agg(n="count(*)").join(s.group_by("hour").agg(t="count(*)"), on="hour"),
        ["not [{4, 6, 8}, *, *, *]", "not [*, 3, *, *]", "not [[5, 9], *, *, *]", "not [*, *, > 2, *]"],
    ),
    "left join": (
        lambda s: s.where("v < 3").join(s.where("v > 7").select("hour", "k", w="v"), ["hour", "k"], "left"),
        ["not [{4, 6}, *, *, *]", "not [*, 3, *, *]", "not [*, *, 1, *]", "not [*, *, *, 9]", "not [> 9, 1, *, *]"],
    ),
}


def source(home: Path) -> ps.Stream:
    """Three hours of disorder, which the stream says."""
    if not home.exists():
        home.mkdir(parents=True)
        rng = random.Random(3)
        for number in range(12):
            columns = {
                "hour": [number + rng.randint(0, 3) for _ in range(12)],
                "k": [rng.randint(0, 4) for _ in range(12)],
                "v": [rng.randint(0, 9) for _ in range(12)],
            }
            pq.write_table(pa.table(columns), home / f"{number:02}.parquet", row_group_size=4)
    stream = ps.stream("s", "hour bigint, k bigint, v bigint", time="hour")
    return stream.read_parquet(str(home), order="name").disorder(3).ends()


def rows(folder: Path) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(r.values()) for p in folder.glob("part-*") for r in pq.read_table(p).to_pylist())


def attempt(name: str, home: Path, seed: int) -> bool:
    """Whether something was left out."""
    rng = random.Random(seed)
    build, sayings = QUERIES[name]
    query = build(source(home / "in"))
    settings: dict[str, Any] = {
        "max_rows": rng.choice([6, 12, 24]),
        "fuse_below": rng.choice([0, 0, 1 << 20]),
        "merge_above": rng.choice([1, 2, 8]),
        "overlap": rng.random() < 0.85,
    }
    left, speaks, fails = rng.randint(0, 6), rng.choice([0.05, 0.15, 0.4]), rng.choice([0.0, 0.01, 0.03, 0.08])
    said: list[str] = []
    busy = False

    def hook(point: str) -> None:
        nonlocal left, busy
        if busy:
            return
        if rng.random() < speaks and (home / "kept" / "control" / "contract.json").exists():
            busy = True
            said.append(rng.choice(sayings))
            try:
                ps.consumer(str(home / "kept")).feedback(said[-1])
            finally:
                busy = False
        if left and rng.random() < fails:
            left -= 1
            raise Crash(point)

    def start(folder: str, checkpoint: str, **more: Any) -> ps.Run:
        kept = {"checkpoint": str(home / checkpoint), "trigger": "available_now", "spark": local_session()}
        return query.start(ps.parquet(str(home / folder)), **kept, **more)

    start("plain", "plain-kept").wait()
    for _ in range(40):
        try:
            with hooked(hook):
                start("out", "kept", **settings).wait()
            break
        except Crash:
            continue
    start("out", "kept", **settings).wait()
    plain, found = rows(home / "plain"), rows(home / "out")
    assert not found - plain, "altered, invented or doubled"
    ignored = [f.pattern for f in (Feedback.parse(t, query.schema) for t in said) if f.intent.value == "not"]
    lost = [dict(zip(query.schema.names, row, strict=True)) for row in plain - found]
    assert not [row for row in lost if not any(p.matches_row(row) for p in ignored)]
    assert not list((home / "kept" / "control").glob("requests/*.json"))
    return bool(lost)


@pytest.mark.parametrize("name", QUERIES)
def test_anything_said_at_any_step_holds_through_crashes(tmp_path: Path, name: str) -> None:
    left_out = [attempt(name, tmp_path / str(seed), seed) for seed in range(5)]
    assert any(left_out), "nothing was ever left out"


@pytest.mark.fuzz
@pytest.mark.parametrize("name", QUERIES)
def test_fuzz_anything_said_at_any_step(tmp_path: Path, name: str, tried: Callable[[str], None]) -> None:
    lost = [attempt(name, tmp_path / str(seed), seed) for seed in range(100, 200)]
    tried(f"{len(lost)} runs, {sum(lost)} left something out")
