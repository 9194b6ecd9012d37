"""A source at a point of the dial: how late its events may come, and for how long they are held back."""

from __future__ import annotations

from dataclasses import replace

from pyarrow.types import is_date, is_timestamp

from penstock.errors import UserError
from penstock.operators.align.operator import Align
from penstock.operators.changes.operator import Changes
from penstock.operators.project.operator import Project
from penstock.operators.source.operator import Source
from penstock.pattern.duration import format_duration
from penstock.plan.consistency import Consistency
from penstock.plan.operator import Operator
from penstock.plan.promise import Adaptive, Disorder
from penstock.plan.weight import GONE, HOLDS, WEIGHT, with_weight
from penstock.sql.expression import Expression


def revise_source(source: Source, consistency: Consistency) -> Operator:
    """The source, and where it is needed what holds its events back and reads from them what takes rows back."""
    if (source.changes or source.schema.lifetime) and not consistency.speculates:
        raise UserError(
            f"stream '{source.name}' takes rows back, so results cannot wait until nothing changes",
            hint="say how it is to be corrected: start(…, consistency=ps.Consistency.middle())",
        )
    return weighing(blocking(remembering(source, consistency), consistency), source)


def extents(source: Source, consistency: Consistency) -> tuple[int, int]:
    """For how long the events of a source that is at work are remembered and held back at another point of the dial.

    In ticks. They are those of the time by whose disorder the source says how far it is; one that says it otherwise, or
    not at all, cannot be turned while it is at work.
    """
    known = replace(source, promises=source.promises if source.dial is None else source.written)
    turned = order_of(remembering(known, consistency))
    now = order_of(source)
    if turned is None or now is None or turned.attribute != now.attribute:
        raise UserError(
            f"stream '{source.name}' does not say by its disorder how far it is, so there is no dial to turn",
            hint=f"{source.name}.disorder('1 min') in the query, or start it with a consistency that has remember=",
        )
    return turned.slack, ticks_of(
        source, turned.attribute, consistency, consistency.block or 0 if consistency.speculates else 0
    )


def order_of(source: Source) -> Disorder | None:
    """The promise that says how far the source is."""
    found = [p for p in source.promises if isinstance(p, Disorder)]
    return next((p for p in found if p.attribute in source.schema.times[:1]), found[0] if found else None)


_DAY = 86_400_000_000
#: What stands in the column that says what an event does, where rows are told apart by a key.
KEYED = (*HOLDS, "u", "update"), GONE


def weighing(operator: Operator, source: Source) -> Operator:
    """The events of a source with their weight. One that says something else than it may becomes a dead letter."""
    if source.lasting is not None:
        return Changes((operator,), with_weight(source.schema), lifetime=source.lasting)
    if not source.changes:
        return operator
    quoted = [f"`{n.replace('`', '``')}`" for n in source.schema.names]
    said = f"lower(trim(cast(`{source.changes.replace('`', '``')}` as string)))"
    kinds = "".join(
        f" when {said} in ({', '.join(map(repr, listed))}) then 1L * {weight}"
        for listed, weight in zip(KEYED if source.keyed else (HOLDS, GONE), (1, -1), strict=True)
    )
    text = f"case{kinds} else cast(concat('no kind of change: ', {said}) as bigint) end"
    columns = [*zip(source.schema.names, quoted, strict=True), (WEIGHT, text)]
    parsed = tuple((n, Expression.parse(t, source.schema, where="changes")) for n, t in columns)
    parsed = (*parsed[:-1], (WEIGHT, replace(parsed[-1][1], text=f"the kind of change in {source.changes}")))
    return Project((operator,), with_weight(source.schema), columns=parsed)


def remembering(source: Source, consistency: Consistency) -> Source:
    """A source whose events may come as late as they are remembered, whatever disorder was declared of it."""
    source = replace(source, dial=consistency, written=source.promises)
    if consistency.remember is None:
        return source
    if not source.schema.times:
        raise UserError(
            f"stream '{source.name}' has no time, so it cannot remember {format_duration(consistency.remember)}",
            hint=f"ps.stream('{source.name}', …, time='ts'), or a consistency without remember=",
        )
    time = source.schema.times[0]
    slack = ticks_of(source, time, consistency, consistency.remember)
    others = tuple(p for p in source.promises if not (isinstance(p, Disorder | Adaptive) and p.attribute == time))
    return replace(source, promises=(*others, Disorder(time, slack)))


def blocking(source: Source, consistency: Consistency) -> Operator:
    """A source whose events are held back for a while before anything is told of them."""
    if not consistency.speculates or not consistency.block:
        return source
    if (order := order_of(source)) is None:
        raise UserError(
            f"stream '{source.name}': nobody knows how far its time has come, so nothing can be held back by it",
            hint=f"{source.name}.disorder('1 min'), or a consistency with remember=",
        )
    return holding_back(source, ticks_of(source, order.attribute, consistency, consistency.block))


def holding_back(source: Source, ticks: int) -> Operator:
    """The source, with what holds its events back behind it."""
    order = order_of(source)
    assert order is not None
    return Align((source,), source.schema, time=order.attribute, slack=order.slack, block=ticks)


def ticks_of(source: Source, time: str, consistency: Consistency, extent: int) -> int:
    """A length in ticks of an attribute, if it is one of such a time: numbers for numbers, days for dates."""
    t = source.schema.type_of(time)
    if is_timestamp(t):
        fits, kind, hint = not consistency.counted, "a timestamp", "a length of time, such as remember='1 min'"
    elif is_date(t):
        fits, kind, hint = consistency.counted or extent % _DAY == 0, "a date", "whole days: remember='2 days'"
    else:
        fits, kind, hint = consistency.counted, "a number", "one too: remember=20, or 'middle/20' on the command line"
    if extent and not fits:
        raise UserError(f"{consistency!r} does not fit the time of '{source.name}': '{time}' is {kind}", hint=hint)
    return extent // _DAY if is_date(t) and not consistency.counted else extent
