"""Lookup: each event with the rows of a table that have its key."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.operators.lookup.operator import TableJoin
from penstock.operators.shared.answers import passing_carried
from penstock.operators.shared.families import AtOnceSpec
from penstock.plan.spec import Carried, Lineage, Retraction, Surroundings, Traits, found_in, given, made_in, of_one

if TYPE_CHECKING:
    import random
    from collections.abc import Collection, Sequence

    from penstock.plan.consistency import Consistency
    from penstock.plan.operator import Operator
    from penstock.reference.running import Running


class LookupSpec(AtOnceSpec[TableJoin]):
    """What is promised of events holds of results; of the table nothing is ever promised, since it may change."""

    operator = TableJoin

    # --- the plan
    def traits(self, operator: TableJoin) -> Traits:
        return Traits(
            keeps_state=False, heeds_order=False, at_once=True, makes="several" if operator.as_of is None else "one",
            exact=True, listens=False, queues=False, retracts=Retraction.PASSES,
        )  # fmt: skip

    heeds_lifetimes = given(True)

    def lineage(self, operator: TableJoin) -> Lineage:
        of_stream = ((c.name, c.origins) for c in operator.columns if all(side == 0 for side, _ in c.origins))
        return {name: Carried(origins) for name, origins in of_stream}

    def reads(self, operator: TableJoin, port: int, wanted: frozenset[str]) -> Collection[str]:
        return operator.reads

    # --- speculation
    def revised(self, operator: TableJoin, inputs: Sequence[Operator], consistency: Consistency) -> Operator:
        """The weight of an event is that of each row it becomes."""
        from dataclasses import replace

        from penstock.operators.join.operator import Taken
        from penstock.plan.weight import WEIGHT, passing_weights

        made = passing_weights(operator, inputs)
        if made.schema == operator.schema:
            return made
        return replace(made, columns=(*operator.columns, Taken(WEIGHT, ((0, WEIGHT),))))

    # --- punctuation
    behaviour = passing_carried

    # --- contracts
    judge = of_one("penstock.contract.verdicts", "passing")
    rates = of_one("penstock.contract.bounding", "passing_rates")

    # --- feedback
    respond = found_in("feedback", "respond_lookup")

    # --- running it
    step = made_in("step", "LookupStep")

    def reference(self, operator: TableJoin, around: Surroundings) -> Running:
        from penstock.operators.lookup import reference

        return reference.TableJoinReference(operator, around.tables.get(operator.table.name, ()))

    # --- tests
    def example(self, random: random.Random, below: Any, other: Any) -> Any:
        from penstock.operators.lookup.example import example_of

        return example_of(random, below)


SPEC = LookupSpec()
