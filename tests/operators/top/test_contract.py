"""What limit and top keep and give, as the check says it before the start."""

from __future__ import annotations

import pytest

import penstock as ps
from penstock.analysis.bounds import bounds
from penstock.contract.report import Finding


def cars() -> ps.Stream:
    return ps.stream("cars", "ts timestamp, segment int, speed double", time="ts")


def last(query: ps.Stream) -> Finding:
    return query.check().findings[-1]


def test_top_is_bounded_where_groups_end() -> None:
    timed = cars().disorder("10 s")
    found = last(timed.window("1 min").top(3, by="speed desc", per="segment"))
    assert (found.state, found.output) == ("bounded", "complete")
    assert found.why == ("at most 3 events of each group, which leave on `window_start up to`",)
    ended = last(cars().punctuate(ps.Punctuate.once("segment")).top(3, by="speed", per="segment"))
    assert (ended.state, ended.output) == ("bounded", "complete")
    never = timed.top(3, by="speed", per="segment")
    assert (last(never).state, last(never).output) == ("unbounded", "held back")
    assert "segment" in str(never.check().fixes[0])


def test_one_group_is_small_but_waits_for_the_end() -> None:
    query = cars().disorder("10 s").top(3, by="speed")
    assert (last(query).state, last(query).output) == ("constant", "held back")
    ending = cars().ends().top(3, by="speed")
    assert ending.check(bounded=True).safe and not ending.check().safe


@pytest.mark.parametrize(
    "query",
    [
        cars().limit(5),
        cars().limit(5).group_by("segment").agg(n="count(*)"),
        cars().limit(5).top(2, by="speed"),
        cars().limit(5).order_by("speed desc").distinct(),
        cars().limit(5).window("1 min").agg(n="count(*)"),
        cars().limit(5).window(landmark="1 min").group_by("segment").agg(n="count(*)"),
    ],
)
def test_behind_a_limit_everything_is_bounded(query: ps.Stream) -> None:
    assert query.check().safe
    for finding in query.check().findings[1:]:
        assert finding.state in ("none", "constant", "bounded"), finding
        assert finding.rows is None or finding.rows <= 5, finding


def test_a_limit_on_one_side_of_a_join_bounds_nothing() -> None:
    other = ps.stream("other", "ts timestamp, segment int, limit int", time="ts")
    one = cars().limit(5).join(other, on="segment")
    assert last(one).state == "unbounded"
    both = cars().limit(5).join(other.limit(3), on="segment")
    assert (last(both).state, bounds(both.plan)["join-1"].rows) == ("constant", 8)


def test_what_is_held_back_assumes_that_the_limit_is_reached() -> None:
    found = last(cars().limit(5).group_by("segment").agg(n="count(*)"))
    assert found.assumes == ("as many events come as the limit lets through",)
    assert last(cars().limit(5).distinct()).assumes == ()


def test_how_many_rows() -> None:
    timed = cars().disorder("10 s")
    windows = timed.window("1 min", slide="30 s")
    known = timed.expect(rate=100, keys={"segment": 50})
    cases = [
        (timed.limit(7), "limit-1", 1),
        (timed.top(7, by="speed"), "top-1", 7),
        (windows.top(7, by="speed"), "top-1", 3 * 7),
        (known.window("1 min").top(7, by="speed", per="segment"), "top-1", 50 * 2 * 7),
        (known.window("1 min").top(1000, by="speed", per="segment"), "top-1", bounds_by_rate(100, 70)),
        (timed.limit(5).window("1 min", slide="30 s").top(7, by="speed", per="segment"), "top-1", 10),
    ]
    for query, node, rows in cases:
        assert bounds(query.plan)[node].rows == rows, query.explain()
    assert "expect(" in str(bounds(windows.top(7, by="speed", per="segment").plan)["top-1"])


def bounds_by_rate(rate: float, seconds: int) -> int:
    """As many events as come at random at a rate until their group is complete, and their clusters."""
    ticks = seconds * 1_000_000 + 1
    return int(1 + rate * ticks / 1e6 + 4 * (rate / 1e6 * ticks) ** 0.5)
