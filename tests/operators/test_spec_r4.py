"""What the rooms of joins say of their operators is what was known of them elsewhere."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from itertools import combinations, product
from typing import Any

import pytest

import penstock as ps
from penstock.analysis.bounds import bounds
from penstock.analysis.cascade import is_exact
from penstock.analysis.judge import _judge, weigh
from penstock.analysis.probe import Issue, issues
from penstock.analysis.propagate import behaviour_of, hears
from penstock.analysis.respond import _respond
from penstock.analysis.total import total_behind
from penstock.builder.multiway import join
from penstock.contract.flow import Flow
from penstock.operators.join import SPEC as JOIN
from penstock.operators.join.operator import KINDS
from penstock.operators.multijoin import SPEC as MULTIJOIN
from penstock.operators.rows_join import SPEC as ROWS_JOIN
from penstock.operators.source.operator import Source
from penstock.operators.source.rates import pace_of
from penstock.pattern.pattern import Pattern
from penstock.pattern.restriction import one_of, values_of
from penstock.plan.arrival import heeds_order
from penstock.plan.at_once import passes_at_once
from penstock.plan.domain import domains
from penstock.plan.grid import grids
from penstock.plan.held import held_for
from penstock.plan.looked_at import _reads, computed, looked_at
from penstock.plan.monotone import is_never_negative
from penstock.plan.operator import Operator
from penstock.plan.plan import Plan, definition
from penstock.plan.spec import Carried, Measured, Spec, Surroundings, register, spec_of
from penstock.reference.interpret import Run

for known in (JOIN, ROWS_JOIN, MULTIJOIN):
    register(known)

LISTED = ps.Punctuate.values("k", [3, 1])


def source(name: str, kind: int) -> ps.Stream:
    plain = ps.stream(name, "ts int, k int, v int", time="ts")
    if kind == 0:
        return plain.bounds("v", 0, 9)
    if kind == 1:
        return plain.disorder(5).expect(rate=3, keys={"k": 4}).ends()
    if kind == 2:
        return plain.disorder(3).punctuate(LISTED).expect(rate=2)
    return plain.punctuated().scheme(k="value")


def streams() -> Iterator[ps.Stream]:
    for kinds in ((0, 0), (1, 1), (2, 2), (3, 3), (1, 3), (0, 2)):
        a, b, c = (source(n, k) for n, k in zip("abc", (*kinds, kinds[0])))
        limits: list[dict[str, Any]] = [{}, {"within": 5}, {"between": (0, None)}, {"rows": 2}, {"rows": (1, None)}]
        for how, limit in product(KINDS, limits):
            yield a.join(b, "k", how, **limit)
            yield a.join(b, {"k": "v"}, how, where="ts <= ts_right + 5", impatient=True, **limit)
            if "rows" not in limit:
                yield a.join(b, "k", how, thrifty=True, impatient=True, **limit)
        yield a.join(b, ["k", "v"], within=(3, 7), where="ts > 4")
        yield a.window(10).join(b.window(10), ["window_start", "k"], "full")
        yield join(a, b, c, on="k", within=5)
        yield join(a, b, c, on=["k", "v"], windows=[5, 15, None])
        yield join(a, b, on="k", strategy="mjoin")


OPERATORS = [s.operator for s in streams()]
OPERATORS += [source("a", 1).intersect(source("b", 2)).operator.inputs[0]]


def patterns(operator: Operator) -> list[Pattern]:
    count, found = len(operator.schema), []
    for k, restriction in product(range(count), ("< 3", "{1, 2}", ">= 1")):
        parts = ["*"] * count
        parts[k] = restriction
        found.append(Pattern.parse(f"[{', '.join(parts)}]", operator.schema))
    both = (p.intersect(q) for p, q in combinations(found[::3], 2))
    return [Pattern.all(operator.schema), *found, *(p for p in both if not p.is_empty)]


def flows(operator: Operator) -> list[Flow]:
    return [weigh(Plan.of(i))[Plan.of(i).nodes[-1].id].behind for i in operator.inputs]


def test_each_answers_for_its_own() -> None:
    assert Counter(type(spec_of(o)) for o in OPERATORS).keys() == {type(s) for s in (JOIN, ROWS_JOIN, MULTIJOIN)}


@pytest.mark.parametrize("operator", OPERATORS)
def test_of_the_plan(operator: Operator) -> None:
    spec, plan = spec_of(operator), Plan.of(operator)
    traits = spec.traits(operator)
    assert traits.at_once == passes_at_once(operator)
    assert traits.heeds_order == heeds_order(operator)
    assert traits.listens == hears(operator)
    assert traits.keeps_state == (held_for(operator) is not None)
    assert (traits.makes, traits.exact, traits.queues, traits.retracts.value) == ("any", True, False, "refuses")
    assert spec.definition(operator) == definition(operator)
    assert spec.held(operator) == held_for(operator)
    assert not spec.facts(operator)
    wanted = looked_at(plan)
    for names in (wanted[plan.nodes[-1].id], frozenset(operator.schema.names[:1]), frozenset[str]()):
        for port in range(len(operator.inputs)):
            assert set(spec.reads(operator, port, names)) == _reads(operator, port, names)
    found = computed(plan)
    below = [frozenset(found[i]) for i in plan.nodes[-1].inputs]
    assert spec.computed(operator, below, wanted[plan.nodes[-1].id]) == set(found[plan.nodes[-1].id])


@pytest.mark.parametrize("operator", OPERATORS)
def test_what_is_carried(operator: Operator) -> None:
    lineage = spec_of(operator).lineage(operator)
    assert list(lineage) == list(operator.schema.names)
    below, over = [domains(i) for i in operator.inputs], [grids(i) for i in operator.inputs]
    listed = {n: v for n, c in lineage.items() if (v := _values(c, below)) is not None}
    assert listed == domains(operator)
    on_grid = {n for n, c in lineage.items() if all(name in over[k] for k, name in c.origins)}
    assert on_grid == grids(operator).keys()
    for name, carried in lineage.items():
        signs = [is_never_negative(operator.inputs[k], n) for k, n in carried.origins]
        assert all(signs) == is_never_negative(operator, name)


def _values(carried: Carried, below: list[Any]) -> Any:
    """As whoever follows values would: the first that is not null counts, and of all inputs one is there."""
    parts: list[Any] = []
    missing = set(range(len(below)))
    for side, name in carried.origins:
        if name not in below[side]:
            return None
        parts += values_of(below[side][name])
        missing.discard(side)
        if side not in carried.padded or not missing:
            return one_of(parts)
    return None


@pytest.mark.parametrize("operator", OPERATORS)
def test_contracts(operator: Operator) -> None:
    spec, below = spec_of(operator), flows(operator)
    assert spec.judge(operator, below) == _judge(operator, below)
    for totals in ([3] * len(below), [None] * len(below)):
        assert spec.total(operator, totals) is total_behind(operator, totals) is None


@pytest.mark.parametrize("epoch", [None, 100])
@pytest.mark.parametrize("operator", [o for o in OPERATORS if all(isinstance(i, Source) for i in o.inputs)])
def test_how_much(operator: Operator, epoch: int | None) -> None:
    spec, below = spec_of(operator), [pace_of(i, False) for i in operator.inputs if isinstance(i, Source)]
    plan = Plan.of(operator)
    said, shown = spec.bound(operator, below, Measured(epoch=epoch, alone=False))[0], bounds(plan, epoch=epoch)
    last = plan.nodes[-1].id
    if weigh(plan)[last].state != "unbounded":
        assert (said.rows, said.bytes, said.delay) == (shown[last].rows, shown[last].bytes, shown[last].delay)
        assert (said.lacks, said.why) == (shown[last].lacks, shown[last].why)


@pytest.mark.parametrize("operator", OPERATORS)
def test_feedback(operator: Operator) -> None:
    spec, plan = spec_of(operator), Plan.of(operator)
    for pattern in patterns(operator):
        assert spec.respond(operator, pattern) == _respond(operator, pattern)
        assert spec.passes_all(operator, pattern) == is_exact(operator, pattern)
    last = plan.nodes[-1].id
    told = [Issue(last, t.port, t.feedback, t.widening) for t in spec.issues(operator, flows(operator))]
    assert told == list(issues(plan, weigh(plan)))


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("heard", [True, False])
def test_punctuation(operator: Operator, heard: bool) -> None:
    mine, known = spec_of(operator).behaviour(operator, heard), behaviour_of(operator, heard)
    assert type(mine) is type(known) and getattr(mine, "asks", None) == getattr(known, "asks", None)


@pytest.mark.parametrize("operator", OPERATORS)
def test_the_oracle(operator: Operator) -> None:
    plan = Plan.of(operator)
    running = spec_of(operator).reference(operator, Surroundings(plan.nodes[-1].id))
    assert type(running) is type(Run(plan, {}).running[plan.nodes[-1].id])


@pytest.mark.parametrize("spec", [JOIN, ROWS_JOIN, MULTIJOIN])
def test_examples(spec: Spec[Any]) -> None:
    """They can be planned and judged, differ, and there are none where nothing is in common."""
    a, b = source("a", 1), source("b", 2)
    moments = [ps.stream(n, "at timestamp, k int, who string", time="at").disorder("5 s") for n in ("x", "y")]
    other = ps.stream("z", "far double")
    chance = random.Random(1)
    seen = set()
    for _ in range(40):
        for below, beside in ((a, b), (a.window(10), b), (a.group_by("k").agg(n="count(*)"), a), moments):
            made = spec.example(chance, below, beside)
            if made is not None:
                assert type(made.operator) is spec.operator
                weigh(made.plan)
                seen.add(made.operator.detail)
        assert spec.example(chance, a, other) is None
        assert spec.example(chance, a, None) is None
        assert spec.example(chance, a.window(rows=3), b) is None
    assert len(seen) > 10


def test_a_rows_join_wants_times() -> None:
    assert ROWS_JOIN.example(random.Random(1), ps.stream("a", "k int"), ps.stream("b", "k int")) is None
