"""Completeness by counts: in whatever order counts and events come, the same results, and the same end.

Three ways: reference, kernels, Spark. Results are checked against the rows themselves, too.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from backend import assert_same, on_kernels, on_reference, on_spark
from case import Case, Cut, Feed
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from random_cases import KEYS, cuts

import penstock as ps
from penstock.engine.source.promises.counting import Counting, read_count
from penstock.errors import UserError
from penstock.operators.source.reference_counts import CountedPromise
from penstock.pattern.schema import Schema
from penstock.plan.count import LOWEST, Count
from penstock.plan.promise import Counted

END = 20
QUERY = "s.window(5).group_by('k').agg(n='count(*)', all='sum(id)')"


@dataclass(frozen=True)
class CountedFeed(Feed):
    """A feed in which text is a count."""

    def arrivals(self) -> list[tuple[str, Any]]:
        schema = self.declared.schema
        promise = next(p for p in self.declared.operator.promises if isinstance(p, Counted))
        read = [
            read_count(json.loads(i), promise, schema) if isinstance(i, str) else self.row(i) for _, i in self.items
        ]
        return [(partition, item) for (partition, _), item in zip(self.items, read, strict=True)]


def said(low: int | None, high: int, number: int) -> str:
    return json.dumps({**({} if low is None else {"from": low}), "to": high, "count": number})


def feed(items: Sequence[Any], since: int | None = 0) -> CountedFeed:
    promises = f".punctuate(ps.Punctuate.counted('ts', since={since})).punctuated"
    promises = f".punctuated().punctuate(ps.Punctuate.counted('ts', since={since}))"
    return CountedFeed("s", tuple(("", i) for i in items), promises, "json")


@st.composite
def histories(draw: st.DrawFn, wrong: int = 0) -> list[Any]:
    """Events and the counts of them, in any order; `wrong`: counts may be off by so much."""
    ticks = draw(st.lists(st.integers(0, END - 1), max_size=12))
    rows = [{"ts": t, "k": draw(st.sampled_from(KEYS)), "id": i, "n": 1} for i, t in enumerate(ticks)]
    cuts_ = sorted(draw(st.sets(st.integers(1, END - 1), max_size=3)))
    counts = []
    for low, high in zip([0, *cuts_], [*cuts_, END]):
        number = sum(low <= t < high for t in ticks) + draw(st.integers(-wrong, wrong))
        first = None if low == 0 and draw(st.booleans()) else low
        counts += [said(first, high, max(0, number))] * draw(st.sampled_from((1, 1, 2)))
    return list(draw(st.permutations([*rows, *counts])))


@given(histories(), cuts())
@settings(max_examples=25)
def test_any_order_gives_the_same_results_and_the_same_end(items: list[Any], cut: Cut) -> None:
    case = Case(QUERY, (feed(items),))
    found = on_kernels(case, cut)
    expected = Counter((r["ts"] // 5 * 5, r["k"]) for r in items if isinstance(r, dict))
    assert Counter({(r["window_start"], r["k"]): r["n"] for r in found.rows}) == expected
    assert not found.letters and found.state == 0
    assert_same(on_reference(case), found, "reference and engine")


@given(histories(wrong=2), cuts())
@settings(max_examples=25)
def test_what_is_more_than_counted_is_a_dead_letter(items: list[Any], cut: Cut) -> None:
    case = Case(QUERY, (feed(items),))
    assert_same(on_reference(case), on_kernels(case, cut), "reference and engine")


@pytest.mark.spark
def test_on_spark(spark: Any) -> None:
    @given(histories(wrong=1), cuts())
    @settings(max_examples=3, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
    def run(items: list[Any], cut: Cut) -> None:
        case = Case(QUERY, (feed(items),))
        assert_same(on_reference(case), on_spark(case, cut, spark), "reference and engine")

    run()


#: Five events at these times, and what a count of them completes: the consistent forms of the example of the digest.
GOLDEN = (8, 4, 6, 0, 1)


@pytest.mark.parametrize(("high", "number", "reached"), [(8, 4, 8), (9, 5, 9), (8, 5, 0)])
@pytest.mark.parametrize("place", range(6))
def test_golden(high: int, number: int, reached: int, place: int) -> None:
    """Wherever the count stands among the events."""
    import numpy as np

    state, extra, wrong = Counting(0).after(np.array(GOLDEN), [(place, Count(0, high, number))])
    assert (state.reached, extra, wrong) == (reached, {}, [])
    reference = CountedPromise(Counted("ts", 0), Schema.parse("ts int"))
    for at, tick in enumerate(GOLDEN):
        if at == place:
            reference.tell(Count(0, high, number))
        assert not reference.is_one_more({"ts": tick})
    if place == len(GOLDEN):
        reference.tell(Count(0, high, number))
    assert reference.reached() == reached


def test_a_full_interval_waits_for_those_before_it() -> None:
    import numpy as np

    nothing = np.zeros(0, np.int64)
    state, _, _ = Counting().after(np.array([12]), [(0, Count(10, 20, 1)), (1, Count(5, 10, 0))])
    assert state.reached == LOWEST
    state, _, _ = Counting.from_json(state.to_json()).after(nothing, [(0, Count(LOWEST, 5, 0))])
    assert state.reached == 20 and not state.spans and not len(state.ticks)


def test_a_count_that_contradicts_another_is_a_dead_letter() -> None:
    items = [said(0, 8, 1), said(4, 9, 1), {"ts": 1, "k": "a", "id": 1, "n": 1}, said(8, END, 0)]
    case = Case(QUERY, (feed(items),))
    found = on_kernels(case)
    assert [reason for _, reason, _ in found.letters] == ["malformed"]
    assert [r["n"] for r in found.rows] == [1]


@pytest.mark.parametrize(
    "text",
    ['{"count": 4}', '{"to": 8, "count": -1}', '{"from": 8, "to": 8, "count": 1}', '{"to": 8, "count": 1, "x": 2}'],
)
def test_a_count_that_says_nothing_is_refused(text: str) -> None:
    with pytest.raises(UserError):
        read_count(json.loads(text), Counted("ts", 0), Schema.parse("ts int"))


def test_counts_are_declared_once_and_tell_the_check_that_time_ends() -> None:
    stream = ps.stream("s", "ts int, k string", time="ts").read_json("x").punctuate(ps.Punctuate.counted())
    query = stream.window(5).group_by("k").agg(n="count(*)")
    assert query.check().safe
    with pytest.raises(UserError, match="declared twice"):
        stream.punctuate(ps.Punctuate.counted())
