"""What is known of the inputs of a join, from which the planner chooses how to do it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from penstock.builder.join_cost import Input
from penstock.builder.join_order import InputStatistics
from penstock.errors import UserError


@dataclass(frozen=True)
class JoinStatistics:
    """What is known of the inputs of a join: declared, or measured by `measure_joins`.

    `rates` are events a second of event time (a day where the time is a date, a unit where it is a number). How often
    events match is said by `keys`, the number of different keys in each input at a time, or by `selectivities`, which
    share of all pairs of two inputs match: `{(0, 1): 0.01}`. `held` are the events of each input that are in its
    window, by Little's law rate × window if not given; where a window is unlimited, what comes in `horizon` seconds.

    Costs are in microseconds an event on one core: to `store` it, to look for its `match`es in another input, to
    `invalidate` it. What they are by default was measured with the kernel of the binary join: half a million events of
    three 64-bit attributes an epoch, without and with as many events of the other side stored (one match in ten), and
    half of them released by a punctuation on time. Only their ratios matter for the choice.

    >>> JoinStatistics(rates=[10, 20], keys=[50, 100]).shares()
    {(0, 1): 0.01}
    """

    rates: Sequence[float]
    keys: Sequence[float] | None = None
    selectivities: Mapping[tuple[int, ...], float] | None = None
    held: Sequence[float | None] | None = None
    horizon: float = 3600.0
    store: float = 0.5
    match: float = 0.4
    invalidate: float = 0.1

    def __post_init__(self) -> None:
        count = len(self.rates)
        if (self.keys is None) == (self.selectivities is None):
            raise UserError(
                "JoinStatistics: how often do events match?", hint="give one of keys=[…] and selectivities={(0, 1): …}"
            )
        for name, listed in (("keys", self.keys), ("held", self.held)):
            if listed is not None and len(listed) != count:
                raise UserError(f"JoinStatistics: {len(listed)} {name} for {count} rates", hint="one for each input")
        for name, listed, least in (("rates", self.rates, 0), ("keys", self.keys or (), 1)):
            for n in listed:
                if not isinstance(n, int | float) or not n >= least:
                    raise UserError(
                        f"JoinStatistics: {n!r} in {name} is not possible",
                        hint=f"{name} are numbers of at least {least}",
                    )
        for inputs, share in (self.selectivities or {}).items():
            if len(set(inputs)) != len(inputs) or len(inputs) < 2 or not all(0 <= i < count for i in inputs):
                raise UserError(
                    f"JoinStatistics: selectivity of {inputs!r}",
                    hint=f"pairs of different inputs from 0 to {count - 1}",
                )
            if not 0 <= share <= 1:
                raise UserError(f"JoinStatistics: selectivity {share} of {inputs!r}", hint="a share from 0 to 1")

    def shares(self) -> dict[tuple[int, ...], float]:
        """The share of all pairs of two inputs that match. Fewer keys are taken to be among the more."""
        if self.selectivities is not None:
            return dict(self.selectivities)
        keys = self.keys or ()
        return {(i, j): 1 / max(keys[i], keys[j]) for i, j in combinations(range(len(keys)), 2)}

    def over(self, windows: Sequence[float | None], names: Sequence[str] = ()) -> InputStatistics:
        """What the planner needs, for windows in the unit of the rates."""
        inputs = []
        for i, rate in enumerate(self.rates):
            told = None if self.held is None else self.held[i]
            window = windows[i]
            rows = told if told is not None else rate * (self.horizon if window is None else window)
            inputs.append(Input(rate, rows, self.store, self.match, self.invalidate))
        return InputStatistics(tuple(inputs), self.shares(), tuple(names))
