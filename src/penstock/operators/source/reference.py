"""Source: checks what arrives against what was promised, and says what is promised now."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, Literal

from penstock.errors import SchemaError, ViolationError
from penstock.operators.source.consistency import order_of
from penstock.operators.source.operator import Source as Declared
from penstock.operators.source.reference_counts import CountedPromise
from penstock.operators.source.reference_lifetime import lasting
from penstock.operators.source.reference_promises import (
    AfterPromise,
    AheadPromise,
    BoundsPromise,
    DisorderPromise,
    DomainPromise,
    InBandPromise,
    OncePromise,
    Promised,
    WhenAllPromise,
    WithinRowsPromise,
)
from penstock.pattern.pattern import Pattern
from penstock.plan import promise as declaration
from penstock.plan.count import Count
from penstock.reference.item import Assertion, DeadLetter, Event, Item


class SourceReference:
    """Events from outside, checked one by one; `on_punctuation` takes a punctuation found in the stream."""

    def __init__(self, declared: Declared, partitions: Sequence[Hashable] = (0,)) -> None:
        self.declared, self.partitions = declared, tuple(partitions)
        self.dead_letters: list[DeadLetter] = []
        self.asserted: list[Pattern] = []
        self.in_band = InBandPromise(self.partitions)
        self.promises: list[tuple[Any, Promised]] = []
        self.ahead: list[AheadPromise] = []
        self.endings: list[tuple[Any, AfterPromise | OncePromise]] = []
        counted = [CountedPromise(p, declared.schema) for p in declared.promises if isinstance(p, declaration.Counted)]
        self.counted = counted[0] if counted else None
        schema = declared.schema
        periods = {p.attribute: p.period for p in declared.promises if isinstance(p, declaration.Every)}
        self.orders = orders = dict[str, DisorderPromise]()
        for promise in declared.promises:
            match promise:
                case declaration.Disorder() | declaration.Adaptive():
                    # What is measured depends on the cut into epochs, of which there are none here: its widest bound.
                    slack = promise.slack if isinstance(promise, declaration.Disorder) else promise.at_most
                    fixed = declaration.Disorder(promise.attribute, slack)
                    order = DisorderPromise(fixed, schema, self.partitions, periods.get(promise.attribute, 1))
                    orders[promise.attribute] = order
                    self.promises.append((promise, order))
                case declaration.Ahead():
                    self.ahead.append(AheadPromise(promise, schema, self.partitions))
                case declaration.WithinRows():
                    period = periods.get(promise.attribute, 1)
                    self.promises.append((promise, WithinRowsPromise(promise, schema, self.partitions, period)))
                case declaration.WhenAll():
                    self.promises.append((promise, WhenAllPromise(promise, schema, periods.get(promise.past, 1))))
                case declaration.Bounds():
                    self.promises.append((promise, BoundsPromise(promise, declared.schema)))
                case declaration.Domain():
                    self.promises.append((promise, DomainPromise(promise, declared.schema)))
        for promise in declared.promises:
            match promise:
                case declaration.After():
                    self.endings.append((promise, AfterPromise(promise, schema, orders[promise.attribute])))
                case declaration.Once():
                    self.endings.append((promise, OncePromise(promise, schema)))
        self.promises.append((declaration.InBand(), self.in_band))

    def turn(self, slack: int) -> None:
        """The dial is turned: from now on events may be this late."""
        order = order_of(self.declared)
        assert order is not None
        self.orders[order.attribute].turn(slack)

    def on_event(self, event: Event, partition: Hashable = 0) -> Iterable[Item]:
        try:
            row = self.declared.schema.event(event.row)
        except SchemaError as error:
            self._reject(event.row, partition, str(error), None, "malformed")
            return []
        if (life := self.declared.lasting) is not None:
            row, why = lasting(life, row)
            if why is not None:
                self._reject(row, partition, why, None, "malformed")
                return []
        for name in self.declared.schema.times:
            if row[name] is None:
                self._reject(row, partition, f"time attribute '{name}' is null", None, "malformed")
                return []
        # Counted were those that were sent, whatever else is wrong with them.
        if self.counted is not None and self.counted.is_one_more(row):
            self._reject(row, partition, "more than counted", None, "late")
            return []
        # What can never occur, or was promised away in so many words, is no evidence of anything.
        for promise, kept in self.promises:
            if (pattern := kept.forbidden(row)) is not None:
                self._reject(row, partition, f"breaks {promise}: matches {pattern}", pattern, "forbidden")
                return []
        judges = [(promise, kept) for promise, kept in self.promises if kept is not self.in_band]
        if (pattern := self.in_band.violated(row, partition)) is not None:
            self._reject(row, partition, f"breaks {declaration.InBand()}: matches {pattern}", pattern, "late")
            return []
        for guard in self.ahead:
            if (pattern := guard.violated(row, partition)) is not None:
                self._reject(row, partition, f"breaks {guard.promise}: matches {pattern}", pattern, "ahead")
                return []
        for _, ending in self.endings:
            ending.look()
        found = [(promise, kept.violated(row, partition)) for promise, kept in judges]
        late = [(promise, pattern) for promise, pattern in found if pattern is not None]
        # Keys take note only of the events that nothing else rejects; and an event of a key that is over tells no time.
        for promise, ending in self.endings if not late else ():
            if (pattern := ending.violated(row, partition)) is not None:
                self._reject(row, partition, f"breaks {promise}: matches {pattern}", pattern, "late")
                return []
        for guard in self.ahead:
            guard.note(row, partition)
        for _, kept in judges:
            kept.note(row, partition)
        for promise, pattern in late:
            self._reject(row, partition, f"breaks {promise}: matches {pattern}", pattern, "late")
            return []
        return [Event(row)]

    def on_punctuation(self, pattern: Pattern, partition: Hashable | None = None) -> Iterable[Item]:
        """A punctuation of one partition; of all of them when none is named. Asserted by `punctuate`."""
        for each in self.partitions if partition is None else (partition,):
            self.in_band.punctuate(pattern, each)
        return []

    def on_count(self, count: Count, partition: Hashable | None = None) -> None:
        """A count found in the stream."""
        assert self.counted is not None
        if why := self.counted.tell(count):
            self._reject({"count": str(count)}, partition, why, None, "malformed")

    def punctuate(self) -> list[Item]:
        """Assert everything that is known now and was not asserted before."""
        new: list[Item] = []
        counted = [self.counted] if self.counted is not None else []
        for kept in (*(k for _, k in self.promises), *(k for _, k in self.endings), *counted):
            for pattern in kept.assertions():
                if not any(known.contains(pattern) for known in self.asserted):
                    self.asserted = [p for p in self.asserted if not pattern.contains(p)] + [pattern]
                    new.append(Assertion(pattern))
        return new

    def end(self) -> list[Item]:
        """Assert that nothing follows."""
        self.in_band.given = {p: [Pattern.all(self.declared.schema)] for p in self.partitions}
        return [*self.punctuate(), Assertion(Pattern.all(self.declared.schema))]

    def state(self) -> list[Any]:
        return []

    def _reject(
        self,
        row: Mapping[str, Any],
        partition: Hashable | None,
        reason: str,
        pattern: Pattern | None,
        kind: Literal["malformed", "forbidden", "late", "ahead"],
    ) -> None:
        if self.declared.on_violation == "fail":
            raise ViolationError(
                f"stream '{self.declared.name}': {dict(row)} {reason}",
                hint="set on_violation='reject' to send such events to the dead letters",
            )
        self.dead_letters.append(DeadLetter(self.declared.name, partition, row, reason, pattern, kind))
