"""How far a sequence is out of order, by the definitions of the measures: every pair of values is looked at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from penstock.reference.moment import to_tick


@dataclass(frozen=True)
class Disorder:
    """`places`: how far a value is from its place in the sorted sequence (k-ordering); 0 everywhere is sorted.

    `band`: how much greater than a value an earlier one is (banded increasing). `distance`: how many places lie between
    two values in the wrong order. `overtaken`: how many greater values came before a value, so that a buffer of one
    more sorts the sequence (slack).
    """

    places: int
    band: int
    distance: int
    overtaken: int


def disorder(values: Sequence[Any]) -> Disorder:
    """The disorder of a sequence of moments or numbers; equal ones are never out of order.

    >>> disorder([1, 2, 3, 5, 4, 6, 7, 9, 10, 8])
    Disorder(places=2, band=2, distance=2, overtaken=2)
    """
    ticks = [to_tick(v) for v in values]
    # Stable: among equals the first to arrive has the first place.
    order = sorted(range(len(ticks)), key=ticks.__getitem__)
    wrong = [(i, j) for j in range(len(ticks)) for i in range(j) if ticks[i] > ticks[j]]
    return Disorder(
        places=max((abs(place - i) for place, i in enumerate(order)), default=0),
        band=max((ticks[i] - ticks[j] for i, j in wrong), default=0),
        distance=max((j - i for i, j in wrong), default=0),
        overtaken=max((sum(later == j for _, later in wrong) for j in range(len(ticks))), default=0),
    )
