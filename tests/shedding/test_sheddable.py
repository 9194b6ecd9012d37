"""Which outputs can be shed, and how; that random drops are sound where they are allowed, and are not where refused."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import penstock as ps
from penstock.engine.source.split import Split
from penstock.engine.tasks.dropping import chance
from penstock.errors import UserError
from penstock.plan.plan import Plan
from penstock.reference.interpret import interpret
from penstock.reference.item import Event
from penstock.shedding.sheddable import require, sheddable


def same(rows: pa.Table) -> pa.Table:
    return rows


cars = ps.stream("cars", "ts int, k int, v int", time="ts").disorder(0)
vans = ps.stream("vans", "ts int, k int, v int", time="ts").disorder(0)
means = cars.window(20, slide=10).group_by("k").agg(n="count(*)")
slow = ps.QoS(value={"v": [((0, 50), 0.2), ((51, 100), 1)]})

SINGLE = {
    "source": cars,
    "where": cars.where("v > 3"),
    "select": cars.where("v > 1").select("ts", twice="2 * v"),
    "union": cars.where("v > 3").union(vans),
    "map": cars.map(same, keeps=["ts", "k"]),
}
TOGETHER = {
    "aggregate": cars.group_by("k").agg(n="count(*)"),
    "window": means,
    "join": cars.join(vans, on="k", how="left"),
    "top": cars.window(10).top(1, by="v desc"),
    "limit": cars.limit(3),
    "distinct": cars.distinct(),
    "pace": cars.pace(vans, on="ts", bound=5),
    "order": cars.order_by("v", slack=2),
    "count window": cars.window(rows=3).group_by("k").agg(n="sum(v)"),
    "behind": means.where("n > 1").select("k", "n"),
}


@pytest.mark.parametrize("name", SINGLE)
def test_random_drops_where_each_result_is_of_one_event(name: str) -> None:
    (found,) = sheddable(SINGLE[name].plan).values()
    assert found["random"].possible and "cars" in found["random"].reaches


@pytest.mark.parametrize("name", TOGETHER)
def test_no_random_drops_where_events_have_results_together(name: str) -> None:
    (found,) = sheddable(TOGETHER[name].plan).values()
    assert not found["random"].possible and "not of single events" in found["random"].why


events = st.lists(st.fixed_dictionaries({"ts": st.integers(0, 40), "k": st.integers(0, 2), "v": st.integers(0, 9)}))


@pytest.mark.parametrize("name", [n for n in SINGLE if n != "map"])
@settings(max_examples=30)
@given(rows=events, share=st.floats(0, 1), seed=st.integers(0, 9))
def test_what_is_left_by_a_random_drop_is_part_of_the_whole(
    name: str, rows: list[dict[str, Any]], share: float, seed: int
) -> None:
    plan = SINGLE[name].plan
    rows = sorted(rows, key=lambda r: r["ts"])
    whole = Counter(map(str, (i for i in interpret(plan, {"cars": rows}).outputs if isinstance(i, Event))))
    left = Counter(
        map(str, (i for i in interpret(plan, {"cars": kept(rows, share, seed)}).outputs if isinstance(i, Event)))
    )
    assert left <= whole
    if not share:
        assert left == whole


def kept(rows: list[dict[str, Any]], share: float, seed: int) -> list[dict[str, Any]]:
    """What the engine's chance leaves of a file with these rows."""
    file = Split("cars", "", 0, "a.parquet", "parquet", 0, len(rows), 9, 1, 1, 1)
    left = chance(seed, file, np.arange(len(rows), dtype=np.uint64)) >= share
    return [r for r, stays in zip(rows, left, strict=True) if stays]


@pytest.mark.parametrize("name", ["aggregate", "window", "join", "top", "count window", "behind"])
def test_where_they_are_refused_they_would_give_wrong_results(name: str) -> None:
    """For each of these there is a drop after which something comes out that never would have."""
    plan = TOGETHER[name].plan
    rows = [{"ts": n, "k": n % 2, "v": n % 5} for n in range(30)]
    inputs = {"cars": rows, "vans": rows[:2]} if name == "join" else {"cars": rows}
    whole = Counter(map(str, (i for i in interpret(plan, inputs, ends=True).outputs if isinstance(i, Event))))
    wrong = False
    for seed in range(9):
        less = {**inputs, "vans" if name == "join" else "cars": kept(inputs.get("vans", rows), 0.5, seed)}
        left = Counter(map(str, (i for i in interpret(plan, less, ends=True).outputs if isinstance(i, Event))))
        wrong |= not left <= whole
    assert wrong


