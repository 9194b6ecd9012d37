"""MultiJoin, one event at a time: one state per input, and every combination of one event of each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from penstock.operators.join.reference_outlet import Outlet
from penstock.operators.join.reference_partner import HeldEvent, Row, joined, moments
from penstock.operators.multijoin import operator as join
from penstock.pattern.pattern import Pattern
from penstock.pattern.restriction import Restriction
from penstock.reference.domain import domains
from penstock.reference.item import Event, Item
from penstock.reference.moment import to_tick
from penstock.reference.promises import Promises, Value, Wanted
from penstock.reference.summary import identity


class MultiJoinReference:
    """Inner join of several inputs on one key, each with its own window of time.

    Two events belong together if their keys are equal and the later comes within the window of the earlier. A result
    is one event of each input, all of which belong together. An event is held as long as any other input could bring
    one that belongs to it.
    """

    def __init__(self, declared: join.MultiJoin) -> None:
        self.declared, self.inputs = declared, range(len(declared.inputs))
        self.schemas = [i.schema for i in declared.inputs]
        self.held: list[list[HeldEvent]] = [[] for _ in self.inputs]
        self.promised = [Promises(i.schema, domains(i)) for i in declared.inputs]
        equal = [[(i, names[k]) for i, names in enumerate(declared.keys)] for k in range(len(declared.keys[0]))]
        self.outlet = Outlet(declared.schema, declared.columns, self.promised, self.held.__getitem__, equal)
        self.note = ""

    def on_event(self, event: Event, input: int = 0) -> Iterable[Item]:
        mine = HeldEvent(event.row, input)
        found = self._combine([[mine] if i == input else self.held[i] for i in self.inputs])
        awaited = self._is_awaited(mine)
        self.note = "" if awaited else "not stored: no partner can come" if found else "dropped: no partner can come"
        if awaited:
            self.held[input].append(mine)
        out = [joined(self.declared.columns, rows, self.declared.schema) for rows in found]
        return [*out, *self.outlet.speak()]

    def on_punctuation(self, pattern: Pattern, input: int = 0) -> Iterable[Item]:
        self.note = ""
        known = self.promised[input].add(pattern)
        for held in self.held:
            held[:] = [h for h in held if self._is_awaited(h)]
        self.outlet.hear(input, known)
        return self.outlet.speak()

    def state(self) -> list[Any]:
        return [held.copy() for side in self.held for held in side]

    def _combine(self, candidates: Sequence[Sequence[HeldEvent]]) -> list[tuple[Row, ...]]:
        """Every choice of one candidate for each input, all of which belong together."""
        found: list[tuple[HeldEvent, ...]] = [()]
        for each in candidates:
            found = [(*chosen, h) for chosen in found for h in each if all(self._belong(c, h) for c in chosen)]
        return [tuple(h.row for h in chosen) for chosen in found]

    def _belong(self, a: HeldEvent, b: HeldEvent) -> bool:
        mine, theirs = ([h.row[name] for name in self.declared.keys[h.input]] for h in (a, b))
        if None in mine or [*map(identity, mine)] != [*map(identity, theirs)]:
            return False
        if not self._limited(a.input, b.input):
            return True
        times = [h.row[str(self.declared.times[h.input])] for h in (a, b)]
        if None in times:
            return False
        distance = to_tick(times[1]) - to_tick(times[0])
        window = self.declared.windows[(a if distance >= 0 else b).input]
        return window is None or abs(distance) <= window

    def _limited(self, i: int, j: int) -> bool:
        """Whether time decides about events of these two inputs."""
        times, windows = self.declared.times, self.declared.windows
        return times[i] is not None and times[j] is not None and not (windows[i] is windows[j] is None)

    def _is_awaited(self, held: HeldEvent) -> bool:
        wanted = {i: self._wanted(held, i) for i in self.inputs if i != held.input}
        if any(w is None for w in wanted.values()):
            return False  # Without a key, or a time where it matters, it belongs to nothing.
        return any(w is not None and self.promised[i].could_come(w) for i, w in wanted.items())

    def _wanted(self, held: HeldEvent, other: int) -> Wanted | None:
        """What an event of another input must look like to belong to this one."""
        wanted: dict[str, list[Value | Restriction]] = {}
        for name, own in zip(self.declared.keys[other], self.declared.keys[held.input]):
            if held.row[own] is None:
                return None
            wanted.setdefault(name, []).append(Value(held.row[own]))
        mine, theirs = self.declared.times[held.input], self.declared.times[other]
        if mine is not None and theirs is not None and self._limited(held.input, other):
            if held.row[mine] is None:
                return None
            now = to_tick(held.row[mine])
            # Others may be later by this one's window, and earlier by their own.
            later, earlier = self.declared.windows[held.input], self.declared.windows[other]
            low, high = None if earlier is None else now - earlier, None if later is None else now + later
            wanted.setdefault(theirs, []).append(moments(low, high, self.schemas[other].type_of(theirs)))
        return wanted
