"""What a checkpoint holds: its units, how far every operator is, and the state itself as tables to query.

Reads only, and takes no lock, so it works beside a running query. The query may meanwhile drop what was just listed;
then the newer manifest is looked at instead.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import pyarrow as pa

from penstock.checkpoint.checkpoint import Checkpoint, Manifest
from penstock.checkpoint.generation import records_of
from penstock.checkpoint.names import BESIDE_SINK
from penstock.checkpoint.runs import read_marks, read_run
from penstock.checkpoint.storage import Storage, unseal
from penstock.engine.tasks.bucket import live_rows
from penstock.errors import CheckpointError, UserError
from penstock.kernels.fold import is_tickable
from penstock.kernels.ticks import from_tick
from penstock.pattern.punctuation import PunctuationSet
from penstock.pattern.schema import Schema
from penstock.portal.state_query import select
from penstock.portal.why import waits_for

T = TypeVar("T")
#: How often to look again when a running query has dropped what was being read.
ATTEMPTS = 5
_WHERE = "name the folder given as --checkpoint, or the folder of a file sink"
#: How many punctuations given in band are shown.
SHOWN = 3


@dataclass(frozen=True)
class ShownUnit:
    """A unit of state, as it is shown. Age is counted in epochs since its oldest run was written.

    `used` is the epoch in which it was last looked at or added to; `results` are what its operator has given in its
    bucket in the epochs in which it took part. `low` and `high` bound the time of its rows, in ticks.
    """

    operator: str
    bucket: int
    group: int
    runs: int
    rows: int
    bytes: int
    age: int
    waits: str = ""
    """The punctuation that would release its longest waiting part."""
    used: int = 0
    results: int = 0
    low: int | None = None
    high: int | None = None
    share: int = 1
    """The part of the groups that it is for: 1 is all of them, 2 and 3 are its halves, 4 and 5 those of 2."""


@dataclass(frozen=True)
class Frontier:
    """How far an operator or source is complete."""

    operator: str
    attribute: str
    reached: str


@dataclass(frozen=True)
class Snapshot:
    """A checkpoint at one moment."""

    storage: Storage
    manifest: Manifest
    plan: dict[str, Any]

    @classmethod
    def open(cls, path: str) -> Snapshot:
        """The newest manifest of a checkpoint folder, or of the one that a sink's folder keeps beside its results."""
        storage = Storage.at(path)
        if not storage.exists("meta.json") and records_of(storage.within(BESIDE_SINK)).exists("meta.json"):
            storage = storage.within(BESIDE_SINK)
        if not storage.exists(""):
            raise UserError(f"checkpoint '{path}' does not exist", hint=_WHERE)
        records = records_of(storage)
        if not records.exists("meta.json"):
            raise UserError(
                f"'{path}' is not a checkpoint: it has no meta.json",
                hint=_WHERE,
            )
        meta = unseal(records.read("meta.json"), f"{records.url}/meta.json")
        manifest = again(lambda: Checkpoint(storage).latest())
        if manifest is None:
            raise UserError(
                f"checkpoint '{path}' is empty: no epoch has been committed yet", hint="run the query first"
            )
        return cls(storage, manifest, meta["plan"])

    def units(self) -> list[ShownUnit]:
        now = self.manifest.epoch
        return [
            ShownUnit(
                key.operator,
                key.bucket,
                key.group,
                len(runs := self.manifest.units[key]),
                known.rows,
                known.bytes,
                now - min(r.epoch for r in runs),
                waits_for(self.storage, self.plan, key, runs),
                known.used,
                known.results,
                known.low,
                known.high,
                key.share,
            )
            for key, known in self.manifest.statistics().items()
        ]

    def frontiers(self) -> list[Frontier]:
        """What sources promise and how far aggregates are closed."""
        found: list[Frontier] = []
        over = all(state["ended"] for state in self.manifest.promises.values())
        for source, state in self.manifest.promises.items():
            schema = self._schema(source)
            if state["ended"]:
                found.append(Frontier(source, "*", "end"))
                continue
            for attribute, tick in state["disorder"].items():
                found.append(Frontier(source, attribute, f"< {_value(tick, schema.type_of(attribute))}"))
            # A list of keys that must all pass is named in the definition only, with the attribute it is about.
            named = re.findall(r"WhenAll\(.*?past='([^']+)'", self.plan[source]["definition"])
            for index, tick in state["passed"].items():
                attribute = named[int(index)]
                found.append(Frontier(source, attribute, f"< {_value(tick, schema.type_of(attribute))}"))
            if given := PunctuationSet.from_json(state["given"], schema).patterns:
                more = f" and {len(given) - SHOWN} more" if len(given) > SHOWN else ""
                found.append(Frontier(source, "(in band)", " ".join(map(str, given[:SHOWN])) + more))
        for operator, tick in self.manifest.punctuation.get("closed", {}).items():
            attribute = self._schema(operator).attributes[0]  # runs are sorted by the first grouping attribute
            # The end of all sources closes everything, whatever label came last before it.
            reached = "end" if over else f"≤ {_value(tick, attribute.type)}"
            found.append(Frontier(operator, attribute.name, reached))
        return found

    def tables(self) -> dict[str, pa.Table]:
        """The live rows of every operator's state, by operator id; of a join by `join-1#0` and `join-1#1`."""
        found: dict[str, list[pa.Table]] = {i: [] for i, o in self.plan.items() if o["kind"] == "aggregate"}
        for key, runs in sorted(self.manifest.units.items()):
            rows = (live_rows(read_run(self.storage, key, r), read_marks(self.storage, key, r)) for r in runs)
            found.setdefault(key.operator, []).extend(rows)
        empty = pa.table({"nothing": pa.array([], pa.int32())})
        return {i: pa.concat_tables(tables) if tables else empty for i, tables in found.items()}

    def _schema(self, operator: str) -> Schema:
        return Schema.parse(self.plan[operator]["schema"])


def _value(tick: int, t: pa.DataType) -> str:
    return str(from_tick(tick, t)) if is_tickable(t) else str(tick)


def again(look: Callable[[], T]) -> T:
    """Look, and look again when a running query has moved on meanwhile."""
    for attempt in range(1, ATTEMPTS + 1):
        try:
            return look()
        except (FileNotFoundError, CheckpointError):
            if attempt == ATTEMPTS:
                raise
    raise AssertionError


def ask(path: str, sql: str) -> pa.Table:
    """The answer to SQL over the state: one view per operator, and `units`."""

    def state() -> tuple[Snapshot, dict[str, pa.Table]]:
        snapshot = Snapshot.open(path)
        return snapshot, snapshot.tables()

    snapshot, tables = again(state)
    units = [vars(u) for u in snapshot.units()]
    schema = pa.schema(
        [
            ("operator", pa.string()),
            *((n, pa.int64()) for n in ("bucket", "group", "runs", "rows", "bytes", "age")),
            ("waits", pa.string()),
            *((n, pa.int64()) for n in ("used", "results", "low", "high", "share")),
        ]
    )
    return select(sql, {**tables, "units": pa.Table.from_pylist(units, schema)})


__all__ = ["Frontier", "ShownUnit", "Snapshot", "ask"]
