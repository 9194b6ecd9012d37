"""Hashes of keys: the same on every machine and in every version.

Buckets of a checkpoint and the order of stored runs depend on them, so a hash is made of the value alone: an integer
of any width, a text in any encoding of Arrow, 0.0 and -0.0, all NaNs hash alike. One key of at most 64 bits is mixed
by a bijection: if two hashes are equal, so are the keys. Everything else can collide and has to be compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Hashes = npt.NDArray[np.uint64]

_STEP = np.uint64(0x9E3779B97F4A7C15)
_NULL = np.uint64(0x6A09E667F3BCC909)
#: Texts are read word by word for all rows at once; the few longer ones one by one.
_LONGEST = 512
#: Rows per round, so that what is computed on stays in the cache.
_BLOCK = 16_384


def mix(x: Hashes) -> Hashes:
    """The finaliser of splitmix64, a bijection: every input bit moves about half of the output bits.

    >>> hex(int(mix(np.array([1], np.uint64))[0]))
    '0x5692161d100b05e5'
    """
    mixed = np.empty_like(x)
    for first in range(0, len(x), _BLOCK):
        y = x[first : first + _BLOCK]
        y = y ^ (y >> np.uint64(30))
        y *= np.uint64(0xBF58476D1CE4E5B9)
        y ^= y >> np.uint64(27)
        y *= np.uint64(0x94D049BB133111EB)
        y ^= y >> np.uint64(31)
        mixed[first : first + _BLOCK] = y
    return mixed


def hash_column(column: pa.ChunkedArray | pa.Array) -> Hashes:
    """A hash per value; null has one of its own.

    >>> narrow, wide = pa.array([7, None], pa.int8()), pa.array([7, None], pa.int64())
    >>> bool((hash_column(narrow) == hash_column(wide)).all())
    True
    """
    if isinstance(column, pa.Array):
        column = pa.chunked_array([column])
    t = column.type
    if pa.types.is_dictionary(t):
        return _parts(column, _coded)
    if pa.types.is_floating(t):
        mixed = mix(_float_bits(column) + _STEP)
    elif pa.types.is_boolean(t) or pa.types.is_integer(t) or pa.types.is_temporal(t):
        mixed = mix(whole_numbers(column) + _STEP)
    elif pa.types.is_decimal128(t):
        mixed = _parts(column, _decimals)
    elif pa.types.is_binary(t) or pa.types.is_string(t) or pa.types.is_large_binary(t) or pa.types.is_large_string(t):
        mixed = _parts(column, _texts)
    else:
        mixed = _parts(column.cast(pa.large_binary() if "binary" in str(t) else pa.large_string()), _texts)
    if column.null_count:
        mixed[np.asarray(column.is_null())] = _NULL
    return mixed


def hash_keys(table: pa.Table, names: Sequence[str]) -> Hashes:
    """A hash per row over some columns; without any, all rows hash alike.

    >>> hash_keys(pa.table({"a": [1, 1], "b": ["x", "y"]}), ["a"]).tolist()
    [15916886550466581944, 15916886550466581944]
    """
    h = np.zeros(table.num_rows, dtype=np.uint64)
    for i, name in enumerate(names):
        column = hash_column(table[name])
        h = mix(h * np.uint64(31) + column if i else column)
    return h


def is_exact(types: Sequence[pa.DataType]) -> bool:
    """Whether equal hashes of `hash_keys` mean equal keys, for keys of these types without nulls."""
    return len(types) == 0 or (
        len(types) == 1
        and bool(pa.types.is_integer(types[0]) or pa.types.is_temporal(types[0]) or pa.types.is_boolean(types[0]))
    )


def _parts(column: pa.ChunkedArray, of: Any) -> Hashes:
    parts = [of(chunk) for chunk in column.chunks if len(chunk)]
    return parts[0] if len(parts) == 1 else np.concatenate(parts) if parts else np.zeros(0, dtype=np.uint64)


def _float_bits(column: pa.ChunkedArray) -> Hashes:
    filled = pc.fill_null(column.cast(pa.float64()), 0.0) if column.null_count else column.cast(pa.float64())
    values = np.asarray(filled.to_numpy()) + 0.0  # Makes -0.0 the same as 0.0.
    bits: Hashes = values.view(np.uint64)
    bits[np.isnan(values)] = 0x7FF8000000000000
    return bits


def whole_numbers(column: pa.ChunkedArray) -> Hashes:
    """The 64 bits of whole numbers, times and booleans; null is 0."""
    plain = column
    if pa.types.is_boolean(plain.type):
        plain = plain.cast(pa.int8())
    elif pa.types.is_temporal(plain.type):
        plain = plain.cast(pa.int32() if pa.types.is_date32(plain.type) else pa.int64())
    if plain.null_count:
        plain = pc.fill_null(plain, 0)
    return np.asarray(plain.to_numpy()).astype(np.int64, copy=False).view(np.uint64)


def _coded(array: pa.DictionaryArray) -> Hashes:
    hashes: Hashes = np.append(hash_column(array.dictionary), _NULL)
    codes: npt.NDArray[np.int64] = np.asarray(pc.fill_null(array.indices.cast(pa.int64()), len(array.dictionary)))
    return hashes[codes]


def _decimals(array: pa.Array) -> Hashes:
    """Over the unscaled 128-bit integers, lower word first as Arrow stores them."""
    words = np.frombuffer(array.buffers()[1], dtype="<u8", offset=16 * array.offset, count=2 * len(array))
    words = words.astype(np.uint64, copy=False).reshape(-1, 2)
    return mix(mix(words[:, 0] + _STEP) + words[:, 1])


def _texts(array: pa.Array) -> Hashes:
    """Over the bytes, eight at a time, the last word filled up with zeros, starting from the length."""
    wide = pa.types.is_large_binary(array.type) or pa.types.is_large_string(array.type)
    _, offsets, data = array.buffers()
    width = np.dtype(np.int64 if wide else np.int32)
    bounds = np.frombuffer(offsets, dtype=width, offset=width.itemsize * array.offset, count=len(array) + 1)
    raw = np.frombuffer(data, dtype=np.uint8) if data is not None else np.zeros(0, dtype=np.uint8)
    if len(raw) < 8:
        raw = np.concatenate([raw, np.zeros(8, dtype=np.uint8)])
    hashes = np.empty(len(array), dtype=np.uint64)
    for first in range(0, len(array), _BLOCK):
        at = bounds[first : first + _BLOCK + 1].astype(np.int64)
        hashes[first : first + _BLOCK] = _block(at[:-1], np.diff(at), raw)
    return hashes


def _block(starts: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64], raw: npt.NDArray[np.uint8]) -> Hashes:
    # A word at every byte: a view that overlaps itself, nothing is copied. Words near the end are read from before it.
    words = np.ndarray(len(raw) - 7, dtype="<u8", buffer=raw, strides=(1,))
    last = len(raw) - 8
    hashes = mix(lengths.astype(np.uint64) + _STEP)
    for done in range(0, min(int(lengths.max()), _LONGEST), 8):
        reading: Any = np.flatnonzero((lengths > done) & (lengths <= _LONGEST))
        if len(reading) == len(lengths):
            reading = slice(None)
        begin = starts[reading] + done
        at = np.minimum(begin, last)
        word = words[at].astype(np.uint64, copy=False)
        if begin.max(initial=0) > last:
            word >>= ((begin - at) * 8).astype(np.uint64)
        word &= _LOW_BYTES[np.minimum(lengths[reading] - done, 8)]
        hashes[reading] = mix(hashes[reading] + word)
    for i in np.flatnonzero(lengths > _LONGEST):
        text = raw[starts[i] : starts[i] + lengths[i]]
        hashes[i] = np.frombuffer(blake2b(text.data, digest_size=8).digest(), dtype="<u8")[0]
    return hashes


#: Masks that keep the first n bytes of a word.
_LOW_BYTES = np.array([(1 << (8 * n)) - 1 for n in range(9)], dtype=np.uint64)
