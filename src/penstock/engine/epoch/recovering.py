"""Recovering: from what a crash has left to the newest whole manifest, and to the epochs that were planned after it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.checkpoint.checkpoint import named_by
from penstock.checkpoint.intact import DamagedError
from penstock.checkpoint.runs import run_names
from penstock.engine.epoch.committing import publish, sweep_tables
from penstock.engine.epoch.fall_back import can_fall_back, usable
from penstock.engine.epoch.left_out import refuse_left_out, settle_left_out
from penstock.engine.epoch.submitting import sweep_depots
from penstock.engine.source.frontier import PromiseState
from penstock.engine.source.sameness import changed_file
from penstock.engine.source.split import Split
from penstock.errors import CheckpointError
from penstock.statistics.measured import RunStatistics

if TYPE_CHECKING:
    from penstock.engine.epoch.driver import Driver


def recover(driver: Driver, damaged: DamagedError | None = None) -> None:
    """Go to the newest whole manifest, publish what it names, sweep what nobody names.

    If something that it names is `damaged`, or found to be, go to the one before it and run its epoch again.
    """
    sweep_depots()
    wanted = driver.settings.buckets or driver.parallelism
    driver.buckets = driver.checkpoint.open(driver.plan, max(1, wanted))
    newest = driver.checkpoint.latest()
    if newest is not None:
        settle_left_out(driver, newest)
    found = None if newest is None else usable(driver.checkpoint, driver.targets, newest, damaged)
    if found is not None and found.epoch:
        driver.manifest = found
        driver.statistics = RunStatistics.from_json(found.measured)
        snapshot = driver.checkpoint.snapshot(found.snapshot)
        driver.deltas = {i: list(found.deltas.get(i, [])) for i in driver.sources}
        for node_id, reader in driver.readers.items():
            reader.restore(snapshot.get(node_id), driver.deltas[node_id])
        for node_id, stored in found.promises.items():
            driver.promises[node_id] = PromiseState.from_json(driver.sources[node_id], stored)
        driver.propagation.restore(found.punctuation.get("unions", {}))
        driver.told = driver.propagation.told
        driver.closed = dict(found.punctuation.get("closed", {}))
        known = found.punctuation.get("final", {})
        driver.final = {i: final.restored(known.get(i, {})) for i, final in driver.final.items()}
        if (done := driver.checkpoint.plan_of(found.epoch)) is not None:
            driver.table_keeper.restore(done.tables)
        driver.shedder.restore(found.shed, found.epoch)
        driver.feedback.restore(found.control, found.feedback, found.epoch)
        if found is newest:
            publish(driver, found)
    driver.planned = driver.manifest.epoch
    _take_up_plans(driver, 0 if newest is None else newest.epoch)
    if driver.bounded:
        for reader in driver.readers.values():
            reader.fix()
    # Now that nothing is left that has to be done as it was.
    driver.checkpoint.adopt(driver.plan)
    driver.sweep()


def _take_up_plans(driver: Driver, newest: int) -> None:
    """Epochs that were planned and did not happen are run as planned.

    Only input that was never read decides whether a plan still holds, so one whose files have changed since is
    made anew, and with it those after it. Not so if the epoch has a manifest, though a damaged one: its results
    may have been delivered. `newest` is the last one with a whole manifest.
    """
    epoch = driver.manifest.epoch + 1
    while (plan := driver.checkpoint.plan_of(epoch)) is not None:
        splits = [Split.from_json(s) for splits in plan.splits.values() for s in splits]
        if driver.unread.stands_in(splits) and not driver.checkpoint.has_record(epoch):
            break
        if plan.plan != driver.plan.fingerprint:
            if driver.checkpoint.has_record(epoch):
                raise CheckpointError(
                    f"epoch {epoch} has to be run again as it was, and the query was changed since",
                    hint="start the query once as it was before, then the changed one",
                )
            break
        if epoch > newest and driver.checkpoint.has_record(epoch):
            refuse_left_out(driver, plan)
        changed = changed_file(splits)
        if changed is not None and not driver.checkpoint.has_record(epoch):
            driver.checkpoint.warnings.append(f"'{changed}' changed after epoch {epoch} was planned: planned anew")
            break
        driver.stored[epoch] = plan
        epoch += 1
    driver.feedback.give_back(driver.checkpoint.plans_after(epoch - 1))
    driver.checkpoint.forget_plans(epoch - 1)
    if driver.stored:
        driver.feedback.take_up(driver.stored[epoch - 1].control, driver.manifest.epoch)


def sweep(driver: Driver) -> list[str]:
    """Delete orphans: what crashed epochs left behind. Returns their names."""
    keep = named_by(driver.manifest)
    # The manifest before stays usable, should this one be damaged: what only it needs goes after the next commit.
    before = driver.checkpoint.before(driver.manifest)
    spare = named_by(before) - keep if before is not None else set()
    driver.feedback.sweep(before.control if before is not None else driver.manifest.control)
    orphans = driver.checkpoint.sweep(keep | spare, driver.manifest)
    if driver.tables:
        orphans += sweep_tables(driver)
    for target in driver.targets.values():
        orphans += target.sweep(keep, driver.manifest.epoch, driver.checkpoint.guard)
    driver.gone = sorted(n for n in spare if n.startswith(("state/", "results/")))
    return orphans


def can_mend(driver: Driver, error: DamagedError) -> bool:
    """Whether a damaged file can be had again: a table is read anew, a run comes out of its epoch once more."""
    if error.name.startswith("tables/"):
        return driver.table_keeper.mend(driver.checkpoint.storage, error.name)
    named = run_names(driver.manifest.units)
    return error.name in named and can_fall_back(driver.checkpoint, driver.manifest, error.name)
