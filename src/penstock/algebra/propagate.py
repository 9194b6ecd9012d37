"""How punctuation travels: which promises an operator may make, given those of its inputs.

Everything follows from one rule: an operator may promise "no more events that match p" once every event that could
still produce one is itself promised away. `Propagation` does it for a whole plan. Operators that must remember earlier
promises have a behaviour for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any

from penstock.algebra.behave import Behaviour, DistinctBehaviour, OrderBehaviour, UnionBehaviour, maximal
from penstock.algebra.behave_join import JoinBehaviour, RowsJoinBehaviour
from penstock.algebra.join import Join, MultiJoin
from penstock.algebra.operator import (
    Aggregate,
    Bucket,
    Distinct,
    Map,
    Operator,
    OrderBy,
    Project,
    Select,
    Sink,
    Union,
)
from penstock.algebra.orders import Answer, Orders
from penstock.algebra.pattern import Pattern
from penstock.algebra.plan import Plan
from penstock.algebra.window import LandmarkWindow

Punctuations = dict[str, tuple[Pattern, ...]]


def through(operator: Operator, pattern: Pattern) -> Iterator[Pattern]:
    """The punctuations that one punctuation becomes behind a stateless operator or an aggregate."""
    match operator:
        case Select() | Sink():
            yield Pattern(operator.schema, pattern.restrictions)
        case Project():
            yield from _through_project(operator, pattern)
        case Map():
            if set(pattern.restricted) <= set(operator.keeps):
                yield pattern.onto(operator.schema, {n: n for n in pattern.restricted})
        case Bucket():
            yield from _through_bucket(operator, pattern)
        case Aggregate():
            # A punctuation that also restricts something else than the groups says nothing about whole groups.
            if pattern.describes(operator.keys) and _ends_groups(operator, pattern):
                yield pattern.onto(operator.schema, {n: n for n in pattern.restricted})
        case _:
            raise AssertionError(f"no rule for {operator.kind}")


def _ends_groups(operator: Aggregate, pattern: Pattern) -> bool:
    """Whether no further result can match: a landmark window goes on for a key even when no event of it can come."""
    below = operator.inputs[0]
    if isinstance(below, Bucket) and isinstance(below.window, LandmarkWindow):
        return set(pattern.restricted) <= {below.window.label}
    return True


def _through_project(operator: Project, pattern: Pattern) -> Iterator[Pattern]:
    renames = operator.renames
    if not all(n in renames for n in pattern.restricted):
        return  # Dropped or computed: what is left would promise more than the input did.
    for names in product(*(renames[n] for n in pattern.restricted)):
        yield pattern.onto(operator.schema, dict(zip(pattern.restricted, names, strict=True)))


def _through_bucket(operator: Bucket, pattern: Pattern) -> Iterator[Pattern]:
    same = {n: n for n in pattern.restricted}
    yield pattern.onto(operator.schema, same)
    on, window = operator.window.on, operator.window
    if on is None or on not in pattern.restricted:
        return
    labels = window.closed_by(pattern[on])
    if labels is None:
        return
    kept = {n: pattern[n] for n in pattern.restricted if n != on}
    yield Pattern.by_name(operator.schema, {**kept, window.label: labels})


class Propagation:
    """Carries the punctuations of one epoch through a plan."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.behaviours: dict[str, Behaviour] = {}
        for node in plan.nodes:
            if (behaviour := behaviour_of(node.operator, heard=_is_heard(plan, node.id))) is not None:
                self.behaviours[node.id] = behaviour

    def run(self, sources: Mapping[str, Iterable[Pattern]]) -> Punctuations:
        """New punctuations of the sources by operator id → new punctuations behind every operator."""
        out: Punctuations = {}
        for node in self.plan.nodes:
            if not node.inputs:
                out[node.id] = maximal(sources.get(node.id, ()))
            elif node.id in self.behaviours:
                out[node.id] = self.behaviours[node.id].receive([out[i] for i in node.inputs])
            else:
                (below,) = node.inputs
                out[node.id] = maximal(q for p in out[below] for q in through(node.operator, p))
        return out

    def orders(self) -> dict[str, Orders]:
        """What the runs since the last call tell the operators that keep rows."""
        found = ((node_id, b.orders()) for node_id, b in self.behaviours.items())
        return {node_id: orders for node_id, orders in found if orders is not None}

    def answered(self, answers: Mapping[str, Sequence[Sequence[Answer]]]) -> None:
        """Take in what the state of operators has said to the questions in their orders."""
        for node_id, said in answers.items():
            self.behaviours[node_id].answered(said)

    @property
    def pending(self) -> bool:
        """Whether some operator has a punctuation to give though nothing new arrives."""
        return any(b.pending for b in self.behaviours.values())

    def to_json(self) -> dict[str, Any]:
        return {node_id: record for node_id, b in self.behaviours.items() if (record := b.to_json())}

    def restore(self, stored: Mapping[str, Any]) -> None:
        for node_id, record in stored.items():
            self.behaviours[node_id].restore(record)


def _is_heard(plan: Plan, node_id: str) -> bool:
    """Whether someone further down does anything with punctuation."""
    consumers = plan.consumers(node_id)
    keeping = (Aggregate, Distinct, OrderBy, Join, MultiJoin)
    return any(isinstance(c.operator, keeping) or _is_heard(plan, c.id) for c in consumers)


def behaviour_of(operator: Operator, heard: bool = True) -> Behaviour | None:
    """How an operator treats punctuation, if that needs a memory. Nobody asks the state for what nobody hears."""
    match operator:
        case Union():
            return UnionBehaviour(operator)
        case Distinct():
            return DistinctBehaviour(operator)
        case OrderBy():
            return OrderBehaviour(operator, {})
        case Join():
            return JoinBehaviour(operator, asks=heard) if operator.rows is None else RowsJoinBehaviour(operator)
        case MultiJoin():
            return JoinBehaviour(operator, asks=heard)
        case _:
            return None


__all__ = ["Propagation", "Punctuations", "behaviour_of", "maximal", "through"]
