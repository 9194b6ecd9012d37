"""The checkpoint: what a query needs to go on after a crash, and the protocol that keeps it right.

    meta.json                what query, version and bucket count this checkpoint belongs to
    epochs/000042.plan.json  written before epoch 42 runs: its inputs and all decisions
    epochs/000042.commit.json  written after it: the manifest. An epoch has happened when this record is whole
    control/…                what consumers have told the run, version by version; see `control_log`
    snapshots/000032.json    positions of the sources up to an epoch, so that manifests stay small
    state/…                  runs
    tables/…                 snapshots of tables, named by the plans
    dead_letters/…           events that were not let in, if no other folder is named
    results/…                results of sinks that deliver from the driver

A crash leaves either the old manifest or the new one. Files that no manifest names are orphans and swept.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from penstock.checkpoint.fault import reach
from penstock.checkpoint.generation import records_of
from penstock.checkpoint.intact import Written
from penstock.checkpoint.known_query import KnownQuery
from penstock.checkpoint.names import (
    RECORD,
    SNAPSHOT,
    STAGING,
    ForeignNameError,
    check_names,
    check_plain,
    check_results,
    is_ours,
    is_partial,
)
from penstock.checkpoint.runs import UnitKey, Units, run_names, units_from_json, units_to_json
from penstock.checkpoint.storage import Storage, seal, unseal
from penstock.checkpoint.use import UnitStatistics, Use, Uses, statistics
from penstock.errors import CheckpointError
from penstock.plan.consistency import Setting
from penstock.plan.plan import Plan

#: 6: how late events may come is kept with what was promised.
FORMAT = 6
KEEP = 3
SNAPSHOT_EVERY = 32


@dataclass(frozen=True)
class EpochPlan:
    """All that decides an epoch, written down before it runs."""

    epoch: int
    splits: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    ends: list[str] = field(default_factory=list)
    control: int = 0
    plan: str = ""
    partitions: dict[str, list[str]] = field(default_factory=dict)
    tables: dict[str, str] = field(default_factory=dict)
    told: dict[str, Any] = field(default_factory=dict)
    #: The version of the control log that it names, if no plan before it does.
    heard: dict[str, Any] = field(default_factory=dict)
    #: By source, how late events may come and for how long they are held back.
    dial: dict[str, list[int]] = field(default_factory=dict)
    #: What is shed, and all that this follows from.
    shed: dict[str, Any] = field(default_factory=dict)
    #: By name what each sink is, as `target`, and, if it is one, the `folder` of its results.
    sinks: dict[str, dict[str, str]] = field(default_factory=dict)

    @property
    def setting(self) -> Setting:
        """Where the dial stands in this epoch."""
        return {source: (slack, block) for source, (slack, block) in self.dial.items()}

    def to_json(self) -> dict[str, Any]:
        return dict(vars(self))


@dataclass(frozen=True)
class Output:
    """One file of results: where a task left it and what it will be called."""

    sink: str
    staged: str
    final: str
    rows: int
    bytes: int
    crc: int = 0

    @property
    def as_staged(self) -> Written:
        return Written(self.staged, self.bytes, self.crc)

    @property
    def as_published(self) -> Written:
        return Written(self.final, self.bytes, self.crc)


@dataclass(frozen=True)
class Manifest:
    """What is true after an epoch."""

    epoch: int
    units: Units = field(default_factory=dict)
    promises: dict[str, Any] = field(default_factory=dict)
    punctuation: dict[str, Any] = field(default_factory=dict)
    snapshot: int = 0
    deltas: dict[str, list[Any]] = field(default_factory=dict)
    outputs: tuple[Output, ...] = ()
    totals: dict[str, Any] = field(default_factory=dict)
    ended: tuple[str, ...] = ()
    control: int = 0
    feedback: dict[str, Any] = field(default_factory=dict)
    uses: Uses = field(default_factory=dict)
    #: Where shedding stands.
    shed: dict[str, Any] = field(default_factory=dict)
    #: What the run has measured of itself.
    measured: dict[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        body = dict(vars(self))
        body["units"] = units_to_json(self.units)
        body["uses"] = {str(key): [u.epoch, u.results] for key, u in sorted(self.uses.items())}
        body["outputs"] = [vars(o) for o in self.outputs]
        return body

    @classmethod
    def from_json(cls, body: dict[str, Any], record: str = "a manifest") -> Manifest:
        """A manifest from its record, which may have been changed by anybody: every name in it is looked at."""
        try:
            made = cls._made(dict(body))
            check_names(run_names(made.units), ("state/",), record)
            check_plain((k.operator for k in made.units), "", record)
            check_names((o.staged for o in made.outputs), (f"{STAGING}/", "results/"), record)
            check_results((o.final for o in made.outputs), record)
            numbers = (made.epoch, made.snapshot, made.control)
            uses = (n for use in made.uses.values() for n in (use.epoch, use.results))
            if not all(type(n) is int for n in (*numbers, *uses)):
                raise ValueError(numbers)
        except (TypeError, ValueError, KeyError, AttributeError) as error:
            raise CheckpointError(f"{record} is not a manifest ({type(error).__name__}: {error})") from error
        return made

    @classmethod
    def _made(cls, body: dict[str, Any]) -> Manifest:
        body["units"] = units_from_json(body["units"])
        body["uses"] = {UnitKey.parse(key): Use(*use) for key, use in body.get("uses", {}).items()}
        body["outputs"] = tuple(Output(**o) for o in body["outputs"])
        body["ended"] = tuple(body["ended"])
        return cls(**body)

    def statistics(self) -> dict[UnitKey, UnitStatistics]:
        """What there is to know of each unit of state."""
        return {
            key: statistics(runs, self.uses.get(key) or Use(max(r.epoch for r in runs)))
            for key, runs in sorted(self.units.items())
        }


class Checkpoint:
    """Reads and writes the records of one checkpoint folder."""

    def __init__(
        self, storage: Storage, records: Storage | None = None, guard: Callable[[], None] = lambda: None
    ) -> None:
        self.storage = storage
        #: Where the records are: in the same folder, or in that of a generation of it.
        self.records = records_of(storage) if records is None else records
        #: Raises if another run has taken over.
        self.guard = guard
        self.warnings: list[str] = []

    def open(self, plan: Plan, buckets: int) -> int:
        """Check that this checkpoint fits the plan, or make a new one. Returns its number of buckets."""
        known = self.check(plan)
        if known is None:
            self._query.write(plan, {"buckets": buckets})
        return buckets if known is None else known

    def check(self, plan: Plan) -> int | None:
        """Refuse a checkpoint that does not fit the plan, and change nothing. Its buckets, or None if it is new."""
        known = self._query.read(fresh=self.is_fresh)
        self._query.fit(plan, known)
        return None if known is None else int(known["buckets"])

    def refitted(self, plan: Plan) -> Plan:
        """The plan with the ids that this checkpoint knows its operators and sinks by."""
        return self._query.refitted(plan, self._query.read(fresh=self.is_fresh))

    @property
    def described(self) -> dict[str, Any]:
        """The operators that this checkpoint knows, by their ids."""
        known = self._query.read(fresh=self.is_fresh)
        return {} if known is None else dict(known["plan"])

    def adopt(self, plan: Plan) -> None:
        """From now on the checkpoint is that of a plan which was changed, and fits nevertheless."""
        known = self._query.read(fresh=self.is_fresh)
        found = self._query.fit(plan, known)
        if known is not None:
            self._query.write(plan, known)
        self.warnings.extend(f"the query was changed: {remark}" for remark in found.remarks)

    @property
    def _query(self) -> KnownQuery:
        return KnownQuery(self.storage, self.records, FORMAT)

    @property
    def is_fresh(self) -> bool:
        """Whether no epoch has happened."""
        return not self._epochs("commit")

    def latest(self) -> Manifest | None:
        """The newest manifest, or the one before it if that is torn: a crash before its epoch happened.

        Never one still older: the files it names may be gone, and going on from it would sweep those that are not.
        """
        names = self._epochs("commit")
        if not names:
            return None
        newest = _number(names[-1])
        try:
            return self._manifest(newest)
        except ForeignNameError:
            raise
        except CheckpointError as error:
            damage = error.message
        try:
            before = self._manifest(newest - 1) if newest > 1 else None
        except ForeignNameError:
            raise
        except (CheckpointError, FileNotFoundError):
            raise CheckpointError(
                f"checkpoint '{self.storage.url}': neither of its last two manifests is whole ({damage})",
                hint="restore the folder epochs/ from a backup; nothing has been changed",
            ) from None
        lost = [n for n in sorted(run_names(before.units)) if not self.storage.exists(n)] if before is not None else []
        if lost:
            raise CheckpointError(
                f"checkpoint '{self.storage.url}': {damage}, and the manifest before it needs {lost[0]}, which is gone",
                hint=f"restore epochs/{names[-1]} from a backup; nothing has been changed",
            )
        self.warnings.append(f"{damage}: the epoch is run again")
        return before

    def before(self, manifest: Manifest) -> Manifest | None:
        """The manifest before this one, if it is still there and whole."""
        try:
            return self._manifest(manifest.epoch - 1)
        except (CheckpointError, FileNotFoundError):
            return None

    def older_than(self, manifest: Manifest) -> list[Manifest]:
        """The manifests before this one that are still there, the next one first."""
        found: list[Manifest] = []
        while (one := self.before(found[-1] if found else manifest)) is not None:
            found.append(one)
        return found

    def _manifest(self, epoch: int) -> Manifest:
        name = f"epochs/{epoch:06d}.commit.json"
        made = Manifest.from_json(unseal(self.records.read(name), name), name)
        if made.epoch != epoch:
            raise CheckpointError(f"{name} is the manifest of epoch {made.epoch}")
        return made

    def has_record(self, epoch: int) -> bool:
        """Whether there is a manifest of an epoch, whole or not."""
        return self.records.exists(f"epochs/{epoch:06d}.commit.json")

    def plans_after(self, epoch: int) -> list[EpochPlan]:
        """The plans of later epochs that are whole."""
        numbers = map(_number, self._epochs("plan"))
        plans = (self.plan_of(n) for n in numbers if n > epoch)
        return [p for p in plans if p is not None]

    def forget_plans(self, after: int) -> None:
        """Delete the plans of later epochs: they go on from something that will now come out differently."""
        for name in self._epochs("plan"):
            if _number(name) > after:
                self.records.delete(f"epochs/{name}")

    def plan_of(self, epoch: int) -> EpochPlan | None:
        name = f"epochs/{epoch:06d}.plan.json"
        if not self.records.exists(name):
            return None
        try:
            plan = EpochPlan(**unseal(self.records.read(name), name))
            check_names(plan.tables.values(), ("tables/",), name)
            check_plain(plan.heard.get("requests", ()), "", name)
        except ForeignNameError:
            raise
        except (CheckpointError, TypeError, AttributeError):
            return None  # Torn while being written: the epoch never began.
        return plan

    def tables_named(self) -> list[dict[str, str]]:
        """The snapshots of tables that each plan still there names."""
        plans = [self.plan_of(_number(n)) for n in self._epochs("plan")]
        return [p.tables for p in plans if p is not None]

    def snapshot(self, epoch: int) -> dict[str, Any]:
        if epoch == 0:
            return {}
        name = f"snapshots/{epoch:06d}.json"
        try:
            return unseal(self.records.read(name), f"{self.storage.url}/{name}")
        except (CheckpointError, FileNotFoundError):
            raise CheckpointError(
                f"checkpoint '{self.storage.url}': {name} is missing or damaged",
                hint="restore it from a backup; nothing has been changed",
            ) from None

    def write_plan(self, plan: EpochPlan) -> None:
        """Write down what an epoch will be. `settle_plan` has to come before its manifest."""
        self.guard()
        self.records.write(f"epochs/{plan.epoch:06d}.plan.json", seal(plan.to_json()), sync=False)
        reach("planned")
        self.guard()

    def settle_plan(self, plan: EpochPlan) -> None:
        """Wait until a plan is on the disk."""
        self.records.sync([f"epochs/{plan.epoch:06d}.plan.json"])

    def write_snapshot(self, epoch: int, positions: dict[str, Any]) -> None:
        self.records.write(f"snapshots/{epoch:06d}.json", seal(positions))

    def write_commit(self, manifest: Manifest) -> None:
        reach("commit")
        self.guard()
        self.records.write(f"epochs/{manifest.epoch:06d}.commit.json", seal(manifest.to_json()))
        reach("committed")
        # Whoever takes over from now on finds this manifest, so what it names may be published.
        self.guard()

    def retire(self, manifest: Manifest, gone: Iterable[str]) -> None:
        """Delete what no manifest within reach names any more: old records, and `gone`, runs dropped two epochs ago.

        The manifest before the newest stays usable, should the newest be damaged.
        """
        old = manifest.epoch - KEEP
        with contextlib.suppress(CheckpointError, OSError):
            for name in gone:
                self.storage.delete(name)
            if old >= 1:
                self.records.delete(f"epochs/{old:06d}.plan.json")
                self.records.delete(f"epochs/{old:06d}.commit.json")
        reach("retired")

    def retire_snapshots(self, newest: int) -> None:
        for name in self._snapshots():
            if _number(name) < newest - SNAPSHOT_EVERY:
                self.records.delete(f"snapshots/{name}")

    def sweep(self, keep: set[str], manifest: Manifest) -> list[str]:
        """Delete every file of state and results that is not named in `keep`; returns their names.

        Records that a crash kept from being retired go too. What is not named as Penstock names files is left alone.
        """
        files = [name for folder in ("state", "results", "rehearsal") for name in self.storage.tree(folder)]
        orphans = [name for name in files if name not in keep and is_ours(name)]
        old = [f"epochs/{n}" for kind in ("plan", "commit") for n in self._epochs(kind)]
        old = [n for n in old if _number(n) <= manifest.epoch - KEEP]
        for name in self._snapshots():
            if not -SNAPSHOT_EVERY <= _number(name) - manifest.snapshot <= 0:
                old.append(f"snapshots/{name}")
        # An inbox belongs to Spark's own query, and messages come from anywhere: they may be written right now.
        partial = [n for n in self.storage.tree() if is_partial(n) and not n.startswith("control/requests/")]
        reach("sweep")
        # Now, not before: if nobody has taken over, all that was listed is older than what somebody else may write.
        self.guard()
        for name in (*orphans, *partial):
            self.storage.delete(name)
        for name in old:
            self.records.delete(name)
        return [*orphans, *old]

    def _epochs(self, kind: str) -> list[str]:
        found = (m for n in self.records.names("epochs") if (m := RECORD.fullmatch(n)) and m[2] == kind)
        return sorted((m[0] for m in found), key=_number)

    def _snapshots(self) -> list[str]:
        return [n for n in self.records.names("snapshots") if SNAPSHOT.fullmatch(n)]


def _number(name: str) -> int:
    return int(name.rpartition("/")[2].partition(".")[0])


def named_by(manifest: Manifest) -> set[str]:
    """The files of the checkpoint that a manifest needs."""
    return run_names(manifest.units) | {o.staged for o in manifest.outputs}
