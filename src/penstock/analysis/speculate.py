"""Turning the dial: a plan that waits becomes one that tells results at once and corrects them.

Every operator says what it becomes where its inputs may take rows back (`Spec.revised`); sources let events come as
late as they are remembered.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from penstock.errors import UserError
from penstock.operators.align.operator import Align
from penstock.operators.source.operator import Source
from penstock.pattern.duration import format_duration
from penstock.plan.consistency import Consistency
from penstock.plan.operator import Operator
from penstock.plan.plan import Plan
from penstock.plan.promise import Adaptive, Disorder
from penstock.plan.spec import spec_of


def speculate(roots: Sequence[Operator], consistency: Consistency) -> tuple[Operator, ...]:
    """The same queries at a point of the dial, as operators that share what they shared before."""
    made: dict[int, Operator] = {}
    for node in Plan.of(*roots):
        operator = node.operator
        inputs = [made[id(i)] for i in operator.inputs]
        if isinstance(operator, Source):
            made[id(operator)] = blocking(remembering(operator, consistency), consistency)
        elif consistency.speculates:
            made[id(operator)] = spec_of(operator).revised(operator, inputs)
        else:
            made[id(operator)] = replace(operator, inputs=tuple(inputs))
    return tuple(made[id(r)] for r in roots)


def remembering(source: Source, consistency: Consistency) -> Source:
    """A source whose events may come as late as they are remembered, whatever disorder was declared of it."""
    if consistency.remember is None:
        return source
    if not source.schema.times:
        raise UserError(
            f"stream '{source.name}' has no time, so it cannot remember {format_duration(consistency.remember)}",
            hint=f"ps.stream('{source.name}', …, time='ts'), or a consistency without remember=",
        )
    time = source.schema.times[0]
    slack = ticks_of(source, time, consistency.remember)
    others = tuple(p for p in source.promises if not (isinstance(p, Disorder | Adaptive) and p.attribute == time))
    return replace(source, promises=(*others, Disorder(time, slack)))


def blocking(source: Source, consistency: Consistency) -> Operator:
    """A source whose events are held back for a while before anything is told of them."""
    if not consistency.speculates or not consistency.block:
        return source
    slack = next((p.slack for p in source.promises if isinstance(p, Disorder)), None)
    if slack is None:
        raise UserError(
            f"stream '{source.name}': nobody knows how far its time has come, so nothing can be held back by it",
            hint=f"{source.name}.disorder('1 min'), or a consistency with remember=",
        )
    (time,) = (p.attribute for p in source.promises if isinstance(p, Disorder))
    waits = ticks_of(source, time, consistency.block)
    return Align((source,), source.schema, time=time, ahead=max(0, slack - waits))


def ticks_of(source: Source, time: str, micros: int) -> int:
    """A length of time in ticks of an attribute; whole numbers count microseconds as they are."""
    from pyarrow.types import is_date

    return micros // 86_400_000_000 if is_date(source.schema.type_of(time)) else micros
