"""Answers on demand: what would come out if all streams ended now.

`now […]` asks for the best there is. A rehearsal gives every operator the punctuation that its input is over, on the
state that the last epoch left, and runs the real merge, flows and kernels. What reaches the sink is the answer; what
it does to state is thrown away. So partial results are what the operators themselves would say, and the final ones
come later as if nobody had asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from penstock.analysis.propagate import Propagation
from penstock.checkpoint.storage import Storage
from penstock.engine.sink.target import Staging
from penstock.engine.spark import jobs
from penstock.engine.tasks.job import Job
from penstock.engine.tasks.merge import Merge
from penstock.engine.tasks.report import TaskReport
from penstock.kernels.stateful import Word
from penstock.pattern.pattern import Pattern
from penstock.plan.behaviour import empty_orders
from penstock.plan.spec import traits_of

if TYPE_CHECKING:
    from penstock.engine.epoch.driver import Driver


def rehearse(driver: Driver, job: Job, asked: Sequence[tuple[str, Pattern]]) -> list[pa.Table]:
    """For each sink and demanded pattern the results that match it, as they would be if everything ended here."""
    wanted = {sink for sink, _ in asked}
    found = {sink: driver.plan[sink].operator.schema.arrow.empty_table() for sink in wanted}
    if driver.manifest.units and driver.pipeline.levels:
        storage = driver.checkpoint.storage
        stagings = {name: Staging(name, storage, "rehearsal", "arrow") for name in driver.targets}
        storage.make("rehearsal")
        propagation = Propagation(driver.plan)
        propagation.restore(driver.propagation.to_json())
        # What waits in a queue is not there yet: the answer is about the rest.
        queues = {n.id: n.operator for n in driver.plan if n.inputs and traits_of(n.operator).queues}
        for queue in queues:
            propagation.behaviours[queue] = propagation.behaviours[queue].unqueued()
        propagation.run({i: [Pattern.all(s.schema)] for i, s in driver.sources.items()})
        idle = {i: empty_orders([q.inputs[0].schema]) for i, q in queues.items()}
        merging = Merge(driver.manifest.units, {**idle, **propagation.orders()}, driver.closed)
        # As the next epoch would go, if it brought nothing but the end.
        nobody = Word()
        told = {
            i: replace(job.told.get(i, nobody), said=driver.told.get(i), sweep=()) for i in {**job.told, **driver.told}
        }
        job = replace(job, stagings=stagings, purges={}, told=told, rehearsal=True)
        reports = jobs.merge_alone(driver.spark.sparkContext, job, merging, None, driver.pipeline.levels)
        try:
            for report in reports:
                if report.error is not None:
                    raise report.error
            for sink, none in list(found.items()):
                tables = [_read(storage, o.staged) for r in reports for o in r.outputs if o.sink == sink]
                found[sink] = pa.concat_tables([none, *(t.cast(none.schema) for t in tables)])
        finally:
            _clean(storage, reports)
    return [found[sink].filter(p.matches(found[sink])) for sink, p in asked]


def _read(storage: Storage, name: str) -> pa.Table:
    with storage.filesystem.open_input_file(storage.path(name)) as file:
        return pa.ipc.open_file(file).read_all()


def _clean(storage: Storage, reports: Sequence[TaskReport]) -> None:
    """Nothing of a rehearsal stays: neither its results nor the state it would have had."""
    for report in reports:
        for output in report.outputs:
            storage.delete(output.staged)
        for change in report.changes:
            for name in change.files:
                storage.delete(name)
