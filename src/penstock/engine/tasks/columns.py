"""Which attributes of a source a query looks at: of columnar files no others are read.

It follows from the steps, since what a statement names must be there, and from the guards: somebody may speak of what
leaves an inner operator, and that may be more than anything else looks at.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from penstock.kernels.step import Keeping, Passing, SqlStep, TableStep
from penstock.plan.place import Place
from penstock.plan.plan import Node

if TYPE_CHECKING:
    from penstock.engine.tasks.pipeline import Pipeline


def needed(pipeline: Pipeline, source_id: str) -> tuple[str, ...]:
    """The attributes of a source that anything downstream looks at, guards among them, in schema order."""
    names = pipeline.nodes[source_id].operator.schema.names
    wanted = _asked(pipeline, source_id)
    return tuple(n for n in names if n in wanted) or names[:1]


def _taken(pipeline: Pipeline, node_id: str) -> frozenset[str]:
    """What has to be there of the output of an operator: what a guard on it looks at, and its consumers."""
    return _guarded(pipeline, Place(node_id)) | _asked(pipeline, node_id)


def _asked(pipeline: Pipeline, node_id: str) -> frozenset[str]:
    """What the consumers of an operator must be given. What leaves a source the scan has guarded already."""
    found: frozenset[str] = frozenset()
    for node in pipeline.consumers[node_id]:
        for port, name in enumerate(node.inputs):
            if name == node_id:
                found |= {*_reads(pipeline, node, port), *_guarded(pipeline, Place.at(node.id, port))}
    return found


def _reads(pipeline: Pipeline, node: Node, port: int) -> Collection[str]:
    step = pipeline.steps[node.id]
    if isinstance(step, Keeping):
        return step.reads(port)
    if isinstance(step, SqlStep):
        return step.reads(_taken(pipeline, node.id), pipeline.looked_at[node.id])
    if isinstance(step, Passing) or (isinstance(step, TableStep) and step.takes is None):
        return _taken(pipeline, node.id)
    return node.operator.inputs[port].schema.names


def _guarded(pipeline: Pipeline, place: Place) -> frozenset[str]:
    patterns = (*pipeline.guards.get(place, ()), *pipeline.shed.get(place, ()))
    return frozenset(name for p in patterns for name in p.restricted)
