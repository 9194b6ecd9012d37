"""Rows that hold for a time: the reference and the engine come to the same, under any cut, and keep their word."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import pytest
from backend import Outcome, assert_grammatical, on_kernels, on_spark
from case import Case, Cut
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from lifetime_cases import MOMENTS, lasting
from random_cases import cuts

import penstock as ps
from penstock.analysis.speculate import speculate
from penstock.pattern.schema import SYNC
from penstock.plan.weight import WEIGHT
from penstock.reference.interpret import interpret
from penstock.reference.item import breaches, events
from penstock.reference.lifetimes.history import Table, coalesce

Row = Mapping[str, Any]

AGGREGATES = "n='count(*)', s='sum(v)', m='max(v)', f='first(v)', d='count(distinct v)'"
#: By the type of moments, how lengths of time are written.
LENGTH = {"int": "{}", "date": "'{} d'", "timestamp": "'{} us'"}
ALTERED = (
    *("", "", "", ".inserts()", ".deletes()", ".lifetime(length={3})", ".lifetime(length={5}, every={2})"),
    *(".lifetime(extend={2})", ".lifetime(extend={4}, every={3})", ".lifetime(at_most={2})"),
)
STEPS = ("", "", ".where('v > 0')", ".select('k', v='v * 2')", ".rename(k='g').rename(g='k')")
SNAPSHOTS = (
    f".snapshot().group_by('k').agg({AGGREGATES})",
    f".snapshot().agg({AGGREGATES})",
    f".snapshot(empty='zero').agg({AGGREGATES})",
    f".snapshot(empty='zero').group_by('k').agg({AGGREGATES})",
    ".snapshot().group_by('k').agg(n='count(*)').snapshot().agg(most='max(n)', of='count(*)')",
    ".snapshot().group_by('k').agg(n='avg(v)').where('n > 0')",
    "",
)


@st.composite
def snapshots(draw: st.DrawFn, most: int = 12) -> Case:
    kind = draw(st.sampled_from(sorted(MOMENTS)))
    two = draw(st.integers(0, 3)) == 0
    change = ".changes('op', new_end='n')"
    text = f"s{change}.union(t{change})" if two else f"s{change}"
    altered = re.sub(r"{(\d)}", lambda n: LENGTH[kind].format(n[1]), draw(st.sampled_from(ALTERED)))
    text += draw(st.sampled_from(STEPS)) + altered + draw(st.sampled_from(SNAPSHOTS))
    names = ("s", "t") if two else ("s",)
    return Case(text, tuple(draw(lasting(n, kind, most // len(names))) for n in names))


JOINS = (
    "a.join(c, 'k')",
    "a.join(c, {'k': 'k'}, where='v < v_right + 2')",
    "a.join(c.snapshot().group_by('k').agg(n='count(*)'), 'k')",
    "a.join(c, 'k').snapshot().group_by('k').agg(n='count(*)', s='sum(v * v_right)')",
    "a.snapshot().group_by('k').agg(m='max(v)').join(c.snapshot().group_by('k').agg(n='count(*)'), 'k', where='m < n')",
    "a.lifetime(length={3}).join(c.deletes(), 'k')",
)


@st.composite
def joins(draw: st.DrawFn, most: int = 12) -> Case:
    kind = draw(st.sampled_from(sorted(MOMENTS)))
    text = re.sub(r"{(\d)}", lambda n: LENGTH[kind].format(n[1]), draw(st.sampled_from(JOINS)))
    for name, made in (("a", "s.changes('op', new_end='n')"), ("c", "t.changes('op', new_end='n').drop('id')")):
        text = re.sub(rf"\b{name}\b(?=[.,])", made, text)
    return Case(text, tuple(draw(lasting(n, kind, most, ("x", "x", "x", "y", None))) for n in ("s", "t")))


def at_once(stream: ps.Stream) -> ps.Stream:
    (operator,) = speculate([stream.operator], ps.Consistency.middle())
    return replace(stream, operator=operator)


def holding(rows: Iterable[Row]) -> Table:
    """What holds after changes; where lifetimes only meet, they are one."""
    held: Table = Counter()
    for row in rows:
        said = repr(sorted((n, v) for n, v in row.items() if n not in ("a", "b", SYNC, WEIGHT)))
        end = math.inf if row["b"] is None else number(row["b"])
        held[number(row["a"]), end, said] += row[WEIGHT]
    # What is taken back before it comes is what a dead letter tells.
    return coalesce(Counter({row: n for row, n in held.items() if n > 0}))


def number(moment: Any) -> int:
    for to in MOMENTS.values():
        if type(to(0)) is type(moment):
            return int((moment - to(0)) / (to(1) - to(0)))
    raise AssertionError(moment)


def by_definition(case: Case) -> tuple[Table, Counter[Any]]:
    result = interpret(at_once(case.stream()).plan, {f.name: f.arrivals() for f in case.feeds}, traced=False)
    for node, items in result.streams.items():
        assert not breaches(items), f"{node} breaks its word"
    letters = Counter((d.source, d.kind) for d in result.dead_letters)
    return holding(events(result.outputs)), letters


def check(case: Case, found: Outcome) -> None:
    expected, letters = by_definition(case)
    assert holding(found.rows) == expected
    assert Counter((stream, reason) for stream, reason, _ in found.letters) == letters
    assert found.state == 0
    assert_grammatical(found)


@given(snapshots(), cuts())
@settings(max_examples=20)
def test_any_cut_comes_to_the_same(case: Case, cut: Cut) -> None:
    check(case, on_kernels(case, cut, change=at_once))


@given(joins(), cuts())
@settings(max_examples=20)
def test_pairs_hold_while_both_rows_do(case: Case, cut: Cut) -> None:
    check(case, on_kernels(case, cut, change=at_once))


@pytest.mark.spark
def test_on_spark(spark: Any) -> None:
    @given(st.one_of(snapshots(), joins()), cuts())
    @settings(max_examples=4, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
    def run(case: Case, cut: Cut) -> None:
        check(case, on_spark(case, cut, spark, change=at_once))

    run()
