"""What is there of a source and has not been read: from what its reader knows anyway, without looking at the files."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

from penstock.engine.source.folder import FoundFile
from penstock.engine.source.formats.footer import Footer
from penstock.engine.source.formats.splits import TextShape
from penstock.engine.source.stretch import Stretch
from penstock.statistics.figures import Backlog


def backlog_of(
    files: Sequence[FoundFile],
    taken: Callable[[str], Sequence[Stretch]],
    shapes: Mapping[str, tuple[int, int, Footer | TextShape]],
) -> Backlog:
    """What is left of files of which parts may be `taken`. Rows of those that nobody has opened are estimated.

    They are taken to be as long as those of the others. Where none has been opened, nothing is known of rows.
    """
    rows, known, size = 0.0, 0.0, 0.0
    for file in files:
        shape = shapes.get(file.name, (0, 0, None))[2]
        read = sum(stop - start for start, stop in taken(file.name))
        if isinstance(shape, Footer):
            left = file.size * (1 - read / shape.rows) if shape.rows else 0.0
            rows, known = rows + shape.rows - read, known + left
        else:
            left = max(0.0, float(file.size - read))
            if shape is not None:
                rows, known = rows + left / shape.bytes_per_row, known + left
        size += left
    oldest = min((f.mtime_ns for f in files), default=None)
    age = 0.0 if oldest is None else max(0.0, time.time() - oldest / 1e9)
    estimated = 0 if not size else None if not known else round(rows * size / known)
    return Backlog(estimated, round(size), age)
