"""Where a feedback would be kept: its way through a plan, before anything runs.

This follows the rules by which a run carries feedback from its receiver to the sources (`engine.guards`), without
limits on how much is kept: each operator answers (`algebra.respond`), keeps its part, and passes on what those before
it may know. Where several consumers read one operator, only what all have said goes further, and what one has said is
kept until then.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass
from itertools import islice, product
from typing import Any

from penstock.algebra.arrival import order_matters
from penstock.algebra.feedback import Feedback, Intent
from penstock.algebra.operator import Bucket, Impute, Map, Operator, Project, Select, Sink, Source, Union
from penstock.algebra.pattern import Pattern
from penstock.algebra.plan import Node, Plan
from penstock.algebra.respond import respond
from penstock.algebra.response import Response
from penstock.algebra.table import TableJoin

#: Combinations that are tried when several consumers have spoken.
_COMBINATIONS = 64


@dataclass(frozen=True)
class Kept:
    """A pattern that would be kept. `place` is where, `speaker` the operator whose punctuation can cover it.

    `pinned`: something was purged for it, so it stays until it is covered. `waits`: other consumers have not said it.
    `sweep`: an aggregate looks for groups that are doomed by it.
    """

    place: str
    speaker: str
    pattern: Pattern
    pinned: bool = False
    sweep: bool = False
    waits: bool = False

    @property
    def operator(self) -> str:
        """The operator that keeps it."""
        return self.speaker if self.waits else self.place.partition(":groups")[0].partition("#")[0]


def root_of(plan: Plan) -> str:
    """The operator whose output the client sees."""
    fed = {i for n in plan.nodes for i in n.inputs}
    last = next(n for n in reversed(plan.nodes) if n.id not in fed)
    return last.inputs[0] if isinstance(last.operator, Sink) else last.id


def kept(plan: Plan, feedback: Feedback, at: str | None = None, edge: str = "") -> list[Kept]:
    """What would be kept of a feedback to an operator; `edge` is the consumer's input it comes from.

    >>> from penstock.algebra.builder import Stream
    >>> from penstock.algebra.schema import Schema
    >>> cars = Stream(Source((), Schema.parse("ts timestamp, speed double", "ts"), name="cars"))
    >>> plan = cars.where("speed > 3").plan
    >>> [(k.place, str(k.pattern)) for k in kept(plan, Feedback.parse("not [*, > 40]", cars.schema))]
    [('source:cars', '[*, > 40.0]')]
    """
    cascade = _Cascade(plan)
    node_id = root_of(plan) if at is None else at
    if feedback.intent is Intent.ASSUMED:
        _ran(cascade.assume(node_id, feedback.pattern, edge or cascade.only_edge(node_id)))
    elif feedback.intent is Intent.DESIRED:
        _ran(cascade.prefer(node_id, feedback.pattern))
    return list(cascade.all())


#: A step that may call others and gets what they return. So deep plans do not meet Python's recursion limit.
Step = Generator["Step", Any, Any]


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


class _Cascade:
    """One feedback on its way."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.nodes = {n.id: n for n in plan.nodes}
        self.found: dict[str, list[Kept]] = {}
        self.heard: dict[str, dict[str, list[Kept]]] = {}
        self.edges: dict[str, tuple[str, ...]] = {}
        for node in plan.nodes:
            for port, name in enumerate(node.inputs):
                self.edges[name] = (*self.edges.get(name, ()), f"{node.id}#{port}")

    def only_edge(self, node_id: str) -> str:
        edges = self.edges.get(node_id, ())
        return edges[0] if len(edges) == 1 else ""

    def all(self) -> Iterator[Kept]:
        for records in self.found.values():
            yield from records
        for by_edge in self.heard.values():
            for records in by_edge.values():
                yield from records

    def assume(self, node_id: str, pattern: Pattern, edge: str) -> Step:
        """Whether from then on no matching event leaves the operator on this edge."""
        node = self.nodes[node_id]
        pattern = pattern.over(node.operator.schema)
        if pattern.is_empty:
            return True
        edges = self.edges.get(node_id, ())
        if len(edges) < 2 or not edge:
            return (yield self.answer(node, pattern))
        heard = self.heard.setdefault(node_id, {})
        _add(heard.setdefault(edge, []), Kept(edge, node_id, pattern, waits=True))
        others = [[k.pattern for k in heard.get(e, ())] for e in edges if e != edge]
        taken = False
        for said in islice(product(*others), _COMBINATIONS):
            common = pattern
            for other in said:
                common = common.intersect(other)
            if not common.is_empty:
                answered = yield self.answer(node, common)
                taken |= answered and common.contains(pattern)
        return taken

    def answer(self, node: Node, pattern: Pattern) -> Step:
        switches, response = node.operator.switches, respond(node.operator, pattern)
        if not switches.exploit:
            if switches.propagate and not response.pinned:
                yield self.send(node, response)
            return False
        mounted = self.mount(node, response, pattern) if _has_state(response) else None
        if mounted is False:
            return False
        taken = (yield self.send(node, response)) if switches.propagate else False
        if mounted is None:
            return (taken and is_exact(node.operator, pattern)) or self.mount(node, response, pattern)
        return mounted

    def send(self, node: Node, response: Response) -> Step:
        taken = bool(response.send) and all(response.send)
        for port, patterns in enumerate(response.send):
            for pattern in patterns:
                answered = yield self.assume(node.inputs[port], pattern, f"{node.id}#{port}")
                taken &= answered
        return taken

    def mount(self, node: Node, response: Response, pattern: Pattern) -> bool:
        wanted = []
        if response.output:
            wanted.append(Kept(node.id, node.id, pattern, response.pinned, response.sweep))
        if response.groups is not None:
            wanted.append(Kept(f"{node.id}:groups", node.id, response.groups, response.pinned))
        for port, guarded in enumerate(response.inputs):
            if guarded is not None:
                wanted.append(Kept(f"{node.id}#{port}", node.inputs[port], guarded, response.pinned))
        for each in wanted:
            _add(self.found.setdefault(each.place, []), each)
        return bool(wanted)

    def prefer(self, node_id: str, pattern: Pattern) -> Step:
        """A wish goes where an assumption would; sources and queues keep it."""
        node = self.nodes[node_id]
        operator = node.operator
        pattern = pattern.over(operator.schema)
        if pattern.is_empty or not pattern.restricted:
            return False
        response = respond(operator, pattern)
        if isinstance(operator, Source | Impute) and order_matters(self.plan, node_id):
            return False
        if operator.switches.exploit and isinstance(operator, Source | Impute):
            wishes = [] if node.inputs else [pattern]
            wishes += [p for sent in response.send for p in sent]
            speaker = node.inputs[0] if node.inputs else node_id
            for wish in wishes:
                _add(self.found.setdefault(node_id, []), Kept(node_id, speaker, wish))
        if operator.switches.propagate:
            for port, patterns in enumerate(response.send):
                for sent in patterns:
                    yield self.prefer(node.inputs[port], sent)
        return False


def _add(records: list[Kept], new: Kept) -> None:
    """As few records as say the same."""

    def says(one: Kept, other: Kept) -> bool:
        return one.pattern.contains(other.pattern) and one.pinned >= other.pinned and one.sweep >= other.sweep

    if not any(says(r, new) for r in records):
        records[:] = [*(r for r in records if not says(new, r)), new]


def is_exact(operator: Operator, pattern: Pattern) -> bool:
    """Whether an output event matches the pattern just when its input event matches what the operator passes on."""
    if isinstance(operator, Bucket):
        return operator.window.label not in pattern.restricted
    return isinstance(operator, Select | Project | Union | Map | TableJoin) or operator.kind == "instrument"


def _has_state(response: Response) -> bool:
    return response.purge or response.pinned or response.groups is not None or response.sweep
