"""The driver's side of promises: what the splits of an epoch establish, and what the source may assert from it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from penstock.engine.source.promises.check import bounds_patterns
from penstock.engine.source.promises.counting import Counting, advanced
from penstock.engine.source.promises.declared import check_declared
from penstock.engine.source.promises.disorder import Disorderliness, Lateness, Seen
from penstock.engine.source.promises.judge import frontier_pattern
from penstock.engine.source.promises.keys import KeyState, OpenKeys
from penstock.engine.source.promises.known import KeyHighs, Known
from penstock.engine.source.promises.ledger import Ledger, unpack
from penstock.engine.source.promises.partition import PartitionState, agreed
from penstock.engine.source.promises.running import LOWEST
from penstock.kernels.fold import frontier_of
from penstock.kernels.ticks import to_tick
from penstock.operators.source.consistency import order_of
from penstock.operators.source.operator import Source
from penstock.pattern.minimise import grows
from penstock.pattern.pattern import Pattern
from penstock.pattern.punctuation import PunctuationSet
from penstock.pattern.schema import Schema
from penstock.plan.behaviour import maximal
from penstock.plan.promise import (
    Adaptive,
    After,
    Bounds,
    Disorder,
    EndOfSource,
    Every,
    InBand,
    Once,
    Promise,
    WhenAll,
    WithinRows,
)


class PromiseState:
    """What is known of a source's promises after the epochs absorbed so far.

    A source is as far as its slowest partition; a partition that appears later has to keep to what was asserted.
    """

    def __init__(self, source: Source) -> None:
        self.source = source
        self.schema: Schema = source.schema
        self.promises: tuple[Promise, ...] = source.promises
        self.ended = False
        self.forgotten = 0
        """How many promised values were forgotten, because there were more than the source is to remember."""
        self._partitions: dict[str, PartitionState] = {}
        self._keys: list[list[int | None]] = [[None] * len(p.keys) for p in self._all(WhenAll)]
        self._over = [KeyState.empty(self.schema, p.key) for p in self._ending]
        self._disorder: dict[str, int] = {}
        self._passed: dict[int, int] = {}
        #: Per attribute the slack by which the source has spoken last, and the one by which it will speak next.
        self._slacks = {p.attribute: (p.slack, p.slack) for p in self._all(Disorder)}
        self._given = PunctuationSet(self.schema)
        self._tallies: dict[str, Lateness] = {}
        self._counting: Counting | None = None
        self._periods = {p.attribute: p.period for p in self._all(Every)}
        check_declared(source)

    def _all(self, *kinds: type[Any]) -> list[Any]:
        return [p for p in self.promises if isinstance(p, kinds)]

    @property
    def _ending(self) -> list[After | Once]:
        """The promises that end keys, in the order in which they are judged."""
        return self._all(After, Once)

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
                self._partitions[name] = PartitionState(
                    {}, dict(self._disorder), given, agreed(tuple(self._partitions.values()))
                )

    def known(self, partition: str) -> Known:
        """What the check of the next split of a partition needs."""
        self.register([partition])
        p = self._partitions[partition]
        given = p.punctuations
        if self.ended:
            given = PunctuationSet(self.schema, (Pattern.all(self.schema),))
        keys: KeyHighs = tuple(tuple(k) for k in self._keys)
        return Known(
            dict(p.highs),
            dict(p.floors),
            keys,
            given,
            tuple(p.values.values()),
            tuple(self._over),
            {a.attribute: self._limits(a.attribute) for a in self._all(After)},
            dict(p.tops),
            {**{a.attribute: self._slack(a) for a in self._all(Adaptive)}, **self._turned()},
            dict(p.seen),
            self._counting,
        )

    def turn(self, slack: int) -> None:
        """From the next epoch on, events may be this late. What was said of the past stands: nothing older comes."""
        order = order_of(self.source)
        assert order is not None
        before, coming = self._slacks[order.attribute]
        for partition in self._partitions.values() if slack != coming else ():
            partition.stay_behind(order.attribute, before)
        self._slacks[order.attribute] = before, slack

    def _turned(self) -> dict[str, int]:
        """The slacks that are not as declared."""
        return {p.attribute: s for p in self._all(Disorder) if (s := self._slack(p)) != p.slack}

    def absorb(self, reports: Iterable[Mapping[str, Any]]) -> tuple[Pattern, ...]:
        """Take in the reports of an epoch's splits; returns the punctuations that hold only since now."""
        self._slacks = {a: (now, now) for a, (_, now) in self._slacks.items()}
        reports, fresh = list(reports), list[Pattern]()
        named: dict[tuple[str, ...], list[pa.Table]] = {}
        came: list[list[pa.Table]] = [[] for _ in self._over]
        tallies: dict[str, Lateness] = {}
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
            for told in report["values"]:
                names = tuple(told["of"])
                ledger = partition.values.get(names) or Ledger.empty(self.schema, names)
                partition.values[names], new = ledger.add(unpack(told["held"]))
                named.setdefault(names, []).append(new)
            self._hear(report["over"], came)
            # Splits of a partition come in order: the last one has seen what those before it have.
            partition.tops.update({a: list(top) for a, top in report["tops"].items()})
            partition.seen.update({a: Seen(tuple(top)) for a, top in report["seen"].items()})
            for attribute, tally in report["tallies"].items():
                tallies[attribute] = tallies.get(attribute, Lateness()) + Lateness.from_json(tally)
        self._counting, counted = advanced(self._counting, reports, self.source)
        asserted = (
            *self._advance_disorder(),
            *self._advance_keys(),
            *counted,
            *self._advance_in_band(fresh, named),
            *self._end_keys(came),
        )
        self._forget()
        for attribute, tally in tallies.items():  # last: the slack of this epoch was that of what came before it
            self._tallies[attribute] = self._tallies.get(attribute, Lateness()) + tally
        return asserted

    def _hear(self, told: Sequence[str | None], came: list[list[pa.Table]]) -> None:
        for i, (promise, text) in enumerate(zip(self._ending, told)):
            if text is None:
                continue
            state = self._over[i]
            if isinstance(promise, Once):
                over, fresh = state.over.add(unpack(text))
                self._over[i] = KeyState(over, state.open)
                came[i].append(fresh)
            else:
                self._over[i] = KeyState(state.over, state.open.heard(OpenKeys.from_json(text)))

    def _end_keys(self, came: list[list[pa.Table]]) -> list[Pattern]:
        """The keys that are over since this epoch: for each promise one list of values, and long runs as ranges."""
        asserted = []
        for i, promise in enumerate(self._ending):
            state = self._over[i]
            if isinstance(promise, After):
                limits = self._limits(promise.attribute).values()
                reached = [x for x in limits if x is not None]
                if not reached or len(reached) < len(limits) or not len(state.open):
                    continue
                past = state.open.newest < max(min(reached) - promise.gap, LOWEST)
                stay, ended = state.open.parted(past)
                if not ended.num_rows:
                    continue
                over, fresh = state.over.add(ended)
                self._over[i] = KeyState(over, stay)
                came[i] = [fresh]
            if came[i]:
                ended_now, _ = Ledger.empty(self.schema, [promise.key]).add(pa.concat_tables(came[i]), new=True)
                asserted += ended_now.patterns()
        return asserted

    def _forget(self) -> None:
        """Cut what is remembered to its limits: here only, so that it does not depend on tasks."""
        for i, promise in enumerate(self._ending):
            over, lost = self._over[i].over.kept(promise.remember)
            if lost:
                self._over[i] = KeyState(over, self._over[i].open)
                self.forgotten += lost
        for promise in self._all(InBand):
            for partition in self._partitions.values():
                for names, ledger in partition.values.items():
                    partition.values[names], lost = ledger.kept(promise.remember)
                    self.forgotten += lost
                given = partition.punctuations
                if given is not None and len(given) > promise.remember:
                    partition.punctuations = PunctuationSet(self.schema, given.patterns[-promise.remember :])
                    self.forgotten += len(given) - promise.remember
            self._given = PunctuationSet(self.schema, self._given.patterns[-promise.remember :])

    def _slack(self, promise: Disorder | Adaptive) -> int:
        """The slack in force: as declared, or measured in the epochs before."""
        if isinstance(promise, Disorder):
            return int(self._slacks[promise.attribute][1])
        tally = self._tallies.get(promise.attribute)
        if tally is None or tally.events < max(1, promise.warm_up):
            return promise.at_most
        return min(max(tally.quantile(promise.quantile, of_all=True), promise.at_least), promise.at_most)

    def _limits(self, attribute: str) -> dict[str, int | None]:
        """How far each partition is by the promised order of an attribute."""
        found: dict[str, int | None] = {}
        for promise in self._all(Disorder, Adaptive, WithinRows):
            if promise.attribute == attribute:
                for name, partition in self._partitions.items():
                    found[name] = self._limit(partition, promise)
        return found

    def _limit(self, partition: PartitionState, promise: Disorder | Adaptive | WithinRows) -> int | None:
        limits = []
        if isinstance(promise, WithinRows):
            top = partition.tops.get(promise.attribute, [])
            limits = top[:1] if len(top) > promise.rows else []
        elif (high := partition.highs.get(promise.attribute)) is not None:
            limits = [high - self._slack(promise)]
        if (floor := partition.floors.get(promise.attribute)) is not None:
            limits.append(floor)
        return max(limits, default=None)

    def _asserted(self, attribute: str, limit: int) -> int:
        """How far the source says it is when it knows a limit: up to a multiple of the period, if there is one."""
        period: int = self._periods.get(attribute, 1)
        return limit // period * period

    def _advance_disorder(self) -> list[Pattern]:
        asserted = []
        for promise in self._all(Disorder, Adaptive, WithinRows):
            limits = {n: self._limit(p, promise) for n, p in self._partitions.items()}
            if isinstance(promise, Adaptive):
                # A slack that grows does not take back how far the partition was.
                for name, reached_now in limits.items():
                    if reached_now is not None:
                        self._partitions[name].floors[promise.attribute] = reached_now
            reached = [x for x in limits.values() if x is not None]
            if not reached or len(reached) < len(limits):
                continue
            limit = self._asserted(promise.attribute, min(reached))
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
            limit = self._asserted(promise.past, min(seen) - promise.slack)
            if limit > self._passed.get(i, limit - 1):
                self._passed[i] = limit
                asserted.append(frontier_pattern(self.schema, promise.past, limit))
        return asserted

    def _advance_in_band(
        self, fresh: Sequence[Pattern], named: Mapping[tuple[str, ...], Sequence[pa.Table]]
    ) -> list[Pattern]:
        """A punctuation holds for the source once every partition has given it, or one that covers it.

        From `[< 10, *]` of one and `[*, 4]` of another follows what both have given: `[< 10, 4]`.
        """
        news = {n: Ledger.empty(self.schema, n).add(pa.concat_tables(t))[0] for n, t in named.items()}
        parts = list(self._partitions.values())
        if len(parts) == 1:
            asserted = [p for ledger in news.values() for p in ledger.patterns()]
            return [*asserted, *self._agree(fresh, [parts[0].punctuations or PunctuationSet(self.schema)])]
        asserted = []
        for names, ledger in news.items():
            for part in parts:
                ledger = ledger.common(part.values.get(names) or Ledger.empty(self.schema, names))
            asserted += ledger.patterns()
        kinds = {names for part in parts for names in part.values}
        if len(kinds) <= 1 and not any(part.punctuations for part in parts):
            return asserted
        # Values of one partition may be covered by ranges of another: all as patterns, though that is slow for many.
        sets = []
        for part in parts:
            given = part.punctuations or PunctuationSet(self.schema)
            sets.append(given.add(*(p for ledger in part.values.values() for p in ledger.patterns())))
        candidates = [*fresh, *(p for ledger in news.values() for p in ledger.patterns())]
        return [*asserted, *self._agree(candidates, sets)]

    def _agree(self, fresh: Sequence[Pattern], parts: Sequence[PunctuationSet]) -> list[Pattern]:
        if not fresh:
            return []
        if len(parts) == 1:
            # Of many that tell ever more of the same keys, those that tell most.
            asserted = [p for p in maximal(fresh) if not self._given.covers(p)]
            return self._grown_together(asserted)
        common: Iterable[Pattern] = fresh
        for part in parts:
            common = maximal(p.intersect(q) for p in common for q in part)
        told = self._given.add(
            *(p for ledger in agreed(tuple(self._partitions.values())).values() for p in ledger.patterns())
        )
        asserted = []
        for pattern in (*(p for part in parts for p in part), *common):
            if not told.covers(pattern) and all(part.covers(pattern) for part in parts):
                told = told.add(pattern)
                asserted.append(pattern)
        return self._grown_together(asserted)

    def _grown_together(self, asserted: Sequence[Pattern]) -> list[Pattern]:
        """New punctuations, and the ranges that they become with earlier ones: those say more than their parts."""
        before = set(self._given)
        self._given = self._given.add(*asserted)
        return list(maximal((*asserted, *(p for p in self._given if p not in before and grows(p)))))

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

    @property
    def disorder_seen(self) -> dict[str, Disorderliness]:
        """The disorder actually seen, per attribute that is measured."""
        return {a: t.summary for a, t in self._tallies.items()}

    @property
    def open_keys(self) -> int:
        """How many keys are remembered because they are not over yet."""
        return sum(len(state.open) for state in self._over)

    def to_json(self) -> dict[str, Any]:
        return {
            "partitions": {name: p.to_json() for name, p in sorted(self._partitions.items())},
            "keys": self._keys,
            "over": [k.to_json() for k in self._over],
            "disorder": self._disorder,
            "slacks": self._slacks,
            "passed": {str(i): t for i, t in self._passed.items()},
            "given": self._given.to_json(),
            "tallies": {a: t.to_json() for a, t in self._tallies.items()},
            "forgotten": self.forgotten,
            "ended": self.ended,
            "counting": self._counting.to_json() if self._counting is not None else None,
        }

    @classmethod
    def from_json(cls, source: Source, stored: Mapping[str, Any]) -> PromiseState:
        state = cls(source)
        for name, p in stored["partitions"].items():
            state._partitions[name] = PartitionState.from_json(p, source.schema)
        state._keys = [list(k) for k in stored["keys"]]
        if "over" in stored:
            state._over = [KeyState.from_json(k, source.schema) for k in stored["over"]]
        state._disorder = dict(stored["disorder"])
        # A source that is declared anew is one whose dial was turned while it was away.
        state._slacks |= {a: (before, now) for a, (before, now) in stored["slacks"].items() if a in state._slacks}
        state._passed = {int(i): t for i, t in stored["passed"].items()}
        state._given = PunctuationSet.from_json(stored["given"], source.schema)
        state._tallies = {a: Lateness.from_json(t) for a, t in stored.get("tallies", {}).items()}
        state.forgotten = int(stored.get("forgotten", 0))
        state.ended = bool(stored["ended"])
        state._counting = Counting.from_json(stored["counting"]) if stored.get("counting") else None
        return state
