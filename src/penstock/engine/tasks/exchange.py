"""Parcels: how rows travel from the tasks of one stage to the buckets of the next.

A task does not send rows. It sorts its rows by bucket once and sends each bucket one *parcel*, an Arrow IPC stream,
so that Spark's shuffle moves a handful of byte strings instead of millions of records. Where all tasks share a disk, a
large parcel is a file in a folder of its epoch, the *depot*, and only its path travels.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from penstock.kernels.hash import hash_column, hash_keys
from penstock.kernels.order import code_order

__all__ = ["REPORT", "Parcel", "buckets_of", "decode", "encode", "hash_column", "place", "scatter"]

REPORT = -1
#: Smaller parcels travel themselves.
LARGE = 1 << 20


@dataclass(frozen=True)
class Parcel:
    """Rows for one bucket over one edge. `origin` keeps the order of arrival among parcels of an edge.

    The payload is bytes, an Arrow buffer or the path of a file. Edge −1 carries reports to the driver: there it is a
    pickled record, not rows.
    """

    edge: int
    origin: tuple[int, ...]
    payload: Any


def place(buckets: int, groups: int, bucket: int) -> int:
    """The task that merges a bucket, when `groups` tasks share the buckets; reports have a partition of their own.

    >>> [place(4, 2, b) for b in range(5)]
    [0, 0, 1, 1, 2]
    """
    return groups if bucket >= buckets else bucket * groups // buckets


def encode(table: pa.Table, depot: str | None = None) -> pa.Buffer | str:
    """Rows as an Arrow IPC stream: the path of a file in the depot, if there is one and they are many.

    Otherwise they are measured first, then copied once into just enough room.
    """
    measure = pa.MockOutputStream()
    _write(table, measure)
    if depot is not None and measure.size() >= LARGE:
        path = f"{depot}/{uuid.uuid4().hex}.arrow"
        # Where there is no room on the disk, there is one more way; the folder goes with the epoch.
        with suppress(OSError):
            with pa.OSFile(path, "wb") as file:
                _write(table, file)
            return path
    found = pa.allocate_buffer(measure.size())
    _write(table, pa.FixedSizeBufferWriter(found))
    return found


def _write(table: pa.Table, sink: pa.NativeFile) -> None:
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)


def decode(payload: bytes | pa.Buffer | str) -> pa.Table:
    """The rows of a parcel; they lie in the payload itself, or in its file, and nothing is copied."""
    stream = pa.memory_map(payload) if isinstance(payload, str) else pa.py_buffer(payload)
    return pa.ipc.open_stream(stream).read_all()


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
    ordered = table.combine_chunks().take(pa.array(code_order(place.view(np.uint64))))
    ends = np.concatenate([[0], np.cumsum(np.bincount(place, minlength=buckets))])
    for b in range(buckets):
        if ends[b] < ends[b + 1]:
            yield b, ordered.slice(int(ends[b]), int(ends[b + 1] - ends[b]))
