"""One epoch back: what the newest manifest names is damaged, and the manifest before it, with the plan, gives it anew.

At a start every run must be there in its full size, and what the newest epoch wrote (runs, marks, results) must match
its checksums. Everything older was looked at before, or is when it is read. If something is wrong and the manifest
before does not need it, the epoch is run again, as after a crash: under the same plan, so with the same results under
the same names, and nothing is delivered twice. The manifest before that may name files that are gone, so nobody goes
back further.
"""

from __future__ import annotations

from collections.abc import Mapping

from penstock.checkpoint.checkpoint import Checkpoint, Manifest
from penstock.checkpoint.intact import DamagedError, damage
from penstock.checkpoint.runs import run_files
from penstock.engine.sink.target import BoundTarget
from penstock.errors import CheckpointError


def usable(
    checkpoint: Checkpoint, targets: Mapping[str, BoundTarget], newest: Manifest, found: DamagedError | None = None
) -> Manifest:
    """The manifest to go on from: the newest, or the one before it if something is wrong (or was `found` to be)."""
    before = _before(checkpoint, newest)
    if found is None:
        found = _damaged_state(checkpoint, newest, before) or _damaged_results(targets, newest)
    _refuse_damaged_results(checkpoint, targets, newest)
    if found is None:
        return newest
    if not can_fall_back(checkpoint, newest, found.name):
        raise found
    assert before is not None
    # What looks damaged to a writer that was replaced while it slept has been retired by the one that replaced it.
    checkpoint.guard()
    checkpoint.warnings.append(f"{found.message}: epoch {newest.epoch} is run again")
    for name, target in targets.items():
        target.withdraw([o for o in newest.outputs if o.sink == name])
    return before


def can_fall_back(checkpoint: Checkpoint, newest: Manifest, name: str) -> bool:
    """Whether an epoch can be run again to replace a file that its manifest names."""
    before = _before(checkpoint, newest)
    if before is None or checkpoint.plan_of(newest.epoch) is None:
        return False
    needed = run_files(before.units)
    return name not in needed and not any(damage(checkpoint.storage, f, deep=False) for f in needed.values())


def _before(checkpoint: Checkpoint, newest: Manifest) -> Manifest | None:
    return Manifest(epoch=0) if newest.epoch == 1 else checkpoint.before(newest)


def _damaged_state(checkpoint: Checkpoint, newest: Manifest, before: Manifest | None) -> DamagedError | None:
    storage = checkpoint.storage
    if not storage.local:
        return None  # Each look would be a request. Damage is found when a run is read, and that is early enough.
    known = run_files(before.units) if before is not None else {}
    for key, runs in sorted(newest.units.items()):
        for run in runs:
            for file in run.files:
                if (why := damage(storage, file, deep=file.name not in known)) is not None:
                    return DamagedError(
                        f"operator {key.operator}, bucket {key.bucket}: state run {storage.path(file.name)} of epoch "
                        f"{run.epoch} is missing or damaged: {why}",
                        name=file.name,
                        hint="restore the file from a backup of the checkpoint; the checkpoint itself is unchanged",
                    )
    return None


def _damaged_results(targets: Mapping[str, BoundTarget], newest: Manifest) -> DamagedError | None:
    for name, target in targets.items():
        for output in newest.outputs:
            if output.sink == name and (why := target.damage(newest.epoch, output)) is not None:
                return DamagedError(
                    f"sink {name}: result {output.final} of epoch {newest.epoch} is missing or damaged: {why}",
                    name=output.staged,
                    hint="restore the file from a backup; nothing has been changed",
                )
    return None


def _refuse_damaged_results(checkpoint: Checkpoint, targets: Mapping[str, BoundTarget], newest: Manifest) -> None:
    """Results of the epochs before cannot be had again. One that is gone may have been taken away by its reader."""
    replaced = {(o.sink, o.final) for o in newest.outputs}
    for manifest in checkpoint.older_than(newest):
        for output in manifest.outputs:
            target = targets.get(output.sink) if (output.sink, output.final) not in replaced else None
            replaced.add((output.sink, output.final))
            if target is not None and (path := target.damaged_part(output)) is not None:
                raise CheckpointError(
                    f"'{path}' is damaged: it is not what epoch {manifest.epoch} has written, "
                    "and that lies too far back to be run again",
                    hint="restore it from a backup, or move it away to go on without its rows",
                )
