"""Map: a user's function on Arrow tables."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from penstock.operators.map.operator import Map
from penstock.plan.spec import Fact, Lineage, Measurements, Retraction, Spec, Told, Traits, found_in, made_in, same

if TYPE_CHECKING:
    import random

    import pyarrow as pa

    from penstock.contract.flow import Flow, Verdict
    from penstock.contract.rates import Rates
    from penstock.contract.size import Bound
    from penstock.pattern.pattern import Pattern
    from penstock.plan.behaviour import Behaviour


def unchanged(rows: pa.Table) -> pa.Table:
    """For examples: what a function does is its own affair, what it keeps is declared."""
    return rows


class MapSpec(Spec[Map]):
    operator = Map

    def traits(self, operator: Map) -> Traits:
        return Traits(
            keeps_state=False, heeds_order=False, at_once=True, makes="any",
            exact=True, listens=False, queues=False, retracts=Retraction.PASSES,
        )  # fmt: skip

    def lineage(self, operator: Map) -> Lineage:
        return same(operator, operator.keeps)

    def facts(self, operator: Map) -> Mapping[str, Fact]:
        return {}

    def reads(self, operator: Map, port: int, wanted: frozenset[str]) -> Collection[str]:
        return operator.inputs[port].schema.names

    def computed(self, operator: Map, below: Sequence[frozenset[str]], wanted: frozenset[str]) -> frozenset[str]:
        return frozenset(operator.schema.names)

    def definition(self, operator: Map) -> str:
        return operator.meaning

    def held(self, operator: Map) -> dict[str, Any] | None:
        return None

    def behaviour(self, operator: Map, heard: bool) -> Behaviour:
        from functools import partial

        from penstock.operators.map.punctuation import through_map
        from penstock.plan.behaviour import ThroughBehaviour

        return ThroughBehaviour(partial(through_map, operator))

    def judge(self, operator: Map, below: Sequence[Flow]) -> Verdict:
        from penstock.operators.map.contract import judge_map

        return judge_map(operator, below[0])

    def bound(self, operator: Map, below: Sequence[Rates], measured: Measurements) -> tuple[Bound, Rates]:
        from penstock.contract.size import Bound
        from penstock.operators.map.contract import mapped_rates

        return Bound(), mapped_rates(operator, below[0])

    def total(self, operator: Map, below: Sequence[int | None]) -> int | None:
        return None  # A function may make any number of events of one.

    respond = found_in("feedback", "respond_map")

    def passes_all(self, operator: Map, pattern: Pattern) -> bool:
        return True

    def issues(self, operator: Map, below: Sequence[Flow]) -> Iterable[Told]:
        return ()

    step = found_in("step", "step_of")
    reference = made_in("reference", "MapReference")

    def example(self, random: random.Random, below: Any, other: Any) -> Any:
        names = below.schema.names
        return below.map(unchanged, keeps=random.sample(names, random.randint(0, len(names))))


SPEC = MapSpec()
