"""Answers on demand: what would come out if all streams ended now.

`now […]` asks for the best there is. A rehearsal gives every operator the punctuation that its input is over, on the
state that the last epoch left, and runs the real merge, flows and kernels. What reaches the sink is the answer; what
it does to state is thrown away. So partial results are what the operators themselves would say, and the final ones
come later as if nobody had asked.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.algebra.behave import empty_orders
from penstock.algebra.operator import Impute
from penstock.algebra.pattern import Pattern
from penstock.algebra.propagate import Propagation
from penstock.engine import jobs
from penstock.engine.sink.target import Staging
from penstock.engine.storage import Storage, seal, unseal
from penstock.engine.task import Job, Merge, Report
from penstock.errors import PenstockError, UserError

if TYPE_CHECKING:
    from penstock.engine.epoch import Driver

#: Answers that stay in the checkpoint.
KEEP = 100
#: The marks of a partial result.
PARTIAL, AS_OF = "partial", "as_of_epoch"


def rehearse(driver: Driver, job: Job, patterns: Sequence[Pattern]) -> list[pa.Table]:
    """For each demanded pattern the results that match it, as they would be if everything ended here."""
    (sink,) = driver.plan.sinks
    schema = driver.plan[sink.inputs[0]].operator.schema
    found = schema.arrow.empty_table()
    if driver.manifest.units and driver.pipeline.levels:
        storage = driver.checkpoint.storage
        stagings = {name: Staging(name, storage, "rehearsal", "arrow") for name in (sink.id, "dead")}
        storage.make("rehearsal")
        propagation = Propagation(driver.plan)
        propagation.restore(driver.propagation.to_json())
        # What waits in a queue is not there yet: the answer is about the rest.
        queues = {n.id: n.operator for n in driver.plan if isinstance(n.operator, Impute)}
        for queue in queues:
            propagation.behaviours.pop(queue, None)
        over = propagation.run({i: [Pattern.all(s.schema)] for i, s in driver.sources.items()})
        closers = {i: over[i] for i in driver.pipeline.exchanges if over[i]}
        idle = {i: empty_orders([q.inputs[0].schema]) for i, q in queues.items()}
        merging = Merge(driver.manifest.units, closers, {**idle, **propagation.orders()}, driver.closed)
        # As the next epoch would go, if it brought nothing but the end.
        job = replace(job, stagings=stagings, purges={}, sweeps={}, floors=driver.floors, rehearsal=True)
        reports = jobs.merge_alone(driver.spark.sparkContext, job, merging, None, driver.pipeline.levels)
        try:
            for report in reports:
                if report.error is not None:
                    raise report.error
            tables = [_read(storage, o.staged) for r in reports for o in r.outputs if o.sink == sink.id]
            found = pa.concat_tables([found, *(t.cast(found.schema) for t in tables)])
        finally:
            _clean(storage, reports)
    return [found.filter(p.matches(found)) for p in patterns]


def _read(storage: Storage, name: str) -> pa.Table:
    with storage.filesystem.open_input_file(storage.path(name)) as file:
        return pa.ipc.open_file(file).read_all()


def _clean(storage: Storage, reports: Sequence[Report]) -> None:
    """Nothing of a rehearsal stays: neither its results nor the state it would have had."""
    for report in reports:
        for output in report.outputs:
            storage.delete(output.staged)
        for change in report.changes:
            for run in change.added:
                storage.delete(run.name)
            for _, file, _ in change.marked:
                storage.delete(file)


def marked(table: pa.Table, epoch: int) -> pa.Table:
    """Results with the marks of partial ones: they are not final, and as of which epoch.

    >>> marked(pa.table({"n": [1]}), 7).to_pylist()
    [{'n': 1, 'partial': True, 'as_of_epoch': 7}]
    """
    count = table.num_rows
    table = table.append_column(PARTIAL, pa.repeat(True, count))
    return table.append_column(AS_OF, pa.repeat(pa.scalar(epoch, pa.int64()), count))


def store_answers(storage: Storage, tables: Mapping[str, pa.Table]) -> None:
    """Leave the answers to demands, by their ids, where whoever asked will look for them."""
    storage.make("partials")
    for name, table in tables.items():
        path = f"partials/{name}.parquet"
        with storage.filesystem.open_output_stream(storage.path(f"{path}.partial")) as stream:
            pq.write_table(table, stream)
        storage.move(f"{path}.partial", path)
    _forget(storage, tables)


def refuse(storage: Storage, names: Collection[str], error: PenstockError) -> None:
    """Leave word that demands cannot be answered, and why."""
    for name in names:
        storage.write(f"partials/{name}.refused.json", seal({"why": error.message, "hint": error.hint}), sync=False)
    _forget(storage, names)


def _forget(storage: Storage, just_now: Collection[str]) -> None:
    """Answers are kept for a while: somebody may not have looked yet."""
    old = [n for n in storage.oldest_first("partials") if n.partition(".")[0] not in just_now]
    for name in old[: max(0, len(old) + len(just_now) - KEEP)]:
        storage.delete(f"partials/{name}")


def answer(storage: Storage, name: str) -> pa.Table | None:
    """The answer to a demand, None as long as there is none. That there will be none is an error."""
    path, refused = f"partials/{name}.parquet", f"partials/{name}.refused.json"
    if not storage.exists(path):
        if storage.exists(refused):
            body = unseal(storage.read(refused), refused)
            why = f"the results as they are now cannot be computed: {body['why']}"
            raise UserError(why, hint=body["hint"] or "the final results are not affected: wait for them")
        return None
    return pq.read_table(storage.path(path), filesystem=storage.filesystem)


def answers(storage: Storage) -> list[pa.Table]:
    """All answers there are, oldest first."""
    names = [n.removesuffix(".parquet") for n in storage.oldest_first("partials") if n.endswith(".parquet")]
    return [t for n in names if (t := answer(storage, n)) is not None]
