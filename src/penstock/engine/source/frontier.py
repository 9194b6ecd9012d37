"""The driver's side of promises: what the splits of an epoch establish, and what the source may assert from it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from penstock.algebra.operator import Source
from penstock.algebra.pattern import Pattern
from penstock.algebra.propagate import maximal
from penstock.algebra.punctuation import PunctuationSet
from penstock.algebra.schema import Schema
from penstock.algebra.source import Bounds, Disorder, EndOfSource, Promise, WhenAll
from penstock.engine.source.known import KeyHighs, Known, chained
from penstock.engine.source.promise import bounds_patterns, frontier_pattern
from penstock.engine.source.split import Split
from penstock.engine.source.ticks import to_tick
from penstock.kernels.fold import frontier_of


@dataclass
class _Partition:
    highs: dict[str, int] = field(default_factory=dict)
    floors: dict[str, int] = field(default_factory=dict)
    punctuations: PunctuationSet | None = None


class PromiseState:
    """What is known of a source's promises after the epochs absorbed so far.

    A source is as far as its slowest partition; a partition that appears later has to keep to what was asserted.
    """

    def __init__(self, source: Source) -> None:
        self.source = source
        self.schema: Schema = source.schema
        self.promises: tuple[Promise, ...] = source.promises
        self.ended = False
        self._partitions: dict[str, _Partition] = {}
        self._keys: list[list[int | None]] = [[None] * len(p.keys) for p in self._all(WhenAll)]
        self._disorder: dict[str, int] = {}
        self._passed: dict[int, int] = {}
        self._given = PunctuationSet(self.schema)

    def _all(self, kind: type[Any]) -> list[Any]:
        return [p for p in self.promises if isinstance(p, kind)]

    def initial(self) -> tuple[Pattern, ...]:
        """The punctuations that hold before the first event."""
        return tuple(p for b in self._all(Bounds) for p in bounds_patterns(b, self.schema))

    def end(self) -> Pattern | None:
        """The punctuation of wildcards, when a bounded run has read everything and the source promised to say so."""
        if not self._all(EndOfSource):
            return None
        self.ended = True
        return Pattern.all(self.schema)

    def register(self, partitions: Iterable[str]) -> None:
        """Make partitions known before their first event, so that nothing is asserted past them."""
        for name in partitions:
            if name not in self._partitions:
                given = self._given if self._given.patterns else None
                self._partitions[name] = _Partition({}, dict(self._disorder), given)

    def known(self, partition: str) -> Known:
        """What the check of the next split of a partition needs."""
        self.register([partition])
        p = self._partitions[partition]
        given = p.punctuations
        if self.ended:
            given = PunctuationSet(self.schema, (Pattern.all(self.schema),))
        keys: KeyHighs = tuple(tuple(k) for k in self._keys)
        return Known(dict(p.highs), dict(p.floors), keys, given)

    def absorb(self, reports: Iterable[Mapping[str, Any]]) -> tuple[Pattern, ...]:
        """Take in the reports of an epoch's splits; returns the punctuations that hold only since now."""
        fresh: list[Pattern] = []
        for report in sorted(reports, key=lambda r: (r["partition"], r["ordinal"])):
            self.register([report["partition"]])
            partition = self._partitions[report["partition"]]
            for attribute, high in report["highs"].items():
                partition.highs[attribute] = max(high, partition.highs.get(attribute, high))
            for mine, theirs in zip(self._keys, report["keys"]):
                mine[:] = [t if m is None else m if t is None else max(m, t) for m, t in zip(mine, theirs)]
            if report["punctuations"]:
                added = [Pattern.from_json(p, self.schema) for p in report["punctuations"]]
                partition.punctuations = (partition.punctuations or PunctuationSet(self.schema)).add(*added)
                fresh += added
        return (*self._advance_disorder(), *self._advance_keys(), *self._advance_in_band(fresh))

    def _advance_disorder(self) -> list[Pattern]:
        asserted = []
        for promise in self._all(Disorder):
            limits = [_limit(p, promise) for p in self._partitions.values()]
            reached = [x for x in limits if x is not None]
            if not reached or len(reached) < len(limits):
                continue
            limit = min(reached)
            if limit > self._disorder.get(promise.attribute, limit - 1):
                self._disorder[promise.attribute] = limit
                asserted.append(frontier_pattern(self.schema, promise.attribute, limit))
        return asserted

    def _advance_keys(self) -> list[Pattern]:
        asserted = []
        for i, promise in enumerate(self._all(WhenAll)):
            seen = [h for h in self._keys[i] if h is not None]
            if not seen or len(seen) < len(self._keys[i]):
                continue
            limit = min(seen) - promise.slack
            if limit > self._passed.get(i, limit - 1):
                self._passed[i] = limit
                asserted.append(frontier_pattern(self.schema, promise.past, limit))
        return asserted

    def _advance_in_band(self, fresh: Sequence[Pattern]) -> list[Pattern]:
        """A punctuation holds for the source once every partition has given it, or one that covers it.

        From `[< 10, *]` of one and `[*, 4]` of another follows what both have given: `[< 10, 4]`.
        """
        if not fresh:
            return []
        parts = [p.punctuations or PunctuationSet(self.schema) for p in self._partitions.values()]
        candidates = list(fresh)
        if len(parts) > 1:
            common: Iterable[Pattern] = fresh
            for part in parts:
                common = maximal(p.intersect(q) for p in common for q in part)
            candidates = [*(p for part in parts for p in part), *common]
        asserted = []
        for pattern in candidates:
            if not self._given.covers(pattern) and all(part.covers(pattern) for part in parts):
                self._given = self._given.add(pattern)
                asserted.append(pattern)
        return asserted

    @property
    def frontier(self) -> dict[str, int]:
        """Per time attribute the tick up to which (exclusive) the source is complete, for display."""
        found = dict(self._disorder)
        for i, promise in enumerate(self._all(WhenAll)):
            if i in self._passed:
                found[promise.past] = max(self._passed[i], found.get(promise.past, self._passed[i]))
        for name in self.schema.times:
            for bound in (b for p in self._given if (b := frontier_of(p, name)) is not None):
                tick = to_tick(bound[0]) + bound[1]
                found[name] = max(tick, found.get(name, tick))
        return found

    def to_json(self) -> dict[str, Any]:
        return {
            "partitions": {
                name: {
                    "highs": p.highs,
                    "floors": p.floors,
                    "punctuations": p.punctuations.to_json() if p.punctuations is not None else [],
                }
                for name, p in sorted(self._partitions.items())
            },
            "keys": self._keys,
            "disorder": self._disorder,
            "passed": {str(i): t for i, t in self._passed.items()},
            "given": self._given.to_json(),
            "ended": self.ended,
        }

    @classmethod
    def from_json(cls, source: Source, stored: Mapping[str, Any]) -> PromiseState:
        state = cls(source)
        for name, p in stored["partitions"].items():
            given = PunctuationSet.from_json(p["punctuations"], source.schema) if p["punctuations"] else None
            state._partitions[name] = _Partition(dict(p["highs"]), dict(p["floors"]), given)
        state._keys = [list(k) for k in stored["keys"]]
        state._disorder = dict(stored["disorder"])
        state._passed = {int(i): t for i, t in stored["passed"].items()}
        state._given = PunctuationSet.from_json(stored["given"], source.schema)
        state.ended = bool(stored["ended"])
        return state


