"""Top: the best events of each group."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.operators.top.operator import Top
from penstock.plan.spec import Fact, Lineage, Measurements, Retraction, Spec, Told, Traits, found_in, made_in, same

if TYPE_CHECKING:
    import random
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from penstock.contract.flow import Flow, Verdict
    from penstock.contract.rates import Rates
    from penstock.contract.size import Bound
    from penstock.pattern.pattern import Pattern


class TopSpec(Spec[Top]):
    """As an aggregate: it keeps the best of a group until punctuation says that the group is complete."""

    operator = Top

    # --- the plan
    def traits(self, operator: Top) -> Traits:
        return Traits(
            keeps_state=True, heeds_order=False, at_once=False, makes="one",
            exact=True, listens=True, queues=False, retracts=Retraction.REFUSES,
        )  # fmt: skip

    def lineage(self, operator: Top) -> Lineage:
        return same(operator)

    def facts(self, operator: Top) -> Mapping[str, Fact]:
        return {}

    def reads(self, operator: Top, port: int, wanted: frozenset[str]) -> Collection[str]:
        return operator.inputs[port].schema.names

    def computed(self, operator: Top, below: Sequence[frozenset[str]], wanted: frozenset[str]) -> frozenset[str]:
        return frozenset(operator.schema.names)

    def definition(self, operator: Top) -> str:
        return operator.detail

    def held(self, operator: Top) -> dict[str, Any] | None:
        from penstock.operators.top.label import window_label

        found: dict[str, Any] = {"kind": operator.kind, "keys": list(operator.per)}
        if (label := window_label(operator)) is not None:
            found |= {"label": label.name, "on": label.window.on, "size": label.window.size}
        return found

    # --- punctuation
    behaviour = made_in("punctuation", "TopBehaviour")

    # --- contracts
    def judge(self, operator: Top, below: Sequence[Flow]) -> Verdict:
        from penstock.operators.top.contract import judge_top

        return judge_top(operator, below[0])

    def bound(self, operator: Top, below: Sequence[Rates], measured: Measurements) -> tuple[Bound, Rates]:
        from penstock.operators.top.contract import bound_top

        return bound_top(operator, below[0], measured.epoch)

    def total(self, operator: Top, below: Sequence[int | None]) -> int | None:
        return below[0]

    # --- feedback
    respond = found_in("feedback", "respond_top")

    def passes_all(self, operator: Top, pattern: Pattern) -> bool:
        return False

    def issues(self, operator: Top, below: Sequence[Flow]) -> Iterable[Told]:
        from penstock.operators.top.feedback import issues_of

        return issues_of(operator)

    # --- running it
    step = found_in("step", "step_of")
    reference = made_in("reference", "TopReference")

    # --- tests
    def example(self, random: random.Random, below: Any, other: Any) -> Any:
        names = below.schema.names
        by = random.choice(names) + random.choice(("", " desc"))
        return below.top(random.randint(1, 3), by, random.sample(names, random.randint(0, min(2, len(names)))))


SPEC = TopSpec()
