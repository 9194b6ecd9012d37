"""Compaction: many small runs of a unit become one, beside the epochs, never in their way.

A compaction starts from the runs of one manifest. While it works, epochs may close windows and so consume prefixes of
those same runs. The compacted run is sorted like they are, so its own prefix up to the same frontier is done as well;
its table of contents tells how many rows that is. If an epoch rewrote or added to what was compacted in any other
way, the result is thrown away.
"""

from __future__ import annotations

import pickle
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from penstock.checkpoint.runs import StoredRun, UnitKey, Units, read_run, write_run
from penstock.engine.tasks.job import Job
from penstock.errors import PenstockError
from penstock.kernels.fold import is_tickable, sort_by, ticks
from penstock.kernels.stateful import Merging

#: A unit is compacted when it has more runs than this.
MANY = 8
#: So many rows are compacted in one go, and more only if a single unit has more.
PIECE = 1 << 18


@dataclass(frozen=True)
class Compacted:
    """A unit's runs `before`, as they were, and the one that may replace them."""

    key: UnitKey
    before: tuple[StoredRun, ...]
    after: StoredRun
    contents: tuple[tuple[int, int], ...] = ()


def candidates(units: Units, many: int = MANY) -> list[tuple[UnitKey, tuple[StoredRun, ...]]]:
    """What is worth compacting: of each unit with many runs, the small ones, so that a row is rewritten rarely.

    >>> k = UnitKey("aggregate-1", 0)
    >>> runs = tuple(StoredRun(f"r{i}", rows=10, bytes=100, epoch=i) for i in range(9))
    >>> [(str(key), len(some)) for key, some in candidates({k: runs})]
    [('aggregate-1/0/0', 9)]
    """
    chosen = []
    for key, runs in sorted(units.items()):
        if len(runs) > many:
            ordered = sorted(runs, key=lambda r: r.live)
            some = [ordered[0]]
            for run in ordered[1:]:
                if len(some) >= many // 2 and run.live > 2 * sum(r.live for r in some):
                    break
                some.append(run)
            chosen.append((key, tuple(r for r in runs if r in some)))
    return chosen


def piece(units: Units, many: int = MANY, most: int = PIECE) -> list[tuple[UnitKey, tuple[StoredRun, ...]]]:
    """What to compact next: the units with the most runs, as far as that is quickly done.

    Who is passed over gets more runs meanwhile, so the turn of a large unit comes, too.

    >>> small, large = (tuple(StoredRun(f"r{i}", n, 100, epoch=i) for i in range(9 + n // 10)) for n in (10, 30))
    >>> units = {UnitKey("aggregate-1", 0): small, UnitKey("aggregate-1", 1): large, UnitKey("aggregate-1", 2): small}
    >>> [str(key) for key, _ in piece(units, most=250)]
    ['aggregate-1/1/0']
    >>> [str(key) for key, _ in piece(units, most=500)]
    ['aggregate-1/1/0', 'aggregate-1/0/0']
    """
    chosen: list[tuple[UnitKey, tuple[StoredRun, ...]]] = []
    left = most
    for key, runs in sorted(candidates(units, many), key=lambda c: -len(units[c[0]])):
        rows = sum(r.live for r in runs)
        if chosen and rows > left:
            break
        chosen.append((key, runs))
        left -= rows
    return chosen


def compact(job: Job, work: Iterable[bytes]) -> Iterator[bytes]:
    """Inside a task: compact units."""
    assert job.checkpoint is not None
    done = list(_compacted(job, work))
    job.checkpoint.sync(c.after.name for c in done)
    yield from (pickle.dumps(c) for c in done)


def _compacted(job: Job, work: Iterable[bytes]) -> Iterator[Compacted]:
    assert job.checkpoint is not None
    for record in list(work):
        key, runs = pickle.loads(record)
        kernel = job.pipeline().keepers[key.operator].kernel
        assert isinstance(kernel, Merging)
        try:
            merged = kernel.merge([read_run(job.checkpoint, key, r) for r in runs])
        except PenstockError:
            continue  # An epoch dropped one of them meanwhile: there is nothing left to win.
        table = sort_by(merged, kernel.closing)
        column = table[kernel.closing] if kernel.closing is not None else None
        if column is None or not is_tickable(column.type) or column.null_count or not len(column):
            run = write_run(job.checkpoint, key, job.epoch, table, None, None)
            yield Compacted(key, runs, run)
            continue
        values = ticks(column)
        ends = [*((values[1:] != values[:-1]).nonzero()[0] + 1).tolist(), len(values)]
        run = write_run(job.checkpoint, key, job.epoch, table, int(values[0]), int(values[-1]))
        contents = tuple((int(values[e - 1]), int(e)) for e in ends)
        yield Compacted(key, runs, run, contents)


def install(
    units: Units, results: Sequence[Compacted], frontiers: dict[str, int | None]
) -> tuple[Units, list[StoredRun]]:
    """The units with compacted runs in place, and the compacted runs that came too late.

    `frontiers` gives, per operator, the last label that is closed (inclusive).
    """
    out = dict(units)
    rejected: list[StoredRun] = []
    for result in results:
        now = {r.name: r for r in out.get(result.key, ())}
        frontier = frontiers.get(result.key.operator)
        survivors = [now.get(r.name) for r in result.before]
        moved = any(s is None or s.skip != r.skip for s, r in zip(survivors, result.before, strict=True))
        skip = 0
        if moved:
            if frontier is None or not result.contents:
                rejected.append(result.after)
                continue
            at = bisect_right([label for label, _ in result.contents], frontier)
            skip = result.contents[at - 1][1] if at else 0
            expected = sum(s.live for s in survivors if s is not None)
            if not _explained(result, survivors, frontier) or (expected == 0) != (skip == result.after.rows):
                rejected.append(result.after)
                continue
        gone = {r.name for r in result.before}
        kept = tuple(r for r in out.get(result.key, ()) if r.name not in gone)
        after = replace(result.after, skip=skip)
        if after.live:
            out[result.key] = (*kept, after)
        else:
            rejected.append(result.after)
            if kept:
                out[result.key] = kept
            else:
                out.pop(result.key, None)
    return out, rejected


def _explained(result: Compacted, survivors: Sequence[StoredRun | None], frontier: int) -> bool:
    """Whether the frontier alone explains what became of the runs: one that is gone lay wholly at or below it."""
    return all(
        s is not None or (r.high is not None and r.high <= frontier)
        for s, r in zip(survivors, result.before, strict=True)
    )
