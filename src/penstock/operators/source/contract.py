"""Contracts of a source: what flows behind it, and what it remembers to judge events by."""

from __future__ import annotations

from penstock.contract.flow import Verdict
from penstock.operators.source.operator import Source
from penstock.operators.source.scheme import flow_of
from penstock.plan.promise import After, InBand, Once, WhenAll


def judge_source(source: Source) -> Verdict:
    """Out: what is promised. To catch events that break promises it remembers a limited number of values."""
    flow = flow_of(source)
    promises = source.promises
    if open_keys := [p for p in promises if isinstance(p, After)]:
        why = tuple(f"open values of `{p.key}` leave as `{p.attribute}` goes on" for p in open_keys)
        return Verdict("bounded", "at once", flow, why)
    if any(isinstance(p, Once | InBand | WhenAll) for p in promises):
        return Verdict("constant", "at once", flow, ("remembers a limited number of values to judge events by",))
    return Verdict("none", "at once", flow)
