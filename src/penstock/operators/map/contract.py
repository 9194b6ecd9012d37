"""Contracts of a user's function: what it keeps is known, what else it does is not."""

from __future__ import annotations

from dataclasses import replace

from penstock.contract.bounding import renamed
from penstock.contract.flow import Flow, Verdict, behind
from penstock.contract.rates import Rates
from penstock.operators.map.operator import Map


def judge_map(operator: Map, below: Flow) -> Verdict:
    """In: templates that tag only attributes that the function keeps, Out: the same."""
    kept = {t: a for t, a in below.promised.items() if all(n in operator.keeps for n, _ in t)}
    origins = {n: below.origins[n] for n in operator.keeps if n in below.origins}
    return Verdict("none", "at once", behind(operator, below, kept, origins))


def mapped_rates(operator: Map, below: Rates) -> Rates:
    """A function may make any number of rows, so what is known of what it keeps is all there is."""
    kept = {n: (n,) for n in operator.keeps if n in operator.schema}
    return replace(renamed(below, operator, kept), rate=None, lacks="", unique=frozenset())
