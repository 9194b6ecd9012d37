"""Which windows are dropped: once, never too many in a row, and as many as was asked for."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import UserError
from penstock.shedding.drop_grid import DropGrid, shared_batches
from penstock.shedding.fates import FURTHEST, FateRecord, Fates


def dropped_of(fates: Fates, share: float, windows: int, first: int = 0) -> list[bool]:
    _, runs = fates.decide(FateRecord(), first, first + windows, share)
    found = [False] * windows
    for low, high in runs:
        found[low - first : high - first + 1] = [True] * (high - low + 1)
    return found


def longest(dropped: list[bool]) -> int:
    text = "".join("x" if d else "." for d in dropped)
    return max(map(len, text.split(".")))


@pytest.mark.parametrize("gap", [1, 2, 5, 10])
@pytest.mark.parametrize("tenths", range(11))
def test_share_and_gap(gap: int, tenths: int) -> None:
    share, windows = tenths / 10, 20_000
    dropped = dropped_of(Fates(seed=3, of="out", gap=gap), share, windows)
    assert longest(dropped) <= gap
    expected = min(share, gap / (gap + 1))
    # The coins of so many batches stray by that much; what is owed is paid.
    stray = 4 * (share * (1 - share) * gap / windows) ** 0.5
    assert sum(dropped) / windows == pytest.approx(expected, abs=stray + gap / windows * 40 + 1e-3)
    if share in (0, 1):
        assert abs(sum(dropped) - expected * windows) <= gap * share


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 1.0])
def test_without_a_gap_only_the_share_counts(share: float) -> None:
    dropped = dropped_of(Fates(seed=3, of="out"), share, 40_000)
    assert sum(dropped) / len(dropped) == pytest.approx(share, abs=0.03)
    # Whole batches share a fate.
    assert all(len(set(dropped[k : k + 10])) == 1 for k in range(0, 40_000, 10))


@given(st.integers(0, 99), st.integers(1, 6), st.lists(st.tuples(st.integers(0, 30), st.floats(0, 1)), max_size=12))
def test_a_fate_is_decided_once_however_epochs_cut_and_shares_change(
    seed: int, gap: int, epochs: list[tuple[int, float]]
) -> None:
    fates = Fates(seed=seed, of="out", gap=gap)
    record, until, dropped = FateRecord(), 5, []
    for more, share in epochs:
        until += more
        before = record.next
        record, runs = fates.decide(FateRecord.from_json(json.loads(json.dumps(record.to_json()))), 5, until, share)
        assert all((before or 5) <= low <= high < until for low, high in runs)
        dropped += [n for low, high in runs for n in range(low, high + 1)]
        assert fates.decide(record, 5, until, share) == (record, [])
        assert not (runs and share == 0)
    assert len(set(dropped)) == len(dropped) and dropped == sorted(dropped)
    assert longest([n in set(dropped) for n in range(5, until)] or [False]) <= gap


@given(st.integers(0, 99), st.integers(1, 6), st.floats(0.05, 1), st.sets(st.integers(1, 199), max_size=20))
def test_how_a_stream_is_cut_changes_nothing(seed: int, gap: int, share: float, cuts: set[int]) -> None:
    fates = Fates(seed=seed, of="out", gap=gap, group="7")
    whole = dropped_of(fates, share, 200)
    record, found = FateRecord(), [False] * 200
    for until in [*sorted(cuts), 200]:
        record, runs = fates.decide(record, 0, until, share)
        for low, high in runs:
            found[low : high + 1] = [True] * (high - low + 1)
    assert found == whole


@given(st.integers(0, 99), st.floats(0, 1), st.floats(0, 1))
def test_who_drops_more_drops_the_same_and_more(seed: int, one: float, other: float) -> None:
    """What outputs with different shares ignore is nested, so what they share is dropped as far as both ignore it."""
    fates = Fates(seed=seed, of="shared")
    less, more = ({k for k, d in enumerate(dropped_of(fates, s, 200)) if d} for s in sorted((one, other)))
    assert less <= more


@given(st.integers(0, 99), st.integers(1, 5), st.floats(0.1, 1), st.sets(st.integers(0, 199)), st.integers(0, 9))
def test_a_gap_ends_only_with_a_result_where_windows_may_be_empty(
    seed: int, gap: int, share: float, empty: set[int], late: int
) -> None:
    """Of the windows that would have had results, never more than `gap` in a row are missing.

    That a kept window has come out is heard `late` windows later.
    """
    fates, record, dropped = Fates(seed=seed, of="out", gap=gap, confirmed=True), FateRecord(), set()
    for number in range(200):
        record, runs = fates.decide(record, 0, number + 1, share)
        dropped |= {n for n, _ in runs}
        heard = number - late
        if heard >= 0 and heard not in dropped and heard not in empty:
            record = record.delivered(heard)
    assert longest([n in dropped for n in range(200) if n not in empty] or [False]) <= gap
    if share == 1 and not empty and not late:
        assert abs(len(dropped) - 200 * gap // (gap + 1)) <= gap


def test_giving_back_forgives_what_is_owed() -> None:
    fates = Fates(seed=1, of="out", gap=2)
    record, _ = fates.decide(FateRecord(), 0, 100, 1.0)
    assert record.owed > 10
    record, dropped = fates.decide(record, 0, 200, 0.0)
    assert dropped == [] and record.owed == 0 and record.missing == ()


def test_a_leap_in_time_is_not_decided_window_by_window() -> None:
    record, dropped = Fates(seed=1, of="out", gap=2).decide(FateRecord(3, 1.0), 0, 10**12, 1.0)
    assert dropped[0][0] >= 10**12 - FURTHEST and record.next == 10**12


def test_groups_and_outputs_have_coins_of_their_own() -> None:
    made = [Fates(1, "a"), Fates(1, "a", group="x"), Fates(1, "b"), Fates(2, "a"), Fates(1, "a", group="y", batch=7)]
    seen = [tuple(dropped_of(f, 0.5, 400)) for f in made]
    assert len(set(seen)) == len(made)


@pytest.mark.parametrize("share", [-0.1, 1.1])
def test_shares_are_shares(share: float) -> None:
    with pytest.raises(UserError, match="a share of"):
        Fates(1, "out").decide(FateRecord(), 0, 5, share)
    with pytest.raises(UserError, match="gap 0"):
        Fates(1, "out", gap=0)


@given(
    st.integers(0, 99),
    st.floats(0.1, 0.9),
    st.lists(st.tuples(st.sampled_from([1, 2, 3, 4, 6]), st.integers(12, 40)), min_size=2, max_size=3),
)
def test_outputs_on_different_grids_drop_the_same_stretches_of_time(
    seed: int, share: float, made: list[tuple[int, int]]
) -> None:
    """Of the time that one output drops, another drops all but what its gap keeps: not only so much by chance."""
    grids = {str(k): DropGrid(slide, slide, gap) for k, (slide, gap) in enumerate(made)}
    batches = shared_batches(grids)
    gone = []
    for name, grid in grids.items():
        fates = Fates(seed, "family", grid.gap, batch=batches[name])
        assert batches[name] * grid.slide == batches["0"] * grids["0"].slide
        assert fates.batch <= (grid.gap or 0)
        # The coins alone: what the gap keeps, each output keeps for itself.
        numbers = range(1200 // grid.slide)
        gone.append({t for n in numbers if fates.coin(n) < share for t in range(n * grid.slide, (n + 1) * grid.slide)})
    assert all(times == gone[0] for times in gone)


def test_windows_without_a_common_stretch_are_shed_apart() -> None:
    assert shared_batches({"a": DropGrid(7, 7), "b": DropGrid(997, 997)}) == {}
    assert shared_batches({"a": DropGrid(10, 10, gap=1), "b": DropGrid(20, 20, gap=5)}) == {}
    assert shared_batches({"a": DropGrid(20, 10)}) == {"a": 8} and shared_batches({"a": DropGrid(10, 10)}) == {"a": 1}
