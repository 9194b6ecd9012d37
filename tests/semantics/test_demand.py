"""`now […]`: what has come out so far and the partial results together are what the input so far would give.

And whoever asks, and when: the final results are as if nobody had.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from backend import difference, on_kernels, on_reference
from case import Case, Cut, Feed
from hypothesis import given, settings
from hypothesis import strategies as st
from join_cases import join_cases
from random_cases import cases, cuts

import penstock as ps
from penstock.pattern.pattern import Pattern
from penstock.portal.testing import local_session


def plain(case: Case) -> Case:
    """One partition and files whose rows can be counted."""
    return replace(
        case, feeds=tuple(replace(f, format="parquet", items=tuple(("", i) for _, i in f.items)) for f in case.feeds)
    )


def until(feed: Feed, rows: int) -> Feed:
    return replace(feed, items=feed.items[:rows])


@given(st.one_of(cases(), join_cases()), cuts(max_rows=(1, 2, 3, 5)), st.integers(0, 5))
@settings(max_examples=25)
def test_partial_results_are_those_of_the_input_so_far(case: Case, cut: Cut, when: int) -> None:
    case = plain(case)
    schema = case.stream().schema
    everything = f"now {Pattern.all(schema)}"
    found = on_kernels(case, cut, {when: [everything]})
    assert difference(on_reference(case).rows, found.rows) == ([], [])
    for epoch, answer in found.answers:
        read = {f.name: 0 for f in case.feeds}
        for number, plan in found.plans.items():
            if number <= epoch:
                for source, splits in plan.splits.items():
                    read[source.removeprefix("source:")] += sum(s["rows"] for s in splits)
        so_far = Case(case.query, tuple(until(f, read[f.name]) for f in case.feeds))
        given_out = [row for number, rows in found.epochs.items() if number <= epoch for row in rows]
        expected = on_reference(so_far).rows
        assert difference(expected, [*given_out, *answer]) == ([], [])


def test_a_demand_is_answered_while_the_run_goes_on(tmp_path: Any) -> None:
    stream = ps.generate(rate=10, rows=400, columns={"segment": ("key", 3), "speed": ("uniform", 0, 100)})
    query = stream.window("1 min").group_by("segment").agg(n="count(*)")
    checkpoint = str(tmp_path / "run")
    with query.start(
        ps.memory(),
        trigger="available_now",
        checkpoint=checkpoint,
        spark=local_session(),
        max_rows=50,
        feedback="now [*, {0, 1}, *]",
    ) as run:
        run.wait()
    rows = run.partials().to_pylist()
    assert {r["segment"] for r in rows} == {0, 1}
    assert {(r["partial"], r["as_of_epoch"]) for r in rows} == {(True, 1)}
    assert sum(r["n"] for r in rows) < 50


def test_finals_follow_partial_results(tmp_path: Any) -> None:
    stream = ps.generate(rate=10, rows=100, columns={"segment": ("key", 2)})
    query = stream.ends().window("1 h").group_by("segment").agg(n="count(*)")
    target = ps.memory()
    run = query.start(
        target,
        trigger="available_now",
        spark=local_session(),
        max_rows=40,
        feedback=["now [*, *, *]"],
        checkpoint=str(tmp_path / "c"),
    )
    run.wait()
    assert sum(r["n"] for r in run.partials().to_pylist()) == 40
    assert sum(r["n"] for r in target.rows()) == 100


def test_what_waits_in_a_queue_does_not_hold_an_answer_back(tmp_path: Any) -> None:
    stream = ps.generate(rate=10, rows=60, columns={"segment": ("key", 2)}).ends()
    slow = stream.impute(lambda rows: rows, keeps=["ts", "segment"], budget=10)
    target = ps.memory()
    run = (
        slow.group_by("segment")
        .agg(n="count(*)")
        .start(
            target,
            trigger="available_now",
            spark=local_session(),
            max_rows=60,
            feedback=["now [*, *]"],
            checkpoint=str(tmp_path / "c"),
        )
    )
    run.wait()
    assert sum(r["n"] for r in run.partials().to_pylist()) == 10
    assert sum(r["n"] for r in target.rows()) == 60
