"""Which insert does a retraction belong to, when they come in any order? Two answers for `Finalize`.

`ByChain` keeps what is known of each tuple: its end so far, or, before its insert is here, the least end that it will
have. A tuple is known by the id of its source, or by its start and payload where these are unique.
`ByValue` is for sources with neither: it links retractions by the values that they carry, end to new end. A chain whose
middle link comes after its last one is forgotten may stay too long; with ids that cannot happen.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Protocol

from penstock.reference.lifetimes.event import Insert, InvalidStreamError, Payload, Retract, Time
from speculative.ordered import Ordered


class Chaining(Protocol):
    """Puts chains in order. All methods say what is to be told now, if anything."""

    def insert(self, e: Insert, /) -> Insert | None: ...

    def retract(self, e: Retract, /, cti: Time) -> Retract | None: ...

    def clip(self, e: Retract, /, cti: Time) -> Retract | None:
        """A late retraction, cut off at the CTI: as much of it as can still be said."""
        ...

    def forget(self, cti: Time) -> None:
        """Whatever no event with a sync time from here on can belong to."""
        ...

    @property
    def size(self) -> int: ...


@dataclass
class _Chain:
    #: The end of the insert, once it is here: nothing of the chain has a sync time from there on.
    first_end: Time
    #: The end so far; None before the insert is here.
    end: Time | None
    #: The least new end of all retractions so far.
    least: Time

    def deadline(self, vs: Time) -> Time:
        """The CTI from which on nothing more of it can come; an insert cannot come from `vs + 1` on."""
        return vs + 1 if self.end is None else self.first_end


class ByChain:
    def __init__(self) -> None:
        self._chains: dict[Hashable, _Chain] = {}
        self._deadlines: Ordered[tuple[Hashable, Time]] = Ordered()

    @property
    def size(self) -> int:
        return len(self._chains)

    def insert(self, e: Insert) -> Insert | None:
        chain = self._chains.get(name := _name(e))
        if chain is None:
            chain = self._chains[name] = _Chain(e.ve, e.ve, e.ve)
        elif chain.end is not None:
            raise InvalidStreamError(
                f"{e}: a second insert of {name!r}", hint='give each tuple an id of its own, or say matching="value"'
            )
        else:
            chain.first_end, chain.end = e.ve, min(e.ve, chain.least)
        self._watch(name, chain, e.vs)
        return Insert(e.vs, min(e.ve, chain.least), e.payload, e.id) if chain.least > e.vs else None

    def retract(self, e: Retract, cti: Time) -> Retract | None:
        chain = self._chains.get(name := _name(e))
        if chain is None and e.vs >= cti:
            chain = self._chains[name] = _Chain(e.ve, None, e.vn)
            self._watch(name, chain, e.vs)
        if chain is None:
            return None  # Its insert was late.
        chain.least = min(e.vn, chain.least)
        return self._shorten(e, chain, e.vn)

    def clip(self, e: Retract, cti: Time) -> Retract | None:
        chain = self._chains.get(_name(e))
        return None if chain is None else self._shorten(e, chain, cti)

    def _shorten(self, e: Retract, chain: _Chain, to: Time) -> Retract | None:
        if chain.end is None or to >= chain.end:
            return None
        end, chain.end = chain.end, to
        return Retract(e.vs, end, to, e.payload, e.id)

    def _watch(self, name: Hashable, chain: _Chain, vs: Time) -> None:
        self._deadlines.add(chain.deadline(vs), (name, vs))

    def forget(self, cti: Time) -> None:
        while self._deadlines and self._deadlines.head() <= cti:
            name, vs = self._deadlines.pop()
            chain = self._chains.get(name)
            if chain is not None and chain.deadline(vs) <= cti:
                del self._chains[name]


def _name(e: Insert | Retract) -> Hashable:
    return e.id if e.id is not None else (e.vs, e.payload)


class ByValue:
    def __init__(self) -> None:
        self._told: Ordered[tuple[Time, Payload]] = Ordered()  # by end so far
        self._by_end: defaultdict[tuple[Time, Time, Payload], list[Retract]] = defaultdict(list)
        self._by_new_end: defaultdict[tuple[Time, Time, Payload], list[Retract]] = defaultdict(list)
        self._by_sync: Ordered[Retract] = Ordered()

    @property
    def size(self) -> int:
        return len(self._told) + len(self._by_sync)

    def insert(self, e: Insert) -> Insert | None:
        after = self._take(self._by_end, (e.vs, e.ve, e.payload))
        end = e.ve if after is None else after.vn
        if end == e.vs:
            return None
        self._told.add(end, (e.vs, e.payload))
        return Insert(e.vs, end, e.payload)

    def retract(self, e: Retract, cti: Time) -> Retract | None:
        before = self._take(self._by_new_end, (e.vs, e.ve, e.payload))
        after = self._take(self._by_end, (e.vs, e.vn, e.payload))
        ve = e.ve if before is None else before.ve
        vn = e.vn if after is None else after.vn
        merged = Retract(e.vs, ve, vn, e.payload)
        if self._shorten(merged):
            return merged
        self._by_end[e.vs, ve, e.payload].append(merged)
        self._by_new_end[e.vs, vn, e.payload].append(merged)
        self._by_sync.add(merged.sync, merged)
        return None

    def clip(self, e: Retract, cti: Time) -> Retract | None:
        clipped = Retract(e.vs, e.ve, cti, e.payload)
        return clipped if e.ve > cti and self._shorten(clipped) else None

    def _shorten(self, e: Retract) -> bool:
        if not self._told.remove(e.ve, (e.vs, e.payload)):
            return False
        if not e.full:
            self._told.add(e.vn, (e.vs, e.payload))
        return True

    def _take(
        self, links: dict[tuple[Time, Time, Payload], list[Retract]], at: tuple[Time, Time, Payload]
    ) -> Retract | None:
        """A broken retraction with this end or new end, out of all the places where it is kept."""
        if not links.get(at):
            return None
        found = links[at][0]
        self._by_sync.remove(found.sync, found)
        self._unlink(found)
        return found

    def _unlink(self, r: Retract) -> None:
        for links, at in ((self._by_end, r.ve), (self._by_new_end, r.vn)):
            here = links[r.vs, at, r.payload]
            here.remove(r)
            if not here:
                del links[r.vs, at, r.payload]

    def forget(self, cti: Time) -> None:
        # By the end so far, not by the start: a tuple that began long ago can still be shortened.
        while self._told and self._told.head() <= cti:
            self._told.pop()
        while self._by_sync and self._by_sync.head() < cti:
            self._unlink(self._by_sync.pop())
