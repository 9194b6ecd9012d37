"""Window: labels each event with the windows it belongs to.

What becomes of punctuation is in `punctuation`, what a window offers and how fast it goes in `contract`, what it does
about feedback in `feedback`, the SQL of the labels in `kernel`, and all of it one event at a time in `reference`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from penstock.operators.window.operator import Bucket
from penstock.plan.spec import Fact, Lineage, Measurements, Retraction, Spec, Told, Traits, found_in, made_in, same

if TYPE_CHECKING:
    import random

    from penstock.contract.flow import Flow, Verdict
    from penstock.contract.rates import Rates
    from penstock.contract.size import Bound
    from penstock.pattern.pattern import Pattern


class WindowSpec(Spec[Bucket]):
    """All that is known of windows."""

    operator = Bucket

    def traits(self, operator: Bucket) -> Traits:
        from penstock.plan.window import CountWindow

        return Traits(
            keeps_state=False, heeds_order=isinstance(operator.window, CountWindow), at_once=True, makes="windows",
            exact=True, listens=False, queues=False, retracts=Retraction.PASSES,
        )  # fmt: skip

    def lineage(self, operator: Bucket) -> Lineage:
        return same(operator)

    def facts(self, operator: Bucket) -> Mapping[str, Fact]:
        """Labels are a slide, or a period, apart; of windows by count they are positions, which may be any."""
        from penstock.plan.grid import Grid
        from penstock.plan.window import LandmarkWindow, TimeWindow

        window = operator.window
        if isinstance(window, TimeWindow):
            return {window.label: Fact(grid=Grid(window.slide, window.origin % window.slide), label_of=window)}
        if isinstance(window, LandmarkWindow):
            return {window.label: Fact(grid=Grid(window.every, window.origin % window.every))}
        return {}

    def reads(self, operator: Bucket, port: int, wanted: frozenset[str]) -> Collection[str]:
        return wanted if operator.window.on is None else {*wanted, operator.window.on}

    def computed(self, operator: Bucket, below: Sequence[frozenset[str]], wanted: frozenset[str]) -> frozenset[str]:
        lost = frozenset(operator.inputs[0].schema.names) - below[0]
        return frozenset(operator.schema.names) - lost

    def definition(self, operator: Bucket) -> str:
        return repr(operator.window)

    def held(self, operator: Bucket) -> dict[str, Any] | None:
        return None

    behaviour = made_in("punctuation", "BucketBehaviour")

    def judge(self, operator: Bucket, below: Sequence[Flow]) -> Verdict:
        from penstock.operators.window.contract import judge_window

        return judge_window(operator, below[0])

    def bound(self, operator: Bucket, below: Sequence[Rates], measured: Measurements) -> tuple[Bound, Rates]:
        from penstock.contract.size import Bound
        from penstock.operators.window.contract import labelled_rates

        return Bound(), labelled_rates(operator, below[0])

    def total(self, operator: Bucket, below: Sequence[int | None]) -> int | None:
        from penstock.operators.window.contract import total_in_windows

        return total_in_windows(operator, below[0])

    respond = found_in("feedback", "respond_window")

    def passes_all(self, operator: Bucket, pattern: Pattern) -> bool:
        """An event may be in windows that match and in others: what is said of events alone passes whole."""
        return operator.window.label not in pattern.restricted

    def issues(self, operator: Bucket, below: Sequence[Flow]) -> Iterable[Told]:
        return ()

    step = found_in("step", "step_of")
    reference = made_in("reference", "BucketReference")

    def example(self, random: random.Random, below: Any, other: Any) -> Any:
        """Windows of time: behind any others nothing but their aggregate may stand."""
        from penstock.operators.window.example import some_windows

        return some_windows(random, below)


SPEC = WindowSpec()
