"""The kernel of pace: each row goes one way, and the greatest time is that of all of them."""

from __future__ import annotations

from datetime import date, datetime, timedelta

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.operators.pace.kernel import pace

_KINDS = {
    "tinyint": (pa.int8(), lambda n: n),
    "bigint": (pa.int64(), lambda n: n),
    "date": (pa.date32(), lambda n: date(1970, 1, 1) + timedelta(days=n)),
    "timestamp": (pa.timestamp("us"), lambda n: datetime(1970, 1, 1) + timedelta(microseconds=n)),
}


@given(
    st.sampled_from(sorted(_KINDS)),
    st.lists(st.one_of(st.none(), st.integers(-128, 127)), max_size=9),
    st.one_of(st.none(), st.integers(-200, 200)),
    st.integers(1, 3),
)
def test_rows_below_the_floor_are_dropped_and_no_others(
    kind: str, ticks: list[int | None], floor: int | None, chunks: int
) -> None:
    t, value = _KINDS[kind]
    column = pa.array([None if n is None else value(n) for n in ticks], t)
    rows = pa.table({"other": pa.array(range(len(ticks))), "on": column})
    pieces = pa.concat_tables([rows.slice(i, 1) for i in range(len(ticks))]) if chunks > 1 and ticks else rows
    found = pace(pieces, "on", floor)
    late = [i for i, n in enumerate(ticks) if n is not None and floor is not None and n < floor]
    assert found.dropped["other"].to_pylist() == late
    assert found.passed["other"].to_pylist() == [i for i in range(len(ticks)) if i not in late]
    assert found.high == max((n for n in ticks if n is not None), default=None)
    assert found.passed.schema == found.dropped.schema == rows.schema


@pytest.mark.parametrize("value", [-(2**63), 2**63 - 1])
def test_the_ends_of_the_type(value: int) -> None:
    found = pace(pa.table({"on": pa.array([value], pa.int64())}), "on", value)
    assert found.passed.num_rows == 1 and found.high == value
