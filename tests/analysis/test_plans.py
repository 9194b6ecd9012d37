"""The random plans of these tests are of all operators, or they would say nothing of some."""

from __future__ import annotations

from hypothesis import HealthCheck, Phase, given, seed, settings
from plans import Query, queries

from penstock.operators.align.operator import Align
from penstock.operators.alter_lifetime.operator import AlterLifetime
from penstock.operators.changes.operator import Changes
from penstock.operators.fold.operator import Fold
from penstock.operators.join.operator import Joined
from penstock.operators.latest.operator import Latest
from penstock.operators.lifetime_join.operator import LifetimeJoin
from penstock.operators.revised_aggregate.operator import RevisedAggregate
from penstock.operators.revised_join.operator import RevisedJoin
from penstock.operators.revised_top.operator import RevisedTop
from penstock.operators.settle.operator import Settle
from penstock.operators.sink.operator import Sink
from penstock.operators.snapshot.operator import SnapshotAggregate
from penstock.plan.operator import Operator


def kinds(of: type[Operator] = Operator) -> set[type[Operator]]:
    found = {k for k in of.__subclasses__() if k.__module__.startswith("penstock.operators.")}
    # Joined is what two joins have in common, and nothing by itself.
    return found.union(*(kinds(k) for k in found)) - {Joined}


def test_every_operator_is_in_some_plan() -> None:
    seen: set[type[Operator]] = set()

    @seed(1)
    @settings(
        max_examples=400,
        database=None,
        deadline=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    @given(queries())
    def draw(query: Query) -> None:
        seen.update(type(n.operator) for n in query.plan)

    draw()
    # Where results go is up to those that run a plan; and nobody writes what a plan that speculates is made of.
    not_written = {Sink, Align, Fold, RevisedAggregate, RevisedJoin, RevisedTop, Settle}
    # Streams of changes and of lifetimes, whose plans always speculate, have random plans of their own.
    elsewhere = {Changes, Latest, AlterLifetime, LifetimeJoin, SnapshotAggregate}
    assert seen == kinds() - not_written - elsewhere
