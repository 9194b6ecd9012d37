"""Select: keeps the events for which a predicate is true."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from penstock.operators.select.operator import Select
from penstock.operators.shared.thinning import ThinningSpec
from penstock.plan.spec import Surroundings

if TYPE_CHECKING:
    import random

    from penstock.reference.running import Running


class SelectSpec(ThinningSpec[Select]):
    operator = Select

    def looks_at(self, operator: Select) -> Collection[str]:
        return operator.predicate.columns

    def definition(self, operator: Select) -> str:
        return operator.predicate.sql

    def step(self, operator: Select, node_id: str) -> Any:
        from penstock.operators.select.step import step_of

        return step_of(operator, node_id)

    def reference(self, operator: Select, around: Surroundings) -> Running:
        from penstock.operators.select import reference

        return reference.Select(operator)

    def example(self, random: random.Random, below: Any, other: Any) -> Any:
        from pyarrow.types import is_integer

        chosen = random.choice(list(below.schema))
        predicates = [f"`{chosen.name}` is not null"]
        if is_integer(chosen.type):
            predicates += [f"`{chosen.name}` % 5 <> 1", f"`{chosen.name}` > 2"]
        return below.where(random.choice(predicates))


SPEC = SelectSpec()
