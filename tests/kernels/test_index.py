"""Sorted runs: pairs are found once each, and nothing is read that is not asked for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.kernels import index
from penstock.kernels.index import HASH, build, expand, narrow, order_of, probe, ranges, same, within
from penstock.kernels.sorted_run import SortedRun
from penstock.kernels.stateful import DEAD, Held

SMALL = st.lists(st.integers(0, 8), max_size=30)


def words(values: list[int]) -> Any:
    return np.array(sorted(values), np.uint64)


@given(SMALL, SMALL)
def test_probe_finds_every_pair_once(a: list[int], b: list[int]) -> None:
    left, right = words(a), words(b)
    li, ri = probe(left, right)
    expected = [(i, j) for i, x in enumerate(left) for j, y in enumerate(right) if x == y]
    assert sorted(zip(li.tolist(), ri.tolist(), strict=True)) == expected


@given(SMALL, SMALL, st.integers(1, 40))
def test_ranges_are_spelled_out_in_pieces(a: list[int], b: list[int], chunk: int) -> None:
    found, begin, end = ranges(words(a), words(b))
    pieces = list(expand(begin, end, chunk))
    longest = max((end - begin).tolist(), default=0)
    assert all(0 < len(which) <= chunk + longest for which, _ in pieces)
    got = [(int(w), int(p)) for which, at in pieces for w, p in zip(which, at, strict=True)]
    assert got == [(n, p) for n in range(len(found)) for p in range(begin[n], end[n])]


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(-(2**63), 2**63 - 1) | st.integers(0, 9)), max_size=30))
def test_order_is_by_hash_then_time(rows: list[tuple[int, int]]) -> None:
    hashes, ticks = np.array([h for h, _ in rows], np.uint64), np.array([t for _, t in rows], np.int64)
    order = order_of(hashes, ticks)
    assert sorted(order.tolist()) == list(range(len(rows)))
    assert [rows[i] for i in order] == sorted(rows)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 9)), max_size=40), st.booleans())
def test_hashes_that_begin_alike_are_told_apart(rows: list[tuple[int, int, int]], timed: bool) -> None:
    hashes = np.array([(a << 48) | b for a, b, _ in rows], np.uint64)
    order = order_of(hashes, np.array([t for _, _, t in rows], np.int32) if timed else None)
    assert [rows[i][: 2 + timed] for i in order] == sorted(r[: 2 + timed] for r in rows)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 9)), min_size=1, max_size=40), st.data())
def test_rows_that_arrived_are_those_of_a_built_run(rows: list[tuple[int, int]], data: st.DataObject) -> None:
    table = pa.table({"k": [k for k, _ in rows], "t": [t for _, t in rows], "at": range(len(rows))})
    run, built = SortedRun.arrived(table, ["k"], "t"), build(table, ["k"], "t")
    assert run.rows.equals(built) and run.hashes.tolist() == built[HASH].to_pylist()
    run.mark("matched", run.ticks > 4)
    some = np.array(data.draw(st.lists(st.sampled_from(range(len(rows))), max_size=9)), np.int64)
    part = run.part(some, 7)
    assert part.rows.equals(built.take(pa.array(some))) and part.group == 7
    assert part.pick("at", np.arange(len(some))).to_pylist() == built["at"].take(pa.array(some)).to_pylist()
    assert part.flags("matched").tolist() == [t > 4 for t in part.rows["t"].to_pylist()]


EXTREME = st.integers(-(2**63), -(2**63) + 3) | st.integers(-9, 9) | st.integers(2**63 - 4, 2**63 - 1)


@given(
    st.lists(st.tuples(st.integers(0, 2), EXTREME), max_size=60),
    st.lists(st.tuples(st.integers(0, 2), EXTREME), max_size=10),
    st.none() | st.integers(-5, 5) | EXTREME,
    st.none() | st.integers(0, 5),
    st.sampled_from([(0, 0), (0, 3), (4, 512), (60, 60)]),
)
def test_narrowing_keeps_all_that_lies_within(
    hay: list[tuple[int, int]],
    needles: list[tuple[int, int]],
    low: int | None,
    span: int | None,
    limits: tuple[int, int],
) -> None:
    high = None if low is None or span is None else min(low + span, 2**63 - 1)
    hay.sort()
    needles.sort()
    stored, asked = words([h for h, _ in hay]), words([h for h, _ in needles])
    ticks, times = (np.array([t for _, t in rows], np.int64) for rows in (hay, needles))
    found, begin, end = ranges(asked, stored)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(index, "_SHORT", limits[0])
        patched.setattr(index, "_LONG", limits[1])
        begin, end = narrow(ticks, begin, end, times[found], low, high)
    got = [(int(found[w]), int(p)) for which, at in expand(begin, end) for w, p in zip(which, at, strict=True)]
    left, right = np.array([g[0] for g in got], int), np.array([g[1] for g in got], int)
    fits = within(times[left], ticks[right], low, high)

    def near(a: int, b: int) -> bool:
        return (low is None or b - a >= low) and (high is None or b - a <= high)

    expected = [(i, j) for i, (h, t) in enumerate(needles) for j, (g, u) in enumerate(hay) if h == g and near(t, u)]
    assert [g for g, fit in zip(got, fits, strict=True) if fit] == expected
    if limits[0] == 0 and abs(low or 0) < 10:
        inner = [g for g in got if abs(int(times[g[0]])) < 10]
        assert set(inner) <= set(expected)  # Away from the ends of the domain, no candidate in vain.


def test_same_knows_null_and_nan() -> None:
    a, b = pa.array([1.0, None, float("nan"), 0.0, None]), pa.array([1.0, None, float("nan"), -0.0, 2.0])
    assert same(a, b, null_safe=False).tolist() == [True, False, True, True, False]
    assert same(a, b, null_safe=True).tolist() == [True, True, True, True, False]
    assert same(pa.array([7], pa.int8()), pa.array([7], pa.int64()), null_safe=False).tolist() == [True]


def test_a_stored_run_is_mapped_and_not_copied(tmp_path: Path) -> None:
    path = tmp_path / "run.arrow"
    rows = build(pa.table({"k": np.arange(1000), "t": pa.array(np.arange(1000), pa.timestamp("us"))}), ["k"], "t")
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, rows.schema) as writer:
        writer.write_table(rows)
    with pa.memory_map(str(path)) as source:
        stored = pa.ipc.open_file(source).read_all()
        before = pa.total_allocated_bytes()
        run = SortedRun.of(Held("run", stored, low=0, high=999), "t")
        assert run.hashes[0] <= run.hashes[-1] and run.ticks.max() == 999
        assert pa.total_allocated_bytes() == before and not run.hashes.flags.owndata and not run.ticks.flags.owndata
        del run, stored


def test_marks_are_read_and_written() -> None:
    rows = build(pa.table({"k": [1, 2, 3]}), ["k"])
    assert rows.column_names == [HASH, "k"]
    run = SortedRun.of(Held("run", rows, pa.table({DEAD: [True, False, False]})), None)
    assert run.has(DEAD) and not run.has("matched") and not run.changed
    run.mark("matched", np.array([1]))
    assert run.changed and run.stamp((DEAD, "matched")).to_pydict() == {  # type: ignore[union-attr]
        DEAD: [True, False, False],
        "matched": [False, True, False],
    }
