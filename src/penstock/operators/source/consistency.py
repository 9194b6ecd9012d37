"""A source at a point of the dial: how late its events may come, and for how long they are held back."""

from __future__ import annotations

from dataclasses import replace

from pyarrow.types import is_date

from penstock.errors import UserError
from penstock.operators.align.operator import Align
from penstock.operators.source.operator import Source
from penstock.pattern.duration import format_duration
from penstock.plan.consistency import Consistency
from penstock.plan.operator import Operator
from penstock.plan.promise import Adaptive, Disorder


def revise_source(source: Source, consistency: Consistency) -> Operator:
    """The source, and where it is needed what holds its events back."""
    return blocking(remembering(source, consistency), consistency)


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
    return micros // 86_400_000_000 if is_date(source.schema.type_of(time)) else micros
