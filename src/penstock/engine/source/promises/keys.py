"""Keys that end: values that come once, and values that are over when nothing has been heard of them for a while."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.engine.source.formats.fit import Mask
from penstock.engine.source.promises.ledger import Ledger, codes_of, firsts, pack, unpack
from penstock.engine.source.promises.running import LOWEST, less_slack
from penstock.kernels.ticks import Ticks, column_ticks
from penstock.pattern.schema import Schema


@dataclass(frozen=True, eq=False)
class OpenKeys:
    """The keys that are not over, each with the tick of its newest event."""

    keys: pa.Table
    newest: Ticks

    @classmethod
    def empty(cls, schema: Schema, key: str) -> OpenKeys:
        return cls(schema.select([key]).arrow.empty_table(), np.empty(0, np.int64))

    def __len__(self) -> int:
        return len(self.newest)

    def heard(self, later: OpenKeys) -> OpenKeys:
        """These keys and others, each with the newest tick."""
        if not len(later):
            return self
        if not len(self):
            return later
        mine, theirs = codes_of(self.keys, self.keys.column_names, later.keys)
        newest = np.full(int(max(mine.max(), theirs.max())) + 1, LOWEST, np.int64)
        newest[mine] = self.newest
        np.maximum.at(newest, theirs, later.newest)
        known = np.zeros(len(newest), bool)
        known[mine] = True
        added = np.flatnonzero(~known[theirs])
        keys = pa.concat_tables([self.keys, later.keys.take(pa.array(added))]).combine_chunks()
        return OpenKeys(keys, np.concatenate([newest[mine], newest[theirs[added]]]))

    def parted(self, over: Mask) -> tuple[OpenKeys, pa.Table]:
        """The keys that stay open, and those that are over."""
        stay = OpenKeys(self.keys.filter(pa.array(~over)).combine_chunks(), self.newest[~over])
        return stay, self.keys.filter(pa.array(over))

    @cached_property
    def _json(self) -> str:
        return pack(self.keys.append_column("newest of the key", pa.array(self.newest)))

    def to_json(self) -> str:
        return self._json

    @classmethod
    def from_json(cls, stored: str) -> OpenKeys:
        table = unpack(stored)
        width = table.num_columns - 1
        return cls(table.select(range(width)), column_ticks(table.column(width)))


@dataclass(frozen=True, eq=False)
class KeyState:
    """What is known of the keys of one promise, for the whole source: those that are over and those still open."""

    over: Ledger
    open: OpenKeys

    @classmethod
    def empty(cls, schema: Schema, key: str) -> KeyState:
        return cls(Ledger.empty(schema, [key]), OpenKeys.empty(schema, key))

    def to_json(self) -> dict[str, Any]:
        return {"over": self.over.to_json(), "open": self.open.to_json()}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any], schema: Schema) -> KeyState:
        return cls(Ledger.from_json(stored["over"], schema), OpenKeys.from_json(stored["open"]))


def check_once(keys: pa.Table, at: Ticks, over: Ledger) -> tuple[Ticks, Ledger, pa.Table]:
    """Which of the events at some positions have a key that came before; the ledger with theirs; the keys new in it.

    Null and NaN cannot be named: they neither end nor are ended.

    >>> s = Schema.parse("k string")
    >>> found, _, fresh = check_once(pa.table({"k": ["a", "b", "a"]}), np.arange(3), Ledger.empty(s, ["k"]))
    >>> found.tolist(), fresh["k"].to_pylist()
    ([2], ['a', 'b'])
    """
    chosen = keys if len(at) == keys.num_rows else keys.take(pa.array(at))
    (codes,) = codes_of(chosen, chosen.column_names)
    again = over.holds(chosen)
    first = np.zeros(len(at), bool)
    first[firsts(codes)] = True
    named = codes >= 0
    broken = (again | ~first) & named
    after, fresh = over.add(chosen.filter(pa.array(first & ~again & named)), new=True)
    return at[broken], after, fresh


def check_after(
    keys: pa.Table, ticks: Ticks, frontier: Ticks, at: Ticks, gap: int, state: KeyState
) -> tuple[Ticks, OpenKeys]:
    """Which of the events at some positions have a key that was over before them, and what was heard of the others.

    `ticks` and `frontier` speak of the same positions: the time of the event (`LOWEST` if it has none) and how far
    time was complete in front of it.

    >>> s = Schema.parse("k int")
    >>> ticks, frontier = np.array([0, 5, 20, 4]), np.array([LOWEST, 0, 5, 20])
    >>> k = pa.table({"k": pa.array([1, 2, 2, 1], pa.int32())})
    >>> found, heard = check_after(k, ticks, frontier, np.arange(4), 15, KeyState.empty(s, "k"))
    >>> found.tolist(), heard.newest.tolist()
    ([3], [0, 20])
    """
    chosen = keys if len(at) == keys.num_rows else keys.take(pa.array(at))
    known = state.open.keys
    own, before = codes_of(chosen, chosen.column_names, known)
    closed = state.over.holds(chosen)
    live = np.flatnonzero((own >= 0) & ~closed)
    if not len(live):
        return at[closed], OpenKeys(known.slice(0, 0), np.empty(0, np.int64))
    count = int(max(own.max(), before.max(initial=-1))) + 1
    newest = np.full(count, LOWEST, np.int64)
    newest[before] = state.open.newest
    running, order, starts = _running_by_group(ticks[live], own[live], newest)
    # A key is over once time is complete beyond the gap after its newest event; and then it stays so.
    broken = running < less_slack(frontier[live][order], gap)
    broken &= running > LOWEST
    group = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(order))))
    position = np.arange(len(order))
    first = np.full(len(starts), len(order), np.int64)
    np.minimum.at(first, group[broken], position[broken])
    broken = position >= first[group]
    heard = np.maximum.reduceat(np.where(broken, LOWEST, ticks[live][order]), starts)
    sure = heard > LOWEST
    rows = pa.array(live[order][starts][sure])
    found = np.sort(np.concatenate([at[closed], at[live[order[broken]]]]))
    return found, OpenKeys(chosen.take(rows).combine_chunks(), heard[sure])


def _running_by_group(ticks: Ticks, codes: Ticks, newest: Ticks) -> tuple[Ticks, Ticks, Ticks]:
    """Sorted by code: the greatest tick of the code before each, the order, and where each code starts."""
    # Numbers of 16 bits are sorted by radix, in a fraction of the time.
    order = np.argsort(codes.astype(np.uint16) if len(newest) <= 1 << 16 else codes, kind="stable")
    sorted_codes = codes[order]
    starts = np.flatnonzero(np.concatenate([[True], sorted_codes[1:] != sorted_codes[:-1]]))
    before = np.empty(len(order), np.int64)
    before[1:] = ticks[order][:-1]
    before[starts] = newest[sorted_codes[starts]]
    # Shifted by group, one accumulation does for all groups: each starts above the one before it.
    known = before > LOWEST
    low, high = (int(before[known].min()), int(before[known].max())) if known.any() else (0, 0)
    width = high - low + 2
    if width * len(newest) < 1 << 62:
        shift = sorted_codes * width
        level = np.maximum.accumulate(np.where(known, before - low + 1, 0) + shift) - shift
        running: Ticks = np.where(level > 0, level + (low - 1), LOWEST)
    else:
        distinct, ranks = np.unique(before, return_inverse=True)
        shift = sorted_codes * len(distinct)
        running = distinct[np.maximum.accumulate(ranks + shift) - shift]
    return running, order.astype(np.int64), starts.astype(np.int64)
