"""Guards: which events nobody wants any more, place by place, and how a feedback comes to be there.

A *place* is where events can be dropped: `select-1` is what leaves an operator, `join-1#0` what reaches its first
input, `aggregate-1:groups` the groups an aggregate forms. A *record* is a pattern of events to drop there. A feedback
is carried from its receiver to the sources at once: each operator says what it may do about it (see
`algebra.respond`), mounts its part and passes on what those before it may know.

Guards stay small. A record inside another is not kept; lists of values are one record; punctuation that says that
nothing more will match a record removes it. At a limit the oldest record goes, since doing nothing about a feedback is
always right, unless something was purged for it: such a *pinned* record stays until it is covered, and when there are
too many of those, further feedback is declined.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from itertools import islice, product
from typing import Any

from penstock.algebra.arrival import order_matters
from penstock.algebra.compact import grows
from penstock.algebra.feedback import RECORDS, Feedback, Intent
from penstock.algebra.operator import (
    Bucket,
    Impute,
    Map,
    Project,
    Select,
    Source,
    Union,
)
from penstock.algebra.pattern import Pattern
from penstock.algebra.plan import Node, Plan
from penstock.algebra.respond import respond
from penstock.algebra.response import Response
from penstock.algebra.schema import Schema
from penstock.algebra.table import TableJoin
from penstock.engine.records import Record, uncovered, with_record
from penstock.engine.trail import Trail

#: Combinations that are tried when several consumers have spoken.
COMBINATIONS = 64


Places = dict[str, tuple[Record, ...]]


class Guards:
    """The guards of a plan, and the preferences."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.nodes: dict[str, Node] = {n.id: n for n in plan.nodes}
        self.places: Places = {}
        #: What must be removed from state in the first epoch: by place the patterns that are new.
        self.fresh: dict[str, tuple[Pattern, ...]] = {}
        self.prefers: Places = {}
        #: Where several consumers read one operator, what each has said so far.
        self.heard: dict[str, Places] = {}
        self.trail = Trail()
        self.epoch = 0
        #: What punctuation has said behind each operator, as far as it keeps growing. Not stored: it comes again.
        self.over: dict[str, tuple[Pattern, ...]] = {}
        self._edges: dict[str, tuple[str, ...]] = {}
        for node in plan.nodes:
            for port, name in enumerate(node.inputs):
                self._edges[name] = (*self._edges.get(name, ()), f"{node.id}#{port}")

    # --- taking up feedback -------------------------------------------------------------------------------------

    def begin(self, epoch: int) -> None:
        """Feedback taken up from here on holds from this epoch."""
        if epoch != self.epoch:
            # Not if no plan has named the version before for want of anything to do: its purges are still to come.
            self.fresh = {}
        self.epoch = epoch

    def tell(self, node_id: str, feedback: Feedback, edge: str = "", by: str = "") -> None:
        """Give a feedback to the operator whose output it speaks of; `edge` is the consumer's input it comes from."""
        self.trail.begin(by, feedback, self.epoch)
        # A feedback climbs the plan operator by operator, and so do the calls here.
        sys.setrecursionlimit(max(sys.getrecursionlimit(), 1_000 + 6 * len(self.nodes)))
        if feedback.intent is Intent.ASSUMED:
            self._assume(node_id, feedback.pattern, edge or self._only_edge(node_id))
        elif feedback.intent is Intent.DESIRED:
            self._prefer(node_id, feedback.pattern)

    def _only_edge(self, node_id: str) -> str:
        edges = self._edges.get(node_id, ())
        return edges[0] if len(edges) == 1 else ""

    def _assume(self, node_id: str, pattern: Pattern, edge: str) -> bool:
        """Whether from now on no matching event will leave the operator on this edge."""
        node = self.nodes[node_id]
        pattern = pattern.over(node.operator.schema)
        if pattern.is_empty:
            return True
        edges = self._edges.get(node_id, ())
        if len(edges) < 2 or not edge:
            return self._answer(node, pattern)
        heard = self.heard.setdefault(node_id, {})
        heard[edge] = with_record(heard.get(edge, ()), Record(pattern, self.epoch)) or heard.get(edge, ())
        others = [[r.pattern for r in heard.get(e, ())] for e in edges if e != edge]
        taken = False
        for said in islice(product(*others), COMBINATIONS):
            common = pattern
            for other in said:
                common = common.intersect(other)
            if not common.is_empty:
                taken |= self._answer(node, common) and common.contains(pattern)
        if not taken:
            self._note(node_id, pattern, "waits", f"{len(edges)} consumers read it, and not all have said this")
        return taken

    def _answer(self, node: Node, pattern: Pattern) -> bool:
        operator, switches = node.operator, node.operator.switches
        response = respond(operator, pattern)
        if not switches.exploit:
            if not switches.propagate or response.pinned:
                self._note(node.id, pattern, "nothing", "switched off")
                return False
            self._note(node.id, pattern, "passed on", "it does not exploit feedback itself")
            self._send(node, response)
            return False
        # First what must not be passed on unless it is mounted here.
        mounted = self._mount(node, response, pattern) if _has_state(response) else None
        if mounted is False:
            self._note(node.id, pattern, "nothing", f"{RECORDS} guards wait here for punctuation already")
            return False
        taken = self._send(node, response) if switches.propagate else False
        if mounted is None:
            mounted = taken and is_exact(node, pattern)
            if mounted:
                self._note(node.id, pattern, "passed on", "")
                return True
            mounted = self._mount(node, response, pattern)
        did = _did(response, mounted)
        why = response.why if switches.propagate else "switched not to pass it on"
        self._note(node.id, pattern, did, "" if any(response.send) and switches.propagate else why)
        return mounted

    def _send(self, node: Node, response: Response) -> bool:
        """Whether every input has taken all of it."""
        taken = bool(response.send) and all(response.send)
        for port, patterns in enumerate(response.send):
            for pattern in patterns:
                taken &= self._assume(node.inputs[port], pattern, f"{node.id}#{port}")
        return taken

    def _mount(self, node: Node, response: Response, pattern: Pattern) -> bool:
        """Put the operator's own guards up, all of them or none; whether it could."""
        wanted: list[tuple[str, Record, bool]] = []
        if response.output:
            wanted.append((node.id, Record(pattern, self.epoch, response.pinned, response.sweep), response.sweep))
        if response.groups is not None:
            wanted.append((f"{node.id}:groups", Record(response.groups, self.epoch, response.pinned), True))
        for port, guarded in enumerate(response.inputs):
            if guarded is not None:
                place = f"{node.id}#{port}"
                wanted.append((place, Record(guarded, self.epoch, response.pinned), response.purge))
        changed: Places = {}
        for place, record, _ in wanted:
            if self._is_over(place, record.pattern):
                continue
            now = with_record(changed.get(place, self.places.get(place, ())), record)
            if now is None:
                return False
            changed[place] = now
        for place, record, purges in wanted:
            if purges and not any(r.pattern.contains(record.pattern) for r in self.places.get(place, ())):
                self.fresh[place] = (*self.fresh.get(place, ()), record.pattern)
        self.places.update(changed)
        return bool(wanted)

    def _is_over(self, place: str, pattern: Pattern) -> bool:
        """Whether punctuation has said already that nothing more will match there."""
        return any(said.contains(pattern) for said in self.over.get(self._speaker(place), ()))

    def _prefer(self, node_id: str, pattern: Pattern) -> None:
        """A wish travels as an assumption would, but where that stops, it does. All it changes is an order."""
        node = self.nodes[node_id]
        pattern = pattern.over(node.operator.schema)
        if pattern.is_empty or not pattern.restricted:
            return
        response = respond(node.operator, pattern)
        if isinstance(node.operator, Source | Impute) and (why := order_matters(self.plan, node_id)):
            self._note(node_id, pattern, "nothing", why, Intent.DESIRED)
            return
        if node.operator.switches.exploit and isinstance(node.operator, Source | Impute):
            wishes = [Record(pattern, self.epoch)] if not node.inputs else []
            wishes += [Record(p, self.epoch) for sent in response.send for p in sent]
            records: tuple[Record, ...] = self.prefers.get(node_id, ())
            for wish in wishes:
                records = with_record(records, wish) or records
            self.prefers[node_id] = records
            self._note(node_id, pattern, "taken first", "", Intent.DESIRED)
        if not node.operator.switches.propagate:
            return
        if not any(response.send) and node.inputs:
            self._note(node_id, pattern, "nothing", response.why, Intent.DESIRED)
        for port, patterns in enumerate(response.send):
            for sent in patterns:
                self._prefer(node.inputs[port], sent)

    def _note(self, node: str, pattern: Pattern, did: str, why: str, intent: Intent = Intent.ASSUMED) -> None:
        self.trail.stop(node, Feedback(intent, pattern), did, why)

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

    def _speaker(self, place: str) -> str:
        """The operator behind which the events of a place are."""
        if "#" in place:
            node_id, port = place.rsplit("#", 1)
            return self.nodes[node_id].inputs[int(port)]
        return place.removesuffix(":groups")

    def _past(self, node_id: str, behind: Mapping[str, Sequence[Pattern]]) -> Sequence[Pattern]:
        """What is over for wishes: at a queue, what has left it, not what has come."""
        node = self.nodes[node_id]
        if not isinstance(node.operator, Impute):
            return behind.get(node_id, ())
        schema, kept = node.operator.inputs[0].schema, {n: n for n in node.operator.keeps}
        return [p.onto(schema, kept) for p in behind.get(node_id, ()) if p.describes(kept)]

    def _wisher(self, node_id: str) -> str:
        """The operator whose output wishes speak of."""
        inputs = self.nodes[node_id].inputs
        return inputs[0] if inputs else node_id

    def schema(self, place: str) -> Schema:
        return self.nodes[self._speaker(place)].operator.schema

    def keep(self, live: Guards) -> None:
        """Of records that are older than this version, only those that are still there: the others were covered."""
        for mine, its in ((self.places, live.places), (self.prefers, live.prefers)):
            for place in list(mine):
                known = {str(r.pattern) for r in its.get(place, ())}
                mine[place] = tuple(r for r in mine[place] if r.since >= self.epoch or str(r.pattern) in known)
                if not mine[place]:
                    del mine[place]

    # --- as data ------------------------------------------------------------------------------------------------

    @property
    def patterns(self) -> dict[str, tuple[Pattern, ...]]:
        """By place, what to drop."""
        return {place: tuple(r.pattern for r in records) for place, records in self.places.items()}

    @property
    def sweeps(self) -> dict[str, tuple[Pattern, ...]]:
        """By aggregate, patterns by whose values groups may be doomed before they are complete."""
        found = ((p, tuple(r.pattern for r in rs if r.sweep)) for p, rs in self.places.items())
        return {place: patterns for place, patterns in found if patterns}

    @property
    def preferred(self) -> dict[str, tuple[Pattern, ...]]:
        """By source or queue (then over its input), what to take first; the newest wish before older ones."""
        return {place: tuple(r.pattern for r in reversed(records)) for place, records in self.prefers.items()}

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
            return {p: tuple(Record.from_json(r, schema(p)) for r in records) for p, records in places.items()}

        made.epoch = stored["epoch"]
        made.places = read(stored["places"], made.schema)
        made.fresh = {
            place: tuple(Pattern.from_json(p, made.schema(place)) for p in patterns)
            for place, patterns in stored["fresh"].items()
        }
        made.prefers = read(stored["prefers"], lambda p: made.nodes[made._wisher(p)].operator.schema)
        made.heard = {n: read(p, lambda _, n=n: made.nodes[n].operator.schema) for n, p in stored["heard"].items()}
        made.trail = Trail.from_json(stored.get("trail", ()))
        return made

    def __iter__(self) -> Iterator[tuple[str, Record]]:
        return ((place, r) for place, records in sorted(self.places.items()) for r in records)


def is_exact(node: Node, pattern: Pattern) -> bool:
    """Whether an output event matches the pattern just when its input event matches what the operator passes on.

    Then, if those before it have taken the feedback, the operator need not look again.
    """
    operator = node.operator
    if isinstance(operator, Bucket):
        return operator.window.label not in pattern.restricted
    return isinstance(operator, Select | Project | Union | Map | TableJoin) or operator.kind == "instrument"


def _has_state(response: Response) -> bool:
    return response.purge or response.pinned or response.groups is not None or response.sweep


def _did(response: Response, mounted: bool) -> str:
    if not mounted:
        return "nothing"
    parts = [
        *(["drops results"] if response.output else []),
        *(["drops what arrives"] if any(p is not None for p in response.inputs) or response.groups else []),
        *(["purges state"] if response.purge or response.groups is not None else []),
        *(["passes it on"] if any(response.send) else []),
    ]
    return ", ".join(parts) or "nothing"
