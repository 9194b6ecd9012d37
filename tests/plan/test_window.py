"""Windows: closed forms against brute force, golden cases of the literature, exact translation of punctuation."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import date, datetime
from itertools import product

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.errors import UserError
from penstock.pattern.restriction import ANY, Restriction, at_least, at_most, between, equal, greater, less, one_of
from penstock.pattern.schema import Schema
from penstock.plan.window import LandmarkWindow, TimeWindow, Window

SHAPES = [(size, slide, origin) for size, slide in product((1, 2, 3, 5, 10), (1, 2, 3, 7)) for origin in (0, 1, -4)]


def windows_of(window: TimeWindow, x: int) -> set[int]:
    """By definition: every window whose half-open stretch holds x."""
    return {w for w in range(-200, 200) if window.start(w) <= x < window.start(w) + window.size}


def test_golden_tumbling_by_two_from_one() -> None:
    # The literature numbers windows from 1; ours from 0.
    window = Window.tumbling(2, origin=1)
    assert [max(windows_of(window, x)) + 1 for x in (1, 2, 3, 4, 5)] == [1, 1, 2, 2, 3]
    assert window.start(0) == 1


def test_golden_range_ten_slide_three_overlaps_four_windows() -> None:
    window = Window.sliding(10, 3)
    assert max(len(windows_of(window, x)) for x in range(30)) == 4


@pytest.mark.parametrize(("size", "step"), [(10, 3), (60, 80), (40, 90), (3, 2), (5, 5)])
def test_golden_windows_open_on_the_left(size: int, step: int) -> None:
    """From the literature: window k = 1, 2, … is (start + (k-1) step, start + (k-1) step + size].

    On whole ticks (a, b] is [a + 1, b + 1): our window w = k - 1 with the origin one tick later, and w >= 0.
    """
    begin = 7
    window = Window.sliding(size, step, origin=begin + 1)
    for ts in range(begin - 5, begin + 300):
        d = ts - begin
        first, last = max(1, -(-(d - size) // step) + 1), -(-d // step)
        golden = set(range(first, last + 1)) if d > 0 else set()
        assert {w + 1 for w in windows_of(window, ts) if w >= 0} == golden


def minute(text: str) -> datetime:
    return datetime.fromisoformat(f"2010-04-01 {text}")


def test_golden_a_closes_two_minutes_on_a_grain_of_thirty_seconds() -> None:
    up_to = at_most(minute("10:01:30"))
    coarse = Window.tumbling("1 min", granularity="30 s")
    assert closed(coarse, up_to) == at_most(minute("10:01:00"))
    assert closed(Window.tumbling("1 min"), up_to) == at_most(minute("10:00:00"))


def test_golden_b_closes_the_last_minute_on_a_grain_of_a_second() -> None:
    up_to = at_most(minute("09:59:59"))
    assert closed(Window.tumbling("1 min", granularity="1 s"), up_to) == at_most(minute("09:59:00"))
    assert closed(Window.tumbling("1 min"), up_to) == at_most(minute("09:58:00"))


def test_golden_c_up_to_22_closes_window_two() -> None:
    # f(b) = ceil(b / 10): windows (0, 10], (10, 20], …, which are [1, 11), [11, 21), … on whole numbers.
    window = Window.tumbling(10, origin=1)
    assert [max(windows_of(window, b)) + 1 for b in (19, 21)] == [2, 3]
    for restriction in (at_most(22), less(22), at_most(20)):
        assert closed(window, restriction) == at_most(window.start(2 - 1))
    assert closed(window, at_most(19)) == at_most(window.start(1 - 1))


ENDS = (-9, -4, 0, 5, 9)
RESTRICTIONS = [
    *(make(v) for make in (less, at_most, greater, at_least, equal) for v in range(-9, 10)),
    *(
        between(low, high, low_closed, high_closed)
        for low, high in product(ENDS, ENDS)
        if low < high
        for low_closed in (True, False)
        for high_closed in (True, False)
    ),
    one_of([0, 1, 2]),
    one_of([0, 1, 2, 5, 6, 7]),
    one_of([-1, 3]),
]


def matched(labels: Iterable[Restriction], label: int) -> bool:
    return any(piece.matches(label) for piece in labels)


def closed(window: Window, time: Restriction) -> Restriction:
    (piece,) = window.closed_by(time)
    return piece


@pytest.mark.parametrize("grain", [1, 2, 3])
@pytest.mark.parametrize(
    ("size", "slide", "origin"), [s for s in SHAPES if s[0] in (3, 10) and s[2] != -4] + [(1, 1, 0)]
)
def test_closed_by_is_exact(size: int, slide: int, origin: int, grain: int) -> None:
    if grain > size:
        return
    window = Window.sliding(size, slide, origin=origin, granularity=grain)
    for time in RESTRICTIONS:
        labels = window.closed_by(time)
        for w in range(-12, 12):
            start = window.start(w)
            events = [x for x in range(start, start + size) if x % grain == 0]
            assert matched(labels, start) == all(map(time.matches, events)), (window, str(time), start)


@given(
    st.tuples(st.integers(1, 10), st.integers(1, 7), st.integers(-4, 4)),
    st.integers(1, 4).flatmap(lambda step: st.tuples(st.just(step), st.integers(0, step - 1))),
    st.lists(st.sampled_from(RESTRICTIONS), max_size=5),
)
@settings(max_examples=300)
def test_several_restrictions_close_exactly_what_they_cover_together(
    shape: tuple[int, int, int], grid: tuple[int, int], times: list[Restriction]
) -> None:
    size, slide, origin = shape
    step, phase = grid
    window = Window.sliding(size, slide, origin=origin).on_grid(step, phase)
    labels = window.closed_by(*times)
    growing = Window.landmark(slide, origin=origin).on_grid(step, phase)
    ends = growing.closed_by(*times)

    def complete(events: list[int]) -> bool:
        return all(any(t.matches(x) for t in times) for x in events)

    for w in range(-12, 12):
        start = window.start(w)
        if events := [x for x in range(start, start + size) if x % step == phase]:
            assert matched(labels, start) == complete(events), (window, start)
    for k in range(1, 8):
        if events := [x for x in range(origin, growing.end(k)) if x % step == phase]:
            assert matched(ends, growing.end(k)) == complete(events), (growing, k)


@pytest.mark.parametrize(("size", "slide", "origin"), SHAPES)
def test_confined_to_is_exact(size: int, slide: int, origin: int) -> None:
    window = Window.sliding(size, slide, origin=origin)
    members = {x: windows_of(window, x) for x in range(-25, 25)}
    for label in RESTRICTIONS:
        times = window.confined_to(label)
        for x, mine in members.items():
            only = all(label.matches(window.start(w)) for w in mine)
            may_go = any(piece.matches(x) for piece in times)
            if mine:
                assert may_go == only, (window, str(label), x)
            assert only or not may_go  # Gaps belong to nobody: a piece may have them or not.


def test_everything_closes_everything() -> None:
    for window in (Window.tumbling(3), Window.landmark(3), Window.count(3)):
        assert window.closed_by(ANY) == (ANY,)
        assert window.confined_to(ANY) == (ANY,)
    assert Window.count(3).closed_by(less(3)) == ()


@pytest.mark.parametrize("grain", [1, 2])
@pytest.mark.parametrize(("every", "origin"), [(2, 0), (5, 1), (3, -4)])
def test_landmark_translation(every: int, origin: int, grain: int) -> None:
    window = Window.landmark(every, origin=origin, granularity=grain)
    for time in RESTRICTIONS:
        labels = window.closed_by(time)
        for k in range(1, 8):
            events = [x for x in range(origin, window.end(k)) if x % grain == 0]
            if events:
                assert matched(labels, window.end(k)) == all(map(time.matches, events)), (window, str(time), k)
    for label in RESTRICTIONS:
        times = window.confined_to(label)
        for x in range(origin, origin + 20):
            ends = [window.end(k) for k in range(1, 40) if window.end(k) > x]
            may_go = any(piece.matches(x) for piece in times)
            assert may_go == all(map(label.matches, ends)), (window, str(label), x)


def test_timestamps_dates_and_integers() -> None:
    schema = Schema.parse("ts timestamp, day date, n int, name string", time="ts")
    assert Window.tumbling("1 min").resolve(schema).on == "ts"
    days = Window.sliding("2 day", "1 day", on="day").resolve(schema)
    assert (days.size, days.slide, days.granularity, days.unit) == (2, 1, 1, "day")
    assert closed(days, less(date(2026, 1, 3))) == at_most(date(2026, 1, 1))
    assert Window.tumbling(7, on="day").resolve(schema).size == 7
    for bad in (
        Window.tumbling("1 h", on="day"),
        Window.tumbling("1 h", on="n"),
        Window.tumbling(5, on="ts"),
        Window.tumbling(5, on="name"),
        Window.tumbling(5, on="nmae"),
    ):
        with pytest.raises(UserError, match=r"Hint"):
            bad.resolve(schema)
    with pytest.raises(UserError, match="already has an attribute 'window_start'"):
        Window.tumbling(5).resolve(Schema.parse("n int, window_start int", time="n"))


@pytest.mark.parametrize("make", [Window.sliding, Window.hopping])
@pytest.mark.parametrize(
    ("size", "slide"), [("0 s", "1 s"), ("1 s", "0 s"), ("1 s", "-1 s"), (5, 0), (0, 5), (5, "1 s")]
)
def test_bad_sizes_are_named(make: object, size: object, slide: object) -> None:
    with pytest.raises(UserError, match="Hint"):
        make(size, slide)  # type: ignore[operator]


def test_bad_counts_are_named() -> None:
    for arguments in ((0,), (3, 0), (-1,), ("3",)):
        with pytest.raises(UserError, match="number of events"):
            Window.count(*arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "window",
    [
        Window.tumbling("10 s", on="ts"),
        Window.sliding("2 min", "20 s", on="ts", origin="2026-01-01 00:00:05", granularity="1 s"),
        Window.hopping(3, 7, origin=2),
        Window.landmark("1 h", on="ts"),
        Window.count(10),
        Window.count(10, 3),
    ],
)
def test_repr_can_be_pasted_back(window: Window) -> None:
    assert eval(repr(window)) == window


def test_labels_beyond_the_calendar() -> None:
    window = Window.tumbling("1 day")
    assert window.closed_by(less(datetime(1, 1, 1, 12))) == ()
    (late,) = window.confined_to(at_most(datetime(9999, 12, 31)))
    assert late.matches(datetime(9999, 12, 31, 23))
    # Data may lie beyond the calendar, in windows that nobody can name: they are wanted.
    beyond = pa.array([253_402_300_800_000_000, 253_402_300_799_999_999], pa.timestamp("us"))
    assert late.mask(beyond).to_pylist() == [False, True]
    (all_,) = window.confined_to(at_least(datetime(2026, 1, 1)))
    assert all_.mask(beyond).to_pylist() == [True, True]


def test_landmark_is_named_by_its_end() -> None:
    assert isinstance(Window.landmark(3), LandmarkWindow)
    assert (Window.landmark(3).label, Window.tumbling(3).label) == ("window_end", "window_start")


@pytest.mark.parametrize(
    ("make", "least"),
    [
        (lambda: Window.sliding("1 day", "1 us"), "'8 s 640 ms'"),
        (lambda: Window.sliding(10_001, 1), "2"),
        (lambda: Window.count(20_001, 2), "3 rows"),
    ],
)
def test_windows_of_which_an_event_is_in_too_many_are_refused(make: Callable[[], Window], least: str) -> None:
    with pytest.raises(UserError, match=r"every event would be in [\d,]+ windows, and at most 10,000") as refused:
        make()
    assert refused.value.hint == f"a slide of at least {least}"


def test_as_many_windows_as_are_allowed_can_be_made_and_no_fewer() -> None:
    assert Window.sliding(10_000, 1).slide == Window.count(10_000, 1).slide == 1
    assert Window.sliding("1 day", "8 s 640 ms")
    assert Window.sliding(10, 10**9).slide == 10**9
