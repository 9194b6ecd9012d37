"""What is wrong with a join is said where it is written, in one line that names it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import penstock as ps
from penstock.builder.combine import join_operator
from penstock.errors import UserError
from penstock.operators.join.operator import Band

#: Of any type, as mistakes are what is written here.
A: Any = ps.stream("a", "ts int, k int, name string, at timestamp, day date", time="ts")
B: Any = ps.stream("b", "ts int, k int, name string, at timestamp, day date", time="ts")
TABLE: Any = ps.table("prices", "k int, price int", key="k")
JOIN: Any = ps.join
STATISTICS: Any = ps.JoinStatistics
AT = ("at", "at")
DAY = ("day", "day")


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: A.join(B, 5), ["on=5", "on='key'"]),
        (lambda: A.join(B, [5]), ["5", "not a name"]),
        (lambda: A.join(B, ["k", "K"]), ["'k'", "twice"]),
        (lambda: A.join(B, {"k": "name"}), ["left k int", "right name string"]),
        (lambda: A.join(B, "k", within=(1, 2, 3)), ["within=(1, 2, 3)", "a pair"]),
        (lambda: A.join(B, "k", within=-1), ["-1", "negative"]),
        (lambda: A.join(B, "k", between=5), ["between=5", "(low, high)"]),
        (lambda: A.join(B, "k", rows=1.5), ["rows=1.5", "whole number"]),
        (lambda: A.join(B, "k", rows="3"), ["rows='3'", "whole number"]),
        (lambda: A.join(B, "k", times=("ts", "tss")), ["right stream has no column 'tss'", "did you mean 'ts'"]),
        (lambda: A.join(B, "k", times="ts", within=5), ["times='ts'", "('left time', 'right time')"]),
        (lambda: A.join(B, "k", times=("ts", "at"), within=5), ["left ts int", "right at timestamp"]),
        (lambda: A.join(B, "k", times=("name", "name"), within=5), ["'name' is string", "a timestamp"]),
        (lambda: A.join(B, "k", times=AT, within=5), ["5 has no unit", "'5 s'"]),
        (lambda: A.join(B, "k", times=AT, between=(-5, 0)), ["-5 has no unit", "'-5 s'"]),
        (lambda: ps.join(A, B, on="k", times=["name", "name"], within=5), ["a: 'name' is string"]),
        (lambda: A.join("b", on="k"), ["join: 'b' is not a stream", "ps.stream"]),
        (lambda: A.join(TABLE, on="k"), ["'prices' is a table", "stream.lookup(prices"]),
        (lambda: A.union("b"), ["union: 'b' is not a stream"]),
        (lambda: A.union([B]), ["union: list is not a stream", "one by one"]),
        (lambda: A.union(A.group_by("k")), ["Grouped is not a stream"]),
        (lambda: A.intersect(None), ["intersect: NoneType is not a stream"]),
        (lambda: A.difference(TABLE), ["difference: 'prices' is a table"]),
        (lambda: A.merge("b"), ["merge: 'b' is not a stream"]),
        (lambda: A.merge(), ["merge() needs another stream"]),
        (lambda: A.merge(ps.stream("c", "ts int", time="ts")), ["merge: the streams differ"]),
        (lambda: A.order_by("k", slack="3"), ["slack='3'", "whole number"]),
        (lambda: A.order_by("k", slack=1.5), ["slack=1.5", "whole number"]),
        (lambda: A.order_by("k", slack=True), ["slack=True", "whole number"]),
        (lambda: A.order_by(["k"]), ["['k'] is not a column", "one by one"]),
        (lambda: JOIN(A, "b", on="k"), ["str is not a stream"]),
        (lambda: JOIN([A, B], on="k"), ["list is not a stream", "ps.join(a, b, c"]),
        (lambda: JOIN(A, B, on="k", statistics={"a": 1}), ["{'a': 1}", "ps.JoinStatistics"]),
        (lambda: STATISTICS(rates=["fast", 1], keys=[1, 1]), ["'fast' in rates", "numbers"]),
    ],
)
def test_a_mistake_is_one_line_that_names_it(build: Callable[[], Any], words: list[str]) -> None:
    with pytest.raises(UserError) as caught:
        build()
    assert "\n" not in str(caught.value)
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize(
    ("limits", "low", "high"),
    [
        ({"times": AT, "within": "5 s"}, -5_000_000, 5_000_000),
        ({"times": AT, "between": ("-5 s", 0)}, -5_000_000, 0),
        ({"times": DAY, "within": 7}, -7, 7),
        ({"times": DAY, "between": (-7, "1 day")}, -7, 1),
    ],
)
def test_limits_are_written_as_sizes_of_windows(limits: dict[str, Any], low: int, high: int) -> None:
    band = join_operator(A.operator, B.operator, "k", **limits).band
    assert isinstance(band, Band)
    assert (band.low, band.high) == (low, high)


def test_names_that_differ_in_case_only_get_the_suffix() -> None:
    upper = ps.stream("upper", "ts int, K int, Name string", time="ts")
    assert A.select("ts", "k", "name").join(upper, "k").schema.names == ("k", "ts", "name", "ts_right", "Name_right")
