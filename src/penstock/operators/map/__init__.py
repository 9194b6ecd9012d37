"""Map: a user's function on Arrow tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.operators.map.operator import Map
from penstock.operators.shared.answers import as_carried, passing_carried
from penstock.operators.shared.families import AtOnceSpec
from penstock.plan.spec import Lineage, Retraction, Traits, found_in, given, made_in, of_one, same

if TYPE_CHECKING:
    import random

    import pyarrow as pa


def unchanged(rows: pa.Table) -> pa.Table:
    """For examples: what a function does is its own affair, what it keeps is declared."""
    return rows


class MapSpec(AtOnceSpec[Map]):
    operator = Map

    traits = given(Traits(
        keeps_state=False, heeds_order=False, at_once=True, makes="any",
        exact=True, listens=False, queues=False, retracts=Retraction.PASSES,
    ))  # fmt: skip

    def lineage(self, operator: Map) -> Lineage:
        return same(operator, operator.keeps)

    behaviour = passing_carried

    judge = of_one("contract", "judge_map")
    rates = of_one("contract", "mapped_rates")
    respond = as_carried("not among those that the function keeps")
    step = found_in("step", "MapStep")
    reference = made_in("reference", "MapReference")

    def example(self, random: random.Random, below: Any, other: Any) -> Any:
        names = below.schema.names
        return below.map(unchanged, keeps=random.sample(names, random.randint(0, len(names))))


SPEC = MapSpec()
