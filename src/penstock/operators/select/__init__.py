"""Select: keeps the events for which a predicate is true."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from penstock.operators.select.operator import Select
from penstock.operators.shared.thinning import ThinningSpec
from penstock.plan.spec import made_in

if TYPE_CHECKING:
    import random


class SelectSpec(ThinningSpec[Select]):
    operator = Select

    def looks_at(self, operator: Select) -> Collection[str]:
        return operator.predicate.columns

    def definition(self, operator: Select) -> str:
        return operator.predicate.sql

    step = made_in("step", "SelectStep")
    reference = made_in("reference", "SelectReference")

    def example(self, random: random.Random, below: Any, other: Any) -> Any:
        from pyarrow.types import is_integer

        chosen = random.choice(list(below.schema))
        predicates = [f"`{chosen.name}` is not null"]
        if is_integer(chosen.type):
            predicates += [f"`{chosen.name}` % 5 <> 1", f"`{chosen.name}` > 2"]
        return below.where(random.choice(predicates))


SPEC = SelectSpec()
