"""The statistics of a run: sums over its epochs, of which older ones count less. They stay as small as the query."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from penstock.statistics.figures import Backlog, EpochFigures
from penstock.statistics.fit import CostFit

#: What an epoch before counts against the one behind it, for selectivities and rates.
DECAY = 0.9
#: So many epochs at first are no measure of those behind them.
WARMING = 2
#: From fewer epochs than this a fixed cost cannot be told from one per row.
ENOUGH = 4
#: What is left of the rate at which rows arrived after a second.
RATE_DECAY = 0.7
#: The name under which the cost of an epoch as a whole is fitted.
WHOLE = "the epoch"


@dataclass(frozen=True)
class Passed:
    """What has passed an operator: rows in and out, lately (decayed) and in all; and CPU seconds."""

    recent_in: float = 0.0
    recent_out: float = 0.0
    total_in: int = 0
    total_out: int = 0
    cpu: float = 0.0

    @property
    def selectivity(self) -> float | None:
        """Rows out per row in, lately.

        >>> Passed(recent_in=200.0, recent_out=50.0).selectivity
        0.25
        """
        return self.recent_out / self.recent_in if self.recent_in > 0 else None

    def with_rows(self, rows_in: int, rows_out: int, cpu: float) -> Passed:
        """The same with one more epoch."""
        return Passed(
            DECAY * self.recent_in + rows_in,
            DECAY * self.recent_out + rows_out,
            self.total_in + rows_in,
            self.total_out + rows_out,
            self.cpu + cpu,
        )


@dataclass(frozen=True)
class RunStatistics:
    """What is known of a run after so many epochs.

    >>> found = RunStatistics()
    >>> for rows in (100, 300, 200, 400, 250, 300, 200):
    ...     cpu = {"source:cars": 0.01 + rows / 10_000}
    ...     figures = EpochFigures({"source:cars": rows}, {"source:cars": rows}, cpu, seconds=0.1 + rows / 10_000)
    ...     found = found.after(figures)
    >>> round(found.cost("source:cars"), 6), found.operators["source:cars"].selectivity
    (0.0001, 1.0)
    >>> round(found.fixed, 3)  # Seconds that an epoch takes even if it has nothing to do.
    0.09
    """

    epochs: int = 0
    operators: Mapping[str, Passed] = field(default_factory=dict)
    fits: Mapping[str, CostFit] = field(default_factory=dict)
    backlog: Mapping[str, Backlog] = field(default_factory=dict)
    rates: Mapping[str, float] = field(default_factory=dict)
    """By source, rows that arrive in a second, lately."""
    queued: Mapping[str, int] = field(default_factory=dict)
    """By source, rows that were there when the last epoch was planned: those it took, and those it left."""
    seconds: float = 0.0
    """What an epoch takes, lately."""
    last: float = 0.0
    """What the last one took."""
    every: float = 0.0
    busy: float = 0.0
    """The share of the cores that was busy, lately."""

    def after(self, now: EpochFigures) -> RunStatistics:
        """The statistics with one more epoch."""
        operators, fits = dict(self.operators), dict(self.fits)
        for name in sorted({*now.rows_in, *now.rows_out, *now.cpu}):
            rows_in, cpu = now.rows_in.get(name, 0), now.cpu.get(name, 0.0)
            known = operators.get(name, Passed())
            operators[name] = known.with_rows(rows_in, now.rows_out.get(name, 0), cpu)
            if name in now.rows_in and name in now.cpu:
                fits[name] = fits.get(name, CostFit()).with_epoch({"row": rows_in}, cpu)
        spent = sum(now.cpu.values())
        if self.epochs >= WARMING or WHOLE not in fits:
            # The first ones start workers and compile; the fit begins anew behind them.
            before = fits.get(WHOLE, CostFit()) if self.epochs > WARMING else CostFit()
            fits[WHOLE] = before.with_epoch({"cpu": spent / max(1, now.cores)}, now.seconds)
        span = max(now.since, now.seconds, 1e-9)
        return RunStatistics(
            self.epochs + 1,
            operators,
            fits,
            dict(now.backlog) or self.backlog,
            self._arrived(now, span),
            {
                n: now.rows_in.get(n, 0) + now.spared.get(n, 0) + ((b.rows or 0) if (b := now.backlog.get(n)) else 0)
                for n in {*now.backlog, *now.spared, *(n for n in now.rows_in if n.startswith("source:"))}
            },
            self._decayed(self.seconds, now.seconds),
            now.seconds,
            now.every,
            self._decayed(self.busy, spent / (max(1, now.cores) * span)),
        )

    def _decayed(self, before: float, now: float) -> float:
        return now if self.epochs <= WARMING else DECAY * before + (1 - DECAY) * now

    def _arrived(self, now: EpochFigures, span: float) -> dict[str, float]:
        """Rows that have come in a second: those read, and those by which the backlog has grown."""
        rates = dict(self.rates)
        for source in now.backlog.keys() | {n for n in now.rows_in if n.startswith("source:")}:
            before, after = self.backlog.get(source), now.backlog.get(source)
            grown = 0 if before is None or after is None else (after.rows or 0) - (before.rows or 0)
            came = now.rows_in.get(source, 0) + now.spared.get(source, 0) + grown
            rate = max(0.0, came / span)
            known = rates.get(source)
            # By the clock, not by epochs: those that take long have seen more.
            left = RATE_DECAY**span
            rates[source] = rate if known is None else left * known + (1 - left) * rate
        return rates

    def cost(self, operator: str) -> float:
        """CPU seconds of an operator per row that comes to it; 0 if nothing is known."""
        found = self.fits.get(operator)
        if found is None:
            return 0.0
        fitted = found.costs.get("row", 0.0)
        if fitted:
            return fitted
        # As long as all epochs are alike, fixed and variable cost do not come apart.
        passed = self.operators[operator]
        return passed.cpu / passed.total_in if passed.total_in else 0.0

    @property
    def fixed(self) -> float:
        """Seconds that an epoch takes whatever it reads; 0 as long as too few epochs tell."""
        found = self.fits.get(WHOLE)
        return 0.0 if found is None or found.epochs < ENOUGH else found.costs[""]

    def to_json(self) -> dict[str, Any]:
        return {
            "epochs": self.epochs,
            "operators": {
                name: [
                    *(float(f"{v:.6g}") for v in (p.recent_in, p.recent_out)),
                    p.total_in,
                    p.total_out,
                    _short(p.cpu),
                ]
                for name, p in sorted(self.operators.items())
            },
            "fits": {name: fit.to_json() for name, fit in sorted(self.fits.items())},
            "backlog": {name: b.to_json() for name, b in sorted(self.backlog.items())},
            "rates": {name: _short(r) for name, r in sorted(self.rates.items())},
            "queued": dict(sorted(self.queued.items())),
            "seconds": _short(self.seconds),
            "last": _short(self.last),
            "every": self.every,
            "busy": _short(self.busy),
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> RunStatistics:
        if not stored:
            return cls()
        body = dict(stored)
        body["operators"] = {name: Passed(*p) for name, p in body["operators"].items()}
        body["fits"] = {name: CostFit.from_json(fit) for name, fit in body["fits"].items()}
        body["backlog"] = {name: Backlog(**b) for name, b in body["backlog"].items()}
        return cls(**body)

    def summary(self) -> dict[str, Any]:
        """For machines: what is known by operator and source, without what it was found from."""
        return {
            "epochs": self.epochs,
            "operators": {
                name: {
                    "rows_in": p.total_in,
                    "rows_out": p.total_out,
                    "selectivity": p.selectivity,
                    "cpu_seconds": p.cpu,
                    "cpu_seconds_per_row": self.cost(name),
                }
                for name, p in sorted(self.operators.items())
            },
            "sources": {
                name: {"rows_per_second": rate, "backlog": self.backlog.get(name, Backlog()).to_json()}
                for name, rate in sorted(self.rates.items())
            },
            "fixed_seconds": self.fixed,
            "epoch_seconds": self.seconds,
            "every_seconds": self.every,
            "busy": self.busy,
        }

    def without(self, operators: frozenset[str]) -> RunStatistics:
        """The same without operators that are gone from the query."""
        kept = {n: p for n, p in self.operators.items() if n not in operators}
        return replace(self, operators=kept, fits={n: f for n, f in self.fits.items() if n not in operators})


def _short(value: float) -> float:
    return float(f"{value:.6g}")
