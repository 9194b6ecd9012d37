"""Compaction of runs that nobody need see: small ones become one, in the step of their bucket and in its proportion.

Most kernels see all of their runs, and merge them as they go. Those that see only what an epoch touches (`Merging`)
leave it to this module, which chooses by what the manifest tells, and reads nothing else.

Rows of a group that is still open come again and again, so merging has to reach every run in the end. Yet no epoch may
rewrite all that is held. So a merged run that is large is cut in two by a hash of its groups, and each half is filed as
a unit of its own (`UnitKey.share`). What is merged above them later sinks into these halves, and so on: rows meet in
ever smaller units, of which an epoch merges one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from penstock.checkpoint.runs import Change, StoredRun, UnitKey, Units, read_run, write_run
from penstock.checkpoint.storage import Storage
from penstock.kernels.fold import sort_by, span_of
from penstock.kernels.hash import Hashes, hash_keys
from penstock.kernels.stateful import Merging
from penstock.kernels.tiers import tier

#: Runs of more rows are left alone, unless so many times as many have just come; a merged run of more is cut.
LARGE, TIMES = 1 << 16, 4
#: So many times merged rows are halved in one go, and halves may at most be so small: the files are not to be many.
DEPTH, SMALLEST = 3, 1 << 48


def due(units: Units, many: int, large: int) -> tuple[UnitKey, tuple[StoredRun, ...]] | None:
    """What to merge next: runs of the unit that has the most too many; None if none has.

    >>> few, more = (tuple(StoredRun(f"r{i}", n, 100, epoch=i) for i in range(n)) for n in (9, 10))
    >>> key, runs = due({UnitKey("aggregate-1", 0): few, UnitKey("aggregate-1", 0, 7): more}, 8, LARGE)
    >>> str(key), len(runs)
    ('aggregate-1/0/7', 10)
    """
    found: list[tuple[int, UnitKey, tuple[StoredRun, ...]]] = []
    for key, runs in units.items():
        # Where rows meet again, few runs keep groups from being held many times over.
        most = many if key.share == 1 else many // 3
        if chosen := tier([r.live for r in runs], most, large):
            found.append((most - len(runs), key, tuple(runs[i] for i in sorted(chosen))))
    return min(found)[1:] if found else None


def compacted(storage: Storage, kernel: Merging, epoch: int, units: Units, many: int, new: int) -> Iterator[Change]:
    """Merge some runs of one of the units of a bucket, if one has too many, after an epoch that brought `new` rows."""
    large = max(LARGE, TIMES * new)
    # What has just been written need not be read and written again.
    older = {k: tuple(r for r in runs if r.epoch < epoch and r.marks is None) for k, runs in units.items()}
    if (work := due(older, many, large)) is None:
        return
    key, runs = work
    yield Change(key, dropped=tuple(r.name for r in runs))
    rows = sort_by(kernel.merge([read_run(storage, key, r) for r in runs]), kernel.closing)
    beside = {k.share for k in units if k.group == key.group}
    for share, part in _sunk(rows, hash_keys(rows, kernel.grouping), key.share, beside, large):
        unit = replace(key, share=share)
        yield Change(unit, added=(write_run(storage, unit, epoch, part, *span_of(part, kernel.closing)),))


def _sunk(rows: pa.Table, hashes: Hashes, share: int, shares: set[int], large: int) -> Iterator[tuple[int, pa.Table]]:
    """Rows by the shares that they are of: halves where there are halves, or where there are too many."""
    cut = {s >> k for s in shares for k in range(1, s.bit_length())}

    def halves(share: int, at: npt.NDArray[np.intp], depth: int) -> Iterator[tuple[int, pa.Table]]:
        if depth and share < SMALLEST and (share in cut or len(at) > large):
            bit = (hashes[at] >> np.uint64(64 - share.bit_length())) & np.uint64(1)
            for half in (0, 1):
                yield from halves(2 * share + half, at[bit == half], depth - 1)
        elif len(at):
            yield share, rows.take(pa.array(at)) if len(at) < rows.num_rows else rows

    yield from halves(share, np.arange(rows.num_rows), DEPTH)
