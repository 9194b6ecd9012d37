"""Masks of Arrow arrays."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc


def without_nulls(mask: pa.Array | pa.ChunkedArray) -> pa.BooleanArray:
    filled = pc.fill_null(mask, False)
    return filled.combine_chunks() if isinstance(filled, pa.ChunkedArray) else filled
