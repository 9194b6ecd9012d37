"""Planning: which files an epoch reads, under what guards and with which tables. It is written down before it runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc

from penstock.checkpoint.checkpoint import EpochPlan
from penstock.engine.epoch.begun import Places
from penstock.engine.epoch.measuring import look_at_backlogs
from penstock.engine.inverted_tables import read_after_all
from penstock.engine.source.formats.footer import measured_attribute
from penstock.engine.source.formats.read import read
from penstock.engine.source.listing import open_reader, reader_options
from penstock.engine.source.split import Split
from penstock.engine.unread import check_unread
from penstock.feedback.account import write_table
from penstock.kernels.ticks import from_tick, to_tick
from penstock.pattern.pattern import Pattern
from penstock.pattern.restriction import between
from penstock.plan.place import Place
from penstock.plan.promise import EndOfSource

if TYPE_CHECKING:
    from penstock.engine.epoch.driver import Driver


#: So many rows of a stream are looked at to see where it begins.
FIRST_LOOK = 1_000


def choose(driver: Driver, epoch: int) -> EpochPlan | None:
    """The plan of the next epoch; None if there is nothing to do."""
    splits: dict[str, list[dict[str, Any]]] = {}
    # First, because it decides what need not be read. If there is nothing to do, the next plan is under it.
    control, news = driver.feedback.freeze(epoch)
    guards = driver.feedback.under(control)
    before = driver.inverted.tables(guards, driver.bounded)
    unwanted, preferred = driver.inverted.patterns(guards, before or {}), guards.preferred
    shedder = driver.shedder
    shed = None
    if shedder.active:
        shed = shedder.plan_epoch(driver.feedback.shedding, driver.final, oldest(driver), driver.statistics)
        if (table := shedder.new_table()) is not None:
            write_table(driver.checkpoint.storage, table)
    places = {} if shed is None else driver.shedder.patterns(epoch, shed)
    for node_id, reader in driver.readers.items():
        found = reader.plan(
            driver.settings.max_rows,
            driver.settings.max_bytes,
            driver.parallelism,
            driver.bounded,
            guard=(*unwanted.get(Place(node_id), ()), *places.get(Place(node_id), ())),
            prefer=preferred.get(node_id, ()),
            steady=node_id in driver.steady,
        )
        if found:
            splits[node_id] = [s.to_json() for s in told_apart(driver, node_id, found, unwanted, places)]
        if reader.concerned is not None:
            given_up = {id(p) for p in places.get(Place(node_id), ())}
            unwanted[Place(node_id)] = tuple(p for p in reader.concerned if id(p) not in given_up)
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
    return replace(plan, dial=dial, sinks=sinks, shed={} if shed is None else shed.to_json())


def oldest(driver: Driver) -> dict[str, int]:
    """By source and attribute the oldest tick in the first rows of streams that begin, if shedding is to know it."""
    found: dict[str, int] = {}
    if not driver.shedder.begins or driver.manifest.epoch or driver.planned:
        return found
    for node_id, names in driver.shedder.clocks.items():
        source = driver.sources[node_id]
        reader = open_reader(source, driver.inboxes.get(node_id), lenient=True)
        measured = measured_attribute(source.schema, source.promises)
        for split in reader.plan(FIRST_LOOK, None, 1, driver.bounded):
            if split.low is not None and names == (measured,):
                # The file says so itself.
                name = f"{node_id}.{measured}"
                found[name] = min(split.low, found.get(name, split.low))
            elif split.format == "generated" or not split.unreadable:
                rows = read(split, source.schema, names, source.promises, reader_options(source)).table
                ticks = {name: pc.min(rows[name]).as_py() for name in names} if rows.num_rows else {}
                for name, least in ticks.items():
                    if least is not None:
                        known = found.get(f"{node_id}.{name}")
                        tick = to_tick(least)
                        found[f"{node_id}.{name}"] = tick if known is None else min(tick, known)
    return found


def told_apart(
    driver: Driver, node_id: str, splits: Sequence[Split], unwanted: Places, places: Places
) -> Sequence[Split]:
    """The splits, with those marked that are spared not because nobody wants them but because it would be too much."""
    mine, shed = unwanted.get(Place(node_id), ()), places.get(Place(node_id), ())
    if not shed:
        return splits
    schema = driver.sources[node_id].schema
    name = measured_attribute(schema, driver.sources[node_id].promises)

    def given_up(split: Split) -> bool:
        if not mine:
            return True
        if name is None or split.low is None or split.high is None:
            return False
        t = schema.type_of(name)
        whole = between(from_tick(split.low, t), from_tick(split.high, t), True, True)
        return any(p.contains(Pattern.by_name(schema, {name: whole})) for p in shed)

    return [replace(s, shed=True) if s.spared and given_up(s) else s for s in splits]


def _says_when_over(driver: Driver, source: str) -> bool:
    return any(isinstance(p, EndOfSource) for p in driver.sources[source].promises)
