"""What the check says of pace and instrument: what they promise, what they keep, and how much waits behind them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from offerings import offering

import penstock as ps
from penstock.analysis.bounds import bounds
from penstock.analysis.check import check
from penstock.contract.template import Scheme, Template

SCHEMA = "t bigint, k bigint"


def stream(name: str, **expected: object) -> ps.Stream:
    source = ps.stream(name, SCHEMA, time="t")
    return source.expect(**expected) if expected else source  # type: ignore[arg-type]


def promised(query: ps.Stream, *arriving: str) -> str:
    schemes = [Scheme.of(*([Template.parse(t, query.schema)] if t else [])) for t in arriving]
    return offering(query.operator, schemes)[0].outputs[0].words


def test_a_pace_promises_time_whatever_arrives() -> None:
    query = stream("a").pace(stream("b"), bound=5)
    assert promised(query, "", "") == "t up to"
    assert promised(query, "[[t:-, k:#]]", "") == "t up to"
    assert promised(query, "[[t:-, k:#]]", "[[t:-, k:#]]") == "t up to; k: each value"


def test_state_behind_a_pace_is_bounded_though_nobody_promises_anything() -> None:
    a, b = stream("a"), stream("b")
    assert check(a.pace(b, bound=5).window(10).group_by("k").agg(n="count(*)").plan).safe
    assert not check(a.union(b).window(10).group_by("k").agg(n="count(*)").plan).safe


def test_what_is_paced_by_something_else_than_time_must_not_be_null() -> None:
    report = check(stream("a").pace(stream("b"), on="k", bound=5).group_by("k").agg(n="count(*)").plan)
    assert report.safe
    assert "never null" in str(report)


def test_what_an_outer_join_leaves_null_is_not_assumed_to_have_a_value() -> None:
    trips, ends = ps.stream("trips", "k bigint", time=None), ps.stream("ends", "k bigint, v bigint", time=None)
    other = ps.stream("other", "k bigint, v bigint", time=None)

    def paced(joined: ps.Stream) -> bool:
        return check(joined.select("k", "v").pace(other, on="v", bound=5).group_by("v").agg(n="count(*)").plan).safe

    trips, ends = (s.punctuate(ps.Punctuate.sorted_by("k")) for s in (trips, ends))
    assert paced(trips.join(ends, on="k"))
    assert not paced(trips.join(ends, on="k", how="left"))  # A trip without an end waits for ever: its v is null.


def test_an_instrument_passes_all_templates() -> None:
    assert promised(stream("a").instrument("not [*, 7]"), "[[t:+, k:#]]") == "t up to + k: each value"


@given(st.integers(1, 5), st.integers(1, 5), st.integers(0, 30), st.integers(0, 9), st.integers(0, 2**32))
@settings(max_examples=40)
def test_no_more_waits_behind_a_pace_than_its_bound(left: int, right: int, bound: int, slack: int, seed: int) -> None:
    query = stream("a", rate=left).pace(stream("b", rate=right), bound=bound).order_by("t")
    rows = bounds(query.plan)["orderby-1"].rows
    assert rows is not None
    rng = np.random.default_rng(seed)
    times = np.concatenate([np.arange(300 * rate) // rate for rate in (left, right)])
    # Both go abreast, each event up to the slack late.
    times = times[np.argsort(times + rng.uniform(0, slack + 0.999, len(times)), kind="stable")]
    floor = np.maximum.accumulate(times) - bound
    passing = times >= np.concatenate([[-1000], floor[:-1]])
    for n in range(len(times) // 4, len(times), 41):
        arrived = times[: n + 1][passing[: n + 1]]
        assert int(np.sum(arrived >= floor[n])) <= rows


@pytest.mark.parametrize(
    ("query", "lacks"),
    [
        (stream("a").pace(stream("b", rate=3), bound=5), "a.expect(rate=…)"),
        (stream("a", rate=2).pace(stream("b", rate=3).distinct(), bound=5), "goes with time cannot be told"),
        (stream("a", rate=2).pace(stream("b", rate=3), on="k", bound=5), "goes with time cannot be told"),
    ],
)
def test_what_is_missing_for_a_bound_is_said(query: ps.Stream, lacks: str) -> None:
    on = "k" if "k at most" in query.operator.detail else "t"
    assert lacks in str(bounds(query.order_by(on).plan)["orderby-1"])


def test_a_stream_that_may_be_behind_the_others_does_not_count_for_how_far_time_has_got() -> None:
    fast, slow = stream("a", rate=4), stream("b", rate=4, lag=100)
    plain, lagging = fast.pace(stream("b", rate=4), bound=5), fast.pace(slow, bound=5)
    assert bounds(plain.order_by("t").plan)["orderby-1"].rows == bounds(lagging.order_by("t").plan)["orderby-1"].rows
    alone = slow.pace(bound=5)
    assert (bounds(alone.order_by("t").plan)["orderby-1"].rows or 0) > 4 * 100
