"""Pace and instrument, one event at a time."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

import penstock as ps
from penstock.plan.plan import Plan
from penstock.reference.interpret import Interpretation, interpret
from penstock.reference.item import breaches, events, punctuations
from penstock.reference.trace import format_step, trace


def two(bound: int = 5) -> ps.Stream:
    a, b = (ps.stream(n, "ts int, id int", time="ts") for n in "ab")
    return a.pace(b, bound=bound)


def rows(*times: int) -> list[dict[str, Any]]:
    return [{"ts": t, "id": i} for i, t in enumerate(times)]


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(-30, 30)), max_size=20), st.integers(0, 20))
def test_an_event_passes_if_it_is_within_the_bound_of_the_latest_so_far(
    steps: list[tuple[str, int]], bound: int
) -> None:
    inputs = {n: rows(*(t for name, t in steps if name == n)) for n in "ab"}
    run = Interpretation(two(bound).plan, inputs, order=[n for n, _ in steps])
    for _ in run.steps():
        pass
    passing = [t for i, (_, t) in enumerate(steps) if t >= max(u for _, u in steps[: i + 1]) - bound]
    out = run.streams["pace-1"]
    assert [r["ts"] for r in events(out)] == passing
    pace = run.running["pace-1"]
    dead = pace.dead_letters  # type: ignore[attr-defined]
    assert len(steps) == len(passing) + len(dead)
    assert not breaches(out)
    # Nothing that passes later matches what was told upstream, and that only grows.
    told = [f.pattern["ts"].high for port, f in pace.issued if port == 0]  # type: ignore[attr-defined]
    assert told == sorted(set(told)) == [p["ts"].high for p in punctuations(out)]  # type: ignore[attr-defined]
    assert told[-1:] == ([max(t for _, t in steps) - bound] if steps else [])


def test_time_is_judged_by_the_epochs_before() -> None:
    inputs = {"a": rows(1, 50, 2), "b": rows(3, 4)}
    order = ["a", "a", "a", "b", "b"]
    assert len(interpret(two().plan, inputs, order=order, punctuate_at=[]).dead_letters) == 0
    cut = interpret(two().plan, inputs, order=order, punctuate_at=[3])
    assert [(d.source, d.kind, d.row["ts"]) for d in cut.dead_letters] == [("pace-1", "paced", t) for t in (3, 4)]


def test_what_operators_with_state_bring_counts_from_the_epoch_after_next() -> None:
    a, b = (ps.stream(n, "ts int, id int", time="ts") for n in "ab")
    inputs, order = {"a": rows(90), "b": rows(1, 2)}, ["a", "b", "b"]
    for first, late in ((a, {1, 2}), (a.distinct(), {2})):
        found = interpret(first.pace(b, bound=5).plan, inputs, order=order, punctuate_at=[1, 2])
        assert {d.row["ts"] for d in found.dead_letters} == late


def test_a_trace_shows_what_is_dropped() -> None:
    lines = [format_step(s) for s in trace(two().plan, {"a": rows(20), "b": rows(3)})]
    assert "pace-1: knows now → emits punctuation [< 15, *]" in lines
    assert "pace-1: ts 3, id 0 → dead letter: ts 3 is more than 5 behind the latest" in lines


def test_an_instrument_speaks_when_an_epoch_is_over() -> None:
    a = ps.stream("a", "ts int, id int", time="ts").instrument(lambda n: f"not [{n}, *]", every=2)
    plan = Plan.of(a.operator)
    for ends, told in (([], ["[5, *]"]), ([1], ["[5, *]"]), ([1, 3], ["[3, *]", "[5, *]"])):
        run = Interpretation(plan, {"a": rows(1, 2, 3, 4, 5)}, punctuate_at=ends)
        assert [s.taken for s in run.steps() if s.operator == "instrument-1"]
        assert [str(f.pattern) for _, f in run.running["instrument-1"].issued] == told  # type: ignore[attr-defined]
