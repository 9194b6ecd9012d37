"""Random plans from the examples that specs give: every walker has an answer for all of them, and they run."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

import penstock as ps
from penstock.analysis.bounds import bounds
from penstock.analysis.cascade import respond
from penstock.analysis.check import check
from penstock.analysis.judge import weigh
from penstock.analysis.probe import issues, probes
from penstock.analysis.propagate import Propagation
from penstock.analysis.speculate import speculate, told_apart_by
from penstock.builder.held import settled
from penstock.errors import UserError
from penstock.kernels.weights import net, spelled_out
from penstock.pattern.pattern import Pattern
from penstock.plan.looked_at import computed, looked_at
from penstock.plan.plan import Plan
from penstock.plan.spec import registered
from penstock.plan.weight import WEIGHT
from penstock.portal.testing import local_session


def source(name: str) -> ps.Stream:
    made = ps.generate(name, rate=10, rows=40, columns={"k": ("key", 4), "g": ("key", 3)}, seed=7)
    return made.ends()


def grown(random: Random) -> ps.Stream:
    """A stream with some operators on it; those that cannot stand where they are put are left out."""
    specs = [s for s in registered() if s.operator.__module__.startswith("penstock.")]
    stream, other = source("a"), source("b")
    for _ in range(random.randint(2, 5)):
        try:
            made = random.choice(specs).example(random, stream, other)
            # What cannot be followed by anything is found out by trying.
            stream = stream if made is None or not made.where("true") else made
        except UserError:
            continue
    return stream


@pytest.mark.parametrize("seed", range(40))
def test_every_walker_has_an_answer(seed: int) -> None:
    stream = grown(Random(seed))
    plan = stream.plan
    verdicts = weigh(plan)
    assert set(verdicts) == {n.id for n in plan} == set(bounds(plan, epoch=10))
    assert len(check(plan).findings) <= len(plan.nodes)
    assert set(looked_at(plan)) == set(computed(plan)) == set(verdicts)
    assert list(issues(plan, verdicts)) is not None and list(probes(plan, plan.nodes[-1].id)) is not None
    ended = Propagation(plan).run({n.id: [Pattern.all(n.operator.schema)] for n in plan.sources})
    assert set(ended) == set(verdicts)
    for node in plan:
        assert respond(node.operator, Pattern.all(node.operator.schema)).output is not None
    assert all(n.id in stream.explain(punctuation=True) for n in plan)
    assert Plan.of(stream.operator).fingerprint == plan.fingerprint


@pytest.mark.parametrize("seed", range(40, 52))
def test_they_run(seed: int) -> None:
    """Everything ends, so nothing stays behind."""
    stream = grown(Random(seed))
    rows = stream.collect(spark=local_session())
    assert rows.schema.names == list(stream.schema.names)


def test_every_kind_has_an_example_somewhere() -> None:
    random, seen = Random(1), set()
    a, b = source("a"), source("b")
    for spec in registered():
        for below in (a, a.window("10 s"), a.group_by("k").agg(n="count(*)")):
            for _ in range(20):
                try:
                    made = spec.example(random, below, b)
                except UserError:
                    continue
                if made is not None:
                    seen.add(type(made.operator))
    kinds = {s.operator for s in registered() if s.operator.__module__.startswith("penstock.")}
    # What turning the dial makes of others nobody writes: `test_the_dial_changes_no_answer` draws it from theirs.
    turned = {"Align", "RevisedAggregate", "RevisedJoin", "RevisedTop", "Settle", "Fold"}
    # These stand on streams of changes, or with lifetimes, only; they have properties of their own.
    turned |= {"Latest", "Changes", "SnapshotAggregate", "AlterLifetime", "LifetimeJoin"}
    assert {k.__name__ for k in kinds - seen} <= {"Source", "Sink", *turned}


@pytest.mark.parametrize("seed", range(60, 72))
def test_the_dial_changes_no_answer(seed: int) -> None:
    """What holds at last is what waiting would have given, of every plan that can be corrected at all."""
    stream = grown(Random(seed))
    try:
        (operator,) = speculate([stream.operator], ps.Consistency.middle())
    except UserError:  # Somewhere behind an aggregate is what cannot take back anything.
        return
    strong, told = (s.collect(spark=local_session()) for s in (stream, replace(stream, operator=operator)))
    order = [(n, "ascending") for n in strong.column_names]
    if WEIGHT in told.column_names:
        told = spelled_out(net([told]))
        held = replace(stream, operator=settled(operator, told_apart_by(operator)))
        assert held.collect(spark=local_session()).sort_by(order).equals(strong.sort_by(order))
    assert told.sort_by(order).equals(strong.sort_by(order))
