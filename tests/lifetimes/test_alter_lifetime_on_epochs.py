"""Altered lifetimes by epochs and columns, against the definition."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from on_epochs import as_events, cut, stays, told_at_once
from random_streams import streams

import penstock as ps
from penstock.errors import UserError
from penstock.kernels.fold import frontier_of
from penstock.operators.alter_lifetime.punctuation import altered
from penstock.operators.alter_lifetime.step import AlterLifetimeStep
from penstock.pattern.pattern import Pattern
from penstock.pattern.restriction import less
from penstock.pattern.schema import SYNC
from penstock.plan.operator import Operator
from penstock.reference.lifetimes.event import Cti, StreamEvent, Time, events
from penstock.reference.lifetimes.history import Table, fold
from penstock.reference.lifetimes.oracle import alter_lifetime, deletes

INFINITY = math.inf
#: How a query says it, and what it means.
RULES: dict[str, tuple[Callable[[ps.Stream], ps.Stream], Callable[[Table], Table]]] = {
    "length": (lambda s: s.lifetime(length=4), lambda t: alter_lifetime(t, lambda vs: vs, lambda vs, ve: 4)),
    "hops": (
        lambda s: s.lifetime(length=6, every=3),
        lambda t: alter_lifetime(t, lambda vs: vs // 3 * 3, lambda vs, ve: 6),
    ),
    "extend": (lambda s: s.lifetime(extend=2), lambda t: alter_lifetime(t, lambda vs: vs, lambda vs, ve: ve - vs + 2)),
    "extend hops": (
        lambda s: s.lifetime(extend=3, every=3),
        lambda t: alter_lifetime(t, lambda vs: vs // 3 * 3, lambda vs, ve: ve - vs + 3),
    ),
    "at most": (
        lambda s: s.lifetime(at_most=3),
        lambda t: alter_lifetime(t, lambda vs: vs, lambda vs, ve: min(ve - vs, 3)),
    ),
    "inserts": (lambda s: s.inserts(), lambda t: alter_lifetime(t, lambda vs: vs, lambda vs, ve: INFINITY)),
    "deletes": (lambda s: s.deletes(), deletes),
}


def told(operator: Any, epochs: list[list[StreamEvent]]) -> list[StreamEvent]:
    from on_epochs import Bench

    step = AlterLifetimeStep(operator)
    found: list[StreamEvent] = []
    last: Time = 0
    for epoch in epochs:
        table = Bench.table(OnlyTable(operator), epoch)  # type: ignore[arg-type]
        rows = [] if table is None else step.run(table, None).to_pylist()  # type: ignore[arg-type]
        said = [t for e in epoch if isinstance(e, Cti) for t in behind(operator, e.t) if t > last]
        last = max([last, *said])
        found += as_events(rows, said, lambda r: r["v"])
    return found


class OnlyTable:
    def __init__(self, operator: Operator) -> None:
        self.operator, self.group = operator, lambda payload: 0


def behind(operator: Any, t: Time) -> list[Time]:
    schema = operator.schema
    pattern = Pattern.all(schema) if t == INFINITY else Pattern.by_name(schema, {SYNC: less(int(t))})
    said = [frontier_of(p, SYNC) for p in altered(operator, pattern)]
    return [INFINITY if bound is None else bound[0] for bound in said]


@pytest.mark.parametrize("rule", RULES)
@settings(max_examples=25)
@given(stream=streams(), cuts=st.sets(st.integers(0, 12)))
def test_any_cut_comes_to_the_definition_and_is_valid(rule: str, stream: list[StreamEvent], cuts: set[int]) -> None:
    query, means = RULES[rule]
    assert fold(told(told_at_once(query(stays())), cut(stream, cuts))) == means(fold(stream))


def test_a_window_swallows_what_only_shortens_and_takes_back_what_was_never_there() -> None:
    """In a window of a length, a partial retraction says nothing; a full one does."""
    operator = told_at_once(stays().lifetime(length=5))
    assert told(operator, [events("I(1,9,7)"), events("R(1,9,4,7)")]) == events("I(1,6,7)")
    assert told(operator, [events("I(1,9,7)"), events("R(1,9,1,7)")]) == events("I(1,6,7) R(1,6,1,7)")


@pytest.mark.parametrize(
    ("call", "why"),
    [
        (lambda s: s.lifetime(extend=-2), "is negative"),
        (lambda s: s.lifetime(at_most=4, every=2), "would end rows before they do"),
        (lambda s: s.lifetime(extend=1, every=2), "would end rows before they do"),
        (lambda s: s.lifetime(length=0), "is not possible"),
        (lambda s: s.lifetime(), "exactly one of"),
        (lambda s: s.lifetime(length=5, every=0), "is not possible"),
    ],
)
def test_what_would_change_what_is_final_is_refused(call: Callable[[ps.Stream], ps.Stream], why: str) -> None:
    with pytest.raises(UserError, match=why):
        call(stays())
