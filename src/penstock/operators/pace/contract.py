"""What `pace` offers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from penstock.contract.flow import Flow, Tags, Verdict, least, none_null
from penstock.operators.pace.operator import Pace


def judge_pace(operator: Pace, union: Verdict, below: Sequence[Flow]) -> Verdict:
    """In = {T_i}, Out = {T_1 ∧ … ∧ T_m} as of a union, and {[[on:+]]} whatever arrives: it drops what is late."""
    own: Tags = frozenset({(operator.on, "+")})
    timed = none_null((flow, operator.on) for flow in below)
    told = [] if timed is None else [(own, timed)]
    flow = replace(union.behind, promised=least([*told, *union.behind.promised.items()]))
    return Verdict("constant", "at once", flow, (f"remembers how far `{operator.on}` has got",))