# --- windows and values


def ways(query: ps.Stream, qos: ps.QoS | None = None) -> Any:
    ((_, found),) = sheddable(query.plan, {query.plan.exits[0].name: qos} if qos else {}).items()
    return found


def test_windows_reach_sources_through_whatever_passes_on_their_labels() -> None:
    nested = means.where("n > 0").rename(window_start="minute").window(60, slide=30, on="minute").agg(m="sum(n)")
    other = vans.window(20, slide=10).group_by("k").agg(m="count(*)")
    for query in (means, nested, means.union(means), means.join(other, on=["window_start", "k"])):
        assert ways(query)["window"].possible and "cars" in ways(query)["window"].reaches


def test_a_gap_shorter_than_the_windows_of_an_event_saves_nothing_early() -> None:
    enough = ways(means, ps.QoS(gap=2))["window"]
    assert enough.reaches == ("cars",) and "as much as the gap allows leaves 67% of it" in enough.line
    # Two of three windows of 20 every 10 go: of 30 ticks, the kept one has 20.
    short = ways(means, ps.QoS(gap=1))["window"]
    assert short.possible and not short.reaches
    assert "each event is in more windows than gap=1 lets go: at least 2 would be needed" in short.line


def test_windows_by_count_are_refused() -> None:
    for query in (TOGETHER["count window"], cars.where("v > 1").window(rows=3).group_by("k").agg(n="sum(v)")):
        assert not ways(query)["window"].possible and "shifts or grows" in ways(query)["window"].why
    assert not ways(means.select("k", "n"))["window"].possible
    assert not ways(cars)["window"].possible


def test_a_label_of_two_windows_is_none() -> None:
    other = vans.window(30).group_by("k").agg(n="count(*)")
    assert not ways(means.union(other))["window"].possible


def test_values_reach_sources_where_they_are_carried() -> None:
    assert ways(cars.where("k > 1"), slow)["semantic"].reaches == ("cars",)
    assert ways(cars.join(vans, on=["ts", "v"]), slow)["semantic"].reaches == ("cars", "vans")
    by_v = cars.window(10).group_by("v").agg(n="count(*)")
    assert ways(by_v, slow)["semantic"].reaches == ("cars",)
    counts = ways(means, ps.QoS(value={"n": [((0, 5), 0.1)]}))["semantic"]
    assert counts.possible and not counts.reaches and "known when a group is complete" in counts.why
    timeless = ways(cars.select("v"), slow)["semantic"]
    assert not timeless.possible and "carry no time" in timeless.why
    assert ways(cars, slow).best.kind == "semantic" and ways(means, None).best.kind == "window"


def test_what_is_shared_waits_for_the_others() -> None:
    both = Plan.of(cars.where("v > 1").operator, cars.where("v > 2").operator)
    found = sheddable(both)
    assert [way["random"].reaches for way in found.values()] == [(), ()]
    assert all("other outputs read the same events" in way["random"].why for way in found.values())


@pytest.mark.parametrize(
    ("query", "qos", "message"),
    [
        (cars, {"select-9": ps.QoS()}, "QoS of 'select-9': there is no such output"),
        (cars, {"source:cars": ps.QoS(value={"speed": [((0, 5), 1)]})}, "value of 'speed', which its"),
        (cars, {"source:cars": ps.QoS(value={"v": [("slow", 1)]})}, "value of 'v'"),
        (TOGETHER["aggregate"], {"aggregate-1": ps.QoS()}, "output 'aggregate-1' cannot be shed: no random drops"),
    ],
)  # fmt: skip
def test_what_cannot_be_shed_is_an_error_with_a_hint(query: ps.Stream, qos: dict[str, ps.QoS], message: str) -> None:
    with pytest.raises(UserError, match=message) as error:
        require(query.plan, qos)
    assert error.value.hint and "\n" not in str(error.value)


def test_windows_with_silence_between_them_are_shed_like_others() -> None:
    apart = cars.window(10, slide=25).group_by("k").agg(n="count(*)")
    way = ways(apart, ps.QoS(gap=1))["window"]
    assert way.possible and way.reaches == ("cars",) and "leaves 50% of it" in way.line
