"""Is it too much? The practical test, in its order, with patience in both directions.

CPU that is not used up speaks against overload, whatever else grows. Then what waits must grow, again and again; in
front of a join only if it grows at all of its inputs, since one side waits for the other anyway. Latency that grows is
a hint and no more: windows and joins are late at low rates too, as their results carry the oldest time of their events.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

from penstock.errors import UserError


class Advice(Enum):
    """What to do about drops."""

    SHED = "shed"
    HOLD = "hold"
    GIVE_BACK = "give back"


@dataclass(frozen=True)
class LoadSample:
    """What was measured in one period.

    `cpu`: the share of the cores that was busy. `waiting`: rows by where they wait. `latency`: seconds by output.
    `load`: if a model knows, the work as a share of capacity that there would be with one drop less. Drops are given
    back once that fits; if nobody knows it, once the machine has time to spare.
    """

    cpu: float
    waiting: Mapping[str, float] = field(default_factory=dict)
    latency: Mapping[str, float] = field(default_factory=dict)
    load: float | None = None


@dataclass(frozen=True)
class Pressure:
    """What is remembered from sample to sample: plain data, which goes into a checkpoint."""

    overloaded: bool = False
    #: Samples in a row that spoke for overload, and that spoke against it.
    pressing: int = 0
    easing: int = 0
    waiting: Mapping[str, float] = field(default_factory=dict)
    latency: Mapping[str, float] = field(default_factory=dict)
    advice: Advice = Advice.HOLD
    why: str = "nothing measured yet"
    hint: str = ""

    def to_json(self) -> dict[str, Any]:
        return {
            "overloaded": self.overloaded,
            "pressing": self.pressing,
            "easing": self.easing,
            "waiting": dict(self.waiting),
            "latency": dict(self.latency),
            "advice": self.advice.value,
            "why": self.why,
            "hint": self.hint,
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Pressure:
        return cls(**{**stored, "advice": Advice(stored["advice"])})


@dataclass(frozen=True)
class OverloadMonitor:
    """The test, as a step from one `Pressure` to the next.

    `limit`: below that share of busy cores nothing is too much. `spare`: below that share of load (or of busy cores, if
    nobody knows the load), drops are given back. `patience`: so many samples in a row must say the same. `joined`:
    places where rows wait that meet in one join; what grows there counts only if it grows in all of them.

    >>> monitor, pressure = OverloadMonitor(limit=0.9, spare=0.7, patience=2), Pressure()
    >>> for cpu, rows in ((0.95, 0), (0.95, 10), (0.96, 30), (0.5, 5), (0.5, 0)):
    ...     pressure = monitor.after(pressure, LoadSample(cpu, {"in": rows}))
    ...     print(pressure.overloaded, pressure.advice.value, "-", pressure.why)
    False hold - nothing waits longer than before
    False hold - 10 rows more wait at in, once of 2 times
    True shed - 20 rows more wait at in
    True hold - cores are 50% busy, once of 2 times
    False give back - cores are 50% busy
    """

    limit: float = 0.9
    spare: float = 0.75
    patience: int = 3
    joined: Sequence[frozenset[str]] = ()
    #: Less growth than this share of what waited before is noise.
    noise: float = 0.02

    def __post_init__(self) -> None:
        if not 0 < self.spare < self.limit <= 1:
            raise UserError(
                f"overload: spare {self.spare}, limit {self.limit}",
                hint="drops are given back at a lower load than they begin at: 0 < spare < limit <= 1",
            )
        if self.patience < 1:
            raise UserError(f"overload: patience {self.patience}", hint="at least 1 sample")

    def after(self, before: Pressure, sample: LoadSample) -> Pressure:
        """What to do now."""
        hint = self._hint(before, sample)
        now = replace(before, waiting=dict(sample.waiting), latency=dict(sample.latency), hint=hint)
        grown = {w: more for w, rows in sample.waiting.items() if (more := self._growth(before, w, rows)) > 0}
        counts = self._counting(grown)
        if sample.cpu < self.limit:
            return self._eased(now, sample)
        if not counts:
            blocked = f"; {', '.join(sorted(grown))} only waits for the other side of a join" if grown else ""
            return replace(
                now, pressing=0, easing=0, advice=Advice.HOLD, why=f"nothing waits longer than before{blocked}"
            )
        growing = f"{sum(counts.values()):,.0f} rows more wait at {', '.join(sorted(counts))}"
        pressing = before.pressing + 1
        if pressing < self.patience and not before.overloaded:
            why = f"{growing}, {_times(pressing, self.patience)}"
            return replace(now, pressing=pressing, easing=0, advice=Advice.HOLD, why=why)
        return replace(now, overloaded=True, pressing=pressing, easing=0, advice=Advice.SHED, why=growing)

    def _eased(self, now: Pressure, sample: LoadSample) -> Pressure:
        """The cores are not used up: no overload, and perhaps time to give something back."""
        load = sample.cpu if sample.load is None else sample.load
        said = f"cores are {sample.cpu:.0%} busy" if sample.load is None else f"load is {load:.0%} of capacity"
        if load >= self.spare:
            return replace(now, pressing=0, easing=0, advice=Advice.HOLD, why=said)
        easing = now.easing + 1
        if easing < self.patience:
            why = f"{said}, {_times(easing, self.patience)}" if now.overloaded else said
            return replace(now, pressing=0, easing=easing, advice=Advice.HOLD, why=why)
        return replace(now, overloaded=False, pressing=0, easing=easing, advice=Advice.GIVE_BACK, why=said)

    def _growth(self, before: Pressure, where: str, rows: float) -> float:
        known = before.waiting.get(where)
        return 0.0 if known is None or rows - known <= self.noise * known else rows - known

    def _counting(self, grown: Mapping[str, float]) -> dict[str, float]:
        """What grows and is not merely one side of a join that waits for the other."""
        meeting = {w for group in self.joined for w in group}
        pressed = {w for group in self.joined if group <= set(grown) for w in group}
        return {w: more for w, more in grown.items() if w in pressed or w not in meeting}

    def _hint(self, before: Pressure, sample: LoadSample) -> str:
        later = [
            o for o, s in sample.latency.items() if o in before.latency and s > before.latency[o] * (1 + self.noise)
        ]
        return f"{', '.join(sorted(later))} comes later than before" if later else ""


def _times(n: int, of: int) -> str:
    return f"{'once' if n == 1 else f'{n} times'} of {of} times"
