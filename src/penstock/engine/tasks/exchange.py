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

from penstock.kernels.hash import hash_column, hash_keys

__all__ = ["REPORT", "Parcel", "buckets_of", "decode", "encode", "hash_column", "place", "scatter"]

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


def buckets_of(table: pa.Table, keys: Sequence[str], buckets: int) -> npt.NDArray[np.int64]:
    """The bucket of every row: a function of its key values alone."""
    if buckets == 1 or not keys:
        return np.zeros(table.num_rows, dtype=np.int64)
    return (hash_keys(table, keys) % np.uint64(buckets)).astype(np.int64)


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
