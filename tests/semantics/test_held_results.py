"""Results that may change, held until they are final or told as a table: both come to what waiting would have given."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from backend import Outcome, difference, on_kernels, on_reference, on_spark
from case import Case, Cut
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from random_cases import cuts
from test_speculation import at_once, chains

import penstock as ps
from penstock.analysis.speculate import told_apart_by
from penstock.builder.held import folded, settled
from penstock.plan.weight import PART, WEIGHT
from penstock.reference.interpret import interpret
from penstock.reference.item import events

Row = dict[str, Any]


def final_only(stream: ps.Stream) -> ps.Stream:
    """Told at once, and held until it can no longer change."""
    return replace(stream, operator=settled(at_once(stream).operator, told_apart_by(stream.operator)))


def as_table(stream: ps.Stream) -> ps.Stream:
    return replace(stream, operator=folded(at_once(stream).operator, told_apart_by(stream.operator), ()))


def as_table_by_first(stream: ps.Stream) -> ps.Stream:
    """Laid out by an attribute, of which punctuation may speak."""
    by = stream.schema.names[:1]
    return replace(stream, operator=folded(at_once(stream).operator, told_apart_by(stream.operator), by))


class Table:
    """A table in parts: what comes of a part takes the place of what was there."""

    def __init__(self, by: tuple[str, ...] = ()) -> None:
        self.by = by
        self.parts: dict[str, list[Row]] = {}

    def replace(self, rows: list[Row]) -> None:
        fresh: dict[str, list[Row]] = {}
        for row in rows:
            plain = {n: v for n, v in row.items() if n not in (PART, WEIGHT)}
            place = repr([row[PART], *(row[n] for n in self.by)])
            fresh.setdefault(place, []).extend([plain] * row[WEIGHT])
        self.parts.update(fresh)

    @property
    def rows(self) -> list[Row]:
        return [row for rows in self.parts.values() for row in rows]


def assert_same(expected: list[Row], found: list[Row]) -> None:
    assert difference(expected, found) == ([], [])


def check_final(case: Case, found: Outcome) -> None:
    expected = on_reference(case)
    assert_same(expected.rows, found.rows)
    assert found.letters == expected.letters
    assert found.state == 0
    for epoch, patterns in sorted(found.punctuations.items()):
        later = [r for e, rows in found.epochs.items() if e > epoch for r in rows]
        assert not [r for r in later for p in patterns if p.matches_row(r)], "told after it was said to be over"


def check_table(case: Case, cut: Cut, found: Outcome, by: tuple[str, ...]) -> None:
    log = on_kernels(case, cut, change=at_once)
    table, holding = Table(by), list[Row]()
    for epoch in sorted({*found.epochs, *log.epochs}):
        table.replace(found.epochs.get(epoch, []))
        for row in sorted(log.epochs.get(epoch, []), key=lambda r: -r[WEIGHT]):
            plain = {n: v for n, v in row.items() if n != WEIGHT}
            if row[WEIGHT] > 0:
                holding += [plain] * row[WEIGHT]
            else:
                for _ in range(-row[WEIGHT]):
                    holding.remove(next(r for r in holding if difference([r], [plain]) == ([], [])))
        assert_same(holding, table.rows)
    assert found.state == 0


@given(chains(), cuts())
@settings(max_examples=15)
def test_what_is_final_is_the_strong_answer(case: Case, cut: Cut) -> None:
    check_final(case, on_kernels(case, cut, change=final_only))


@given(chains())
@settings(max_examples=10)
def test_the_reference_tells_the_same_rows(case: Case) -> None:
    expected = on_reference(case).rows
    inputs = {f.name: f.arrivals() for f in case.feeds}
    assert_same(expected, events(interpret(final_only(case.stream()).plan, inputs, traced=False).outputs))
    table = Table()
    every = events(interpret(as_table(case.stream()).plan, inputs, traced=False).outputs)
    starts = [i for i, row in enumerate(every) if row[WEIGHT] == 0]
    for first, last in pairwise([*starts, len(every)]):
        table.replace(every[first:last])
    assert_same(expected, table.rows)


@given(chains(), cuts(), st.booleans())
@settings(max_examples=15)
def test_the_table_is_what_holds_after_every_epoch(case: Case, cut: Cut, laid_out: bool) -> None:
    by = case.stream().schema.names[:1] if laid_out else ()
    found = on_kernels(case, cut, change=as_table_by_first if laid_out else as_table)
    check_table(case, cut, found, by)


@pytest.mark.spark
def test_on_spark(spark: Any) -> None:
    @given(chains(), cuts(), st.booleans())
    @settings(max_examples=3, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
    def run(case: Case, cut: Cut, final: bool) -> None:
        if final:
            check_final(case, on_spark(case, cut, spark, change=final_only))
        else:
            check_table(case, cut, on_spark(case, cut, spark, change=as_table), ())

    run()
