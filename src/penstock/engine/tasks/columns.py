"""Which attributes of a source a query looks at: of columnar files no others are read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.operators.aggregate.operator import Aggregate
from penstock.operators.distinct.operator import Distinct
from penstock.operators.instrument.operator import Instrument
from penstock.operators.join.operator import Joined
from penstock.operators.limit.operator import Limit
from penstock.operators.lookup.operator import TableJoin
from penstock.operators.map.operator import Map
from penstock.operators.multijoin.operator import MultiJoin
from penstock.operators.order_by.operator import OrderBy
from penstock.operators.pace.operator import Pace
from penstock.operators.project.operator import Project
from penstock.operators.select.operator import Select
from penstock.operators.sink.operator import Sink
from penstock.operators.top.operator import Top
from penstock.operators.union.operator import Union
from penstock.operators.window.operator import Bucket
from penstock.plan.operator import unknown
from penstock.plan.plan import Node

if TYPE_CHECKING:
    from penstock.engine.tasks.pipeline import Pipeline


def needed(pipeline: Pipeline, source_id: str) -> tuple[str, ...]:
    """The attributes of a source that anything downstream looks at, guards among them, in schema order."""
    wanted: set[str] = set()
    names = pipeline.nodes[source_id].operator.schema.names
    if not _collect(pipeline, source_id, wanted):
        return names
    return tuple(n for n in names if n in wanted) or names[:1]


def _collect(pipeline: Pipeline, node_id: str, wanted: set[str]) -> bool:
    """Add what the consumers of a source read; False when one of them may read everything."""
    for node in pipeline.consumers[node_id]:
        wanted |= _guarded(pipeline, node, node_id)
        match node.operator:
            case Select():
                wanted |= node.operator.predicate.columns
                if not _collect(pipeline, node.id, wanted):
                    return False
            case Instrument() | Union():
                if not _collect(pipeline, node.id, wanted):
                    return False
            case Project():
                for _, expression in node.operator.columns:
                    wanted |= expression.columns
            case Bucket():
                if node.operator.window.on is not None:
                    wanted.add(node.operator.window.on)
                if not _collect(pipeline, node.id, wanted):
                    return False
            case TableJoin():
                wanted |= node.operator.reads
            case Aggregate():
                wanted |= set(pipeline.exchanges[node.id].kernel.needed)
            case Distinct() | OrderBy() | Limit() | Top() | Joined() | MultiJoin():
                for port, name in enumerate(node.inputs):
                    brought = pipeline.keepers[node.id].kernel.needed[port]
                    if name == node_id and brought is None:
                        return False
                    wanted |= set(brought or ()) if name == node_id else set()
            case Map() | Sink():
                return False
            case Pace():
                return False  # An event that is too far behind becomes a dead letter, and that shows all of it.
            case _:
                raise unknown(node.operator, "which attributes it looks at")
    return True


def _guarded(pipeline: Pipeline, node: Node, below: str) -> set[str]:
    """What guards look at where events of the operator below reach a consumer, and where they leave it as they are.

    It may be more than anything else looks at: somebody may speak of what leaves an inner operator.
    """
    places = [f"{node.id}#{port}" for port, name in enumerate(node.inputs) if name == below]
    if isinstance(node.operator, Select | Instrument | Bucket | Union):
        places.append(node.id)
    return {name for place in places for p in pipeline.guards.get(place, ()) for name in p.restricted}
