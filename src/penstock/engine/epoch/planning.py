"""Planning: which files an epoch reads, under what guards and with which tables. It is written down before it runs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from penstock.checkpoint.checkpoint import EpochPlan
from penstock.engine.epoch.measuring import look_at_backlogs
from penstock.engine.inverted_tables import read_after_all
from penstock.engine.unread import check_unread
from penstock.plan.place import Place
from penstock.plan.promise import EndOfSource

if TYPE_CHECKING:
    from penstock.engine.epoch.driver import Driver


def choose(driver: Driver, epoch: int) -> EpochPlan | None:
    """The plan of the next epoch; None if there is nothing to do."""
    splits: dict[str, list[dict[str, Any]]] = {}
    # First, because it decides what need not be read. If there is nothing to do, the next plan is under it.
    control, news = driver.feedback.freeze(epoch)
    guards = driver.feedback.under(control)
    before = driver.inverted.tables(guards, driver.bounded)
    unwanted, preferred = driver.inverted.patterns(guards, before or {}), guards.preferred
    for node_id, reader in driver.readers.items():
        found = reader.plan(
            driver.settings.max_rows,
            driver.settings.max_bytes,
            driver.parallelism,
            driver.bounded,
            guard=unwanted.get(Place(node_id), ()),
            prefer=preferred.get(node_id, ()),
            steady=node_id in driver.steady,
        )
        if found:
            splits[node_id] = [s.to_json() for s in found]
        if reader.concerned is not None:
            unwanted[Place(node_id)] = reader.concerned
    ends: list[str] = []
    if driver.bounded:
        over = driver.manifest.ended
        ends = [i for i, r in driver.readers.items() if i not in over and _says_when_over(driver, i) and r.exhausted]
    look_at_backlogs(driver)
    driver.checkpoint.warnings.extend(driver.unread.hear(driver.readers))
    if not splits and not ends and not driver.propagation.pending:
        # What a consumer says is worth an epoch of its own. But who says something after every epoch would keep a
        # run that ends by itself from ending.
        if not news or (driver.bounded and driver.only_heard):
            if driver.bounded:
                check_unread(driver.readers)
            return None
        driver.only_heard = True
    else:
        driver.only_heard = False
    # Partitions that are there but not read yet hold the frontier back, so they belong to what decides an epoch.
    partitions = {i: list(r.partitions) for i, r in driver.readers.items()}
    # After the files were listed, so that events see what was written to a table before them.
    tables = driver.table_keeper.refresh(driver.checkpoint.storage, driver.bounded)
    if before is not None and before != tables:
        unwanted, splits = driver.inverted.patterns(guards, tables), read_after_all(splits)
    driver.to_drop = {place: patterns for place, patterns in unwanted.items() if patterns}
    plan = EpochPlan(epoch, splits, ends, control, driver.plan.fingerprint, partitions, tables, driver.told)
    dial = {source: list(extents) for source, extents in driver.feedback.setting.items()}
    sinks = {n.id: driver.targets[n.id].known(n.operator.detail) for n in driver.plan.sinks}
    return replace(plan, dial=dial, sinks=sinks)


def _says_when_over(driver: Driver, source: str) -> bool:
    return any(isinstance(p, EndOfSource) for p in driver.sources[source].promises)
