"""What is said of an aggregate whose answer does not fit its type."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from penstock.errors import FailingError, OverflowingError, PenstockError
from penstock.kernels.duck import query

_HINT = "cast the argument to decimal(38,0), as in sum(cast(x as decimal(38,0)))"


def culprit(finals: Sequence[tuple[str, str, pa.DataType]], resolved: pa.Table) -> str:
    """Which aggregate it was that overflowed: each is tried alone."""
    for name, sql, _ in finals:
        try:
            query(f"SELECT {sql} FROM partials", partials=resolved)
        except FailingError:
            return name
    return "?"


def too_large(operator_id: str, aggregate: str, error: Exception) -> OverflowingError:
    """The error for an aggregate, such as `sum(x) AS total`."""
    detail = error.message if isinstance(error, PenstockError) else str(error)
    return OverflowingError(f"{operator_id}: {aggregate} is too large: {detail}", hint=_HINT)
