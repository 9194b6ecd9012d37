"""Between scan and merge: what the sources now promise, and so what every operator with state may let go.

A pure function of where punctuation stood before the epoch and of the reports of its scan. The driver computes it;
when scan and merge share one Spark job, every merge task computes it too, from the same reports, with the same answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from penstock.analysis.propagate import Propagation
from penstock.engine.source.frontier import PromiseState
from penstock.kernels.fold import frontier_of, is_tickable, tick
from penstock.kernels.stateful import Closing
from penstock.operators.source.operator import Source
from penstock.pattern.pattern import Pattern
from penstock.plan.orders import Orders

if TYPE_CHECKING:
    from penstock.engine.tasks.pipeline import Pipeline
    from penstock.engine.tasks.report import TaskReport


@dataclass(frozen=True)
class Standing:
    """Where punctuation stands before an epoch: plain data, so that it travels."""

    epoch: int
    ends: tuple[str, ...] = ()
    promises: dict[str, Any] = field(default_factory=dict)
    unions: dict[str, Any] = field(default_factory=dict)
    closed: dict[str, int] = field(default_factory=dict)
    spared: tuple[tuple[str, dict[str, Any]], ...] = ()
    """By source what the splits tell that no task reads."""
    guarded: tuple[str, ...] = ()
    """The operators behind which guards wait for punctuation."""


@dataclass(frozen=True)
class Punctuated:
    """Where it stands after the epoch's events, and what that tells operators with state."""

    promises: dict[str, PromiseState]
    propagation: Propagation
    closed: dict[str, int]
    orders: dict[str, Orders]
    """What operators with state are to do."""
    behind: dict[str, tuple[Pattern, ...]]
    """The punctuations that are new behind every operator."""


def punctuate(pipeline: Pipeline, standing: Standing, reports: Sequence[TaskReport]) -> Punctuated:
    """Absorb the reports of a scan and carry the new promises through the plan."""
    states: dict[str, PromiseState] = {}
    patterns: dict[str, list[Pattern]] = {}
    ends: dict[str, list[Pattern]] = {}
    for node in pipeline.plan.sources:
        assert isinstance(node.operator, Source)
        state = states[node.id] = PromiseState.from_json(node.operator, standing.promises[node.id])
        told = [r for source, r in standing.spared if source == node.id]
        told += [r for report in reports for source, r in report.promises if source == node.id]
        found = list(state.initial()) if standing.epoch == 1 else []
        found += state.absorb(told)
        patterns[node.id] = found
        if node.id in standing.ends and (end := state.end()) is not None:
            ends[node.id] = [end]
    propagation = Propagation(pipeline.plan)
    propagation.restore(standing.unions)
    propagation.listen(standing.guarded)
    propagation.saw(report.seen for report in reports)
    behind = propagation.run(patterns)
    if ends:
        # After the rest, not together with it: the end contains every other promise, but what waits in a queue leaves
        # in parts, and then the others say which windows are complete behind it.
        last = propagation.run(ends)
        behind = {i: (*found, *last[i]) for i, found in behind.items()}
    closed = labels_closed(pipeline, standing.closed, behind)
    return Punctuated(states, propagation, closed, propagation.orders(), behind)


def labels_closed(
    pipeline: Pipeline, before: Mapping[str, int], behind: Mapping[str, tuple[Pattern, ...]]
) -> dict[str, int]:
    """How far each of these will be closed: the last label (or key) that a frontier has reached."""
    closed = dict(before)
    for node_id, keeper in pipeline.keepers.items():
        kernel = keeper.kernel
        if not isinstance(kernel, Closing) or kernel.closing is None:
            continue
        t = kernel.output_schema.type_of(kernel.closing)
        for pattern in behind[node_id]:
            bound = frontier_of(pattern, kernel.closing)
            if bound is not None and is_tickable(t):
                at = tick(bound[0], t) - (0 if bound[1] else 1)
                closed[node_id] = max(at, closed.get(node_id, at))
    return closed
