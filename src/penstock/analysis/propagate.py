"""How punctuation travels: which promises an operator may make, given those of its inputs.

Everything follows from one rule: an operator may promise "no more events that match p" once every event that could
still produce one is itself promised away. `Propagation` does it for a whole plan. Operators that must remember earlier
promises have a behaviour for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from penstock.operators.aggregate.operator import Aggregate
from penstock.operators.distinct.operator import Distinct
from penstock.operators.distinct.punctuation import DistinctBehaviour
from penstock.operators.impute.operator import Impute
from penstock.operators.impute.punctuation import QueueBehaviour
from penstock.operators.instrument.operator import Instrument
from penstock.operators.instrument.punctuation import InstrumentBehaviour
from penstock.operators.join.operator import Join
from penstock.operators.join.punctuation import JoinBehaviour
from penstock.operators.limit.operator import Limit
from penstock.operators.limit.punctuation import LimitBehaviour
from penstock.operators.lookup.operator import TableJoin
from penstock.operators.map.operator import Map
from penstock.operators.multijoin.operator import MultiJoin
from penstock.operators.order_by.operator import OrderBy
from penstock.operators.order_by.punctuation import OrderBehaviour
from penstock.operators.pace.operator import Pace
from penstock.operators.pace.punctuation import PaceBehaviour
from penstock.operators.project.operator import Project
from penstock.operators.rows_join.punctuation import RowsJoinBehaviour
from penstock.operators.select.operator import Select
from penstock.operators.shared.describing import DescribingBehaviour
from penstock.operators.sink.operator import Sink
from penstock.operators.source.operator import Source
from penstock.operators.top.operator import Top
from penstock.operators.top.punctuation import TopBehaviour
from penstock.operators.union.operator import Union
from penstock.operators.union.punctuation import UnionBehaviour
from penstock.operators.window.operator import Bucket
from penstock.operators.window.punctuation import BucketBehaviour
from penstock.pattern.feedback import Feedback
from penstock.pattern.pattern import Pattern
from penstock.plan.behaviour import Behaviour, maximal
from penstock.plan.operator import Operator, unknown
from penstock.plan.orders import Answer, Orders
from penstock.plan.plan import Plan
from penstock.plan.through import ending, through

Punctuations = dict[str, tuple[Pattern, ...]]


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

    def listen(self, waiting: Iterable[str]) -> None:
        """Somebody waits for punctuation behind these operators, where otherwise nobody would ask for it."""
        nodes = {n.id: n for n in self.plan.nodes} if (stack := list(waiting)) else {}
        seen: set[str] = set()
        while stack:
            node_id = stack.pop()
            if node_id not in seen:
                seen.add(node_id)
                stack += nodes[node_id].inputs
                if isinstance(behaviour := self.behaviours.get(node_id), JoinBehaviour | QueueBehaviour):
                    behaviour.asks = True

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
    def floors(self) -> dict[str, int]:
        """The least times that operators which pace let pass from now on, in ticks."""
        paced = ((i, b.floor) for i, b in self.behaviours.items() if isinstance(b, PaceBehaviour))
        return {node_id: floor for node_id, floor in paced if floor is not None}

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


def _is_heard(plan: Plan, node_id: str) -> bool:
    """Whether someone further down does anything with punctuation."""
    return any(hears(c.operator) or _is_heard(plan, c.id) for c in plan.consumers(node_id))


def hears(operator: Operator) -> bool:
    """Whether an operator itself does anything with punctuation, but pass it on."""
    match operator:
        case Aggregate() | Distinct() | OrderBy() | Top() | Join() | MultiJoin():
            return True
        case Source() | Select() | Project() | Map() | TableJoin() | Union() | Pace() | Instrument() | Bucket():
            return False
        case Limit() | Sink():
            return False
        case _:
            raise unknown(operator, "whether it listens to punctuation")


def paced(plan: Plan) -> frozenset[str]:
    """The operators from which a way leads to a pace: how they get on decides what is too far behind there."""
    found: set[str] = set()
    for node in reversed(plan.nodes):
        if isinstance(node.operator, Pace) or node.id in found:
            found.update(node.inputs)
    return frozenset(found)


def behaviour_of(operator: Operator, heard: bool = True) -> Behaviour | None:
    """How an operator treats punctuation, if that needs a memory. Nobody asks the state for what nobody hears."""
    match operator:
        case Union():
            return UnionBehaviour(operator)
        case Pace():
            return PaceBehaviour(operator, heard)
        case Instrument():
            return InstrumentBehaviour(operator)
        case Bucket():
            return BucketBehaviour(operator)
        case Aggregate():
            return DescribingBehaviour(operator, ending(operator))
        case Project():
            return DescribingBehaviour(operator, tuple(operator.renames))
        case Distinct():
            return DistinctBehaviour(operator)
        case OrderBy():
            return OrderBehaviour(operator)
        case Impute():
            return QueueBehaviour(operator, asks=heard)
        case Limit():
            return LimitBehaviour(operator)
        case Top():
            return TopBehaviour(operator)
        case Join():
            return JoinBehaviour(operator, asks=heard) if operator.rows is None else RowsJoinBehaviour(operator)
        case MultiJoin():
            return JoinBehaviour(operator, asks=heard)
        case Source() | Select() | Map() | TableJoin() | Sink():
            return None  # What becomes of one punctuation depends on no other: see `through`.
        case _:
            raise unknown(operator, "how it treats punctuation")


__all__ = ["Propagation", "Punctuations", "behaviour_of", "hears", "maximal", "paced", "through"]
