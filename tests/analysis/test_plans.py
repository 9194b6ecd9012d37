"""The random plans of these tests are of all operators, or they would say nothing of some."""

from __future__ import annotations

from hypothesis import HealthCheck, Phase, given, seed, settings
from plans import Query, queries

from penstock.operators.align.operator import Align
from penstock.operators.fold.operator import Fold
from penstock.operators.join.operator import Joined
from penstock.operators.revised_aggregate.operator import RevisedAggregate
from penstock.operators.revised_join.operator import RevisedJoin
from penstock.operators.settle.operator import Settle
from penstock.operators.sink.operator import Sink
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
    assert seen == kinds() - {Sink, Align, Fold, RevisedAggregate, RevisedJoin, Settle}
