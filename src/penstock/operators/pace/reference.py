"""Pace, one event at a time: a union that lets nobody fall too far behind.

Time is judged by the epochs before. When an epoch ends, first its end is noted (`epoch_ends`), then the sources speak,
and what that sets free still belongs to the epoch; then the next one begins (`epoch_over`). What comes from operators
with state (`held`) is known only when the epoch is over, so it counts from the epoch after next.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, datetime

import pyarrow as pa

from penstock.operators.pace import operator
from penstock.operators.union.reference import UnionReference
from penstock.pattern.feedback import Feedback, Intent
from penstock.pattern.pattern import Pattern
from penstock.pattern.restriction import less
from penstock.pattern.schema import Schema
from penstock.reference.item import Assertion, DeadLetter, Event, Item
from penstock.reference.moment import from_tick, to_tick


class PaceReference(UnionReference):
    """Passes events at once, unless they are older than the latest of earlier epochs by more than the bound.

    Its state is that of a union; how far time has got is one number, and stays.
    """

    def __init__(self, declared: operator.Pace, name: str = "pace") -> None:
        super().__init__(declared)
        self.declared, self.name = declared, name
        self.latest: int | None = None
        self.later: int | None = None
        #: Whether the event that comes next has been through an operator with state.
        self.held = False
        self.least: int | None = None
        self.next: int | None = None
        self.dead_letters: list[DeadLetter] = []
        #: All that was told upstream: (input, feedback).
        self.issued: list[tuple[int, Feedback]] = []

    def on_event(self, event: Event, input: int = 0) -> Iterable[Item]:
        (passed,) = super().on_event(event, input)
        assert isinstance(passed, Event)
        value = event.row[self.declared.on]
        if value is None:
            return [passed]
        tick = to_tick(value)
        if self.held:
            self.later = tick if self.later is None else max(self.later, tick)
        else:
            self.latest = tick if self.latest is None else max(self.latest, tick)
        if self.least is None or tick >= self.least:
            return [passed]
        breaks = self._older(self.schema, self.least)
        reason = f"{self.declared.on} {value} is more than {self.declared.bound} behind the latest"
        self.dead_letters.append(DeadLetter(self.name, input, passed.row, reason, breaks, "paced"))
        return []

    def epoch_ends(self) -> None:
        """What has arrived by now decides what passes in the next epoch."""
        if self.latest is not None:
            due = self.latest - self.declared.bound
            if due > self._first:
                self.next = due

    def epoch_over(self) -> Iterable[Item]:
        """The next epoch begins: a promise, if time has gone on, and word to those before."""
        self.latest = max((t for t in (self.latest, self.later) if t is not None), default=None)
        if self.next is None or self.next == self.least:
            return []
        self.least = self.next
        for port, below in enumerate(self.declared.inputs):
            self.issued.append((port, Feedback(Intent.ASSUMED, self._older(below.schema, self.least))))
        own = self._older(self.schema, self.least)
        if any(known.contains(own) for known in self.agreement.agreed):
            return []
        self.agreement.agreed.append(own)
        return [Assertion(own)]

    def _older(self, schema: Schema, tick: int) -> Pattern:
        moment = from_tick(tick, schema.type_of(self.declared.on))
        return Pattern.by_name(schema, {self.declared.on: less(moment)})

    @property
    def _first(self) -> int:
        """The first moment there is."""
        kind = self.schema.type_of(self.declared.on)
        if pa.types.is_integer(kind):
            return -(1 << (int(kind.bit_width) - 1))
        return to_tick(datetime.min if pa.types.is_timestamp(kind) else date.min)
