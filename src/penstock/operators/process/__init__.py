"""Process: a user's function with a state for each key."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from penstock.operators.process.operator import Process
from penstock.plan.spec import Fact, Lineage, Measurements, Retraction, Spec, Told, Traits, found_in, made_in, same

if TYPE_CHECKING:
    import random

    from penstock.contract.flow import Flow, Verdict
    from penstock.contract.rates import Rates
    from penstock.contract.size import Bound
    from penstock.pattern.pattern import Pattern


class ProcessSpec(Spec[Process]):
    """What the function does is its own affair; that it keeps to its keys is seen to."""

    operator = Process

    # --- the plan
    def traits(self, operator: Process) -> Traits:
        return Traits(
            keeps_state=True, heeds_order=True, at_once=False, makes="any",
            exact=False, listens=True, queues=False, retracts=Retraction.REFUSES,
        )  # fmt: skip

    def lineage(self, operator: Process) -> Lineage:
        return same(operator, operator.kept)

    def facts(self, operator: Process) -> Mapping[str, Fact]:
        return {}

    def reads(self, operator: Process, port: int, wanted: frozenset[str]) -> Collection[str]:
        return operator.inputs[port].schema.names

    def computed(self, operator: Process, below: Sequence[frozenset[str]], wanted: frozenset[str]) -> frozenset[str]:
        return frozenset(operator.schema.names)

    def definition(self, operator: Process) -> str:
        return operator.meaning

    def held(self, operator: Process) -> dict[str, Any] | None:
        return {"kind": operator.kind, "keys": list(operator.by)}

    # --- punctuation
    behaviour = made_in("punctuation", "ProcessBehaviour")

    # --- contracts
    def judge(self, operator: Process, below: Sequence[Flow]) -> Verdict:
        from penstock.operators.process.contract import judge_process

        return judge_process(operator, below[0])

    def bound(self, operator: Process, below: Sequence[Rates], measured: Measurements) -> tuple[Bound, Rates]:
        from penstock.operators.process.contract import bound_process

        return bound_process(operator, below[0], measured.epoch)

    def total(self, operator: Process, below: Sequence[int | None]) -> int | None:
        return None  # A function may make any number of events of one.

    # --- feedback
    respond = found_in("feedback", "respond_process")

    def passes_all(self, operator: Process, pattern: Pattern) -> bool:
        return False

    def issues(self, operator: Process, below: Sequence[Flow]) -> Iterable[Told]:
        return ()

    # --- running it
    step = found_in("step", "step_of")
    reference = made_in("reference", "ProcessReference")

    # --- tests
    def example(self, random: random.Random, below: Any, other: Any) -> Any:
        from penstock.operators.process.example import some_process

        return some_process(random, below)


SPEC = ProcessSpec()
