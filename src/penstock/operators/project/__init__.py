"""Project: renames, drops and computes attributes."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from penstock.operators.project.operator import Project
from penstock.operators.shared.answers import as_carried, onto_carried
from penstock.operators.shared.families import AtOnceSpec
from penstock.plan.spec import Carried, Lineage, Retraction, Surroundings, Traits, given, made_in, of_one

if TYPE_CHECKING:
    import random

    from penstock.contract.rates import Rates
    from penstock.plan.behaviour import Behaviour
    from penstock.plan.consistency import Consistency
    from penstock.plan.operator import Operator
    from penstock.reference.running import Running


class ProjectSpec(AtOnceSpec[Project]):
    operator = Project

    traits = given(Traits(
        keeps_state=False, heeds_order=False, at_once=True, makes="one",
        exact=True, listens=False, queues=False, retracts=Retraction.PASSES,
    ))  # fmt: skip

    heeds_lifetimes = given(True)

    def lineage(self, operator: Project) -> Lineage:
        return {new: Carried(((0, old),)) for old, names in operator.renames.items() for new in names}

    def reads(self, operator: Project, port: int, wanted: frozenset[str]) -> Collection[str]:
        return {c for name, e in operator.columns if name in wanted for c in e.columns}

    def computed(self, operator: Project, below: Sequence[frozenset[str]], wanted: frozenset[str]) -> frozenset[str]:
        from penstock.sql.carried import carried

        return frozenset(name for name, e in operator.columns if name in wanted or carried(e) in below[0])

    def revised(self, operator: Project, inputs: Sequence[Operator], consistency: Consistency) -> Operator:
        """The weight goes through, whatever else is computed."""
        from dataclasses import replace

        from penstock.plan.weight import WEIGHT, passing_weights
        from penstock.sql.expression import Expression

        made = passing_weights(operator, inputs)
        if made.schema == operator.schema:
            return made
        weight = (WEIGHT, Expression.parse(WEIGHT, inputs[0].schema))
        return replace(made, columns=(*operator.columns, weight))

    def behaviour(self, operator: Project, heard: bool) -> Behaviour:
        from functools import partial

        from penstock.operators.shared.describing import DescribingBehaviour

        return DescribingBehaviour(
            operator, tuple(operator.renames), partial(onto_carried, operator, self.lineage(operator))
        )

    judge = of_one("contract", "judge_project")

    def rates(self, operator: Project, below: Sequence[Rates]) -> Rates:
        from penstock.contract.bounding import renamed

        return renamed(below[0], operator, operator.renames)

    respond = as_carried("computed here")
    step = made_in("step", "ProjectStep")

    def reference(self, operator: Project, around: Surroundings) -> Running:
        from penstock.operators.project import reference

        return reference.ProjectReference(operator, around.looked_at)

    def example(self, random: random.Random, below: Any, other: Any) -> Any:
        from pyarrow.types import is_integer

        chosen = random.choice(list(below.schema))
        again = f"r_{chosen.name}"
        if again in below.schema:
            return None
        made = [below.rename({chosen.name: again}), below.with_columns(**{again: f"`{chosen.name}`"})]
        if len(below.schema) > 1:
            made.append(below.drop(chosen.name))
        if is_integer(chosen.type):
            made.append(below.with_columns(**{chosen.name: f"`{chosen.name}` + 10"}))
        return random.choice(made)


SPEC = ProjectSpec()
