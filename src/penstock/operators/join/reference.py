"""Join, one event at a time: probe the other side, then wait on one's own side for partners that may still come."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from penstock.operators.join import operator as join
from penstock.operators.join.reference_outlet import Outlet
from penstock.operators.join.reference_partner import HeldEvent, Partners, joined
from penstock.pattern.pattern import Pattern
from penstock.reference.domain import domains
from penstock.reference.failure import Note
from penstock.reference.item import Event, Item
from penstock.reference.promises import Promises


class PairReference:
    """What joins of two inputs have in common: what becomes of a pair, and of an event that is let go."""

    def __init__(self, declared: join.Joined, held: Callable[[int], Any]) -> None:
        """`held` gives what is held of an input."""
        self.declared, self.partners = declared, Partners(declared)
        self.promised = [Promises(i.schema, domains(i)) for i in declared.inputs]
        equal = [((0, a), (1, b)) for a, b in declared.keys]
        alone = join.LONELY[declared.how]
        self.outlet = Outlet(declared.schema, declared.columns, self.promised, held, equal, alone=alone)
        #: What happened to the last item, if that is worth a word.
        self.note = ""

    @property
    def on_failure(self) -> Note:
        return self.partners.on_failure

    @on_failure.setter
    def on_failure(self, note: Note) -> None:
        self.partners.on_failure = note

    def _match(self, mine: HeldEvent, theirs: HeldEvent) -> bool:
        left, right = (mine, theirs) if mine.input == 0 else (theirs, mine)
        return self.partners.match(left.row, right.row)

    def _meet(self, mine: HeldEvent, theirs: HeldEvent) -> list[Item]:
        """What a pair gives: a row, or, where only left events count, the left one at its first match."""
        left, right = (mine, theirs) if mine.input == 0 else (theirs, mine)
        first = not left.matched
        left.matched = right.matched = True
        if self.declared.how == "anti" or (self.declared.how == "semi" and not first):
            return []
        return [joined(self.declared.columns, (left.row, right.row), self.declared.schema)]

    def _let_go(self, held: HeldEvent) -> list[Item]:
        if held.matched or held.input not in join.LONELY[self.declared.how]:
            return []
        rows = (held.row, None) if held.input == 0 else (None, held.row)
        return [joined(self.declared.columns, rows, self.declared.schema)]


class JoinReference(PairReference):
    """Two inputs, of all kinds, with or without a band of time.

    An event is held as long as the other input could still bring a partner for it. One for which none can come is not
    stored; if nothing that is stored fits either, it is dropped without a look. An event of a preserved side that
    has had no partner leaves, padded with nulls, at the moment it is let go.
    """

    def __init__(self, declared: join.Join) -> None:
        self.held: list[list[HeldEvent]] = [[], []]
        super().__init__(declared, self.held.__getitem__)

    def on_event(self, event: Event, input: int = 0) -> Iterable[Item]:
        mine, other = HeldEvent(event.row, input), 1 - input
        found = [h for h in self.held[other] if self._match(mine, h)]
        wanted = self.partners.wanted(input, event.row)
        awaited = wanted is not None and self.promised[other].could_come(wanted)
        self.note = "" if awaited else "not stored: no partner can come" if found else "dropped: no partner can come"
        out: list[Item] = []
        for theirs in found:
            out += self._meet(mine, theirs)
        if self.declared.how in ("semi", "anti"):
            # One partner decides over a left event; right ones are kept for others.
            self.held[0][:] = [h for h in self.held[0] if not h.matched]
            awaited = awaited and not (input == 0 and mine.matched)
        if awaited:
            self.held[input].append(mine)
        else:
            out += self._let_go(mine)
        return [*out, *self.outlet.speak()]

    def on_punctuation(self, pattern: Pattern, input: int = 0) -> Iterable[Item]:
        self.note = ""
        known = self.promised[input].add(pattern)
        other = 1 - input
        out: list[Item] = []
        kept: list[HeldEvent] = []
        for held in self.held[other]:
            wanted = self.partners.wanted(other, held.row)
            if wanted is not None and self.promised[input].could_come(wanted):
                kept.append(held)
            else:
                out += self._let_go(held)
        self.held[other][:] = kept
        self.outlet.hear(input, known)
        return [*out, *self.outlet.speak()]

    def state(self) -> list[Any]:
        return [held.copy() for side in self.held for held in side]