def _limit(partition: _Partition, promise: Disorder) -> int | None:
    high, floor = partition.highs.get(promise.attribute), partition.floors.get(promise.attribute)
    limits = [high - promise.slack] if high is not None else []
    return max([*limits, *([floor] if floor is not None else [])], default=None)


def plan_known(state: PromiseState, splits: Sequence[Split]) -> list[Known | None]:
    """For each split what is known in front of it; None where only its predecessor in the same task can tell."""
    current: dict[str, Known | None] = {}
    out: list[Known | None] = []
    disorders = [p for p in state.promises if isinstance(p, Disorder)]
    chain = chained(state.promises, exact=True)
    for split in splits:
        known = current[split.partition] if split.partition in current else state.known(split.partition)
        out.append(known)
        if chain != "no":
            current[split.partition] = None
        elif disorders and known is not None:
            current[split.partition] = None if split.high is None else known.raised(disorders[0].attribute, split.high)
        else:
            current[split.partition] = known
    return out


def assign(splits: Sequence[Split], tasks: int, promises: Sequence[Promise]) -> list[list[Split]]:
    """Distribute splits over at most `tasks` tasks, in contiguous ranges of about equal bytes.

    Arrival order is kept inside a task, and splits that need what an earlier one establishes stay with it.
    """
    order: dict[str, list[Split]] = {}
    for split in splits:
        order.setdefault(split.partition, []).append(split)
    if chained(promises, exact=True) == "source":
        return [list(splits)] if splits else []
    chains: list[list[Split]] = []
    for group in order.values():
        exact = True
        for i, split in enumerate(group):
            # The maximum in front of a split is known as long as statistics gave that of every split before it.
            exact = exact and (i == 0 or group[i - 1].high is not None)
            if i and chained(promises, exact) != "no":
                chains[-1].append(split)
            else:
                chains.append([split])
    return _balanced(chains, max(1, tasks))


def _balanced(chains: Sequence[list[Split]], tasks: int) -> list[list[Split]]:
    weights = [sum(max(1, s.bytes) for s in chain) for chain in chains]
    total, before = sum(weights), 0
    slots: dict[int, list[Split]] = {}
    for chain, weight in zip(chains, weights):
        # By its middle: a chain goes where most of it lies.
        slots.setdefault((2 * before + weight) * tasks // (2 * total), []).extend(chain)
        before += weight
    return [slots[s] for s in sorted(slots)]


def plan_tasks(state: PromiseState, splits: Sequence[Split], tasks: int) -> list[list[tuple[Split, Known | None]]]:
    """`assign` and `plan_known` together: for each task its splits and what is known in front of each."""
    known = {(s.partition, s.ordinal): k for s, k in zip(splits, plan_known(state, splits))}
    return [[(s, known[s.partition, s.ordinal]) for s in task] for task in assign(splits, tasks, state.promises)]
