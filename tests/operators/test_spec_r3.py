"""The rooms of union, pace, lookup, distinct, order_by, limit and top say what the places that decide by kind say."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

import penstock as ps
from penstock.analysis.bounds import bounds
from penstock.analysis.cascade import is_exact
from penstock.analysis.judge import _judge, weigh
from penstock.analysis.probe import _issues
from penstock.analysis.propagate import behaviour_of, hears
from penstock.analysis.rates_behind import pace_behind
from penstock.analysis.respond import _respond
from penstock.analysis.total import total_behind
from penstock.contract.flow import Verdict
from penstock.contract.rates import Pace
from penstock.contract.size import Bound
from penstock.operators.distinct import SPEC as DISTINCT
from penstock.operators.limit import SPEC as LIMIT
from penstock.operators.lookup import SPEC as LOOKUP
from penstock.operators.lookup.example import ROWS
from penstock.operators.order_by import SPEC as ORDER_BY
from penstock.operators.pace import SPEC as PACE
from penstock.operators.source.operator import Source
from penstock.operators.source.rates import pace_of
from penstock.operators.top import SPEC as TOP
from penstock.operators.union import SPEC as UNION
from penstock.pattern.pattern import Pattern
from penstock.pattern.restriction import Restriction, one_of, values_of
from penstock.plan.arrival import heeds_order
from penstock.plan.at_once import comes_as_read, finds_several, passes_at_once
from penstock.plan.behaviour import ThroughBehaviour
from penstock.plan.domain import Domains, domains
from penstock.plan.grid import Grid, grids
from penstock.plan.held import held_for
from penstock.plan.looked_at import _reads, computed, looked_at
from penstock.plan.monotone import is_never_negative
from penstock.plan.operator import Operator
from penstock.plan.plan import definition
from penstock.plan.spec import Lineage, Measured, Retraction, Spec, Surroundings
from penstock.plan.through import through
from penstock.reference.interpret import Run
from penstock.reference.interpret import interpret as interpreted

SPECS: dict[type[Operator], Spec] = {s.operator: s for s in (UNION, PACE, LOOKUP, DISTINCT, ORDER_BY, LIMIT, TOP)}
SCHEMA = "ts int, k int, v int"


def source(name: str, schema: str = SCHEMA) -> ps.Stream:
    return ps.stream(name, schema, time="ts").disorder(5).ends()


A, B = source("a"), source("b")
FEW = A.punctuate(ps.Punctuate.values("k", [1, 2])).bounds("v", 0)
MORE = B.punctuate(ps.Punctuate.values("k", [2, 3]), ps.Punctuate.values("v", [0, 4])).bounds("v", 0)
RATED, ALSO = A.expect(rate=4, keys={"k": 10}, lag=3), B.expect(rate=2, keys={"k": 7})
KEYED = ps.stream("c", SCHEMA, time="ts").punctuate(ps.Punctuate.once("k")).expect(rate=2, lifetime={"k": 50})
SILENT, OPEN = ps.stream("d", SCHEMA, time="ts"), ps.stream("e", SCHEMA, time="ts").punctuated()
TIMED = ps.stream("t", "ts timestamp, k int, v double", time="ts").disorder("10 s").expect(rate=9)
NAMES = ps.table("names", "k int, name string", key="k").read_csv("names.csv")
PRICES = ps.table("prices", "k int, price int, since int", key="k", version="since").read_csv("prices.csv")
LOWER, UPPER = (A.select("ts", "k", w="v + 1"), B.select("ts", "k", w="v + 2"))

MADE: dict[str, ps.Stream] = {
    "union": A.union(B),
    "union of three": RATED.union(ALSO, KEYED),
    "union of silent": A.union(SILENT, OPEN),
    "union with itself": RATED.union(RATED.where("k > 1")),
    "union in another order": A.union(B.select("v", "k", "ts")),
    "union of computed": LOWER.union(UPPER),
    "union of windows": A.window(10).union(B.window(15)),
    "union of limited": A.limit(3).union(B.limit(4)),
    "union of few": FEW.union(MORE),
    "pace of few": FEW.pace(MORE, on="ts", bound=9),
    "lookup of few": FEW.lookup(NAMES, "k"),
    "distinct few": FEW.select("k").distinct(),
    "order of few": FEW.order_by("k"),
    "order of few down": FEW.order_by("k desc"),
    "limit of few": FEW.limit(3),
    "top of few": FEW.top(3, by="v", per=["k"]),
    "pace": A.pace(B, on="ts", bound=9),
    "pace of rated": RATED.pace(ALSO, on="ts", bound=9),
    "pace by another": RATED.pace(ALSO, on="v", bound=9),
    "pace of timestamps": TIMED.pace(TIMED.where("k > 1"), bound="1 min"),
    "pace behind state": RATED.distinct().pace(ALSO, on="ts", bound=3),
    "lookup": A.lookup(NAMES, "k"),
    "lookup left": RATED.lookup(NAMES, "k", "left", columns=["k", "name"]),
    "lookup with key": RATED.lookup(NAMES, "k", columns=["k", "name"]),
    "lookup of versions": RATED.limit(9).lookup(PRICES, "k"),
    "distinct": A.distinct(),
    "distinct rated": RATED.distinct(),
    "distinct keyed": KEYED.distinct(),
    "distinct silent": SILENT.distinct(),
    "distinct open": OPEN.distinct(),
    "order": A.order_by("ts"),
    "order rated": RATED.order_by("ts", "v desc"),
    "order down": RATED.order_by("ts desc"),
    "order with slack": RATED.order_by("ts", slack=3),
    "order by key": KEYED.order_by("k"),
    "order of timestamps": TIMED.order_by("ts"),
    "limit": A.limit(3),
    "limit of limit": RATED.limit(9).limit(30),
    "top": A.top(2, by="v desc", per=["k"]),
    "top of keyed": KEYED.top(2, by="v", per=["k"]),
    "top of all": RATED.top(2, by="v"),
    "top of windows": RATED.window(60).top(2, by="v", per=["k"]),
    "top of sliding windows": TIMED.window("1 min", slide="20 s").top(1, by="v desc"),
    "top of all it has": A.select("k").top(3, by="k", per=["k"]),
    "top of limited": RATED.limit(5).window(10).top(7, by="v"),
}
PLANS = {name: stream.plan for name, stream in MADE.items()}


@pytest.fixture(params=MADE)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def operator(name: str) -> Operator:
    return MADE[name].operator


@pytest.fixture
def spec(operator: Operator) -> Spec:
    return SPECS[type(operator)]


def patterns(operator: Operator) -> list[Pattern]:
    """One attribute restricted, two, and none."""
    schema = operator.schema
    texts = {"string": "'m'", "timestamp": "'2026-01-01'"}
    found = [Pattern.all(schema)]
    for first in schema:
        value = next((v for t, v in texts.items() if str(first.type).startswith(t)), "3")
        for how in ("<", "", ">="):
            parts = [f"{how} {value}" if a is first else "*" for a in schema]
            found.append(Pattern.parse(f"[{', '.join(parts)}]", schema))
    return [*found, *(a.intersect(b) for a in found for b in found)]


# --- the plan ---------------------------------------------------------------------------------------------------------


def test_traits(operator: Operator, spec: Spec) -> None:
    traits = spec.traits(operator)
    passing = type(operator).__name__ in ("Union", "TableJoin")
    assert traits.keeps_state == (held_for(operator) is not None)
    assert traits.heeds_order == heeds_order(operator)
    assert traits.at_once == passes_at_once(operator)
    alone = replace(operator, inputs=tuple(Source((), i.schema) for i in operator.inputs))
    assert (traits.makes == "several") == finds_several(alone)
    assert comes_as_read(alone) == (traits.at_once and traits.makes in ("one", "several"))
    assert traits.exact == (type(operator).__name__ != "Pace")
    assert traits.listens == hears(operator)
    assert not traits.queues
    assert traits.retracts is (Retraction.PASSES if passing else Retraction.REFUSES)


def test_lineage(operator: Operator, spec: Spec) -> None:
    lineage = spec.lineage(operator)
    assert not spec.facts(operator)
    assert carried_domains(lineage, [domains(i) for i in operator.inputs]) == domains(operator)
    assert carried_grids(lineage, [grids(i) for i in operator.inputs]) == grids(operator)
    for n in operator.schema.names:
        carried = n in lineage and all(is_never_negative(operator.inputs[k], a) for k, a in lineage[n].origins)
        assert carried == is_never_negative(operator, n), n


def carried_domains(lineage: Lineage, below: list[dict[str, Restriction]]) -> Domains:
    found = {}
    for n, carried in lineage.items():
        assert carried.each or len(carried.origins) == 1
        if all(a in below[k] for k, a in carried.origins):
            found[n] = one_of(v for k, a in carried.origins for v in values_of(below[k][a]))
    return found


def carried_grids(lineage: Lineage, below: list[dict[str, Grid]]) -> dict[str, Grid]:
    found = {}
    for n, carried in lineage.items():
        if all(a in below[k] for k, a in carried.origins):
            first, *rest = [below[k][a] for k, a in carried.origins]
            for grid in rest:
                first |= grid
            found[n] = first
    return found


def test_what_is_read_and_computed(name: str, operator: Operator, spec: Spec) -> None:
    names = operator.schema.names
    for wanted in (frozenset(names), frozenset(names[:1]), frozenset[str]()):
        for port in range(len(operator.inputs)):
            assert set(spec.reads(operator, port, wanted)) == _reads(operator, port, wanted)
    for chosen in ([names[0]], list(names)):
        plan = MADE[name].select(*chosen).plan
        node = next(n for n in plan.nodes if n.operator is operator)
        had, wants = computed(plan), looked_at(plan)[node.id]
        assert spec.computed(operator, [frozenset(had[i]) for i in node.inputs], wants) == set(had[node.id])


def test_definition_and_what_is_held(operator: Operator, spec: Spec) -> None:
    assert spec.definition(operator) == definition(operator)
    assert spec.held(operator) == held_for(operator)


# --- punctuation ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("heard", [True, False])
def test_behaviour(operator: Operator, spec: Spec, heard: bool) -> None:
    mine, theirs = spec.behaviour(operator, heard), behaviour_of(operator, heard)
    arriving = [p for p in patterns(operator.inputs[0]) if p.restricted and not p.is_empty][:9]
    if theirs is None:
        assert isinstance(mine, ThroughBehaviour)
        for p in arriving:
            assert mine.receive([(p,)]) == tuple(through(operator, p))
        return
    assert type(mine) is type(theirs)
    for p in arriving:
        arrived = [(p.over(i.schema) if i.schema == p.schema else _over(p, i),) for i in operator.inputs]
        assert mine.receive(arrived) == theirs.receive(arrived)
        assert mine.orders() == theirs.orders()
        assert mine.to_json() == theirs.to_json()


def _over(pattern: Pattern, below: Operator) -> Pattern:
    return pattern.onto(below.schema, {n: n for n in pattern.restricted})


# --- contracts --------------------------------------------------------------------------------------------------------


def verdicts(name: str) -> tuple[list[Verdict], Verdict]:
    plan, found = PLANS[name], weigh(PLANS[name])
    return [found[i] for i in plan.nodes[-1].inputs], found[plan.nodes[-1].id]


def test_judge(name: str, operator: Operator, spec: Spec) -> None:
    below, _ = verdicts(name)
    flows = [v.behind for v in below]
    assert spec.judge(operator, flows) == _judge(operator, flows)


def paces(operator: Operator, alone: bool = False) -> Pace:
    if isinstance(operator, Source):
        return pace_of(operator, alone)
    below = [paces(i, alone) for i in operator.inputs]
    spec = SPECS.get(type(operator))
    return pace_behind(operator, below) if spec is None else spec.bound(operator, below, Measured())[1]


@pytest.mark.parametrize("epoch", [None, 100])
def test_bound(name: str, operator: Operator, spec: Spec, epoch: int | None) -> None:
    """As `bounds` has it, apart from what it does to all bounds alike."""
    alone = len(PLANS[name].sources) == 1
    below = [paces(i, alone) for i in operator.inputs]
    bound, pace = spec.bound(operator, below, Measured(epoch=epoch, alone=alone))
    if bound == Bound():
        assert pace == pace_behind(operator, below)
    if weigh(PLANS[name])[PLANS[name].nodes[-1].id].state != "unbounded" and "limited" not in name:
        timed = replace(bound, timed=pace.clock != "unit")
        assert timed == bounds(PLANS[name], epoch=epoch)[PLANS[name].nodes[-1].id]


def test_total(operator: Operator, spec: Spec) -> None:
    count = len(operator.inputs)
    for below in ([7] * count, [2] * count, [None] * count, [None, *[9] * (count - 1)]):
        assert spec.total(operator, below) == total_behind(operator, below)


# --- feedback ---------------------------------------------------------------------------------------------------------


def test_respond(operator: Operator, spec: Spec) -> None:
    for pattern in patterns(operator):
        if not pattern.is_empty:
            assert spec.respond(operator, pattern) == _respond(operator, pattern)
            assert spec.passes_all(operator, pattern) == is_exact(operator, pattern)


def test_issues(name: str, operator: Operator, spec: Spec) -> None:
    flows = [v.behind for v in verdicts(name)[0]]
    found = list(_issues(PLANS[name].nodes[-1], flows))
    told = [(t.port, t.feedback, t.widening) for t in spec.issues(operator, flows)]
    assert told == [(i.port, i.feedback, i.widening) for i in found]


# --- running it -------------------------------------------------------------------------------------------------------


def test_reference(name: str, operator: Operator, spec: Spec) -> None:
    plan = PLANS[name]
    node = plan.nodes[-1]
    run = Run(plan, {}, tables={"names": [{"k": 1, "name": "one"}]})
    theirs = run.running[node.id]
    around = Surroundings(node.id, looked_at(plan)[node.id], run.tables)
    mine = spec.reference(operator, around)
    assert type(mine) is type(theirs)
    assert {n for n, _ in _plain(mine)} == {n for n, _ in _plain(theirs)}
    assert _plain(mine) == _plain(theirs)


def _plain(running: object) -> list[tuple[str, object]]:
    return [(n, v) for n, v in vars(running).items() if isinstance(v, str | int | list | dict | None)]


# --- examples ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", SPECS.values(), ids=lambda s: s.operator.__name__)
def test_examples_are_queries_that_run(kind: Spec) -> None:
    random = Random(7)
    below, other = A.where("k > 0"), B
    rows = {s: [{"ts": t, "k": t % 4, "v": t % 3} for t in range(12)] for s in ("a", "b")}
    made = set()
    for _ in range(20):
        stream = kind.example(random, below, other)
        assert type(stream.operator) is kind.operator
        used = {n.operator.name: rows[n.operator.name] for n in stream.plan.sources if isinstance(n.operator, Source)}
        assert interpreted(stream.plan, used, tables=ROWS).streams
        stream.check()
        made.add(stream.operator.detail)
    assert made


def test_what_cannot_stand_there_is_no_example() -> None:
    words = ps.stream("w", "word string")
    for spec in (UNION, PACE):
        assert spec.example(Random(1), A, words) is None and spec.example(Random(1), A, None) is None
    assert LOOKUP.example(Random(1), words, None) is None
    assert PACE.example(Random(1), words, words.where("word <> ''")) is None


def test_top_knows_the_window_of_its_groups_also_behind_other_operators() -> None:
    direct = RATED.window(60).top(2, by="v", per=["k"])
    filtered = RATED.window(60).where("v > 1").top(2, by="v", per=["k"])
    assert TOP.held(direct.operator) == TOP.held(filtered.operator)
    assert bounds(direct.plan)["top-1"] == bounds(filtered.plan)["top-1"]
