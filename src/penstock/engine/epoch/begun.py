"""An epoch under way, between its plan and its commit."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from penstock.checkpoint.checkpoint import EpochPlan
from penstock.engine.source.split import Split
from penstock.engine.tasks.job import Job
from penstock.engine.tasks.report import TaskReport
from penstock.pattern.pattern import Pattern
from penstock.plan.place import Place
from penstock.shedding.outlook import Settled

if TYPE_CHECKING:
    from pyspark import RDD

    from penstock.engine.spark.residents import Residents
    from penstock.engine.tasks.resident import Shelf

Places = dict[Place, tuple[Pattern, ...]]


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
    #: The tasks that stay, if they do its work; where its parcels wait; and how many seconds each piece of it may take.
    residents: Residents | None = None
    shelves: Sequence[Shelf] = ()
    patience: float = 0.0
    reports: Future[list[TaskReport]] | None = None
    job: Job | None = None
    assignments: list[str] = field(default_factory=list)
    spared: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    saved: dict[str, int] = field(default_factory=dict)
    shed: dict[str, int] = field(default_factory=dict)
    #: By output, the windows that have passed in it.
    settled: dict[str, Settled] = field(default_factory=dict)
    #: Where shedding stood when its events had been read.
    shed_state: dict[str, Any] = field(default_factory=dict)
    unreadable: list[Split] = field(default_factory=list)
