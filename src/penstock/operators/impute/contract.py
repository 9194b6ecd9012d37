"""Contracts of a function behind a queue: as of the function, if no epoch brings more than leaves in one."""

from __future__ import annotations

import math
from dataclasses import replace

from penstock.contract.bounding import sized
from penstock.contract.flow import Flow, Verdict
from penstock.contract.rates import Delay, Rates
from penstock.contract.size import Bound, widths
from penstock.errors import counted
from penstock.operators.impute.operator import Impute
from penstock.operators.map.contract import judge_map, mapped_rates
from penstock.plan.spec import Measurements
from penstock.plan.upwards import comes_as_read, finds_several


def judge_impute(operator: Impute, below: Flow) -> Verdict:
    """As of Map. No punctuation is needed for the queue to go down, but time: what arrives must not be too much."""
    budget = counted(operator.budget, "event")
    why = (f"{budget} an epoch leave the queue",)
    assumes = (f"{below.name or 'the input'} brings it no more than {budget} an epoch in the long run",)
    return Verdict("bounded", "complete", judge_map(operator, below).behind, why, (), assumes)


def bound_impute(operator: Impute, below: Rates, measured: Measurements) -> tuple[Bound, Rates]:
    """Events that wait for their turn: of one epoch at most, if no epoch brings more than the budget.

    >>> from penstock.analysis.bounds import bounds
    >>> from penstock.builder.stream import StreamBuilder
    >>> from penstock.operators.source.operator import Source
    >>> from penstock.pattern.schema import Schema
    >>> numbers = StreamBuilder(Source((), Schema.parse("t int", "t"), name="n")).disorder(100)
    >>> query = numbers.impute(lambda rows: rows, budget=500)
    >>> [bounds(query.plan, epoch=rows)["impute-1"].rows for rows in (500, 501)]
    [500, None]
    """
    behind = mapped_rates(operator, below)
    arriving = None if measured.epoch is None else math.ceil(measured.epoch * max(1, len(below.sources)) * below.fan)
    source = operator.inputs[0]
    counted = comes_as_read(source) and not finds_several(source)
    if arriving is not None and arriving <= operator.budget and counted:
        return sized(arriving, widths(operator.inputs[0].schema.arrow), 0, (), "one epoch"), behind
    unknown = Delay(None, "max_rows, so that no epoch brings more than the budget of a queue")
    lacks = (f"max_rows, so that no epoch brings more than {operator.budget:,}",)
    return Bound(None, None, None, None, lacks=lacks), replace(behind, terms=dict.fromkeys(behind.terms, unknown))
