"""Where the events of a scan come from: what is told of them should an expression fail on one.

Of columnar files only those attributes are read that the query looks at. A dead letter is there to find, mend and send
again what was lost, so it shows all of them: they are read once more, when something has failed and not before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from penstock.engine.source.formats.fit import Mask
from penstock.engine.source.formats.read import Batch
from penstock.engine.source.pruning.guard import apply_guard
from penstock.engine.tasks.watch import FILE
from penstock.pattern.pattern import Pattern


@dataclass(frozen=True)
class Origin:
    """The file of some events, how many they are, and how to get them whole; None if they are."""

    file: str
    rows: int
    whole: Callable[[], pa.Table] | None = None


def origin(file: str, batch: Batch, kept: Mask | None, guard: Sequence[Pattern], rows: int) -> Origin:
    """The origin of the rows of a batch that were kept and that no guard has dropped."""
    fetch = batch.whole
    if fetch is None:
        return Origin(file, rows)
    # Not the batch: what was rejected of it need not be held.
    held = batch.table.num_rows

    def whole() -> pa.Table:
        events = fetch(np.arange(held) if kept is None else np.flatnonzero(kept))
        return apply_guard(events, guard)[0] if guard else events

    return Origin(file, rows, whole)


def with_origin(events: pa.Table, origins: Sequence[Origin]) -> pa.Table:
    """The events with all their attributes, and beside each the file it comes from.

    >>> with_origin(pa.table({"a": [1, 2]}), [Origin("x.csv", 1), Origin("y.csv", 1)]).to_pydict()
    {'a': [1, 2], '__file': ['x.csv', 'y.csv']}
    """
    if not origins:
        return events
    if any(o.whole is not None for o in origins):
        starts = np.cumsum([0, *(o.rows for o in origins)]).tolist()
        events = pa.concat_tables(
            [events.slice(at, o.rows) if o.whole is None else o.whole() for at, o in zip(starts, origins)]
        )
    names = pa.array([o.file for o in origins]).take(
        pa.array(np.repeat(np.arange(len(origins)), [o.rows for o in origins]))
    )
    return events.append_column(FILE, names)
