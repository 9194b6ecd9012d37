"""Window: labels each event with the windows it belongs to.

What becomes of punctuation is in `punctuation`, what a window offers and how fast it goes in `contract`, what it does
about feedback in `feedback`, the SQL of the labels in `kernel`, and all of it one event at a time in `reference`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from penstock.operators.shared.families import AtOnceSpec
from penstock.operators.window.operator import Bucket
from penstock.plan.spec import Fact, Lineage, Retraction, Traits, found_in, made_in, of_one, same

if TYPE_CHECKING:
    import random

    from penstock.pattern.pattern import Pattern


class WindowSpec(AtOnceSpec[Bucket]):
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

    behaviour = made_in("punctuation", "BucketBehaviour")
    judge = of_one("contract", "judge_window")
    rates = of_one("contract", "labelled_rates")
    total = of_one("contract", "total_in_windows")
    respond = found_in("feedback", "respond_window")

    def passes_all(self, operator: Bucket, pattern: Pattern) -> bool:
        """An event may be in windows that match and in others: what is said of events alone passes whole."""
        return operator.window.label not in pattern.restricted

    step = made_in("step", "WindowStep")
    reference = made_in("reference", "BucketReference")

    def example(self, random: random.Random, below: Any, other: Any) -> Any:
        """Windows of time: behind any others nothing but their aggregate may stand."""
        from penstock.operators.window.example import some_windows

        return some_windows(random, below)


SPEC = WindowSpec()
