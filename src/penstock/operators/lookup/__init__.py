"""Lookup: each event with the rows of a table that have its key."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from penstock.operators.lookup.operator import TableJoin
from penstock.plan.spec import (
    Carried,
    Fact,
    Lineage,
    Measurements,
    Retraction,
    Spec,
    Surroundings,
    Told,
    Traits,
    found_in,
)

if TYPE_CHECKING:
    import random
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from penstock.contract.flow import Flow, Verdict
    from penstock.contract.rates import Rates
    from penstock.contract.size import Bound
    from penstock.pattern.pattern import Pattern
    from penstock.plan.behaviour import Behaviour
    from penstock.reference.running import Running


class LookupSpec(Spec[TableJoin]):
    """What is promised of events holds of results; of the table nothing is ever promised, since it may change."""

    operator = TableJoin

    # --- the plan
    def traits(self, operator: TableJoin) -> Traits:
        return Traits(
            keeps_state=False, heeds_order=False, at_once=True, makes="several" if operator.as_of is None else "one",
            exact=True, listens=False, queues=False, retracts=Retraction.PASSES,
        )  # fmt: skip

    def lineage(self, operator: TableJoin) -> Lineage:
        of_stream = ((c.name, c.origins) for c in operator.columns if all(side == 0 for side, _ in c.origins))
        return {name: Carried(origins) for name, origins in of_stream}

    def facts(self, operator: TableJoin) -> Mapping[str, Fact]:
        return {}

    def reads(self, operator: TableJoin, port: int, wanted: frozenset[str]) -> Collection[str]:
        return operator.reads

    def computed(self, operator: TableJoin, below: Sequence[frozenset[str]], wanted: frozenset[str]) -> frozenset[str]:
        return frozenset(operator.schema.names)

    def definition(self, operator: TableJoin) -> str:
        return operator.detail

    def held(self, operator: TableJoin) -> dict[str, Any] | None:
        return None

    # --- punctuation
    def behaviour(self, operator: TableJoin, heard: bool) -> Behaviour:
        from penstock.operators.lookup.punctuation import through_table
        from penstock.plan.behaviour import ThroughBehaviour

        return ThroughBehaviour(partial(through_table, operator))

    # --- contracts
    def judge(self, operator: TableJoin, below: Sequence[Flow]) -> Verdict:
        from penstock.contract.passing import passing

        return passing(operator, below[0])

    def bound(self, operator: TableJoin, below: Sequence[Rates], measured: Measurements) -> tuple[Bound, Rates]:
        from penstock.contract.bounding import passing_rates
        from penstock.contract.size import Bound

        return Bound(), passing_rates(operator, below[0])

    def total(self, operator: TableJoin, below: Sequence[int | None]) -> int | None:
        return None if operator.as_of is None else below[0]  # Without versions, an event finds all rows with its key.

    # --- feedback
    respond = found_in("feedback", "respond_lookup")

    def passes_all(self, operator: TableJoin, pattern: Pattern) -> bool:
        return True

    def issues(self, operator: TableJoin, below: Sequence[Flow]) -> Iterable[Told]:
        return ()

    # --- running it
    step = found_in("step", "step_of")

    def reference(self, operator: TableJoin, around: Surroundings) -> Running:
        from penstock.operators.lookup import reference

        return reference.TableJoinReference(operator, around.tables.get(operator.table.name, ()))

    # --- tests
    def example(self, random: random.Random, below: Any, other: Any) -> Any:
        from penstock.operators.lookup.example import example_of

        return example_of(random, below)


SPEC = LookupSpec()
