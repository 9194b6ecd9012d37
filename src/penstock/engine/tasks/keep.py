"""One epoch of an operator that keeps rows, in one bucket: from files to a kernel and back to files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.checkpoint.runs import Change, UnitKey, read_marks, read_run, write_run, write_table
from penstock.engine.tasks.pipeline import Keeper, port_name
from penstock.engine.tasks.room import FULL, no_room
from penstock.engine.tasks.watch import Watch
from penstock.kernels.fold import matching
from penstock.kernels.stateful import DEAD, Answer, Fresh, Held, Orders, Step
from penstock.operators.impute.kernel import QueueKernel, shares
from penstock.operators.join.kernel import JoinKernel
from penstock.operators.join.operator import Joined
from penstock.operators.multijoin.kernel import MultiJoinKernel
from penstock.operators.rows_join.kernel import RowsJoinKernel
from penstock.pattern.feedback import Feedback, Intent
from penstock.pattern.fit import fitted
from penstock.pattern.pattern import Pattern
from penstock.pattern.restriction import one_of
from penstock.pattern.schema import Attribute, Schema

#: Keys that an impatient join names in one epoch and bucket.
WISHES = 256

if TYPE_CHECKING:
    from penstock.engine.tasks.task import Job, Merge, Report


def step_bucket(
    job: Job,
    merging: Merge,
    keeper: Keeper,
    bucket: int,
    fresh: Sequence[pa.Table | None],
    report: Report,
    watch: Watch,
    emit: Callable[[pa.Table], None],
) -> pa.Table | None:
    """Fold rows into state and carry out orders; the results, if there are any, but for those `emit` was given."""
    orders = merging.orders[keeper.id]
    asked = any(orders.ask)
    purges = [job.purges.get(f"{keeper.id}#{port}", ()) for port in range(len(keeper.edges))]
    if not asked and not any(orders.release) and not any(purges) and all(f is None for f in fresh):
        return None
    before, keys = _held(job, merging, keeper, bucket)
    held: Sequence[Sequence[Held]] = before
    if any(purges):
        held, purged = _purged(before, purges)
        if purged:
            report.saved[f"{keeper.id} purged"] = report.saved.get(f"{keeper.id} purged", 0) + purged
    if all(f is None for f in fresh) and not any(before):
        _answer_empty(keeper, orders, report)
        return None
    kernel = keeper.kernel
    if isinstance(kernel, JoinKernel | MultiJoinKernel):
        kernel = kernel.lazily(job.laziness)
    if isinstance(kernel, JoinKernel):
        kernel = kernel.noting(emit)
    elif isinstance(kernel, RowsJoinKernel):
        kernel = kernel.noting()
    elif isinstance(kernel, QueueKernel):
        kernel = kernel.taking(_turns(job, merging, keeper.id, kernel.most)[bucket])
        kernel = kernel.preferring(job.preferred.get(keeper.id, ()))
    some = [[r for r in runs if r.rows.num_rows] for runs in held]
    try:
        step = kernel.step(fresh, some, orders)
    except FULL:
        rows = sum(f.num_rows for f in fresh if f is not None)
        heaviest = kernel.heaviest(fresh, some) if isinstance(kernel, JoinKernel) else None
        raise no_room(keeper.id, job.memory, rows, heaviest) from None
    if isinstance(kernel, JoinKernel | RowsJoinKernel) and kernel.failed:
        watch.failed(keeper.id, pair_schema(kernel.join), kernel.failed)
    if held is not before:
        step = _rewritten(step, before, held)
    _store(job, keeper, bucket, step, keys, report)
    if asked:
        report.answers.setdefault(keeper.id, []).append(step.answers)
    if keeper.impatient:
        report.issued.setdefault(keeper.id, []).extend(_waiting(keeper, step))
    if step.issued:
        report.issued.setdefault(keeper.id, []).extend((0, f.to_json()) for f in step.issued)
    for name, count in step.counts.items():
        report.work[f"{keeper.id} {name}"] = report.work.get(f"{keeper.id} {name}", 0) + count
    return step.output if step.output.num_rows else None


def pair_schema(join: Joined) -> Schema:
    """The attributes of a pair of events, under the names a residual predicate knows them by."""
    return Schema(tuple(Attribute(n, join.inputs[side].schema.type_of(a)) for side, a, n in join.pair))


def _turns(job: Job, merging: Merge, queue: str, budget: int) -> list[int]:
    """How many rows of a queue have their turn in this epoch, by bucket: every task comes to the same numbers."""
    if job.rehearsal:
        return [0] * job.buckets
    waiting = [0] * job.buckets
    for key, runs in merging.units.items():
        if key.operator == queue:
            waiting[key.bucket] += sum(run.live for run in runs)
    return shares(budget, waiting, job.epoch)


def _waiting(keeper: Keeper, step: Step) -> list[tuple[int, Any]]:
    """What rows that wait for a partner would like to come first on the other side: a list of keys, as a wish."""
    found: list[tuple[int, Any]] = []
    for port, names in enumerate(keeper.impatient):
        stored = [run.rows[names[0]] for run in step.added if run.port == port and names[0] in run.rows.column_names]
        values = pc.unique(pa.chunked_array(stored)).drop_null()[:WISHES].to_pylist() if stored else []
        values = [v for v in values if v == v]
        if values:
            other, name = keeper.impatient_schemas[1 - port], keeper.impatient[1 - port][0]
            wish = Pattern.by_name(other, {name: fitted(one_of(values), other.type_of(name))})
            found += [(1 - port, Feedback(Intent.DESIRED, wish).to_json())] if not wish.is_empty else []
    return found


def _held(job: Job, merging: Merge, keeper: Keeper, bucket: int) -> tuple[list[list[Held]], dict[str, UnitKey]]:
    assert job.checkpoint is not None
    count = len(keeper.edges)
    ports = {port_name(keeper.id, port, count): port for port in range(count)}
    held: list[list[Held]] = [[] for _ in keeper.edges]
    keys: dict[str, UnitKey] = {}
    for key, runs in merging.units.items():
        if key.bucket != bucket or key.operator not in ports:
            continue
        for run in runs:
            rows, marks = read_run(job.checkpoint, key, run), read_marks(job.checkpoint, key, run)
            held[ports[key.operator]].append(Held(run.name, rows, marks, key.group, run.low, run.high))
            keys[run.name] = key
    return held, keys


def _purged(
    held: Sequence[Sequence[Held]], purges: Sequence[Sequence[Pattern]]
) -> tuple[Sequence[Sequence[Held]], int]:
    """State without the rows that match, and how many that were. Runs with none of them stay the same objects."""
    out: list[list[Held]] = []
    purged = 0
    for runs, patterns in zip(held, purges, strict=True):
        out.append([])
        for run in runs:
            # What speaks of attributes that are not stored cannot be told from state; the guards see to it.
            told = [p for p in patterns if set(p.restricted) <= set(run.rows.column_names)]
            live = live_mask(run)
            gone = pc.and_(live, matching(run.rows, told)) if told else None
            if gone is None or not pc.any(gone).as_py():
                out[-1].append(run)
                continue
            # What is dead already goes with it: kernels that keep the order of a run count on dead rows being first.
            keep = pc.and_(live, pc.invert(gone))
            purged += pc.sum(gone).as_py()
            names = [n for n in run.marks.column_names if n != DEAD] if run.marks is not None else []
            marks = run.marks.select(names).filter(keep) if run.marks is not None and names else None
            out[-1].append(replace(run, rows=run.rows.filter(keep).combine_chunks(), marks=marks))
    return (out, purged) if purged else (held, 0)


def _rewritten(step: Step, before: Sequence[Sequence[Held]], held: Sequence[Sequence[Held]]) -> Step:
    """The step of a kernel that was shown purged runs, in terms of the runs that are stored."""
    dropped, marked, added = list(step.dropped), dict(step.marked), list(step.added)
    skipped = dict(step.skipped)
    for port, (old, new) in enumerate(zip(before, held, strict=True)):
        for was, run in zip(old, new, strict=True):
            if was is run or run.name in step.dropped:
                continue
            dropped.append(run.name)
            marks, rows = marked.pop(run.name, run.marks), run.rows.slice(skipped.pop(run.name, 0))
            if rows.num_rows:
                added.append(Fresh(port, rows, run.group, run.low, run.high, marks))
    return replace(
        step,
        dropped=tuple(dropped),
        marked=tuple(marked.items()),
        added=tuple(added),
        skipped=tuple(skipped.items()),
    )


def live_mask(run: Held) -> pa.BooleanArray:
    """Which rows of a run still count."""
    if run.marks is None or DEAD not in run.marks.column_names:
        return pa.array(np.ones(run.rows.num_rows, dtype=bool))
    return pc.invert(run.marks[DEAD]).combine_chunks()


def _store(job: Job, keeper: Keeper, bucket: int, step: Step, keys: dict[str, UnitKey], report: Report) -> None:
    assert job.checkpoint is not None
    report.changes.extend(Change(keys[name], dropped=(name,)) for name in step.dropped)
    report.changes.extend(Change(keys[name], skipped=((name, rows),)) for name, rows in step.skipped)
    for name, marks in step.marked:
        file = write_table(job.checkpoint, keys[name], job.epoch, marks, "marks-")
        report.changes.append(Change(keys[name], marked=((name, file, dead_rows(marks)),)))
    for run in step.added:
        key = UnitKey(port_name(keeper.id, run.port, len(keeper.edges)), bucket, run.group)
        stored = write_run(job.checkpoint, key, job.epoch, run.rows, run.low, run.high)
        change = Change(key, added=(stored,))
        if run.marks is not None:
            file = write_table(job.checkpoint, key, job.epoch, run.marks, "marks-")
            change = Change(key, added=(stored,), marked=((stored.name, file, dead_rows(run.marks)),))
        report.changes.append(change)


def dead_rows(marks: pa.Table) -> int:
    """How many rows are of no further use."""
    return int(pc.sum(marks[DEAD]).as_py() or 0) if DEAD in marks.column_names else 0


def live_rows(rows: pa.Table, marks: pa.Table | None) -> pa.Table:
    """The rows of a run that still count."""
    return rows if marks is None or DEAD not in marks.column_names else rows.filter(pc.invert(marks[DEAD]))


def _answer_empty(keeper: Keeper, orders: Orders, report: Report) -> None:
    if any(orders.ask):
        nothing = tuple(tuple(Answer(0) for _ in asked) for asked in orders.ask)
        report.answers.setdefault(keeper.id, []).append(nothing)


def combined(answers: Sequence[Sequence[Sequence[Answer]]]) -> tuple[tuple[Answer, ...], ...]:
    """The answers of all buckets together.

    >>> combined([[[Answer(1, 5)]], [[Answer(2, 3)]]])
    ((Answer(rows=3, latest=5, least=None, left=None),),)
    """
    return tuple(
        tuple(
            Answer(
                sum(a.rows for a in same),
                max((a.latest for a in same if a.latest is not None), default=None),
                min((a.least for a in same if a.least is not None), default=None),
                frozenset().union(*left) if (left := [a.left for a in same if a.left is not None]) else None,
            )
            for same in zip(*port, strict=True)
        )
        for port in zip(*answers, strict=True)
    )
