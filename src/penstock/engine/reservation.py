"""What is settled before Spark starts: the checkpoint is this run's, fits its query, and the sinks are its own.

Starting Spark takes a while. Whoever is refused should be told at once, and nothing should have been changed for them.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import uuid
from collections.abc import Mapping
from dataclasses import dataclass

from penstock.analysis.turning import as_held_back
from penstock.checkpoint.checkpoint import Checkpoint
from penstock.checkpoint.lock import Lock
from penstock.checkpoint.names import BESIDE_SINK, refuse_links
from penstock.checkpoint.storage import Storage, below, seal, unseal
from penstock.engine.own_files import WrittenFolder, refuse_reading_own_files
from penstock.engine.settings import Settings
from penstock.engine.sink.folder import OWNER, FileTarget, FolderTarget
from penstock.engine.sink.hive import folder_of
from penstock.engine.sink.target import BoundTarget, Target
from penstock.engine.source.folder import Folder
from penstock.errors import CheckpointError, UserError
from penstock.operators.sink.operator import Sink
from penstock.operators.source.operator import Source
from penstock.plan.plan import Plan
from penstock.plan.promise import Files


@dataclass(frozen=True)
class Reservation:
    """A checkpoint that is locked, and the targets that are bound to it."""

    plan: Plan
    storage: Storage
    lock: Lock
    targets: Mapping[str, BoundTarget]
    temporary: bool = False

    def release(self) -> None:
        for target in self.targets.values():
            target.close()
        self.lock.release()

    def discard(self) -> None:
        """Throw a checkpoint away that nobody has named."""
        if self.temporary:
            shutil.rmtree(self.storage.base, ignore_errors=True)


def reserve(plan: Plan, *, checkpoint: str | None, dead_letters: str | None, settings: Settings) -> Reservation:
    """Take what a run needs, or say why it cannot have it."""
    sinks: dict[str, Target] = {n.id: n.operator.target for n in plan.sinks if isinstance(n.operator, Sink)}
    homes = [t.home for t in sinks.values() if t.home is not None]
    temporary = checkpoint is None and not homes
    if checkpoint is None and homes and len(sinks) > 1:
        raise UserError(
            f"{len(sinks)} sinks are written together, and no checkpoint is named, from which a later start goes on",
            hint="name a folder for it: ps.start([…], checkpoint='checkpoints/traffic')",
        )
    if checkpoint is None:
        checkpoint = tempfile.mkdtemp(prefix="penstock-") if temporary else below(homes[0], BESIDE_SINK)
    # What is thrown away at the end need not survive anything.
    storage = Storage.at(checkpoint, settings.durability == "commit" and not temporary)
    lock = Lock(storage)
    try:
        letters = FileTarget(dead_letters or below(storage.url, "dead_letters"), "parquet")
        bound = {i: t.bind(i, storage) for i, t in sinks.items()}
        targets = {**bound, "dead": letters.bind("dead", storage)}
        _refuse_one_folder_twice(bound, targets["dead"], letters.path)
        refuse_reading_own_files(plan, _written(storage, bound, targets["dead"]))
        _make(storage, settings.checkpoint_mode)
        lock.acquire()
        refuse_links(storage)
        records = Checkpoint(storage, lock.records)
        plan = records.refitted(as_held_back(plan, records.described))
        sinks = {n.id: n.operator.target for n in plan.sinks if isinstance(n.operator, Sink)}
        targets = {**{i: t.bind(i, storage) for i, t in sinks.items()}, "dead": targets["dead"]}
        for each in targets.values():
            each.records = lock.records
        records.check(plan)  # Before any folder is claimed in its name.
        _look_at_sources(plan)
        identity = _identity(storage)
        for each in targets.values():
            each.claim(identity, fresh=records.is_fresh)
    except BaseException as error:
        cause = lock.cause_of(error)
        lock.release()
        if temporary:
            shutil.rmtree(checkpoint, ignore_errors=True)
        if cause is not error:
            raise cause from error
        raise
    return Reservation(plan, storage, lock, targets, temporary)


def _refuse_one_folder_twice(sinks: Mapping[str, BoundTarget], letters: BoundTarget, path: str) -> None:
    # A driver's target keeps its results in the checkpoint, in a folder of their own.
    folders = [t.staging.storage for t in sinks.values() if isinstance(t, FolderTarget)]
    if any(_same(folder, letters.staging.storage) for folder in folders):
        raise UserError(f"dead_letters '{path}' is the folder of the results", hint="name another folder")
    for k, folder in enumerate(folders):
        if any(_same(folder, other) for other in folders[:k]):
            raise UserError(f"two sinks write to '{folder.url}'", hint="name a folder of its own for each")


def _written(storage: Storage, sinks: Mapping[str, BoundTarget], letters: BoundTarget) -> list[WrittenFolder]:
    found = []
    for results in sinks.values():
        if isinstance(results, FolderTarget):
            by = "".join(f"{folder_of(c, None)}/" for c in results.staging.partition_by)
            result = f"{by}part-000001-b1000.{results.staging.format}"
            found.append(WrittenFolder("sink", results.storage, (result,)))
    names = ("meta.json", "epochs/000001.plan.json", "state/aggregate-1/0/000001-0-0.arrow", "results/000001.arrow")
    found.append(WrittenFolder("checkpoint", storage, names))
    found.append(WrittenFolder("dead_letters", letters.staging.storage, ("part-000001-s000.parquet",)))
    return found


def _make(storage: Storage, mode: int) -> None:
    """The folder of a checkpoint: what is in it concerns nobody else, unless somebody says so."""
    try:
        if storage.local and not os.path.isdir(storage.base):
            os.makedirs(os.path.dirname(storage.base), exist_ok=True)
            with contextlib.suppress(FileExistsError):
                os.mkdir(storage.base, mode)
        storage.make()
    except OSError as error:
        raise CheckpointError(
            f"cannot make checkpoint '{storage.url}': {error}",
            hint="name a folder that can be written to: start(…, checkpoint=…) or --checkpoint",
        ) from error


def _look_at_sources(plan: Plan) -> None:
    """Say now that a path does not exist."""
    for node in plan.sources:
        source = node.operator
        if isinstance(source, Source) and isinstance(source.reader, Files):
            Folder(source.name, source.reader).candidates()


def _same(one: Storage, other: Storage) -> bool:
    """Whether two folders are one, whatever they are called."""
    if one.local and other.local:
        return os.path.realpath(one.base) == os.path.realpath(other.base)
    return one.base == other.base and one.filesystem.equals(other.filesystem)


def _identity(storage: Storage) -> str:
    """The name a checkpoint goes by in the folders it writes to."""
    if not storage.exists("identity.json"):
        # Where two runs may write it at once, both must write the same.
        name = uuid.uuid4() if storage.local else uuid.uuid5(uuid.NAMESPACE_URL, storage.url)
        storage.write("identity.json", seal({"id": _claimed(storage) or name.hex}))
    try:
        return str(unseal(storage.read("identity.json"), "identity.json")["id"])
    except (CheckpointError, KeyError) as error:
        if (known := _claimed(storage)) is not None:
            return known
        raise CheckpointError(
            f"checkpoint '{storage.url}': identity.json is damaged",
            hint=f"restore it from a backup, or delete it, and {OWNER} in the folders of the results and dead letters",
        ) from error


def _claimed(storage: Storage) -> str | None:
    """The name in which the checkpoint's own folder of dead letters was claimed."""
    try:
        return str(unseal(storage.read(f"dead_letters/{OWNER}"), OWNER)["checkpoint"])
    except (CheckpointError, FileNotFoundError, KeyError):
        return None
