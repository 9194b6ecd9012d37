"""One epoch of an operator with state, in one bucket: from files to a kernel and back to files.

This is the only way to state, for all operators: here runs are read, purged and written, and a kernel decides on rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.checkpoint.runs import Change, UnitKey, Units, apply, read_marks, read_run, write_run, write_table
from penstock.engine.tasks.compaction import compacted
from penstock.engine.tasks.pipeline import Keeper
from penstock.engine.tasks.room import FULL, no_room
from penstock.engine.tasks.watch import Watch
from penstock.kernels.fold import matching
from penstock.kernels.stateful import (
    DEAD,
    Answer,
    Choosing,
    Circumstances,
    Failing,
    Fresh,
    Heeding,
    Held,
    Merging,
    Orders,
    Stateful,
    Stepped,
    Weighing,
    Word,
)
from penstock.pattern.pattern import Pattern
from penstock.plan.place import Place

if TYPE_CHECKING:
    from penstock.engine.tasks.job import Job
    from penstock.engine.tasks.merge import Merge
    from penstock.engine.tasks.report import TaskReport


def step_bucket(
    job: Job,
    merging: Merge,
    keeper: Keeper,
    bucket: int,
    fresh: Sequence[pa.Table | None],
    report: TaskReport,
    watch: Watch,
    emit: Callable[[pa.Table], None],
) -> pa.Table | None:
    """Take rows into state and carry out orders; the results, if there are any, but for those `emit` was given."""
    orders = merging.orders[keeper.id]
    asked = any(orders.ask)
    purges = [job.purges.get(place, ()) for place in keeper.places]
    # What somebody no longer wants of the results may concern groups in state, which are looked at once for it.
    everywhere = any(purges) or (keeper.groups and bool(job.purges.get(Place(keeper.id))))
    if not asked and not any(orders.release) and not everywhere and all(f is None for f in fresh):
        return None
    before, keys = _held(job, merging, keeper, bucket, orders, everywhere)
    held: Sequence[Sequence[Held]] = before
    if any(purges):
        held, purged = _purged(before, purges)
        report.count(report.saved, f"{keeper.id} purged", purged)
    if all(f is None for f in fresh) and not any(before):
        _answer_empty(keeper, orders, report)
        return None
    emitted = report.counts.get(keeper.id, 0)
    kernel = keeper.kernel
    if isinstance(kernel, Heeding):
        kernel = kernel.under(_circumstances(job, merging, keeper, bucket, everywhere, emit))
    step = _run(job, keeper.id, kernel, fresh, held, orders)
    if isinstance(kernel, Failing):
        watch.failed(keeper.id, kernel.failed_schema, kernel.failed)
    if held is not before:
        step = _rewritten(step, before, held)
    changes = list(_store(job, keeper, bucket, step, keys))
    if isinstance(kernel, Merging) and not job.rehearsal:
        changes += _compacted(job, merging, keeper, bucket, kernel, changes, fresh)
    report.changes += changes
    _tell(keeper, step, asked, report)
    results = report.counts.get(keeper.id, 0) - emitted + step.output.num_rows
    report.uses |= dict.fromkeys({*keys.values(), *_units(keeper, bucket, step)}, results)
    return step.output if step.output.num_rows else None


def _run(
    job: Job,
    keeper_id: str,
    kernel: Stateful,
    fresh: Sequence[pa.Table | None],
    held: Sequence[Sequence[Held]],
    orders: Orders,
) -> Stepped:
    some = [[r for r in runs if r.rows.num_rows] for runs in held]
    try:
        return kernel.step(fresh, some, orders)
    except FULL:
        rows = sum(f.num_rows for f in fresh if f is not None)
        heaviest = kernel.heaviest(fresh, some) if isinstance(kernel, Weighing) else None
        raise no_room(keeper_id, job.memory, rows, heaviest) from None


def _circumstances(
    job: Job, merging: Merge, keeper: Keeper, bucket: int, everywhere: bool, emit: Callable[[pa.Table], None]
) -> Circumstances:
    def waiting() -> list[int]:
        rows = [0] * job.buckets
        for key, runs in merging.units.items():
            if key.operator == keeper.id:
                rows[key.bucket] += sum(run.live for run in runs)
        return rows

    return Circumstances(
        epoch=job.epoch,
        bucket=bucket,
        rehearsal=job.rehearsal,
        told=job.told.get(keeper.id, Word()),
        waiting=waiting,
        everywhere=everywhere,
        closed=merging.closed.get(keeper.id),
        emit=emit,
    )


def _tell(keeper: Keeper, step: Stepped, asked: bool, report: TaskReport) -> None:
    """What a step has found out, beside its results."""
    if asked:
        report.answers.setdefault(keeper.id, []).append(step.answers)
    issued = [(port, f.to_json()) for port, f in (*step.wished, *((0, f) for f in step.issued))]
    if issued:
        report.issued.setdefault(keeper.id, []).extend(issued)
    if step.doomed:
        report.doomed.setdefault(keeper.id, []).extend(p.to_json() for p in step.doomed)
    for name, count in step.counts.items():
        report.work[f"{keeper.id} {name}"] = report.work.get(f"{keeper.id} {name}", 0) + count


def _held(
    job: Job, merging: Merge, keeper: Keeper, bucket: int, orders: Orders, everywhere: bool
) -> tuple[list[list[Held]], dict[str, UnitKey]]:
    """The runs of each port that the kernel has to see."""
    assert job.checkpoint is not None
    count = len(keeper.edges)
    ports: dict[str, int] = {Place.stored(keeper.id, port, count): port for port in range(count)}
    choosing = keeper.kernel if isinstance(keeper.kernel, Choosing) and not everywhere else None
    held: list[list[Held]] = [[] for _ in keeper.edges]
    keys: dict[str, UnitKey] = {}
    for key, runs in merging.units.items():
        if key.bucket != bucket or key.operator not in ports:
            continue
        for run in runs:
            if choosing is not None and not choosing.touches(run.low, run.high, orders):
                continue
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


def _rewritten(step: Stepped, before: Sequence[Sequence[Held]], held: Sequence[Sequence[Held]]) -> Stepped:
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


def _store(job: Job, keeper: Keeper, bucket: int, step: Stepped, keys: dict[str, UnitKey]) -> Iterator[Change]:
    assert job.checkpoint is not None
    yield from (Change(keys[name], dropped=(name,)) for name in step.dropped)
    yield from (Change(keys[name], skipped=((name, rows),)) for name, rows in step.skipped)
    for name, marks in step.marked:
        file = write_table(job.checkpoint, keys[name], job.epoch, marks, "marks-")
        yield Change(keys[name], marked=((name, file, dead_rows(marks)),))
    for run, key in zip(step.added, _units(keeper, bucket, step), strict=True):
        stored = write_run(job.checkpoint, key, job.epoch, run.rows, run.low, run.high)
        change = Change(key, added=(stored,))
        if run.marks is not None:
            file = write_table(job.checkpoint, key, job.epoch, run.marks, "marks-")
            change = Change(key, added=(stored,), marked=((stored.name, file, dead_rows(run.marks)),))
        yield change


def _compacted(
    job: Job,
    merging: Merge,
    keeper: Keeper,
    bucket: int,
    kernel: Merging,
    changes: Sequence[Change],
    fresh: Sequence[pa.Table | None],
) -> Iterator[Change]:
    """What the manifest will name, with fewer runs."""
    assert job.checkpoint is not None
    mine: Units = {k: runs for k, runs in merging.units.items() if k.operator == keeper.id and k.bucket == bucket}
    many = job.told.get(keeper.id, Word()).laziness.merge_above
    new = sum(f.num_rows for f in fresh if f is not None)
    return compacted(job.checkpoint, kernel, job.epoch, apply(mine, changes), many, new)


def _units(keeper: Keeper, bucket: int, step: Stepped) -> list[UnitKey]:
    """The units that get new runs, one for each of these."""
    return [UnitKey(Place.stored(keeper.id, r.port, len(keeper.edges)), bucket, r.group) for r in step.added]


def dead_rows(marks: pa.Table) -> int:
    """How many rows are of no further use."""
    return int(pc.sum(marks[DEAD]).as_py() or 0) if DEAD in marks.column_names else 0


def live_rows(rows: pa.Table, marks: pa.Table | None) -> pa.Table:
    """The rows of a run that still count."""
    return rows if marks is None or DEAD not in marks.column_names else rows.filter(pc.invert(marks[DEAD]))


def _answer_empty(keeper: Keeper, orders: Orders, report: TaskReport) -> None:
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
