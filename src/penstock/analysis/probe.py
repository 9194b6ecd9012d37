"""Feedback that may come, with values made up: from operators of a plan, and from whoever reads its results.

What becomes of a feedback depends on which attributes it restricts and in which direction, hardly on the values. So one
example for each stands for all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

from penstock.contract.flow import Flow, Verdict, ordered
from penstock.operators.aggregate.operator import Aggregate
from penstock.operators.distinct.operator import Distinct
from penstock.operators.instrument.operator import Instrument
from penstock.operators.instrument.punctuation import said
from penstock.operators.join.operator import Join
from penstock.operators.join.thrift import SPARED
from penstock.operators.limit.operator import Limit
from penstock.operators.lookup.operator import TableJoin
from penstock.operators.map.operator import Map
from penstock.operators.multijoin.operator import MultiJoin
from penstock.operators.order_by.operator import OrderBy
from penstock.operators.pace.operator import Pace
from penstock.operators.project.operator import Project
from penstock.operators.select.operator import Select
from penstock.operators.sink.operator import Sink
from penstock.operators.source.operator import Source
from penstock.operators.top.operator import Top
from penstock.operators.union.operator import Union
from penstock.operators.window.operator import Bucket
from penstock.pattern.feedback import Feedback, Intent
from penstock.pattern.pattern import Pattern
from penstock.pattern.restriction import Restriction, at_least, at_most, equal, greater, less
from penstock.pattern.schema import Schema
from penstock.plan.operator import Operator, unknown
from penstock.plan.plan import Node, Plan

#: Steps of examples through operators that a check takes at most: about a second.
MOST = 4000


@dataclass(frozen=True)
class Issue:
    """A feedback that an operator tells to what one of its inputs brings.

    `widening`: each contains the one before, so only the last is kept.
    """

    node: str
    port: int
    feedback: Feedback
    widening: bool = False


def example(t: pa.DataType) -> Any:
    """Some value of a type.

    >>> example(pa.int32()), example(pa.string())
    (0, 'm')
    """
    if pa.types.is_timestamp(t):
        return datetime(2026, 1, 1)
    if pa.types.is_date(t):
        return date(2026, 1, 1)
    if pa.types.is_boolean(t):
        return True
    if pa.types.is_decimal(t):
        return Decimal(0)
    if pa.types.is_string(t):
        return "m"
    return b"m" if pa.types.is_binary(t) else 0


def issues(plan: Plan, verdicts: Mapping[str, Verdict]) -> Iterator[Issue]:
    """What the operators of a plan may tell upstream, one example for each kind."""
    for node in plan.nodes:
        if node.operator.switches.propagate:
            for told in spec_of(node.operator).issues(node.operator, [verdicts[i].behind for i in node.inputs]):
                yield Issue(node.id, told.port, told.feedback, told.widening)


def probes(plan: Plan, root: str) -> Iterator[tuple[str, Feedback]]:
    """What a consumer may say of one attribute of the results, and which attribute that is; nothing if it were much."""
    schema, directions = plan[root].operator.schema, (at_most, equal, at_least)
    if len(schema) * len(directions) * len(plan.nodes) > MOST:
        return
    for attribute in schema:
        value = example(attribute.type)
        for how in directions:
            yield attribute.name, Feedback(Intent.ASSUMED, Pattern.by_name(schema, {attribute.name: how(value)}))


def _not(below: Operator, restricted: dict[str, Any]) -> Feedback:
    return Feedback(Intent.ASSUMED, _pattern(below.schema, restricted))


def _pattern(schema: Schema, restricted: dict[str, Any]) -> Pattern:
    made: dict[str, Restriction] = {n: how(example(schema.type_of(n))) for n, how in restricted.items()}
    return Pattern.by_name(schema, made)
