"""The promises of a source, one event at a time.

Each promise is one small class that answers two questions: which punctuation does this event break, if any; and what
may be asserted for the whole source after everything seen so far.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Protocol

from penstock.pattern.pattern import Pattern
from penstock.pattern.restriction import Equal, greater, less
from penstock.pattern.schema import Schema
from penstock.pattern.types import coerce_value
from penstock.plan import promise as declaration
from penstock.reference.agreement import Agreement
from penstock.reference.moment import from_tick, to_tick


class Promised(Protocol):
    def forbidden(self, row: Mapping[str, Any]) -> Pattern | None:
        """The punctuation from before the first event that an event breaks. Takes no note of it."""
        ...

    def violated(self, row: Mapping[str, Any], partition: Hashable) -> Pattern | None:
        """The punctuation that an event breaks."""
        ...

    def note(self, row: Mapping[str, Any], partition: Hashable) -> None:
        """Take note of an event."""
        ...

    def assertions(self) -> list[Pattern]:
        """What holds for the whole source from now on."""
        ...


def _older_than(schema: Schema, attribute: str, tick: int) -> Pattern:
    return Pattern.by_name(schema, {attribute: less(from_tick(tick, schema.type_of(attribute)))})


class DisorderPromise:
    """An event is late if it is older than the newest one before it in its partition by more than the slack."""

    def __init__(
        self, promise: declaration.Disorder, schema: Schema, partitions: Sequence[Hashable], period: int = 1
    ) -> None:
        self.promise, self.schema, self.period = promise, schema, period
        self.newest: dict[Hashable, int | None] = dict.fromkeys(partitions)
        self.slack = promise.slack
        #: What was late before the slack was changed stays late.
        self.floors: dict[Hashable, int] = {}

    def turn(self, slack: int) -> None:
        """From now on, events may be this late."""
        self.floors = {p: limit for p in self.newest if (limit := self._limit(p)) is not None}
        self.slack = slack

    def _limit(self, partition: Hashable) -> int | None:
        newest = self.newest[partition]
        return None if newest is None else max(newest - self.slack, self.floors.get(partition, newest - self.slack))

    def forbidden(self, row: Mapping[str, Any]) -> Pattern | None:
        return None

    def violated(self, row: Mapping[str, Any], partition: Hashable) -> Pattern | None:
        attribute, limit = self.promise.attribute, self._limit(partition)
        late = row[attribute] is not None and limit is not None and to_tick(row[attribute]) < limit
        return _older_than(self.schema, attribute, limit) if late and limit is not None else None

    def note(self, row: Mapping[str, Any], partition: Hashable) -> None:
        if row[self.promise.attribute] is not None:
            tick, newest = to_tick(row[self.promise.attribute]), self.newest[partition]
            self.newest[partition] = tick if newest is None else max(newest, tick)

    def frontier(self) -> int | None:
        """How far time is complete in the slowest partition."""
        reached = [limit for p in self.newest if (limit := self._limit(p)) is not None]
        if not reached or len(reached) < len(self.newest):
            return None  # A partition that has said nothing yet may still bring anything.
        return min(reached)

    def assertions(self) -> list[Pattern]:
        reached = self.frontier()
        if reached is None:
            return []
        return [_older_than(self.schema, self.promise.attribute, reached // self.period * self.period)]


class AheadPromise:
    """An event is too far ahead if the newest let in before it in its partition is older by more than declared."""

    def __init__(self, promise: declaration.Ahead, schema: Schema, partitions: Sequence[Hashable]) -> None:
        self.promise, self.schema = promise, schema
        self.newest: dict[Hashable, int | None] = dict.fromkeys(partitions)

    def violated(self, row: Mapping[str, Any], partition: Hashable) -> Pattern | None:
        attribute = self.promise.attribute
        if row[attribute] is None:
            return None
        tick, newest = to_tick(row[attribute]), self.newest[partition]
        if newest is not None and tick > newest + self.promise.most:
            limit = from_tick(newest + self.promise.most, self.schema.type_of(attribute))
            return Pattern.by_name(self.schema, {attribute: greater(limit)})
        return None

    def note(self, row: Mapping[str, Any], partition: Hashable) -> None:
        if row[self.promise.attribute] is not None:
            tick, newest = to_tick(row[self.promise.attribute]), self.newest[partition]
            self.newest[partition] = tick if newest is None else max(newest, tick)


class WithinRowsPromise:
    """An event is late if more than so many of the events before it in its partition are greater."""

    def __init__(
        self, promise: declaration.WithinRows, schema: Schema, partitions: Sequence[Hashable], period: int
    ) -> None:
        self.promise, self.schema, self.period = promise, schema, period
        self.seen: dict[Hashable, list[int]] = {p: [] for p in partitions}

    def forbidden(self, row: Mapping[str, Any]) -> Pattern | None:
        return None

    def _limit(self, partition: Hashable) -> int | None:
        seen = sorted(self.seen[partition], reverse=True)
        return seen[self.promise.rows] if len(seen) > self.promise.rows else None

    def violated(self, row: Mapping[str, Any], partition: Hashable) -> Pattern | None:
        if row[self.promise.attribute] is None:
            return None
        tick, limit = to_tick(row[self.promise.attribute]), self._limit(partition)
        late = limit is not None and tick < limit
        return _older_than(self.schema, self.promise.attribute, limit) if late and limit is not None else None

    def note(self, row: Mapping[str, Any], partition: Hashable) -> None:
        if row[self.promise.attribute] is not None:
            self.seen[partition].append(to_tick(row[self.promise.attribute]))

    def assertions(self) -> list[Pattern]:
        limits = [self._limit(p) for p in self.seen]
        reached = [x for x in limits if x is not None]
        if not reached or len(reached) < len(limits):
            return []
        return [_older_than(self.schema, self.promise.attribute, min(reached) // self.period * self.period)]


class WhenAllPromise:
    """Every key is in order up to the slack; the source is complete up to the key that is furthest behind."""

    def __init__(self, promise: declaration.WhenAll, schema: Schema, period: int = 1) -> None:
        self.promise, self.schema, self.period = promise, schema, period
        self.newest: dict[Any, int | None] = dict.fromkeys(promise.keys)

    def forbidden(self, row: Mapping[str, Any]) -> Pattern | None:
        key = row[self.promise.key]
        if key in self.newest:
            return None
        # Null and NaN cannot be named in a pattern: `*` alone matches them.
        named = key is not None and key == key
        return Pattern.by_name(self.schema, {self.promise.key: Equal(key)} if named else {})

    def violated(self, row: Mapping[str, Any], partition: Hashable) -> Pattern | None:
        key, moment = row[self.promise.key], row[self.promise.past]
        if moment is None:
            return None
        tick, newest = to_tick(moment), self.newest[key]
        if newest is None or tick >= newest - self.promise.slack:
            return None
        late = less(from_tick(newest - self.promise.slack, self.schema.type_of(self.promise.past)))
        return Pattern.by_name(self.schema, {self.promise.key: Equal(key), self.promise.past: late})

    def note(self, row: Mapping[str, Any], partition: Hashable) -> None:
        if row[self.promise.past] is not None:
            key, tick = row[self.promise.key], to_tick(row[self.promise.past])
            newest = self.newest[key]
            self.newest[key] = tick if newest is None else max(newest, tick)

    def assertions(self) -> list[Pattern]:
        seen = [n for n in self.newest.values() if n is not None]
        if not seen or len(seen) < len(self.newest):
            return []
        reached = (min(seen) - self.promise.slack) // self.period * self.period
        return [_older_than(self.schema, self.promise.past, reached)]


class BoundsPromise:
    """Values outside the bounds never occur: known before the first event."""

    def __init__(self, promise: declaration.Bounds, schema: Schema) -> None:
        low, high = promise.low, promise.high
        outside = ([] if low is None else [less(low)]) + ([] if high is None else [greater(high)])
        self.patterns = [Pattern.by_name(schema, {promise.attribute: r}) for r in outside]

    def forbidden(self, row: Mapping[str, Any]) -> Pattern | None:
        return next((p for p in self.patterns if p.matches_row(row)), None)

    def violated(self, row: Mapping[str, Any], partition: Hashable) -> Pattern | None:
        return None

    def note(self, row: Mapping[str, Any], partition: Hashable) -> None: ...

    def assertions(self) -> list[Pattern]:
        return self.patterns


class DomainPromise:
    """Other values than the listed ones never occur, nor does null."""

    def __init__(self, promise: declaration.Domain, schema: Schema) -> None:
        self.promise, self.schema = promise, schema
        self.values = [coerce_value(v, schema.type_of(promise.attribute)) for v in promise.values]

    def forbidden(self, row: Mapping[str, Any]) -> Pattern | None:
        value = row[self.promise.attribute]
        if value in self.values:
            return None
        # Null and NaN cannot be named in a pattern: `*` alone matches them.
        named = value is not None and value == value
        return Pattern.by_name(self.schema, {self.promise.attribute: Equal(value)} if named else {})

    def violated(self, row: Mapping[str, Any], partition: Hashable) -> Pattern | None:
        return None

    def note(self, row: Mapping[str, Any], partition: Hashable) -> None: ...

    def assertions(self) -> list[Pattern]:
        return []


class OncePromise:
    """Every value of a key comes once: each event is its own punctuation."""

    def __init__(self, promise: declaration.Once, schema: Schema) -> None:
        self.promise, self.schema = promise, schema
        self.came: dict[Any, Pattern] = {}

    def forbidden(self, row: Mapping[str, Any]) -> Pattern | None:
        return None

    def look(self) -> None:
        """Nothing but keys decides."""

    def violated(self, row: Mapping[str, Any], partition: Hashable) -> Pattern | None:
        key = row[self.promise.key]
        if key is None or key != key:
            return None  # Null and NaN cannot be named in a pattern.
        if key in self.came:
            return self.came[key]
        self.came[key] = Pattern.by_name(self.schema, {self.promise.key: Equal(key)})
        return None

    def assertions(self) -> list[Pattern]:
        return list(self.came.values())


class AfterPromise:
    """A key is over when time is complete beyond the gap after its newest event."""

    def __init__(self, promise: declaration.After, schema: Schema, order: DisorderPromise) -> None:
        self.promise, self.schema, self.order = promise, schema, order
        self.newest: dict[Any, int] = {}
        self.reached: int | None = None

    def forbidden(self, row: Mapping[str, Any]) -> Pattern | None:
        return None

    def look(self) -> None:
        """Take note of how far time is complete in front of the next event."""
        self.reached = self.order.frontier()

    def _over(self, key: Any, reached: int | None) -> bool:
        return reached is not None and key in self.newest and reached > self.newest[key] + self.promise.gap

    def violated(self, row: Mapping[str, Any], partition: Hashable) -> Pattern | None:
        key, moment = row[self.promise.key], row[self.promise.attribute]
        if key is None or key != key:
            return None
        if self._over(key, self.reached):
            return Pattern.by_name(self.schema, {self.promise.key: Equal(key)})
        if moment is not None:
            self.newest[key] = max(to_tick(moment), self.newest.get(key, to_tick(moment)))
        return None

    def assertions(self) -> list[Pattern]:
        reached = self.order.frontier()
        ended = [key for key in self.newest if self._over(key, reached)]
        return [Pattern.by_name(self.schema, {self.promise.key: Equal(key)}) for key in ended]


class InBandPromise:
    """A punctuation in a partition binds that partition; the source asserts what all its partitions have given."""

    def __init__(self, partitions: Sequence[Hashable]) -> None:
        self.agreement = Agreement(partitions)
        self.given: dict[Hashable, list[Pattern]] = {p: [] for p in partitions}

    def punctuate(self, pattern: Pattern, partition: Hashable) -> None:
        self.given[partition].append(pattern)
        self.agreement.give(partition, pattern)

    def forbidden(self, row: Mapping[str, Any]) -> Pattern | None:
        return None

    def violated(self, row: Mapping[str, Any], partition: Hashable) -> Pattern | None:
        return next((p for p in self.given[partition] if p.matches_row(row)), None)

    def note(self, row: Mapping[str, Any], partition: Hashable) -> None: ...

    def assertions(self) -> list[Pattern]:
        return self.agreement.agreed
