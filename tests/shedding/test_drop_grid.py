"""Rules that make one grid of many aggregates: the goldens of the source, and what they promise."""

from __future__ import annotations

from math import lcm

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import UserError
from penstock.shedding.drop_grid import DropGrid, before_split


def test_the_goldens() -> None:
    a1, a2 = DropGrid(3, 2), DropGrid(3, 3)
    assert a2.behind(3, 2) == DropGrid(5, 3)
    assert before_split([a1, a2]) == DropGrid(7, 6)
    split = before_split([a1, a2])
    assert split is not None and split.behind(4, 1) == DropGrid(10, 6)
    assert before_split([a1.behind(4, 1), a2.behind(4, 1)]) == DropGrid(10, 6)
    assert (a1.behind(4, 1), a2.behind(4, 1)) == (DropGrid(6, 2), DropGrid(6, 3))
    assert a2.behind_counted(3, 2) == DropGrid(7, 6)
    assert DropGrid(100, 100).behind_counted(10, 10) == DropGrid(1000, 1000)


windows = st.integers(1, 8).flatmap(lambda slide: st.tuples(st.integers(slide, 3 * slide), st.just(slide)))
grids = st.builds(lambda w, gap: DropGrid(*w, gap), windows, st.none() | st.integers(1, 30))


@given(windows, st.lists(grids, min_size=1, max_size=3), st.booleans())
def test_it_does_not_matter_in_which_order_rules_are_applied(
    shared: tuple[int, int], branches: list[DropGrid], counted: bool
) -> None:
    """An aggregate before a split: the rule of splits first, or the rule of pipelines on every branch."""
    rule = DropGrid.behind_counted if counted else DropGrid.behind
    joined = before_split(branches)
    each = before_split([rule(g, *shared) for g in branches])
    assert each == (None if joined is None else rule(joined, *shared))


@given(st.lists(windows, min_size=1, max_size=4), st.data())
def test_a_pipeline_needs_no_more_than_its_grid(pipeline: list[tuple[int, int]], data: st.DataObject) -> None:
    """Which events a result is made of, by definition: windows of windows, whatever their slides."""
    grid = DropGrid(*pipeline[-1])
    for size, slide in reversed(pipeline[:-1]):
        grid = grid.behind(size, slide)
    needed = {start := data.draw(st.integers(0, 5)) * grid.slide}
    for k in reversed(range(len(pipeline))):
        # What comes in are labels of the windows one stage up, all multiples of its slide; at the source, any time.
        size, step = pipeline[k][0], pipeline[k - 1][1] if k else 1
        needed = {t for s in needed for t in range(s, s + size) if t % step == 0}
    assert all(start <= t < start + grid.size for t in needed)
    if all(slide == 1 for _, slide in pipeline):
        assert max(needed) == start + grid.size - 1


@given(st.lists(windows, min_size=1, max_size=3))
def test_counted_pipelines_need_exactly_their_grid(pipeline: list[tuple[int, int]]) -> None:
    """Result k of a stage is of inputs k·slide … k·slide + size − 1; seen from the end of the pipeline."""
    grid = DropGrid(*pipeline[-1])
    for size, slide in reversed(pipeline[:-1]):
        grid = grid.behind_counted(size, slide)
    for k in (0, 1, 5):
        low, high = k, k
        for size, slide in reversed(pipeline):
            low, high = low * slide, high * slide + size - 1
        assert (low, high) == (k * grid.slide, k * grid.slide + grid.size - 1)


@given(st.lists(grids, min_size=1, max_size=4))
def test_a_stretch_before_a_split_is_whole_results_of_all_branches(branches: list[DropGrid]) -> None:
    joined = before_split(branches)
    slide = lcm(*(g.slide for g in branches))
    if joined is None:
        assert any(g.gap is not None and g.gap * g.slide < slide for g in branches)
        return
    for g in branches:
        per_stretch = slide // g.slide
        last = slide - g.slide  # the last result of a stretch starts here
        assert joined.size >= last + g.size
        assert joined.gap is None or g.gap is None or joined.gap * per_stretch <= g.gap
    assert any(joined.size == slide - g.slide + g.size for g in branches)


@pytest.mark.parametrize("size", range(1, 25))
@pytest.mark.parametrize("slide", [1, 3, 4])
def test_events_go_early_only_if_the_gap_has_room_for_all_their_windows(size: int, slide: int) -> None:
    if size < slide:
        with pytest.raises(UserError):
            DropGrid(size, slide)
        return
    for gap in range(1, 12):
        dropped = {slide * k for k in range(100, 100 + gap)}
        starts = [slide * k for k in range(60, 140)]
        alone = [t for t in range(90 * slide, 125 * slide) if any(s <= t < s + size for s in dropped)
                 and not any(s <= t < s + size for s in starts if s not in dropped)]  # fmt: skip
        grid = DropGrid(size, slide, gap)
        assert grid.drops_early == bool(alone)
        if alone:
            assert len(alone) == (gap + 1) * slide - size
            assert grid.read_still(1 / 3) == pytest.approx(1 - len(alone) / (3 * gap * slide))
