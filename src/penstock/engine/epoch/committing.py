"""Committing: one record makes an epoch true; then its results are published, and what nobody needs is deleted."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from penstock.checkpoint.checkpoint import Manifest
from penstock.checkpoint.fault import reach
from penstock.checkpoint.runs import apply, run_names
from penstock.checkpoint.use import used
from penstock.engine.epoch.begun import Begun
from penstock.engine.epoch.measuring import measured
from penstock.engine.epoch.shed_account import account_of, told
from penstock.engine.source.inbox import InboxReader
from penstock.engine.source.letter import UNREADABLE
from penstock.engine.source.split import Split
from penstock.engine.source.unreadable import passed_over_letters
from penstock.engine.tally import added, progress, speculation, totals
from penstock.engine.tasks.report import TaskReport
from penstock.feedback.account import write_account

if TYPE_CHECKING:
    from penstock.engine.epoch.driver import Driver


def own_report(driver: Driver, begun: Begun) -> TaskReport:
    """What the plan of an epoch alone amounts to: rows spared, files passed over."""
    report = TaskReport("plan", saved=begun.saved)
    report.account.shed = begun.shed
    if begun.unreadable:
        letters, task = passed_over_letters(begun.unreadable), f"s{len(begun.assignments):03d}"
        report.outputs.extend(driver.targets["dead"].staging.write(letters, begun.plan.epoch, task))
        report.dead = {UNREADABLE: letters.num_rows}
    return report


def commit(driver: Driver, begun: Begun, reports: Sequence[TaskReport], scanned: float) -> None:
    """Make an epoch true, publish its results, and tell whoever listens."""
    epoch = begun.plan.epoch
    units = apply(driver.manifest.units, [c for r in reports for c in r.changes])
    outputs = tuple(o for r in reports for o in r.outputs)
    for node_id, position in begun.positions.items():
        driver.deltas[node_id].append(position)
    snapshot = driver.manifest.snapshot
    if begun.snapshots is not None:
        driver.checkpoint.write_snapshot(epoch, begun.snapshots)
        driver.deltas = {i: [] for i in driver.sources}
        snapshot = epoch
    saved = added(driver.feedback.logged(r.saved) for r in reports)
    driver.statistics = measured(driver, begun, reports)
    driver.shedder.counted(begun, reports)
    manifest = Manifest(
        epoch=epoch,
        units=units,
        promises={i: s.to_json() for i, s in driver.promises.items()},
        punctuation={
            "unions": driver.propagation.to_json(),
            "closed": driver.closed,
            "final": {i: final.to_json() for i, final in driver.final.items()},
        },
        snapshot=snapshot,
        deltas={i: list(d) for i, d in driver.deltas.items()},
        outputs=outputs,
        totals=totals(driver.manifest.totals, reports, outputs, saved),
        ended=(*driver.manifest.ended, *begun.plan.ends),
        control=begun.plan.control,
        feedback=driver.feedback.to_json(begun.plan.control),
        uses=used(driver.manifest.uses, [r.uses for r in reports], epoch, units),
        shed=begun.shed_state,
        measured=driver.statistics.to_json(),
    )
    driver.backstage.clear()
    write_account(driver.checkpoint.storage, epoch, account_of(driver.shedder, begun))
    driver.checkpoint.write_commit(manifest)
    before, driver.manifest = driver.manifest, manifest
    publish(driver, manifest)
    driver.backstage.later(driver.checkpoint.retire, manifest, driver.gone)
    driver.feedback.retire(before.control)
    if begun.snapshots is not None:
        driver.checkpoint.retire_snapshots(epoch)
        if driver.tables:
            sweep_tables(driver)
    staged = [o.staged for o in before.outputs if o.staged.startswith("results/")]
    driver.gone = [*sorted(run_names(before.units) - run_names(units)), *staged]
    _discard_inboxes(driver, begun)
    if driver.listener is not None:
        now = time.perf_counter()
        names = {i: source.name for i, source in driver.sources.items()}
        driver.listener(
            progress(
                manifest,
                reports,
                driver.promises,
                names,
                seconds=now - begun.began,
                scan_seconds=scanned - begun.began,
                merge_seconds=now - scanned,
                waiting=tuple(f"{n}: {why}" for r in driver.readers.values() for n, why in r.waiting),
                saved=saved,
                guards=driver.feedback.guards.size,
                told=driver.feedback.told,
                speculation=speculation(driver.plan, manifest, begun.plan.setting),
                final_up_to={name: final.up_to for name, final in driver.final.items()},
                path="job" if begun.residents is None else "resident",
                measured=driver.statistics,
                shedding=told(driver.shedder, begun),
            )
        )


def _discard_inboxes(driver: Driver, begun: Begun) -> None:
    """Delete batches of Spark streams that lie before the epoch before: only it might have to be run again."""
    for node_id, reader in driver.readers.items():
        if isinstance(reader, InboxReader):
            reader.discard(driver.read_before.get(node_id, ()))
            driver.read_before[node_id] = [Split.from_json(s) for s in begun.plan.splits.get(node_id, ())]


def publish(driver: Driver, manifest: Manifest) -> None:
    """Give every sink its results of an epoch that has happened."""
    driver.checkpoint.guard()
    for name, target in driver.targets.items():
        outputs = [o for o in manifest.outputs if o.sink == name]
        target.publish(manifest.epoch, outputs, driver.spark)
        if name in driver.final:
            target.settle(manifest.epoch, outputs)  # What is final is on the disk before anybody is told so.
            target.mark(manifest.epoch, driver.final[name])
        else:
            driver.backstage.later(target.settle, manifest.epoch, outputs)
    reach("published")


def sweep_tables(driver: Driver) -> list[str]:
    """Delete the snapshots of tables that no plan within reach names."""
    named = driver.checkpoint.tables_named()
    return driver.table_keeper.sweep(driver.checkpoint.storage, named, driver.checkpoint.guard)
