"""Statistics prove only what is so of the values that will be read, type by type."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.engine.source.formats.fit import convert
from penstock.engine.source.pruning.statistics import FileStatistics
from penstock.pattern.pattern import Pattern
from penstock.pattern.restriction import Restriction, at_least, at_most, between, equal, one_of
from penstock.pattern.schema import Attribute, Schema
from penstock.pattern.types import coerce_value

_DAY = datetime(2020, 1, 1)
_moments = st.integers(-5, 5).map(lambda s: _DAY + timedelta(seconds=s))
TYPES: dict[str, tuple[str, pa.DataType, st.SearchStrategy[Any]]] = {
    "int": ("int", pa.int32(), st.integers(-5, 5)),
    "narrowed": ("smallint", pa.int64(), st.sampled_from([-5, 0, 3, 32_767, 32_768, -(2**40)])),
    "unsigned": ("bigint", pa.uint32(), st.integers(0, 5)),
    "huge": ("decimal(20,0)", pa.uint64(), st.sampled_from([0, 3, 2**64 - 1])),
    "widened": ("double", pa.int32(), st.integers(-5, 5)),
    "double": ("double", pa.float64(), st.sampled_from([-1.5, -0.0, 0.0, 2.0, float("nan"), float("inf")])),
    "single": ("float", pa.float32(), st.sampled_from([-1.5, 0.5, float("nan")])),
    "seconds": ("timestamp", pa.timestamp("s"), _moments),
    "milliseconds": ("timestamp", pa.timestamp("ms", tz="Europe/Berlin"), _moments),
    "microseconds": ("timestamp", pa.timestamp("us"), _moments),
    "nanoseconds": ("timestamp", pa.timestamp("ns"), st.integers(-3_000, 3_000)),
    "far away": ("timestamp", pa.timestamp("ms"), st.sampled_from([0, 5, 10**15])),
    "date": ("date", pa.date32(), st.integers(0, 5).map(lambda d: date(2020, 1, 1 + d))),
    "date in ms": ("date", pa.date64(), st.integers(0, 5).map(lambda d: date(2020, 1, 1 + d))),
    "truth": ("boolean", pa.bool_(), st.booleans()),
    "decimal": ("decimal(7,2)", pa.decimal128(7, 2), st.integers(-300, 300).map(lambda n: Decimal(n) / 100)),
    "string": ("string", pa.string(), st.text("aé€𝄞", max_size=3)),
    "dictionary": ("string", pa.dictionary(pa.int32(), pa.string()), st.sampled_from(["a", "b", "ba"])),
    "binary": ("binary", pa.binary(), st.binary(max_size=2)),
    "fixed": ("binary", pa.binary(1), st.binary(min_size=1, max_size=1)),
}


def _restrictions(values: Sequence[Any]) -> st.SearchStrategy[Restriction]:
    ends = st.sampled_from(list(values))
    return st.one_of(
        st.builds(lambda a, b, x, y: between(min(a, b), max(a, b), x, y), ends, ends, st.booleans(), st.booleans()),
        ends.map(equal),
        ends.map(at_least),
        ends.map(at_most),
        st.lists(ends, min_size=1).map(one_of),
    )


def _nameable(column: pa.ChunkedArray, schema: Schema) -> list[Any]:
    """The values that a pattern can name: no NaN, nothing beyond the calendar."""
    found = []
    for value in column.drop_null():
        try:
            plain = value.as_py()
        except OverflowError:
            continue
        if plain == plain:
            found.append(coerce_value(plain, schema.type_of("a")))
    return found


@pytest.mark.parametrize("kind", TYPES)
@settings(max_examples=15)
@given(data=st.data())
def test_statistics_prove_only_what_is_so(kind: str, data: st.DataObject) -> None:
    declared, held, made = TYPES[kind]
    values = data.draw(st.lists(made, min_size=1, max_size=5))
    nulls = data.draw(st.integers(0, 4)) == 0
    schema = Schema.parse(f"a {declared}")
    column = pa.array([*values, *([None] if nulls else [])], held)
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"a": column}), sink, row_group_size=data.draw(st.sampled_from([1, 2, 9])))
    file = pq.ParquetFile(pa.BufferReader(sink.getvalue()))
    statistics = FileStatistics(file.metadata, schema)
    whole, _ = convert(file.read().column("a"), schema.type_of("a"))
    if not (known := _nameable(whole, schema)):
        return
    patterns = tuple(Pattern(schema, (r,)) for r in data.draw(st.lists(_restrictions(known), min_size=1, max_size=3)))
    for group in range(file.num_row_groups):
        fitted, misfits = convert(file.read_row_group(group).column("a"), schema.type_of("a"))
        rows = pa.table([fitted], schema=schema.arrow)
        found = [p.matches(rows).to_pylist() for p in patterns]
        certain = statistics.is_certain(group, patterns)
        assert not certain or all(any(matches) for matches in zip(*found))
        for pattern, matches in zip(patterns, found):
            assert statistics.may_match(group, pattern) or not any(matches)
        ranks = [i for i, p in enumerate(patterns) if statistics.may_match(group, p)]
        assert statistics.rank(group, patterns) == (ranks[0] if ranks else len(patterns))
        here = _nameable(fitted, schema)
        # Of nanoseconds nothing is certain: least and greatest do not tell of values between two microseconds.
        told = not pa.types.is_floating(held) and getattr(held, "unit", None) != "ns"
        exact = told and misfits is None and len(here) == len(fitted) > 0
        if exact and any(
            p["a"].contains(between(min(here), max(here), True, True), schema.type_of("a")) for p in patterns
        ):
            assert certain


def test_a_name_that_may_mean_two_columns_proves_nothing() -> None:
    record = pa.struct([("b", pa.int32())])
    for other, certain in [("c", True), ("a", False)]:
        # Written as a.b, as the field b of a record a is: statistics know columns by such names.
        name = "a.b" if not certain else "b"
        found = Schema((Attribute(name, pa.int32()),))
        table = pa.table({name: pa.array([1], pa.int32()), other: pa.array([{"b": 2}], record)})
        sink = pa.BufferOutputStream()
        pq.write_table(table, sink)
        statistics = FileStatistics(pq.read_metadata(pa.BufferReader(sink.getvalue())), found)
        assert statistics.is_certain(0, (Pattern(found, (equal(1),)),)) == certain
