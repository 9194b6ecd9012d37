"""The way of a feedback through a plan, from its receiver to the sources.

Each operator on it answers (`respond`), keeps its part, and passes on what those before it may know. Where several
consumers read one operator, only what all of them have said goes further. Who keeps what, and how much of it, is up to
a `Listener`: a run mounts guards, a check collects what would be kept.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Protocol

from penstock.pattern.feedback import RECORDS, Feedback, Intent
from penstock.pattern.pattern import Pattern
from penstock.plan.arrival import order_matters
from penstock.plan.operator import Operator
from penstock.plan.place import Place
from penstock.plan.plan import Node, Plan
from penstock.plan.response import Response
from penstock.plan.spec import spec_of, traits_of

#: So much is passed on at most of what several consumers have said, each in its own words.
COMBINATIONS = 64


@dataclass(frozen=True)
class Part:
    """What an operator is to keep of a feedback: a pattern in one place.

    `speaker` is the operator behind which its events are, and whose punctuation can cover it. `pinned`: it must stay
    until then. `sweep`: groups that are doomed by it are looked for. `purges`: state is rid of what matches.
    """

    place: Place
    speaker: str
    pattern: Pattern
    pinned: bool = False
    sweep: bool = False
    purges: bool = False


class Listener(Protocol):
    """Keeps what operators are told."""

    def mount(self, parts: Sequence[Part]) -> bool:
        """Keep all parts, or none; whether there are any and all are kept."""

    def hear(self, node_id: str, edge: Place, pattern: Pattern) -> None:
        """One of several consumers of an operator has said it, on this edge."""

    def said(self, node_id: str, edge: Place) -> Sequence[Pattern]:
        """All that was said on an edge."""

    def wish(self, node_id: str, patterns: Sequence[Pattern]) -> None:
        """A source or a queue is to take these first."""

    def note(self, node_id: str, feedback: Feedback, did: str, why: str) -> None:
        """For people: what an operator did, and why no more."""


#: A step that may call others and gets what they return. So deep plans do not meet Python's recursion limit.
Step = Generator["Step", Any, Any]


class Cascade:
    """The ways of feedback through one plan."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.nodes: dict[str, Node] = {n.id: n for n in plan.nodes}
        #: By operator the inputs that read it, such as `join-1#0`.
        self.edges: dict[str, tuple[Place, ...]] = {}
        for node in plan.nodes:
            for port, name in enumerate(node.inputs):
                self.edges[name] = (*self.edges.get(name, ()), Place.at(node.id, port))

    def tell(self, keeper: Listener, node_id: str, feedback: Feedback, edge: Place | None = None) -> None:
        """Give a feedback to the operator whose output it speaks of; `edge` is the consumer's input it comes from."""
        if feedback.intent is Intent.ASSUMED:
            edges = self.edges.get(node_id, ())
            _ran(self._assume(keeper, node_id, feedback.pattern, edge or (edges[0] if len(edges) == 1 else None)))
        elif feedback.intent is Intent.DESIRED:
            _ran(self._prefer(keeper, node_id, feedback.pattern))

    def _assume(self, keeper: Listener, node_id: str, pattern: Pattern, edge: Place | None) -> Step:
        """Whether from now on no matching event will leave the operator on this edge."""
        node = self.nodes[node_id]
        pattern = pattern.over(node.operator.schema)
        if pattern.is_empty:
            return True
        edges = self.edges.get(node_id, ())
        if len(edges) < 2 or not edge:
            return (yield self._answer(keeper, node, pattern))
        keeper.hear(node_id, edge, pattern)
        agreed = [pattern]
        for other in (keeper.said(node_id, e) for e in edges if e != edge):
            # Consumer by consumer, so that what has nothing in common is not combined with what the others said.
            met = (mine.intersect(its) for mine in agreed for its in other)
            agreed = list(islice((common for common in met if not common.is_empty), COMBINATIONS))
        taken = False
        for common in agreed:
            answered = yield self._answer(keeper, node, common)
            taken |= answered and common.contains(pattern)
        if not taken:
            why = f"{len(edges)} consumers read it, and not all have said this"
            keeper.note(node_id, Feedback(Intent.ASSUMED, pattern), "waits", why)
        return taken

    def _answer(self, keeper: Listener, node: Node, pattern: Pattern) -> Step:
        operator, switches, told = node.operator, node.operator.switches, Feedback(Intent.ASSUMED, pattern)
        response = respond(operator, pattern)
        if not switches.exploit:
            if not switches.propagate or response.pinned:
                keeper.note(node.id, told, "nothing", "switched off")
                return False
            keeper.note(node.id, told, "passed on", "it does not exploit feedback itself")
            yield self._send(keeper, node, response)
            return False
        parts = parts_of(node, response, pattern)
        # First what must not be passed on unless it is kept here.
        kept = keeper.mount(parts) if response.has_state else None
        if kept is False:
            keeper.note(node.id, told, "nothing", f"{RECORDS} guards wait here for punctuation already")
            return False
        taken = (yield self._send(keeper, node, response)) if switches.propagate else False
        if kept is None:
            if taken and is_exact(operator, pattern):
                keeper.note(node.id, told, "passed on", "")
                return True
            kept = keeper.mount(parts)
        goes_on = (any(response.send) or response.anew) and switches.propagate
        why = response.why if switches.propagate else "switched not to pass it on"
        keeper.note(node.id, told, response.summary if kept else "nothing", "" if goes_on else why)
        return kept

    def _send(self, keeper: Listener, node: Node, response: Response) -> Step:
        """Whether every input has taken all of it."""
        taken = bool(response.send) and all(response.send)
        for port, patterns in enumerate(response.send):
            for pattern in patterns:
                answered = yield self._assume(keeper, node.inputs[port], pattern, Place.at(node.id, port))
                taken &= answered
        return taken

    def _prefer(self, keeper: Listener, node_id: str, pattern: Pattern) -> Step:
        """A wish travels as an assumption would, but where that stops, it does. All it changes is an order."""
        node = self.nodes[node_id]
        operator, switches = node.operator, node.operator.switches
        pattern = pattern.over(operator.schema)
        if pattern.is_empty or not pattern.restricted:
            return
        response, told = respond(operator, pattern), Feedback(Intent.DESIRED, pattern)
        if traits_of(operator).queues:
            if why := order_matters(self.plan, node_id):
                keeper.note(node_id, told, "nothing", why)
                return
            if switches.exploit:
                # A queue is asked for what waits in it.
                wishes = [p for sent in response.send for p in sent] if node.inputs else [pattern]
                if wishes:
                    keeper.wish(node_id, wishes)
                    keeper.note(node_id, told, "taken first", "")
        if not switches.propagate:
            return
        if not any(response.send) and node.inputs:
            keeper.note(node_id, told, "nothing", response.why)
        for port, patterns in enumerate(response.send):
            for sent in patterns:
                yield self._prefer(keeper, node.inputs[port], sent)


