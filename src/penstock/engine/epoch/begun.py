"""An epoch under way, between its plan and its commit."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from penstock.checkpoint.checkpoint import EpochPlan
from penstock.engine.source.split import Split
from penstock.engine.tasks.job import Job
from penstock.engine.tasks.report import Report
from penstock.pattern.pattern import Pattern

if TYPE_CHECKING:
    from pyspark import RDD

Places = dict[str, tuple[Pattern, ...]]


@dataclass
class Begun:
    """An epoch under way: planned, and being scanned."""

    plan: EpochPlan
    positions: dict[str, dict[str, Any]]
    snapshots: dict[str, dict[str, Any]] | None
    began: float
    #: What is to be dropped, place by place, without what cannot be in the files; None: all that guards say.
    to_drop: Places | None = None
    parcels: RDD[Any] | None = None
    reports: Future[list[Report]] | None = None
    job: Job | None = None
    assignments: list[str] = field(default_factory=list)
    spared: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    saved: dict[str, int] = field(default_factory=dict)
    unreadable: list[Split] = field(default_factory=list)
