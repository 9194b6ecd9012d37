"""How punctuation travels: which promises an operator may make, given those of its inputs.

Everything follows from one rule: an operator may promise "no more events that match p" once every event that could
still produce one is itself promised away. `Propagation` does it for a whole plan. Operators that must remember earlier
promises have a behaviour for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from penstock.pattern.feedback import Feedback
from penstock.pattern.pattern import Pattern
from penstock.plan.behaviour import Behaviour, maximal
from penstock.plan.consistency import Setting
from penstock.plan.orders import Answer, Orders
from penstock.plan.plan import Plan
from penstock.plan.spec import spec_of, traits_of

Punctuations = dict[str, tuple[Pattern, ...]]


class Propagation:
    """Carries the punctuations of one epoch through a plan."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.behaviours: dict[str, Behaviour] = {}
        heard = _heard(plan)
        for node in plan.nodes:
            if node.inputs:
                self.behaviours[node.id] = spec_of(node.operator).behaviour(node.operator, node.id in heard)

    def run(self, sources: Mapping[str, Iterable[Pattern]]) -> Punctuations:
        """New punctuations of the sources by operator id → new punctuations behind every operator."""
        out: Punctuations = {}
        for node in self.plan.nodes:
            if not node.inputs:
                out[node.id] = maximal(sources.get(node.id, ()))
            else:
                out[node.id] = self.behaviours[node.id].receive([out[i] for i in node.inputs])
        return out

    def turn(self, setting: Setting) -> None:
        """Tell operators behind sources where the dial of these stands."""
        for node in self.plan.nodes:
            for below in node.inputs:
                if below in setting:
                    self.behaviours[node.id].turn(*setting[below])

    def listen(self, waiting: Iterable[str]) -> None:
        """Somebody waits for punctuation behind these operators, where otherwise nobody would ask for it."""
        nodes = {n.id: n for n in self.plan.nodes} if (stack := list(waiting)) else {}
        seen: set[str] = set()
        while stack:
            node_id = stack.pop()
            if node_id not in seen:
                seen.add(node_id)
                stack += nodes[node_id].inputs
                if (behaviour := self.behaviours.get(node_id)) is not None:
                    behaviour.listen()

    def orders(self) -> dict[str, Orders]:
        """What the runs since the last call tell the operators that keep rows."""
        found = ((node_id, b.orders()) for node_id, b in self.behaviours.items())
        return {node_id: orders for node_id, orders in found if orders is not None}

    def answered(self, answers: Mapping[str, Sequence[Sequence[Answer]]]) -> None:
        """Take in what the state of operators has said to the questions in their orders."""
        for node_id, said in answers.items():
            self.behaviours[node_id].answered(said)

    def saw(self, seen: Iterable[Mapping[str, int]]) -> None:
        """Take in what tasks report of the events that operators have seen."""
        for told in seen:
            for node_id, value in told.items():
                self.behaviours[node_id].saw(value)

    def issued(self) -> list[tuple[str, int, Feedback]]:
        """What operators tell upstream since the last call: operator, input, feedback over what that input brings."""
        return [(i, port, feedback) for i, b in self.behaviours.items() for port, feedback in b.issued()]

    @property
    def told(self) -> dict[str, Any]:
        """What behaviours tell the tasks for the next epoch, by operator."""
        said = ((node_id, b.tell()) for node_id, b in self.behaviours.items())
        return {node_id: text for node_id, text in said if text is not None}

    @property
    def pending(self) -> bool:
        """Whether some operator has a punctuation to give though nothing new arrives."""
        return any(b.pending for b in self.behaviours.values())

    def to_json(self) -> dict[str, Any]:
        return {node_id: record for node_id, b in self.behaviours.items() if (record := b.to_json())}

    def restore(self, stored: Mapping[str, Any]) -> None:
        for node_id, record in stored.items():
            if node_id in self.behaviours:  # Else the query was changed, and it is gone.
                self.behaviours[node_id].restore(record)


def _heard(plan: Plan) -> frozenset[str]:
    """The operators behind which someone does anything with punctuation, but pass it on."""
    found: set[str] = set()
    for node in reversed(plan.nodes):
        if node.id in found or traits_of(node.operator).listens:
            found.update(node.inputs)
    return frozenset(found)


def cut_dependent(plan: Plan) -> frozenset[str]:
    """The operators from which a way leads to one whose results depend on the cut into epochs: on how they get on."""
    found: set[str] = set()
    for node in reversed(plan.nodes):
        if node.id in found or not traits_of(node.operator).exact:
            found.update(node.inputs)
    return frozenset(found)
