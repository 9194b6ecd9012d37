"""How much of a split a task reads and works on at once.

Events that become few groups are best taken half a million at a time: what is read and computed of one piece lies in
memory that the piece before has used, and the system need not clear more of it. Events that stay many are taken all at
once: their groups would have to be put together again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import accumulate

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.engine.source.place import locate
from penstock.engine.source.split import Split

#: Events of a piece, and how many of them have to become one for this to pay.
PIECE, FEW = 1 << 19, 10


@dataclass
class Portion:
    """How many events to take at once: first a piece, then what the first has shown to be best, but at most `most`.

    >>> portion = Portion(4_000_000)
    >>> portion.rows, portion.saw(500_000, 400_000), portion.rows
    (524288, None, 4000000)
    """

    most: int
    rows: int = field(init=False)

    def __post_init__(self) -> None:
        self.rows = min(self.most, PIECE)

    def saw(self, events: int, left: int) -> None:
        """So many events have come to so many rows."""
        self.rows = min(self.most, PIECE) if left * FEW <= events else self.most


def pieces(split: Split, portion: Portion) -> Iterator[Split]:
    """A split as several of fewer row groups, each of the size that is best when it is its turn.

    Of files that are far away more is fetched at once.
    """
    groups = split.row_groups
    place = locate(split.path) if len(groups) > 1 and split.stop - split.start > portion.rows else None
    if place is None or not place.local:
        yield split
        return
    try:
        with place.filesystem.open_input_file(place.path) as handle:
            found = pq.read_metadata(handle)
        ends = list(accumulate((found.row_group(i).num_rows for i in range(found.num_row_groups)), initial=0))
        bounds = [(ends[g], ends[g + 1]) for g in groups]
    except (OSError, pa.ArrowException, IndexError):
        yield split  # Who reads it says what is wrong.
        return
    at = 0
    while at < len(groups):
        end = at + 1
        while end < len(groups) and bounds[end][1] - bounds[at][0] <= portion.rows:
            end += 1
        start, stop = max(split.start, bounds[at][0]), min(split.stop, bounds[end - 1][1])
        if start < stop:
            yield replace(split, row_groups=groups[at:end], start=start, stop=stop, rows=stop - start)
        at = end
