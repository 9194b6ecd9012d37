"""Counts and sums of rows that are taken back are those of the rows that are left, to the last bit."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import penstock as ps
from penstock.analysis.speculate import speculate
from penstock.operators.aggregate.kernel import AggregateKernel
from penstock.operators.revised_aggregate.kernel import AddingKernel, ChangingKernel
from penstock.operators.revised_aggregate.operator import RevisedAggregate, may_owe
from penstock.operators.revised_aggregate.step import step_of
from penstock.operators.revised_aggregate.weighing import WeighingKernel
from penstock.pattern.schema import Schema
from penstock.plan.plan import Plan
from penstock.plan.weight import with_weight
from penstock.sql.aggregation import Aggregation

SCHEMA = Schema.parse("k string, n bigint, i tinyint, x double, f float, d decimal(20,3), w decimal(30,0), b boolean")
TEXTS = (
    "count(*)",
    "count(n)",
    "count(n, x)",
    "count_if(b)",
    "sum(n)",
    "sum(i)",
    "sum(x)",
    "sum(f)",
    "sum(d)",
    "sum(w)",
    "avg(n)",
    "avg(x)",
    "avg(d)",
    "sum(x) / count(*) + sum(i)",
    "sum(n) filter (where b)",
    "sum(x) filter (where b)",
    "sum(d) filter (where b)",
    "count(*) filter (where x > 0)",
    "avg(x) filter (where i > 0)",
)
_DOUBLES = (0.1, 0.2, -0.3, 0.0, -0.0, 1e300, -1e300, 1e16, 5e-324, math.inf, -math.inf, math.nan, None)
_ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "k": st.sampled_from(("a", "b", None)),
            "n": st.sampled_from((0, 1, -5, 2**62, -(2**63), 2**63 - 1, None)),
            "i": st.sampled_from((1, -128, 127, None)),
            "x": st.sampled_from(_DOUBLES),
            "f": st.sampled_from((0.5, -3.25, math.inf, None)),
            "d": st.sampled_from((Decimal("0.001"), Decimal("-99999999999999999.999"), None)),
            "w": st.sampled_from((Decimal(3), Decimal(10**29), None)),
            "b": st.sampled_from((True, False, None)),
        }
    ),
    max_size=12,
)

_NULLS = dict.fromkeys(SCHEMA.names)


def alike(table: pa.Table) -> list[str]:
    return sorted(repr(row) for row in table.to_pylist())


def with_weights(rows: list[dict[str, Any]], weights: list[int]) -> pa.Table:
    return pa.Table.from_pylist(
        [{**r, "_weight": w} for r, w in zip(rows, weights, strict=True)], with_weight(SCHEMA).arrow
    )


@given(_ROWS, _ROWS, st.lists(st.sampled_from(TEXTS), min_size=1, max_size=4, unique=True), st.randoms())
@example([{**_NULLS, "x": 1e308}] * 2 + [{**_NULLS, "x": math.inf}], [], ["sum(x)"], None)
@example([{**_NULLS, "x": 0.1}] * 3, [], ["sum(x)"], None)
@example([{**_NULLS, "x": x} for x in (math.inf, -math.inf)], [], ["sum(x)"], None)
def test_what_is_left_is_what_was_never_touched(left: Any, gone: Any, texts: list[str], random: Any) -> None:
    """However what comes and goes is cut."""
    aggregations = [Aggregation.parse(f"a{i}", text, SCHEMA) for i, text in enumerate(texts)]
    plain = AggregateKernel(SCHEMA, ["k"], aggregations).noting()
    weighing = WeighingKernel(with_weight(SCHEMA), ["k"], aggregations).noting()
    said = [(r, left.count(r)) for i, r in enumerate(left) if r not in left[:i]]
    said += [(r, w) for r in gone for w in (1, -1)] + [(r, w) for r in gone[:3] for w in (2, -2)]
    if random is not None:
        random.shuffle(said)
    cut = len(said) // 3
    parts = [said[:cut], said[cut : 2 * cut], said[2 * cut :]]
    partials = [weighing.partial(with_weights([r for r, _ in p], [w for _, w in p])) for p in parts if p]
    found = weighing.finalize(weighing.holding(weighing.merge(partials)))
    expected = plain.finalize(plain.merge([plain.partial(pa.Table.from_pylist(left, SCHEMA.arrow))]))
    assert alike(found) == alike(expected)
    assert sum(f.rows.num_rows for f in weighing.failed or ()) == sum(f.rows.num_rows for f in plain.failed or ())


def aggregates_of(query: ps.Stream) -> list[RevisedAggregate]:
    (root,) = speculate([query.operator], ps.Consistency.middle())
    return [n.operator for n in Plan.of(root) if isinstance(n.operator, RevisedAggregate)]


EVENTS = ps.stream("s", "ts int, k string, v double, kind string", time="ts").disorder(5)


@pytest.mark.parametrize(
    ("aggregate", "by_parts"),
    [("count(*)", True), ("avg(total)", True), ("max(total)", False), ("var_pop(total)", False)],
)
def test_rows_are_kept_only_where_a_part_cannot_be_taken_away(aggregate: str, by_parts: bool) -> None:
    query = EVENTS.group_by("k").agg(total="sum(v)").group_by("total").agg(n="count(*)", more=aggregate)
    _, outer = aggregates_of(query)
    assert outer.by_parts == by_parts
    assert isinstance(step_of(outer, "x").kernel, AddingKernel if by_parts else ChangingKernel)


def test_rows_that_may_be_taken_back_before_they_come_are_kept() -> None:
    """Otherwise nobody could say which one has never come."""
    changes = EVENTS.changes("kind")
    (kept,) = aggregates_of(changes.group_by("k").agg(n="count(*)"))
    assert may_owe(kept.inputs[0]) and not kept.by_parts
    first, second = aggregates_of(changes.group_by("k").agg(n="count(*)").group_by("n").agg(m="count(*)"))
    assert not first.by_parts and second.by_parts
    prices = ps.table("prices", "k string, price double", key="k").read_csv("prices.csv")
    looked_up = EVENTS.group_by("k").agg(n="count(*)").lookup(prices, on="k").group_by("price").agg(n="count(*)")
    assert [a.by_parts for a in aggregates_of(looked_up)] == [False, False]
