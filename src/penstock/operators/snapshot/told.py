"""What is told of results: each as often as it holds, and failures once."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from penstock.kernels.failing import Failed
from penstock.kernels.weights import weighted
from penstock.plan.weight import WEIGHT


def as_often(rows: pa.Table, copies: str | None, sign: int) -> pa.Table:
    """Results with their weights: as many as `copies` says, or one of each.

    >>> as_often(pa.table({"k": ["a", "b"], "n": [2, 0]}), "n", -1).to_pydict()
    {'k': ['a'], '_weight': [-2]}
    """
    if copies is None:
        return weighted(rows, sign)
    many = pc.multiply(rows[copies].cast(pa.int64()), sign)
    found = rows.drop_columns([copies]).append_column(WEIGHT, many)
    return found.filter(pc.not_equal(many, 0))


def but(failed: Sequence[Failed], known: Sequence[Failed]) -> list[Failed]:
    """Without what has failed before."""
    before = {(f.text, str(row)) for f in known for row in f.rows.to_pylist()}
    found = []
    for f in failed:
        new = [i for i, row in enumerate(f.rows.to_pylist()) if (f.text, str(row)) not in before]
        found += [Failed(f.rows.take(pa.array(new, pa.int64())), f.text, tuple(f.reasons[i] for i in new))]
    return [f for f in found if f.rows.num_rows]