def _ran(first: Step) -> None:
    stack, value = [first], None
    while stack:
        try:
            called = stack[-1].send(value)
        except StopIteration as done:
            stack.pop()
            value = done.value
        else:
            stack.append(called)
            value = None


def parts_of(node: Node, response: Response, pattern: Pattern) -> list[Part]:
    """What an operator that gives this response to `not pattern` keeps."""
    parts = []
    if response.output:
        parts.append(Part(Place(node.id), node.id, pattern, response.pinned, response.sweep, purges=response.sweep))
    if response.groups is not None:
        parts.append(Part(Place.of_groups(node.id), node.id, response.groups, response.pinned, purges=True))
    for port, guarded in enumerate(response.inputs):
        if guarded is not None:
            place = Place.at(node.id, port)
            parts.append(Part(place, node.inputs[port], guarded, response.pinned, purges=response.purge))
    return parts


def is_exact(operator: Operator, pattern: Pattern) -> bool:
    """Whether an output event matches the pattern just when its input event matches what the operator passes on.

    Then, if those before it have taken the feedback, the operator need not look again.
    """
    return spec_of(operator).passes_all(operator, pattern)


def root_of(plan: Plan) -> str:
    """The operator whose output the client sees; the last one, if there are several."""
    return plan.exits[-1].root


def respond(operator: Operator, pattern: Pattern) -> Response:
    """The most that an operator may do about `not pattern`, a pattern over its output.

    `not p` says that nobody wants results that match p. An operator is right if it loses no others, alters none, and
    invents none: with SR its results without the feedback and S those with it, `SR − matching ⊆ S ⊆ SR`. What it passes
    on must leave that true whichever of the events that match it are withheld: all, some or none. So a pattern goes
    upstream only if *every* result that an event takes part in matches p: a conjunct left out would widen it. Where an
    operator can say p over its input, it drops before the work; otherwise behind it.

    Each operator answers for itself (`Spec.respond`); docs/feedback-responses.md has all rules, with their reasons.

    >>> import penstock as ps
    >>> project = ps.stream("s", "ts int, v int").select(time="ts", twice="2 * v").operator
    >>> out = project.schema
    >>> [str(p) for p in respond(project, Pattern.parse("[< 7, *]", out)).send[0]]
    ['[< 7, *]']
    >>> respond(project, Pattern.parse("[< 7, 8]", out)).why
    "'twice' is computed here"
    """
    if pattern.is_empty:
        return Response()
    found: Response = spec_of(operator).respond(operator, pattern)
    if not pattern.restricted and not all(found.send):
        # Nothing at all is wanted: then it does not matter what becomes of the results, as long as none comes out.
        everything = tuple(Pattern.all(i.schema) for i in operator.inputs)
        return Response(output=True, inputs=everything, send=tuple((p,) for p in everything), pinned=True)
    return found
