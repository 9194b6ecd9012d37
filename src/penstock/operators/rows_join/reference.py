"""Join with windows of rows: in order of time and per key, each event joins the last few of the other side before it.

The order of arrival has no say, so nothing can be decided about an event before everything ahead of it is there.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from penstock.operators.join.reference import PairReference
from penstock.operators.join.reference_partner import HeldEvent, moments
from penstock.operators.rows_join import operator
from penstock.pattern.pattern import Pattern
from penstock.pattern.restriction import Restriction
from penstock.reference.item import Event, Item
from penstock.reference.moment import to_tick
from penstock.reference.promises import Value, Wanted
from penstock.reference.summary import sort_key

Key = tuple[Any, ...]


class RowsJoinReference(PairReference):
    """First events wait for their turn, then, with their turn behind them, for partners.

    The turn of an event comes when neither input can bring one of the same key that is as old. Then it meets the last
    events of the other side that had their turn before. After that it stays among the last of its own side until
    enough others have followed, or no event of the other side is left to meet it.
    """

    def __init__(self, declared: operator.RowsJoin) -> None:
        super().__init__(declared, self._held)
        self.rows, self.times = declared.rows, declared.times
        self.waiting: list[HeldEvent] = []
        #: Per side and key, those that later events of the other side can meet, in order.
        self.recent: list[dict[Key, list[HeldEvent]]] = [{}, {}]

    def on_event(self, event: Event, input: int = 0) -> Iterable[Item]:
        mine = HeldEvent(event.row, input)
        if self._key(mine) is None or event.row[self.times[input]] is None:
            self.note = "dropped: no partner can come"
            return self._let_go(mine)
        self.note = ""
        self.waiting.append(mine)
        return self._settle()

    def on_punctuation(self, pattern: Pattern, input: int = 0) -> Iterable[Item]:
        self.note = ""
        self.outlet.hear(input, self.promised[input].add(pattern))
        return self._settle()

    def state(self) -> list[Any]:
        recent = [h for side in self.recent for held in side.values() for h in held]
        return [held.copy() for held in [*self.waiting, *recent]]

    def _settle(self) -> list[Item]:
        """Give everyone a turn whose turn it is; let go of what waits in vain."""
        out: list[Item] = []
        # In order: what can be overtaken, can be so ahead of all that is behind it and has its key.
        self.waiting.sort(key=self._place)
        ready = [held for held in self.waiting if not self._could_be_overtaken(held)]
        self.waiting = [held for held in self.waiting if not any(held is r for r in ready)]
        for held in ready:
            out += self._turn(held, self._known_key(held))
        for side in (0, 1):
            for key, recent in list(self.recent[side].items()):
                if not self._could_be_met(side, key, recent[0]):
                    for held in recent:
                        out += self._let_go(held)
                    del self.recent[side][key]
        return [*out, *self.outlet.speak()]

    def _turn(self, mine: HeldEvent, key: Key) -> list[Item]:
        out: list[Item] = []
        other = 1 - mine.input
        for theirs in self.recent[other].get(key, []):
            out += self._meet(mine, theirs) if self._match(mine, theirs) else []
        recent = self.recent[mine.input].setdefault(key, [])
        recent.append(mine)
        size = self.rows[mine.input]
        while size is not None and len(recent) > size:
            out += self._let_go(recent.pop(0))
        return out

    def _could_be_overtaken(self, held: HeldEvent) -> bool:
        """Whether an event of the same key may come that is as old: among equals, others may have precedence."""
        tick = to_tick(held.row[self.times[held.input]])
        for side in (0, 1):
            wanted = self._of_same_key(side, held)
            until = moments(None, tick, self.partners.schemas[side].type_of(self.times[side]))
            if self.promised[side].could_come({**wanted, self.times[side]: [*wanted.get(self.times[side], []), until]}):
                return True
        return False

    def _could_be_met(self, side: int, key: Key, held: HeldEvent) -> bool:
        other = 1 - side
        waits = any(h.input == other and self._known_key(h) == key for h in self.waiting)
        return waits or self.promised[other].could_come(self._of_same_key(other, held))

    def _of_same_key(self, side: int, held: HeldEvent) -> Wanted:
        """What events of one side look like that have the key of this one."""
        wanted: dict[str, list[Value | Restriction]] = {}
        for name, own in zip(self.partners.keys[side], self.partners.keys[held.input]):
            wanted.setdefault(name, []).append(Value(held.row[own]))
        return wanted

    def _key(self, held: HeldEvent) -> Key | None:
        return self.partners.same_key(held.input, held.row)

    def _known_key(self, held: HeldEvent) -> Key:
        key = self._key(held)
        assert key is not None
        return key

    def _place(self, held: HeldEvent) -> tuple[Any, ...]:
        """The total order: by time, left before right, then by content, nulls last."""
        content = tuple(sort_key(value) for value in held.row.values())
        return (to_tick(held.row[self.times[held.input]]), held.input, content)

    def _held(self, side: int) -> list[HeldEvent]:
        """What can still become part of a result: of left events that come once at most, not those that have."""
        once = side == 0 and self.declared.how in ("semi", "anti")
        recent = [h for held in self.recent[side].values() for h in held if not (once and h.matched)]
        return [h for h in self.waiting if h.input == side] + recent
