"""Sinks that the last epoch had and this start has not: what is still to be published there must not be lost.

The plan of an epoch names its sinks. A crash between the commit and the last of them leaves results that are staged and
nothing else. If files are meant, they are moved to where they belong, as a run with the sink would do first of all.
What only a function can take, or has to be computed anew for a sink, is refused until the sink has been there again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.checkpoint.checkpoint import EpochPlan, Manifest, Output
from penstock.checkpoint.names import STAGING
from penstock.checkpoint.storage import Storage
from penstock.engine.sink.folder import FolderTarget
from penstock.engine.sink.target import Staging, delivered
from penstock.errors import UserError

if TYPE_CHECKING:
    from penstock.engine.epoch.driver import Driver


def settle_left_out(driver: Driver, newest: Manifest) -> None:
    """Give sinks that are left out now their results of the newest epoch, or refuse to go on without them."""
    plan = driver.checkpoint.plan_of(newest.epoch)
    known = {} if plan is None else plan.sinks
    waiting: list[tuple[FolderTarget, list[Output]]] = []
    for sink in sorted({o.sink for o in newest.outputs} - driver.targets.keys()):
        outputs = [o for o in newest.outputs if o.sink == sink]
        folder = known.get(sink, {}).get("folder")
        if folder is None:
            if delivered(driver.checkpoint.records, sink) < newest.epoch:
                raise _refusal(sink, known, newest.epoch, "have not been delivered")
            continue
        storage = Storage.at(folder, driver.checkpoint.storage.durable)
        target = FolderTarget(Staging(sink, storage, STAGING, "parquet"), driver.checkpoint.records)
        # Whoever has moved or deleted its results wants no more of them.
        staged = [o for o in outputs if storage.exists(o.staged)]
        if any(target.damage(newest.epoch, o) is not None for o in staged):
            raise _refusal(sink, known, newest.epoch, "are damaged and have to be made again")
        if staged:
            waiting.append((target, staged))
    for target, outputs in waiting:
        driver.checkpoint.guard()
        target.publish(newest.epoch, outputs, driver.spark)
        driver.checkpoint.warnings.append(
            f"{target.staging.sink} is left out now: its results of epoch {newest.epoch} were still to be published, "
            f"and are in '{target.storage.url}'"
        )


def refuse_left_out(driver: Driver, plan: EpochPlan) -> None:
    """Refuse to run an epoch again, which has happened, for fewer sinks than it had."""
    for sink in sorted(plan.sinks.keys() - driver.targets.keys()):
        raise _refusal(sink, plan.sinks, plan.epoch, "may have to be made again")


def _refusal(sink: str, known: dict[str, dict[str, str]], epoch: int, why: str) -> UserError:
    what = f"{sink}, {known[sink]['target']}," if sink in known else sink
    return UserError(
        f"{what} is left out, and its results of epoch {epoch} {why}",
        hint="start the query once more with all of its sinks, then without this one",
    )
