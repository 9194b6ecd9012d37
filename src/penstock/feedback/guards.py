"""Guards: which events nobody wants any more, place by place, and how a feedback comes to be there.

A *place* is where events can be dropped: `select-1` is what leaves an operator, `join-1#0` what reaches its first
input, `aggregate-1:groups` the groups an aggregate forms. A *record* is a pattern of events to drop there. A feedback
is carried from its receiver to the sources at once (see `algebra.cascade`); each operator on its way mounts its part.

Guards stay small. A record inside another is not kept; lists of values are one record; punctuation that says that
nothing more will match a record removes it. At a limit the oldest record goes, since doing nothing about a feedback is
always right, unless something was purged for it: such a *pinned* record stays until it is covered, and when there are
too many of those, further feedback is declined.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from typing import Any

from penstock.analysis.cascade import Cascade, Part
from penstock.feedback.trail import Trail
from penstock.feedback.unwanted import Record, uncovered, with_record
from penstock.pattern.feedback import RECORDS, Feedback
from penstock.pattern.minimise import grows
from penstock.pattern.pattern import Pattern
from penstock.pattern.schema import Schema
from penstock.plan.place import Place
from penstock.plan.plan import Node, Plan
from penstock.plan.spec import spec_of

Places = dict[Place, tuple[Record, ...]]


class Guards:
    """The guards of a plan, and the preferences."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.nodes: dict[str, Node] = {n.id: n for n in plan.nodes}
        self.inputs = {n.id: n.inputs for n in plan.nodes}
        self.places: Places = {}
        #: What must be removed from state in the first epoch: by place the patterns that are new.
        self.fresh: dict[Place, tuple[Pattern, ...]] = {}
        self.prefers: Places = {}
        #: Where several consumers read one operator, what each has said so far.
        self.heard: dict[str, Places] = {}
        self.trail = Trail()
        self.epoch = 0
        #: What punctuation has said behind each operator, as far as it keeps growing. Not stored: it comes again.
        self.over: dict[str, tuple[Pattern, ...]] = {}
        self._cascade = Cascade(plan)

    # --- taking up feedback -------------------------------------------------------------------------------------

    def begin(self, epoch: int) -> None:
        """Feedback taken up from here on holds from this epoch."""
        if epoch != self.epoch:
            # Not if no plan has named the version before for want of anything to do: its purges are still to come.
            self.fresh = {}
        self.epoch = epoch

    def tell(self, node_id: str, feedback: Feedback, edge: Place | None = None, by: str = "") -> None:
        """Give a feedback to the operator whose output it speaks of; `edge` is the consumer's input it comes from."""
        self.trail.begin(by, feedback, self.epoch)
        self._cascade.tell(self, node_id, feedback, edge)

    def mount(self, parts: Sequence[Part]) -> bool:
        """Put an operator's guards up, all of them or none; whether it could."""
        changed: Places = {}
        for part in parts:
            if self._is_over(part):
                continue
            record = Record(part.pattern, self.epoch, part.pinned, part.sweep)
            now = with_record(changed.get(part.place, self.places.get(part.place, ())), record)
            if now is None:
                return False
            changed[part.place] = now
        for part in parts:
            known = self.places.get(part.place, ())
            if part.purges and not any(r.pattern.contains(part.pattern) for r in known):
                self.fresh[part.place] = (*self.fresh.get(part.place, ()), part.pattern)
        self.places.update(changed)
        return bool(parts)

    def _is_over(self, part: Part) -> bool:
        """Whether punctuation has said already that nothing more will match there."""
        return any(said.contains(part.pattern) for said in self.over.get(part.speaker, ()))

    def hear(self, node_id: str, edge: Place, pattern: Pattern) -> None:
        heard = self.heard.setdefault(node_id, {})
        heard[edge] = with_record(heard.get(edge, ()), Record(pattern, self.epoch)) or heard.get(edge, ())

    def said(self, node_id: str, edge: Place) -> Sequence[Pattern]:
        return [r.pattern for r in self.heard.get(node_id, {}).get(edge, ())]

    def wish(self, node_id: str, patterns: Sequence[Pattern]) -> None:
        place = Place(node_id)
        records = self.prefers.get(place, ())
        for pattern in patterns:
            records = with_record(records, Record(pattern, self.epoch)) or records
        self.prefers[place] = records

    def note(self, node_id: str, feedback: Feedback, did: str, why: str) -> None:
        self.trail.stop(node_id, feedback, did, why)

    # --- letting go ---------------------------------------------------------------------------------------------

    def cover(self, behind: Mapping[str, Sequence[Pattern]]) -> bool:
        """Drop the records that new punctuations, given by the operator they are behind, say nothing will match."""
        changed = False
        for node_id, patterns in behind.items():
            for pattern in filter(grows, patterns):
                # As a rule it contains those before it. To put it together with them would cost every epoch of every
                # run, told or not, more than a guard too many costs those who are told.
                others = [p for p in self.over.get(node_id, ()) if not pattern.contains(p)]
                self.over[node_id] = (*others[-RECORDS:], pattern)
        for places in (self.places, self.prefers, *self.heard.values()):
            for place in list(places):
                new = behind.get(self._speaker(place), ()) if places is not self.prefers else self._past(place, behind)
                if not new:
                    continue
                left = tuple(r for record in places[place] if (r := uncovered(record, new)) is not None)
                if left != places[place]:
                    changed = True
                    if left:
                        places[place] = left
                    else:
                        del places[place]
        return changed

    def _speaker(self, place: Place) -> str:
        """The operator behind which the events of a place are."""
        return place.speaker(self.inputs)

    def _past(self, node_id: str, behind: Mapping[str, Sequence[Pattern]]) -> Sequence[Pattern]:
        """What is over for wishes: at a queue, what has left it, not what has come."""
        node = self.nodes[node_id]
        if not node.inputs:
            return behind.get(node_id, ())
        schema, kept = node.operator.inputs[0].schema, {n: n for n in spec_of(node.operator).lineage(node.operator)}
        return [p.onto(schema, kept) for p in behind.get(node_id, ()) if p.describes(kept)]

    def _wisher(self, node_id: str) -> str:
        """The operator whose output wishes speak of."""
        inputs = self.nodes[node_id].inputs
        return inputs[0] if inputs else node_id

    def schema(self, place: Place) -> Schema:
        return self.nodes[self._speaker(place)].operator.schema

    def go_on_from(self, live: Guards, epoch: int) -> None:
        """Take what was left after an epoch, where punctuation had covered some of it, and add all that is newer.

        A record that is in doubt stays: one too many costs little, but one less, for which something was purged,
        would let a group come out of which half is gone.
        """
        self.places = _gone_on(self.places, live.places, epoch)
        self.prefers = _gone_on(self.prefers, live.prefers, epoch)
        nodes = sorted(self.heard.keys() | live.heard.keys())
        self.heard = {n: _gone_on(self.heard.get(n, {}), live.heard.get(n, {}), epoch) for n in nodes}

    # --- as data ------------------------------------------------------------------------------------------------

    @property
    def patterns(self) -> dict[Place, tuple[Pattern, ...]]:
        """By place, what to drop."""
        return {place: tuple(r.pattern for r in records) for place, records in self.places.items()}

    @property
    def sweeps(self) -> dict[str, tuple[Pattern, ...]]:
        """By aggregate, patterns by whose values groups may be doomed before they are complete."""
        found = ((p.node, tuple(r.pattern for r in rs if r.sweep)) for p, rs in self.places.items())
        return {node: patterns for node, patterns in found if patterns}

    @property
    def preferred(self) -> dict[str, tuple[Pattern, ...]]:
        """By source or queue (then over its input), what to take first; the newest wish before older ones."""
        return {place.node: tuple(r.pattern for r in reversed(records)) for place, records in self.prefers.items()}

    @property
    def speakers(self) -> tuple[str, ...]:
        """The operators behind which records wait for punctuation."""
        waiting = {self._speaker(place) for places in (self.places, *self.heard.values()) for place in places}
        return tuple(sorted(waiting | {self._wisher(place) for place in self.prefers}))

    @property
    def size(self) -> int:
        return sum(len(records) for records in self.places.values())

    def copy(self) -> Guards:
        """The guards as they are now, whatever is told later. Records never change, so they are shared."""
        made = copy(self)
        made.places, made.fresh, made.prefers = dict(self.places), dict(self.fresh), dict(self.prefers)
        made.heard = {node: dict(places) for node, places in self.heard.items()}
        return made

    def to_json(self) -> dict[str, Any]:
        """All but the trail, which changes with versions only."""

        def stored(places: Places) -> dict[str, Any]:
            return {place: [r.to_json() for r in records] for place, records in sorted(places.items())}

        return {
            "epoch": self.epoch,
            "places": stored(self.places),
            "fresh": {place: [p.to_json() for p in patterns] for place, patterns in sorted(self.fresh.items())},
            "prefers": stored(self.prefers),
            "heard": {node: stored(places) for node, places in sorted(self.heard.items())},
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any], plan: Plan) -> Guards:
        made = cls(plan)
        if not stored:
            return made

        def read(places: Mapping[str, Any], schema: Any) -> Places:
            there = {p: records for p, records in _read(places).items() if p.node in made.nodes}
            return {p: tuple(Record.from_json(r, schema(p)) for r in records) for p, records in there.items()}

        made.epoch = stored["epoch"]
        made.places = read(stored["places"], made.schema)
        made.fresh = {
            place: tuple(Pattern.from_json(p, made.schema(place)) for p in patterns)
            for place, patterns in _read(stored["fresh"]).items()
            if place.node in made.nodes
        }
        made.prefers = read(stored["prefers"], lambda p: made.nodes[made._wisher(p)].operator.schema)
        made.heard = {
            n: read(p, lambda _, n=n: made.nodes[n].operator.schema)
            for n, p in stored["heard"].items()
            if n in made.nodes
        }
        made.trail = Trail.from_json(stored.get("trail", ()))
        return made

    def __iter__(self) -> Iterator[tuple[Place, Record]]:
        return ((place, r) for place, records in sorted(self.places.items()) for r in records)


def _read(stored: Mapping[str, Any]) -> dict[Place, Any]:
    """By place; written down, they are texts."""
    return {Place(text): records for text, records in stored.items()}


def _gone_on(mine: Places, live: Places, epoch: int) -> Places:
    places: Places = {}
    for place in sorted(mine.keys() | live.keys()):
        records = live.get(place, ())
        for record in mine.get(place, ()):
            if record.since > epoch:
                records = with_record(records, record) or (*records, record)
        if records:
            places[place] = records
    return places
