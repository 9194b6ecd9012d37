"""Parcels: how rows travel from the tasks of one stage to the buckets of the next.

A task does not send rows. It sorts its rows by bucket once and sends each bucket one *parcel*, an Arrow IPC stream,
so that Spark's shuffle moves a handful of byte strings instead of millions of records.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from penstock.kernels.duck import query

REPORT = -1


@dataclass(frozen=True)
class Parcel:
    """Rows for one bucket over one edge. `origin` keeps the order of arrival among parcels of an edge.

    Edge −1 carries reports to the driver: there the payload is a pickled record, not rows.
    """

    edge: int
    origin: tuple[int, ...]
    payload: bytes


def place(buckets: int, groups: int, bucket: int) -> int:
    """The task that merges a bucket, when `groups` tasks share the buckets; reports have a partition of their own.

    >>> [place(4, 2, b) for b in range(5)]
    [0, 0, 1, 1, 2]
    """
    return groups if bucket >= buckets else bucket * groups // buckets


def encode(table: pa.Table) -> bytes:
    """Rows as an Arrow IPC stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def decode(payload: bytes) -> pa.Table:
    """The rows of a parcel; they lie in the payload itself, nothing is copied."""
    return pa.ipc.open_stream(pa.py_buffer(payload)).read_all()


def _mix(x: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """The finaliser of splitmix64: every input bit moves about half of the output bits."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def hash_column(column: pa.ChunkedArray) -> npt.NDArray[np.uint64]:
    """A hash per value, the same on every machine and in every version: buckets of a checkpoint depend on it."""
    t = column.type
    if pa.types.is_floating(t):
        # 0.0 and -0.0 are one group, so are all NaNs.
        values = np.asarray(pc.fill_null(column.cast(pa.float64()), 0.0).to_numpy()) + 0.0
        bits = np.where(np.isnan(values), np.float64("nan"), values).view(np.uint64).copy()
        bits[np.isnan(values)] = 0x7FF8000000000000
    elif pa.types.is_boolean(t) or pa.types.is_integer(t) or pa.types.is_temporal(t):
        plain = column.cast(pa.int8()) if pa.types.is_boolean(t) else column
        if pa.types.is_temporal(plain.type):
            plain = plain.cast(pa.int32() if pa.types.is_date32(plain.type) else pa.int64())
        bits = np.asarray(pc.fill_null(plain.cast(pa.int64()), 0).to_numpy()).astype(np.int64).view(np.uint64)
    else:
        # MD5 is slow but is MD5 everywhere; text keys are hashed after pre-aggregation, once per group.
        value = "hex(v)" if pa.types.is_binary(t) or pa.types.is_large_binary(t) else "CAST(v AS VARCHAR)"
        got = query(f"SELECT md5_number_lower({value}) AS h FROM t", t=pa.table({"v": column}))
        bits = np.asarray(pc.fill_null(got["h"].cast(pa.uint64()), 0).to_numpy())
    mixed = _mix(bits + np.uint64(0x9E3779B97F4A7C15))
    if column.null_count:
        mixed = np.where(np.asarray(column.is_null()), np.uint64(0x6A09E667F3BCC909), mixed)
    return mixed


def buckets_of(table: pa.Table, keys: Sequence[str], buckets: int) -> npt.NDArray[np.int64]:
    """The bucket of every row: a function of its key values alone."""
    if buckets == 1 or not keys:
        return np.zeros(table.num_rows, dtype=np.int64)
    with np.errstate(over="ignore"):
        h = np.zeros(table.num_rows, dtype=np.uint64)
        for key in keys:
            h = _mix(h * np.uint64(31) + hash_column(table[key]))
    return (h % np.uint64(buckets)).astype(np.int64)


def scatter(table: pa.Table, keys: Sequence[str], buckets: int) -> Iterator[tuple[int, pa.Table]]:
    """The rows of each bucket that has any, in their order."""
    if table.num_rows == 0:
        return
    place = buckets_of(table, keys, buckets)
    if (place == place[0]).all():
        yield int(place[0]), table
        return
    order = np.argsort(place, kind="stable")
    ordered = table.take(pa.array(order))
    ends = np.searchsorted(place[order], np.arange(buckets + 1))
    for b in range(buckets):
        if ends[b] < ends[b + 1]:
            yield b, ordered.slice(int(ends[b]), int(ends[b + 1] - ends[b]))
