"""What the tasks of one epoch share."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from dataclasses import dataclass, field

from penstock.checkpoint.storage import Storage
from penstock.engine.sink.target import Staging
from penstock.engine.tables import load_all
from penstock.engine.tasks.dropping import Dropping
from penstock.engine.tasks.pipeline import Pipeline
from penstock.kernels.stateful import Word
from penstock.pattern.pattern import Pattern
from penstock.plan.place import Place

#: Queries that a worker keeps ready.
QUERIES = 8
_pipelines: dict[str, Pipeline] = {}


@dataclass(frozen=True)
class Job:
    """What the tasks of one epoch share."""

    digest: str
    blob: bytes = field(repr=False)
    epoch: int = 0
    buckets: int = 1
    checkpoint: Storage | None = None
    stagings: dict[str, Staging] = field(default_factory=dict)
    batch_rows: int = 4_000_000
    memory: str = "2GB"
    fault: str | None = None
    groups: int = 1
    fused: bool = False
    tables: dict[str, str] = field(default_factory=dict)
    #: Place in the plan -> what nobody wants there; the place of a source is its node's id.
    guards: Mapping[Place, tuple[Pattern, ...]] = field(default_factory=dict)
    #: Place -> what is to be removed from state in this epoch.
    purges: Mapping[Place, tuple[Pattern, ...]] = field(default_factory=dict)
    #: Whether this is only to see what would come out: queued work is left alone.
    rehearsal: bool = False
    #: Operator -> what tasks are told of it.
    told: Mapping[str, Word] = field(default_factory=dict)
    on_error: str = "reject"
    #: What is shed; None where nothing ever is.
    dropping: Dropping | None = None
    #: A folder for parcels, where all tasks share a disk.
    depot: str | None = None

    def pipeline(self) -> Pipeline:
        """The query; unpacked once per worker, not once per task."""
        found = _pipelines.get(self.digest)
        if found is None:
            # Queries of one session share workers, and threads of one process may be in here at once.
            if len(_pipelines) >= QUERIES:
                _pipelines.clear()
            found = _pipelines[self.digest] = pickle.loads(self.blob)
        # Epochs may overlap in one process and have different tables.
        return found.in_epoch(load_all(self.checkpoint, self.tables), self.guards, self.told, self.dropping)
