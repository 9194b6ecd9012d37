"""Values as restrictions hold them: plain for their type, least and greatest, and those that cannot be named."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import date, datetime
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from penstock.errors import UserError
from penstock.pattern.types import TIMESTAMP, integer_range

#: The class of the canonical values of a type, where being of that class is (nearly) all there is to check.
CLASSES: dict[pa.DataType, type] = {
    pa.int8(): int,
    pa.int16(): int,
    pa.int32(): int,
    pa.int64(): int,
    pa.float64(): float,
    pa.string(): str,
    pa.binary(): bytes,
    pa.date32(): date,
    TIMESTAMP: datetime,
}
#: The least and the greatest value of types that have them.
EDGES: dict[pa.DataType, tuple[Any, Any]] = {
    **{t: integer_range(t) for t in (pa.int8(), pa.int16(), pa.int32(), pa.int64())},
    pa.date32(): (date.min, date.max),
    TIMESTAMP: (datetime.min, datetime.max),
}
#: What JSON holds as it is.
PLAIN_IN_JSON = {int, str}


def ticks_of(values: Sequence[Any], t: pa.DataType) -> npt.NDArray[np.int64] | None:
    """Values as integers of which neighbours differ by one; None where the type has no neighbours, or wide ones.

    >>> ticks_of([date(1970, 1, 2), date(1970, 1, 3)], pa.date32()).tolist(), ticks_of(["a", "b"], pa.string())
    ([1, 2], None)
    """
    if pa.types.is_integer(t):
        return np.array(values, dtype=np.int64)
    if t == TIMESTAMP or pa.types.is_date(t):
        counted = pa.array(values, t).cast(pa.int64() if t == TIMESTAMP else pa.int32())
        return np.asarray(counted.to_numpy(), dtype=np.int64)
    return None


def check_namable(value: Any) -> None:
    if value is None:
        raise UserError("a restriction cannot name null", hint="null is matched by * alone")
    if isinstance(value, float) and math.isnan(value):
        raise UserError("a restriction cannot name NaN", hint="`> inf` matches NaN alone")


def without_nulls(mask: pa.Array | pa.ChunkedArray) -> pa.BooleanArray:
    """A mask that is false where a value is null: null is matched by `*` alone."""
    filled = pc.fill_null(mask, False)
    return filled.combine_chunks() if isinstance(filled, pa.ChunkedArray) else filled
