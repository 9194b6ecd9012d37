"""What rooms say of their operators is what was known of them elsewhere: source to instrument."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest

import penstock as ps
from penstock.analysis.cascade import is_exact
from penstock.analysis.judge import judge, weigh
from penstock.analysis.probe import Issue, issues
from penstock.analysis.propagate import behaviour_of, hears
from penstock.analysis.rates_behind import pace_behind
from penstock.analysis.respond import respond
from penstock.analysis.total import total_behind
from penstock.contract.flow import Flow
from penstock.contract.rates import Pace
from penstock.contract.size import Bound
from penstock.operators.impute import SPEC as IMPUTE
from penstock.operators.impute.contract import bound_impute
from penstock.operators.impute.operator import Impute
from penstock.operators.instrument import SPEC as INSTRUMENT
from penstock.operators.map import SPEC as MAP
from penstock.operators.map.operator import Map
from penstock.operators.project import SPEC as PROJECT
from penstock.operators.select import SPEC as SELECT
from penstock.operators.sink import SPEC as SINK
from penstock.operators.sink.operator import Sink
from penstock.operators.source import SPEC as SOURCE
from penstock.operators.source.operator import Source
from penstock.operators.source.rates import pace_of
from penstock.pattern.pattern import Pattern
from penstock.plan.arrival import heeds_order
from penstock.plan.at_once import comes_as_read, finds_several, passes_at_once
from penstock.plan.domain import domains
from penstock.plan.grid import grids
from penstock.plan.held import held_for
from penstock.plan.looked_at import _reads, computed, looked_at
from penstock.plan.monotone import is_never_negative
from penstock.plan.operator import Operator
from penstock.plan.plan import Plan, definition
from penstock.plan.spec import Measured, Spec, Surroundings
from penstock.plan.through import through
from penstock.reference.interpret import Run


def same(rows: pa.Table) -> pa.Table:
    return rows


PLAIN = ps.stream("plain", "ts int, k int, v int", time="ts")
A = PLAIN.disorder(5).expect(rate=3, keys={"k": 4}, lifetime={"k": 9}).punctuate(ps.Punctuate.after("k", 7)).ends()
LISTED = ps.Punctuate.values("k", [3, 1]), ps.Punctuate.values("k", [1, 2])
B = ps.stream("b", "ts int, k int, v int", time="ts").disorder(3).punctuate(*LISTED).bounds("v", 0, 7)
C = ps.stream("c", "ts timestamp, k int, v int", time="ts").punctuated().scheme(ts="up to").bounds("k", -3)
D = ps.stream("d", "ts int, k int, v int", time="ts").punctuate(ps.Punctuate.once("k"))
WINDOWS = B.window(10)


def on(below: ps.Stream) -> dict[Spec[Any], list[Operator]]:
    """Some of each, on a stream with attributes ts, k, v."""
    made: dict[Spec[Any], list[ps.Stream]] = {
        SELECT: [below.where("k > 1"), below.where("true").where("v is not null")],
        PROJECT: [
            below.select("ts", "k", w="v + 1"),
            below.select("v", a="k", b="k"),
            below.drop("k"),
            below.rename(v="k", k="v"),
            below.with_columns(w="cast(v as string)").where("k > 1").select("k"),
        ],
        MAP: [below.map(same, keeps=["ts"]), below.map(same), below.map(same, "k int, n int", keeps=["k"])],
        IMPUTE: [below.impute(same, keeps=["k", "v"], budget=7), below.impute(same)],
        INSTRUMENT: [
            below.instrument(f"not [{', '.join(['*'] * (len(below.schema) - 1))}, 1]"),
            below.instrument(lambda n: f"not [{', '.join(['*'] * (len(below.schema) - 1))}, {n}]", every=3),
            below.with_columns(w="v + 1").instrument(f"not [{', '.join(['*'] * len(below.schema))}, 1]"),
        ],
    }
    found: dict[Spec[Any], list[Operator]] = {spec: [s.operator for s in streams] for spec, streams in made.items()}
    found[SINK] = [Sink((below.operator,), below.schema)]
    return found


CASES: list[tuple[Spec[Any], Operator]] = [(SOURCE, s.operator) for s in (PLAIN, A, B, C, D)]
CASES += [(spec, o) for below in (PLAIN, A, B, C, D, WINDOWS) for spec, made in on(below).items() for o in made]


def patterns(operator: Operator) -> list[Pattern]:
    names = operator.schema.names
    found = []
    for k, name in enumerate(names):
        if pa.types.is_integer(operator.schema.type_of(name)):
            for restriction in ("< 3", "{1, 2}", ">= 1"):
                parts = ["*"] * len(names)
                parts[k] = restriction
                found.append(Pattern.parse(f"[{', '.join(parts)}]", operator.schema))
    return [*found, *(p.intersect(found[0]) for p in found[1:])]


def flows(operator: Operator) -> list[Flow]:
    return [weigh(Plan.of(i))[Plan.of(i).nodes[-1].id].behind for i in operator.inputs]


def pace(operator: Operator) -> Pace:
    """What is known of an edge, of the few operators that are below here."""
    if isinstance(operator, Source):
        return pace_of(operator, True)
    return pace_behind(operator, [pace(i) for i in operator.inputs])


@pytest.mark.parametrize(("spec", "operator"), CASES)
def test_of_the_plan(spec: Spec[Any], operator: Operator) -> None:
    assert type(operator) is spec.operator
    traits = spec.traits(operator)
    assert traits.at_once == passes_at_once(operator)
    assert traits.heeds_order == heeds_order(operator)
    assert traits.listens == hears(operator)
    assert traits.keeps_state == (spec.held(operator) is not None)
    assert traits.queues == isinstance(operator, Source | Impute)
    assert (traits.makes != "any" and traits.at_once) == (not isinstance(operator, Map) and passes_at_once(operator))
    assert comes_as_read(operator) == (traits.makes != "any" and all(map(comes_as_read, operator.inputs)))
    assert finds_several(operator) == (traits.makes == "several") is False
    assert spec.held(operator) == held_for(operator)
    assert spec.definition(operator) == definition(operator)
    for port in range(len(operator.inputs)):
        for wanted in (frozenset(operator.schema.names), frozenset(operator.schema.names[:1]), frozenset[str]()):
            assert set(spec.reads(operator, port, wanted)) == _reads(operator, port, wanted)
    for plan in (Plan.of(operator), Plan.of(ps.Stream(operator).select(operator.schema.names[0]).operator)):
        node = next(n for n in plan.nodes if n.operator is operator)
        had = computed(plan)
        found = spec.computed(operator, [frozenset(had[i]) for i in node.inputs], looked_at(plan)[node.id])
        assert found == frozenset(had[node.id])


@pytest.mark.parametrize(("spec", "operator"), CASES)
def test_of_values(spec: Spec[Any], operator: Operator) -> None:
    facts, lineage = spec.facts(operator), spec.lineage(operator)
    listed = {n: f.values for n, f in facts.items() if f.values is not None}
    signed = {n for n, f in facts.items() if f.never_negative}
    grid = {n: f.grid for n, f in facts.items() if f.grid is not None}
    for name, carried in lineage.items():
        ((port, old),) = carried.origins
        below = operator.inputs[port]
        if old in domains(below):
            listed[name] = domains(below)[old]
        if old in grids(below):
            grid[name] = grids(below)[old]
        if is_never_negative(below, old):
            signed.add(name)
    assert listed == domains(operator)
    assert grid == grids(operator)
    assert signed == {n for n in operator.schema.names if is_never_negative(operator, n)}


@pytest.mark.parametrize(("spec", "operator"), CASES)
@pytest.mark.parametrize("heard", [True, False])
def test_of_punctuation(spec: Spec[Any], operator: Operator, heard: bool) -> None:
    mine, known = spec.behaviour(operator, heard), behaviour_of(operator, heard)
    if isinstance(operator, Source):
        return
    assert known is None or type(mine) is type(known)
    for pattern in patterns(operator.inputs[0]):
        expected = tuple(through(operator, pattern)) if known is None else known.receive([(pattern,)])
        assert mine.receive([(pattern,)]) == expected
        assert known is None or mine.orders() == known.orders()


@pytest.mark.parametrize(("spec", "operator"), CASES)
def test_of_contracts(spec: Spec[Any], operator: Operator) -> None:
    below = flows(operator)
    assert spec.judge(operator, below) == judge(operator, below)
    for total in (None, 5):
        assert spec.total(operator, [total] * len(operator.inputs)) == total_behind(operator, [total] * len(below))
    paces = [pace(i) for i in operator.inputs]
    for epoch in (None, 5, 50):
        measured = Measured(epoch, True, 2.0)
        if isinstance(operator, Source):
            assert spec.bound(operator, [], measured) == (Bound(), pace_of(operator, True, 2.0))
        elif isinstance(operator, Impute):
            assert spec.bound(operator, paces, measured) == bound_impute(operator, paces[0], epoch)
        else:
            assert spec.bound(operator, paces, measured) == (Bound(), pace_behind(operator, paces))


@pytest.mark.parametrize(("spec", "operator"), CASES)
def test_of_feedback(spec: Spec[Any], operator: Operator) -> None:
    for pattern in patterns(operator):
        if not pattern.is_empty:
            assert spec.respond(operator, pattern) == respond(operator, pattern)
            assert spec.passes_all(operator, pattern) == is_exact(operator, pattern)
    plan = Plan.of(operator)
    node = plan.nodes[-1]
    told = [Issue(node.id, t.port, t.feedback, t.widening) for t in spec.issues(operator, flows(operator))]
    assert told == [i for i in issues(plan, weigh(plan)) if i.node == node.id]


@pytest.mark.parametrize(("spec", "operator"), CASES)
def test_of_the_oracle(spec: Spec[Any], operator: Operator) -> None:
    run = Run(Plan.of(operator), {})
    node_id = run.plan.nodes[-1].id
    running = run.sources[node_id] if isinstance(operator, Source) else run.running[node_id]
    assert type(spec.reference(operator, Surroundings(node_id, run.looked_at[node_id]))) is type(running)


@pytest.mark.parametrize("spec", [SELECT, PROJECT, MAP, IMPUTE, INSTRUMENT])
@pytest.mark.parametrize("below", [PLAIN, A, B, C, D, WINDOWS])
@pytest.mark.parametrize("seed", range(10))
def test_an_example_is_one(spec: Spec[Any], below: ps.Stream, seed: int) -> None:
    made = spec.example(random.Random(seed), below, None)
    assert type(made.operator) is spec.operator
    again = spec.example(random.Random(seed + 1), made, None)
    assert again is None or isinstance(again.operator, spec.operator)
