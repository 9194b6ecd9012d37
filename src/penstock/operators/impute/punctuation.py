"""The behaviour of an operator with a queue: a promise passes when no event that it speaks of waits any more.

The queue is asked in every epoch. What it is asked about stays few: a frontier is one question, however often it has
moved, since the queue says how far down its events reach; key values that have ended are one question for each
attribute, since the queue says of which values events still wait. Promises of other forms wait in order of arrival, and
the first of them are asked about: events leave in that order too, so these go out first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import pyarrow as pa

from penstock.operators.join.ended_keys import values_in
from penstock.operators.join.meeting import unit_of
from penstock.operators.map.operator import Map
from penstock.operators.shared.answers import onto_carried
from penstock.pattern.minimise import grows
from penstock.pattern.pattern import Pattern
from penstock.pattern.punctuation import PunctuationSet
from penstock.pattern.restriction import Range, less, one_of
from penstock.plan.behaviour import Behaviour, ThroughBehaviour, maximal
from penstock.plan.orders import Answer, Orders
from penstock.plan.spec import same
from penstock.plan.window import from_tick

#: How many promises of other forms are asked about in an epoch, and how many wait before they are put together.
ASKED = 64
WAITING = 1000


class QueueBehaviour(Behaviour):
    """Holds promises on the attributes that the function keeps back until the queue says that they are true behind it.

    >>> from penstock.operators.impute.operator import Impute
    >>> from penstock.operators.source.operator import Source
    >>> from penstock.pattern.schema import Schema
    >>> source = Source((), Schema.parse("t int, v double"), name="s")
    >>> queue = QueueBehaviour(Impute((source,), source.schema, function=lambda rows: rows, keeps=("t",)))
    >>> queue.receive([(Pattern.parse("[< 9, *]", source.schema), Pattern.parse("[*, > 3]", source.schema))])
    ()
    >>> print(*queue.orders().ask[0])
    [*, *] [< 9, *]
    >>> queue.answered([[Answer(2), Answer(1, least=5)]])
    >>> print(*queue.receive([()]), queue.pending)
    [< 5, *] True
    """

    def __init__(self, operator: Map, asks: bool = True) -> None:
        (below,) = operator.inputs
        self.schema, self.output = below.schema, operator.schema
        self.operator = operator
        self.keeps, self.asks = frozenset(operator.keeps), asks
        #: Promised, but events of it may wait: frontiers and lists of values, and the others in order of arrival.
        self.waiting = PunctuationSet(self.schema)
        self.others: list[Pattern] = []
        self.over = False
        self.free: list[Pattern] = []
        self.said = PunctuationSet(self.output)
        self.asked: list[Pattern] = []
        self.queued = 0

    def receive(self, arrived: Sequence[tuple[Pattern, ...]]) -> tuple[Pattern, ...]:
        (patterns,) = arrived
        for pattern in patterns if self.asks else ():
            if not self.keeps.issuperset(pattern.restricted):
                continue  # Nothing is known of what the function makes of the other attributes.
            pattern = Pattern(self.schema, pattern.restrictions)
            if not pattern.restricted:
                self.over = True
            elif self._is_told(pattern):
                self.waiting = self.waiting.add(pattern)
            else:
                self.others.append(pattern)
        if len(self.others) > WAITING:
            self.others = list(PunctuationSet(self.schema).add(*self.others))
        free, self.free = self.free, []
        out = tuple(p for p in maximal(map(self._behind, free)) if not self.said.covers(p))
        self.said = self.said.add(*filter(grows, out))
        return out

    def _behind(self, pattern: Pattern) -> Pattern:
        return pattern.onto(self.output, {n: n for n in pattern.restricted})

    def _is_told(self, pattern: Pattern) -> bool:
        """Whether the queue says of a part of the pattern that it is free: a frontier, or a list of values."""
        if len(pattern.restricted) != 1:
            return False
        (name,) = pattern.restricted
        restriction, t = pattern[name], self.schema.type_of(name)
        frontier = isinstance(restriction, Range) and restriction.low is None
        if frontier:
            return bool(pa.types.is_integer(t) or pa.types.is_timestamp(t) or pa.types.is_date(t))
        return values_in(restriction, t) is not None and not pa.types.is_floating(t)

    def orders(self) -> Orders:
        self.asked = [*self.waiting, *self.others[:ASKED]]
        everything = Pattern.all(self.schema)
        return Orders(((),), (PunctuationSet(self.schema),), ((everything, *self.asked),))

    def answered(self, answers: Sequence[Sequence[Answer]]) -> None:
        ((everything, *said),) = answers
        self.queued = everything.rows
        if not self.queued:
            self.free += [*self.waiting, *self.others]
            self.waiting, self.others = PunctuationSet(self.schema), []
            if self.over:
                self.free.append(Pattern.all(self.schema))
                self.over = False
        else:
            for pattern, answer in zip(self.asked, said, strict=True):
                self._take(pattern, answer)
        self.asked = []

    def _take(self, pattern: Pattern, answer: Answer) -> None:
        if not answer.rows:
            self.free.append(pattern)
            self.waiting = PunctuationSet(self.schema, tuple(p for p in self.waiting if p is not pattern))
            self.others = [p for p in self.others if p is not pattern]
            return
        if answer.least is None and answer.left is None:
            return
        (name,) = pattern.restricted
        t = self.schema.type_of(name)
        if answer.least is not None:
            # Up to the first of those that wait.
            part = Pattern.by_name(self.schema, {name: less(from_tick(answer.least, unit_of(t)))})
            if not self.said.covers(self._behind(part)):
                self.free.append(part)
        elif answer.left is not None and (gone := (values_in(pattern[name], t) or set()) - answer.left):
            part = Pattern.by_name(self.schema, {name: one_of(gone)})
            self.free.append(part)
            self.waiting = self.waiting.without(part)

    def unqueued(self) -> Behaviour:
        return ThroughBehaviour(partial(onto_carried, self.operator, same(self.operator, self.operator.keeps)))

    def listen(self) -> None:
        self.asks = True

    @property
    def pending(self) -> bool:
        """As long as something waits, there is an epoch to come."""
        return bool(self.free) or self.queued > 0

    def to_json(self) -> dict[str, Any]:
        return {
            "waiting": self.waiting.to_json(),
            "others": _stored(self.others),
            "over": self.over,
            "free": _stored(self.free),
            "said": self.said.to_json(),
            "queued": self.queued,
        }

    def restore(self, stored: Mapping[str, Any]) -> None:
        self.waiting = PunctuationSet.from_json(stored["waiting"], self.schema)
        self.others = [Pattern.from_json(p, self.schema) for p in stored["others"]]
        self.over = stored["over"]
        self.free = [Pattern.from_json(p, self.schema) for p in stored["free"]]
        self.said = PunctuationSet.from_json(stored["said"], self.output)
        self.queued = stored["queued"]


def _stored(patterns: Iterable[Pattern]) -> list[Any]:
    return [p.to_json() for p in patterns]
