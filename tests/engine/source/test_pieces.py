"""A split that is read piece by piece: the same events, dead letters and reports as at once."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.engine.source import pieces as module
from penstock.engine.source.formats.read import read
from penstock.engine.source.pieces import Portion, pieces
from penstock.engine.source.promises.check import Checker
from penstock.engine.source.promises.known import Known
from penstock.engine.source.split import Split
from penstock.pattern.schema import Schema
from penstock.plan.promise import Disorder

SCHEMA = Schema.parse("ts timestamp, k int", time="ts")
PROMISES = (Disorder("ts", 3),)


def split_of(path: Path, group: int, times: Sequence[int | None], groups: range) -> Split:
    pq.write_table(
        pa.table({"ts": pa.array(times, pa.timestamp("us")), "k": range(len(times))}, SCHEMA.arrow),
        path,
        row_group_size=group,
    )
    status = path.stat()
    start, stop = groups.start * group, min(len(times), groups.stop * group)
    return Split(
        "s", "", 0, str(path), "parquet", start, stop, stop - start, 1, status.st_size, status.st_mtime_ns, (*groups,)
    )


def told(split: Split, cuts: list[int]) -> dict[str, Any]:
    """What comes of a split: its events, what was set aside, and what the driver is told in all."""
    checker, known, portion = Checker(PROMISES, SCHEMA), Known(), Portion(1_000)
    portion.rows = cuts[-1]
    found: dict[str, Any] = {"events": [], "letters": [], "high": None, "rows": 0, "rejected": 0, "malformed": 0}
    for i, piece in enumerate(pieces(split, portion)):
        batch = read(piece, SCHEMA, promises=PROMISES)
        checked = checker.check(batch, piece, known if i == 0 else None)
        found["events"] += checked.events.to_pylist()
        found["letters"] += sorted(map(repr, [*batch.malformed.to_pylist(), *checked.rejected.to_pylist()]))
        for count in ("rows", "rejected", "malformed"):
            found[count] += checked.report[count]
        found["high"] = checked.report["highs"].get("ts", found["high"])
        portion.rows = cuts[i % len(cuts)]
    return {**found, "letters": sorted(found["letters"])}


@pytest.mark.parametrize("seed", range(60))
def test_the_same_as_at_once(tmp_path: Path, seed: int) -> None:
    dice = random.Random(seed)
    group = dice.randint(1, 7)
    times = [dice.choice([None, *range(i, i + 6)]) for i in range(dice.randint(20, 60))]
    first = dice.randrange(-(-len(times) // group))
    last = dice.randint(first + 1, -(-len(times) // group))
    split = split_of(tmp_path / "a.parquet", group, times, range(first, last))
    # A split may begin and end within a row group.
    start = dice.randrange(split.start, min(split.stop, split.start + group))
    stop = dice.randint(max(start, (last - 1) * group) + 1, split.stop)
    split = replace(split, start=start, stop=stop, rows=stop - start)
    cuts = [dice.randint(1, 8) for _ in range(4)]
    assert told(split, [1_000]) == told(split, cuts)


def test_a_piece_has_as_many_row_groups_as_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PIECE", 20)
    split = split_of(tmp_path / "a.parquet", 8, list(range(70)), range(1, 9))
    portion, found = Portion(40), []
    for piece in pieces(split, portion):
        found.append((piece.row_groups, piece.start, piece.stop))
        if len(found) == 2:
            portion.saw(16, 2)
    assert found == [((1, 2), 8, 24), ((3, 4), 24, 40), ((5, 6, 7, 8), 40, 70)]
    assert portion.rows == 40, "they stay many"
    portion.saw(100, 10)
    assert portion.rows == 20


def test_what_cannot_be_cut_is_left_whole(tmp_path: Path) -> None:
    split = split_of(tmp_path / "a.parquet", 8, list(range(70)), range(9))
    (tmp_path / "a.parquet").write_bytes(b"not any more")
    assert list(pieces(split, Portion(10))) == [split], "who reads it says what is wrong"
    text = Split("s", "", 0, "a.csv", "csv", 0, 10_000_000, None, 1, 1, 1)
    assert list(pieces(text, Portion(10))) == [text]
