"""Measuring an epoch: from the reports of its tasks to the statistics of the run."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from penstock.engine.epoch.begun import Begun
from penstock.engine.tasks.account import Account
from penstock.engine.tasks.report import TaskReport
from penstock.statistics.figures import EpochFigures
from penstock.statistics.measured import RunStatistics

if TYPE_CHECKING:
    from penstock.engine.epoch.driver import Driver

#: Seconds between two looks at what waits to be read.
LOOK = 1.0


def look_at_backlogs(driver: Driver) -> None:
    """See what is there and was not planned, if somebody has not just done so."""
    now = time.monotonic()
    if now - driver.looked >= LOOK:
        driver.looked = now
        driver.backlog = {i: r.backlog() for i, r in driver.readers.items()}


def measured(driver: Driver, begun: Begun, reports: Sequence[TaskReport]) -> RunStatistics:
    """The statistics of a run with one more epoch."""
    account = Account()
    for report in reports:
        account.add(report.account)
    # What comes to a source is all that it reads, whatever guards leave of it.
    read = dict.fromkeys(driver.sources, 0)
    for report in reports:
        for source, told in report.promises:
            read[source] += told["rows"]
    began, driver.began = driver.began, begun.began
    now = EpochFigures(
        rows_in={**account.rows_in, **{i: n for i, n in read.items() if n or i in account.rows_in}},
        rows_out=account.rows_out,
        cpu=account.cpu,
        seconds=time.perf_counter() - begun.began,
        since=0.0 if began is None else begun.began - began,
        every=driver.every,
        cores=driver.parallelism,
        backlog=driver.backlog,
        spared={
            source: sum(s["rows"] or 0 for s in splits if s["spared"]) for source, splits in begun.plan.splits.items()
        },
    )
    return driver.statistics.after(now)
