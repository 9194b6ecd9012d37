"""What a run tells the world about itself: once per epoch how it went, and at any time what it need not do."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field, fields
from typing import Any

from penstock.statistics.measured import RunStatistics


@dataclass(frozen=True)
class Progress:
    """One epoch, and where the run stands after it."""

    epoch: int
    rows_in: int
    rows_out: int
    seconds: float
    scan_seconds: float
    merge_seconds: float
    state_rows: int
    state_bytes: int
    state_runs: int
    dead: dict[str, int] = field(default_factory=dict)
    frontier: dict[str, str | None] = field(default_factory=dict)
    lag_seconds: dict[str, float | None] = field(default_factory=dict)
    total_rows_in: int = 0
    total_rows_out: int = 0
    total_dead: dict[str, int] = field(default_factory=dict)
    waiting: tuple[str, ...] = ()
    disorder: dict[str, dict[str, dict[str, int]]] = field(default_factory=dict)
    """By stream and attribute the disorder seen so far, where it is monitored (lateness in ticks)."""
    work: dict[str, int] = field(default_factory=dict)
    """What operators that keep rows did in this epoch, such as `join-1 released`."""
    read: dict[str, int] = field(default_factory=dict)
    """By stream the events of this epoch that were let in."""

    saved: dict[str, int] = field(default_factory=dict)
    """What feedback spared in this epoch, such as `source:traffic never read`, `join-1 purged`, `select-1 dropped`."""
    total_saved: dict[str, int] = field(default_factory=dict)
    shed: dict[str, int] = field(default_factory=dict)
    """What was given up in this epoch because it was too much, such as `source:traffic never read`."""
    total_shed: dict[str, int] = field(default_factory=dict)
    shedding: dict[str, Any] = field(default_factory=dict)
    """Where shedding stands: what it was told (`at`), and by output the share that is asked for and what was lost."""
    guards: int = 0
    """Records of feedback in force."""
    told: str = ""
    """The last message, who said it, and what operators on its way upstream have made of it."""

    final_up_to: dict[str, dict[str, str]] = field(default_factory=dict)
    """By sink and attribute the value below which all results are final; `end` where all of them are."""

    retracted: int = 0
    """How many of the results of this epoch take back others."""
    total_retracted: int = 0
    speculation: dict[str, dict[str, Any]] = field(default_factory=dict)
    """By stream, if results may be corrected: how long events are `remembered` and `blocked`, and how many of them are
    `held_back` now."""

    path: str = "job"
    """Who did the work: "resident", the tasks that stay, or "job", Spark jobs of its own."""

    measured: RunStatistics = field(default_factory=RunStatistics, repr=False)
    """What the run has measured of itself so far: rows, selectivities and costs by operator, backlogs by source."""

    @property
    def rows_per_second(self) -> float:
        return self.rows_in / self.seconds if self.seconds > 0 else 0.0

    @property
    def retraction_ratio(self) -> float:
        """The share of all results so far that take back others."""
        return self.total_retracted / self.total_rows_out if self.total_rows_out else 0.0

    def to_json(self) -> dict[str, Any]:
        ratios = {"rows_per_second": self.rows_per_second, "retraction_ratio": self.retraction_ratio}
        told = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "measured"}
        return {**deepcopy(told), **ratios, "statistics": self.measured.summary()}
