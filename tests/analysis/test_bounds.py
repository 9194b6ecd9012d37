"""Bounds on state and delay: against streams simulated event by event, by hand where the numbers are small."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plans import Query, queries

import penstock as ps
from penstock.analysis.bounds import Bound, bounds, with_bounds
from penstock.analysis.check import check
from penstock.errors import UserError

SCHEMA = "t bigint, k bigint, name string"


def stream(name: str, **expected: object) -> ps.Stream:
    source = ps.stream(name, SCHEMA, time="t")
    return source.expect(**expected) if expected else source


def of(query: ps.Stream, kind: str, **options: object) -> Bound:
    """The bound of the first operator of a kind."""
    return bounds(query.plan, **options)[f"{kind}-1"]  # type: ignore[arg-type]


# --- simulated --------------------------------------------------------------------------------------------------------


class Simulated:
    """Events of integer time at a rate, out of order within a slack, told to be complete at multiples of a period."""

    def __init__(self, rate: int, slack: int, period: int, seed: int, even: bool, length: int = 400) -> None:
        rng = np.random.default_rng(seed)
        count = rate * length
        times = np.arange(count) // rate if even else np.sort(rng.integers(0, length, count))
        self.times = times[np.argsort(times + rng.uniform(0, slack + 0.999, count), kind="stable")]
        newest = np.maximum.accumulate(self.times)
        self.frontier = (newest - slack) // period * period
        assert bool(np.all(self.times >= newest - slack))
        self.keys = rng.integers(0, 7, count)
        self.rate, self.slack, self.period = rate, slack, period

    def declared(self, name: str = "s", **expected: object) -> ps.Stream:
        source = ps.stream(name, SCHEMA, time="t").disorder(self.slack)
        return source.punctuate(ps.Punctuate.every(self.period)).expect(rate=self.rate, **expected)

    def moments(self) -> Iterator[int]:
        """Places in the stream, after which somebody looks at the state."""
        return iter(range(len(self.times) // 4, len(self.times), 37))

    def waiting(self, reach: int) -> int:
        """The most events that stay until what follows within the reach is complete."""
        return max(int(np.sum(self.times[: n + 1] + reach >= self.frontier[n])) for n in self.moments())

    def groups(self, size: int, slide: int) -> int:
        """The most pairs of window and key that are open."""
        most = 0
        for n in self.moments():
            recent = self.times[: n + 1] >= self.frontier[n] - size
            times, keys = self.times[: n + 1][recent], self.keys[: n + 1][recent]
            opened = {
                (w, k)
                for t, k in zip(times.tolist(), keys.tolist())
                for w in range((t - size) // slide + 1, t // slide + 1)
                if w * slide + size > self.frontier[n]
            }
            most = max(most, len(opened))
        return most


simulations = st.builds(
    Simulated,
    rate=st.integers(1, 4),
    slack=st.integers(0, 30),
    period=st.sampled_from((1, 1, 10, 25)),
    seed=st.integers(0, 1000),
    even=st.booleans(),
)


@settings(max_examples=25, deadline=None)
@given(s=simulations, size=st.integers(5, 60), slide=st.integers(5, 40))
def test_windows_by_key(s: Simulated, size: int, slide: int) -> None:
    slide = min(slide, size)
    query = s.declared(keys={"k": 7}).window(size, slide=slide).group_by("k").agg(n="count(*)")
    found, real = of(query, "aggregate").rows, s.groups(size, slide)
    assert found is not None and real <= found <= 4 * real
    by_rate = of(s.declared().window(size, slide=slide).group_by("k").agg(n="count(*)"), "aggregate").rows
    assert by_rate is not None and real <= by_rate


@settings(max_examples=40, deadline=None)
@given(s=simulations, reach=st.integers(0, 60))
def test_sides_of_a_band(s: Simulated, reach: int) -> None:
    """Both sides are alike and abreast, so both hold the same."""
    left, right = s.declared("a", lag=0), s.declared("b", lag=0)
    found = of(left.join(right, on="k", within=reach), "join").rows
    real = 2 * s.waiting(reach)
    assert found is not None and real <= found <= 4 * real + 40


@settings(max_examples=25, deadline=None)
@given(s=simulations)
def test_events_in_order_and_distinct(s: Simulated) -> None:
    query = s.declared()
    real = s.waiting(0)
    for found in (of(query.order_by("t"), "orderby"), of(query.distinct(), "distinct")):
        assert found.rows is not None and real <= found.rows <= 4 * real + 20
    assert of(query.order_by("t"), "orderby").delay == s.slack + s.period - 1


@settings(max_examples=150, deadline=None)
@given(queries())
def test_what_is_unbounded_has_no_bound_and_what_has_none_says_why(query: Query) -> None:
    """With everything expected that can be: over random plans of all operators."""
    lives = {"k": 30, "g": 30}
    expected = {
        f.name: f.stream.expect(rate=3, lag=5, lifetime=lives, keys=dict.fromkeys("kg", 9)) for f in query.feeds
    }
    plan = query.over(expected).plan
    found = bounds(plan)
    for finding in check(plan).findings:
        bound = found[finding.operator]
        if finding.state == "unbounded":
            assert bound.rows is None, (finding.operator, bound)
        elif finding.state in ("bounded", "constant") and bound.rows is None:
            assert bound.lacks, finding.operator
        if finding.state == "none" and not finding.operator.startswith("source"):
            assert bound.rows == 0


# --- by hand ----------------------------------------------------------------------------------------------------------


def test_groups_of_ended_keys() -> None:
    trips = stream("a", rate=5, lifetime={"k": 100}).punctuated().scheme(k="value")
    grouped = trips.group_by("k").agg(n="count(*)")
    found = of(grouped, "aggregate")
    assert (found.rows, found.delay) == (5 * 101 + 1 + int(4 * 505**0.5), 100)
    assert found.why == "5 a tick for 100 ticks"
    fewer = stream("a", rate=5, lifetime={"k": 100}, keys={"k": 30}).punctuated().scheme(k="value")
    assert of(fewer.group_by("k").agg(n="count(*)"), "aggregate").rows == 30


def test_a_join_of_ended_keys_waits_for_the_other_side() -> None:
    slow = stream("a", rate=1, lifetime={"k": 10}).punctuated().scheme(k="value")
    quick = stream("b", rate=1, lifetime={"k": 400}).punctuated().scheme(k="value")
    found = of(slow.join(quick, on="k", how="left"), "join")
    assert found.why == "left: 1 a tick for 400 ticks; right: 1 a tick for 10 ticks"
    assert found.delay == 400
    assert of(slow.join(quick, on="k"), "join").delay == 0


def test_of_band_and_ended_keys_the_sooner_counts() -> None:
    left = stream("a", rate=1, lag=0).disorder(5)
    right = stream("b", rate=1, lag=0, lifetime={"k": 20}).disorder(5).punctuated().scheme(k="value")
    found = of(left.join(right, on="k", within=50), "join")
    assert found.why == "left: 1 a tick for 20 ticks; right: 1 a tick for 55 ticks"


def test_open_sides_of_a_band_are_told_apart() -> None:
    left, right = (stream(n, rate=1, lag=0).disorder(5) for n in "ab")
    found = of(left.join(right, on="k", within=(0, 100)), "join")  # A left event waits for nothing, a right one does.
    assert found.why == "left: 1 a tick for 5 ticks; right: 1 a tick for 105 ticks"


def test_results_of_windows_are_known_behind_them() -> None:
    counts = stream("a", rate=50, keys={"k": 10}).disorder(5).window(20).group_by("k").agg(n="count(*)")
    found = of(counts.order_by("window_start"), "orderby")
    assert found.rows is not None and 10 <= found.rows <= 60
    assert found.delay == 20 + 5


def test_the_results_of_a_join_are_unknown_unless_partners_are_single() -> None:
    left, right = (stream(n, rate=2, lag=0).disorder(5) for n in "ab")
    many = left.join(right, on="k", within=10).order_by("t")
    unknown = of(many, "orderby")
    assert unknown.rows is None
    assert unknown.lacks == ("the rate of join-1, as in bounds(…, rates={'join-1': …})",)
    assert of(many, "orderby", rates={"join-1": 3}).rows is not None
    single = left.join(right.punctuate(ps.Punctuate.once("k")), on="k", within=10).order_by("t")
    assert of(single, "orderby").rows is not None
    assert of(left.join(right, on="k", how="semi", within=10).order_by("t"), "orderby").rows is not None


def test_keys_that_stay_for_ever_are_not_counted_by_those_of_a_time() -> None:
    """Declared is how many occur together; how many there will have been, only a domain tells."""
    s = stream("a", rate=1, keys={"k": 9}, lag=0).disorder(5)
    other = stream("b", rate=1, keys={"k": 9}, lag=0).disorder(5)
    counted = s.window(ps.Window.count(10)).group_by("k").agg(n="count(*)")
    assert of(counted, "aggregate").rows is None
    assert str(of(counted, "aggregate")) == "no bound"
    assert of(s.window(ps.Window.landmark(10)).group_by("k").agg(n="count(*)"), "aggregate").rows is None
    assert of(s.join(other, on="k", rows=3), "join").rows is None
    nine = ps.Punctuate.values("k", range(9))
    assert of(s.punctuate(nine).join(other.punctuate(nine), on="k", rows=3), "join").rows is not None
    finite = s.punctuate(nine).window(ps.Window.landmark(10)).group_by("k").agg(n="count(*)")
    assert of(finite, "aggregate").rows == 9 * 3


def test_what_is_not_known_says_what_to_declare() -> None:
    bare = stream("a").disorder(5)
    assert of(bare.distinct(), "distinct").lacks == ("a.expect(rate=…)",)
    told = stream("b", rate=1).punctuated().scheme(t="up to")
    assert of(told.order_by("t"), "orderby").lacks == ("b.expect(lag=…)",)
    ended = stream("c", rate=1).punctuated().scheme(k="value")
    assert of(ended.group_by("k").agg(n="count(*)"), "aggregate").lacks == ("c.expect(lifetime={'k': …})",)
    assert of(bare.join(ended, on="k"), "join").rows is None
    once = stream("d", rate=1).disorder(5).punctuate(ps.Punctuate.once("k"))
    assert of(once.group_by("k").agg(n="count(*)"), "aggregate").rows is not None
    waiting = of(stream("e", rate=1, lifetime={"k": 9}).punctuated().scheme(k="value").join(once, on="k"), "join")
    assert waiting.lacks == ("d.expect(lifetime={'k': …})",)
    two = ps.stream("f", "t bigint, u bigint", time=["t", "u"]).disorder(5, on="u")
    assert of(two.order_by("u"), "orderby").lacks == ("f.expect(rate=…, on='u')",)
    assert of(two.expect(rate=1, on="u").order_by("u"), "orderby").rows is not None


def test_what_no_declaration_would_tell_is_not_asked_for() -> None:
    rising = stream("a").punctuated().scheme(k="up to")
    untold = "rows unknown: how `k` of a goes with time cannot be told"
    assert str(of(rising.order_by("k"), "orderby")) == untold
    # The rate of b is not known either, but would not help.
    assert str(of(rising.join(stream("b").punctuated().scheme(k="value"), on="k"), "join")) == untold
    dated = ps.stream("c", "day date, k bigint", time="day").disorder("1 day").punctuate(ps.Punctuate.once("k"))
    joined = of(dated.join(stream("d").punctuated().scheme(k="value"), on="k"), "join")
    assert str(joined) == "rows unknown: its inputs have different kinds of time, which cannot be compared"


def test_an_epoch_under_way_is_counted() -> None:
    query = stream("a", rate=4).disorder(100).order_by("t")
    before, during = of(query, "orderby").rows, of(query, "orderby", epoch=1000).rows
    assert before is not None and during == before + 1000


def test_bytes_follow_from_the_schema() -> None:
    found = of(stream("a", rate=1).disorder(5).order_by("t"), "orderby")
    assert found.rows is not None and found.bytes == found.rows * (8 + 8 + (24 + 4) + 8)


def test_reports_say_how_much() -> None:
    query = stream("a", rate=2, keys={"k": 10}).disorder(5).window(60, slide=20).group_by("k").agg(n="count(*)")
    report = with_bounds(check(query.plan), query.plan)
    (found,) = [f for f in report.findings if f.operator == "aggregate-1"]
    assert (found.rows, found.delay) == (40, "5 ticks")
    assert "bound: at most 40 rows (10 keys × 4 windows)" in str(report)
    assert report.to_json()["findings"][-1 if found is report.findings[-1] else -2]["rows"] is not None


def test_one_is_one() -> None:
    query = stream("a", rate=1, keys={"k": 1}).disorder(1).window(1, slide=9).group_by("k").agg(n="count(*)")
    (found,) = [f for f in with_bounds(check(query.plan), query.plan).findings if f.operator == "aggregate-1"]
    assert found.bound is not None
    assert found.bound.startswith("at most 1 row (1 key × 1 window)") and found.bound.endswith("within 1 tick")


@pytest.mark.parametrize(
    ("expected", "said"),
    [
        ({"rate": 0}, "expect(rate=0)"),
        ({"rate": "5/s"}, "expect(rate='5/s')"),
        ({"keys": {"k": 0}}, "expect(keys={'k': 0})"),
        ({"keys": {"kk": 3}}, "unknown column 'kk'"),
        ({}, "says nothing"),
    ],
)
def test_mistakes_in_expectations(expected: dict[str, object], said: str) -> None:
    with pytest.raises(UserError) as caught:
        ps.stream("a", SCHEMA, time="t").expect(**expected)  # type: ignore[arg-type]
    assert said in str(caught.value)


def test_rates_are_told_in_several_ways() -> None:
    source = ps.stream("a", "ts timestamp, day date", time="ts")
    rates = [source.expect(rate=r).operator.promises[0].rate for r in (10, "10/s", "600/min", "1,000/100 s")]
    assert rates == [pytest.approx(1e-5)] * 4
    daily = ps.stream("b", "day date, k int", time="day").disorder("2 days").expect(rate=100)
    assert of(daily.order_by("day"), "orderby").rows == pytest.approx(300, rel=0.3)
    changed = source.expect(rate=10).expect(rate=20, keys={"day": 3})
    assert str(changed.operator.promises[0]) == "expected: 20/s, 3 values of day"
