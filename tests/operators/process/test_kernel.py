"""A function with state on its own: what it is given, what is kept of what it returns, and what is refused."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import SchemaError, UserError
from penstock.kernels.stateful import DEAD, Held, Orders, Stepped
from penstock.operators.process.kernel import ProcessKernel
from penstock.operators.process.operator import Process
from penstock.operators.source.operator import Source
from penstock.pattern.pattern import Pattern
from penstock.pattern.punctuation import PunctuationSet
from penstock.pattern.schema import Schema

SCHEMA = Schema.parse("k string, v int")
OUT = Schema.parse("k string, n int")
STATE = Schema.parse("n int")
Function = Callable[[pa.Table, pa.Table, pa.Table], Any]
Row = tuple[Any, ...]


def numbered(events: pa.Table, state: pa.Table, over: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Each event with its number among those of its key; of a key that is over, minus how many there were."""
    seen = {row["k"]: row["n"] for row in state.to_pylist()}
    results = [{"k": row["k"], "n": -seen[row["k"]]} for row in over.to_pylist()]
    for key in events["k"].to_pylist():
        seen[key] = seen.get(key, 0) + 1
        results.append({"k": key, "n": seen[key]})
    kept = [{"k": k, "n": n} for k, n in seen.items()]
    return pa.Table.from_pylist(results, OUT.arrow), pa.Table.from_pylist(kept, state.schema)


class Bench:
    """Runs a kernel epoch by epoch and keeps its state as the engine would."""

    def __init__(self, function: Function = numbered, schema: Schema = SCHEMA, out: Schema = OUT) -> None:
        self.schema = schema
        self.calls: list[tuple[pa.Table, pa.Table, pa.Table]] = []

        def called(events: pa.Table, state: pa.Table, over: pa.Table) -> Any:
            self.calls.append((events, state, over))
            return function(events, state, over)

        operator = Process((Source((), schema),), out, function=called, by=("k",), state=STATE)
        self.kernel = ProcessKernel(operator, "process-1")
        self.held: list[Held] = []
        self.made = 0

    def epoch(self, *rows: Row, over: Sequence[str] = ()) -> Stepped:
        columns = [pa.array([r[i] for r in rows], a.type) for i, a in enumerate(self.schema)]
        fresh = pa.table(columns, schema=self.schema.arrow) if rows else None
        release = tuple(Pattern.parse(p, self.schema) for p in over)
        step = self.kernel.step([fresh], [self.held], Orders((release,), (PunctuationSet(self.schema),)))
        marks = dict(step.marked)
        assert {*step.dropped, *marks} <= {h.name for h in self.held} and not {*step.dropped} & {*marks}
        self.held = [
            Held(h.name, h.rows, marks.get(h.name, h.marks), h.group) for h in self.held if h.name not in step.dropped
        ]
        for made in step.added:
            self.made += 1
            self.held.append(Held(f"run-{self.made}", made.rows, made.marks, made.group))
        return step

    def state(self) -> list[Row]:
        found: list[Row] = []
        for run in self.held:
            dead = run.marks[DEAD].to_pylist() if run.marks is not None else [False] * run.rows.num_rows
            rows = run.rows.select(["k", "n"]).to_pylist()
            found += [tuple(r.values()) for r, d in zip(rows, dead, strict=True) if not d]
        return sorted(found, key=str)


def tuples(table: pa.Table) -> list[Row]:
    return [tuple(row.values()) for row in table.to_pylist()]


def events(keys: str) -> list[Row]:
    return [(key, i) for i, key in enumerate(keys)]


# --- what it is given -------------------------------------------------------------------------------------------------


def test_events_come_whole_and_in_order_with_the_state_of_their_keys_alone() -> None:
    bench = Bench()
    bench.epoch(*events("abc"))
    bench.epoch(*events("caa"))
    given, state, over = bench.calls[-1]
    assert given.schema == SCHEMA.arrow and tuples(given) == [("c", 0), ("a", 1), ("a", 2)]
    assert state.schema == pa.schema({"k": pa.string(), "n": pa.int32()})
    assert sorted(tuples(state)) == [("a", 1), ("c", 1)]
    assert over.schema == pa.schema({"k": pa.string()}) and over.num_rows == 0
    assert bench.state() == [("a", 3), ("b", 1), ("c", 2)]


def test_keys_that_are_over_come_with_the_state_that_their_last_event_left() -> None:
    bench = Bench()
    bench.epoch(*events("ab"))
    step = bench.epoch(*events("ac"), over=["['a', *]", "['c', *]"])
    assert tuples(step.output)[:2] == [("a", 2), ("c", 1)]
    assert sorted(tuples(step.output)[2:]) == [("a", -2), ("c", -1)]
    given, state, over = bench.calls[-1]
    assert given.num_rows == 0 and sorted(tuples(state)) == [("a", 2), ("c", 1)]
    assert sorted(tuples(over)) == [("a",), ("c",)]
    assert bench.state() == [("b", 1)] and step.counts == {"ended": 2}


def test_keys_without_state_are_never_over() -> None:
    bench = Bench()
    bench.epoch(*events("a"))
    assert bench.epoch(over=["['z', *]"]).output.num_rows == 0
    assert len(bench.calls) == 1
    bench.epoch(over=["[*, *]"])
    assert bench.state() == [] and bench.held == []
    bench.epoch(over=["[*, *]"])
    assert len(bench.calls) == 2


def test_what_is_returned_for_keys_that_are_over_is_forgotten() -> None:
    bench = Bench()  # It returns their state as it was.
    bench.epoch(*events("ab"), over=["['a', *]"])
    assert bench.state() == [("b", 1)]


def test_a_key_that_is_not_returned_is_forgotten() -> None:
    def every_other(events: pa.Table, state: pa.Table, over: pa.Table) -> tuple[pa.Table, pa.Table]:
        results, kept = numbered(events, state, over)
        return results, kept.filter(pa.array([n % 2 == 1 for n in kept["n"].to_pylist()]))

    bench = Bench(every_other)
    bench.epoch(*events("aab"))
    assert bench.state() == [("b", 1)]
    assert tuples(bench.epoch(*events("ab")).output) == [("a", 1), ("b", 2)]
    assert bench.state() == [("a", 1)]


def test_nothing_is_called_for_nothing() -> None:
    bench = Bench()
    bench.epoch()
    assert bench.calls == []


def test_keys_that_are_equal_have_one_state() -> None:
    schema, out = Schema.parse("k double, v int"), Schema.parse("k double, n int")

    def counted(events: pa.Table, state: pa.Table, over: pa.Table) -> tuple[pa.Table, pa.Table]:
        assert state.num_rows <= 1
        n = sum(state["n"].to_pylist()) + events.num_rows
        kept = pa.table({"k": events["k"][:1], "n": [n]}).cast(state.schema)
        return pa.table({"k": events["k"][:1], "n": [n]}).cast(out.arrow), kept

    bench = Bench(counted, schema, out)
    for one, other in ((0.0, -0.0), (math.nan, -math.nan), (None, None)):
        bench.epoch((one, 1))
        assert bench.epoch((other, 2)).output["n"].to_pylist() == [2]
    assert len(bench.state()) == 3


def test_few_runs_are_kept_and_what_is_dead_goes() -> None:
    bench = Bench()
    bench.epoch(*events("abcdefghijklmnop"))
    for _ in range(40):
        bench.epoch(*events("ab"))
    assert len(bench.held) <= 9 and sum(h.rows.num_rows for h in bench.held) <= 40
    assert ("a", 41) in bench.state() and len(bench.state()) == 16


# --- any cut ----------------------------------------------------------------------------------------------------------


@given(st.text("abc", max_size=30), st.sets(st.integers(1, 29)), st.sets(st.sampled_from("abc")))
def test_any_cut_into_epochs_gives_the_same(keys: str, cuts: set[int], over: set[str]) -> None:
    """Of a function that goes through events one by one."""
    bench = Bench()
    found: list[Row] = []
    ends = sorted({c for c in cuts if c < len(keys)} | {len(keys)})
    for start, end in zip([0, *ends], ends):
        closing = [f"['{k}', *]" for k in sorted(over) if keys.rfind(k) < end]
        found += tuples(bench.epoch(*events(keys[start:end]), over=closing).output)
    expected = [(k, keys[: i + 1].count(k)) for i, k in enumerate(keys)]
    expected += [(k, -keys.count(k)) for k in over if k in keys]
    assert sorted(found) == sorted(expected)
    assert bench.state() == sorted((k, keys.count(k)) for k in set(keys) - over)


# --- what is refused --------------------------------------------------------------------------------------------------


def returning(results: Any, state: Any) -> Function:
    return lambda events, given, over: (results, state)


def made(schema: Schema, *rows: Row) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(schema.names, row)) for row in rows], schema.arrow)


HELD = Schema.parse("k string, n int")
NOTHING, NONE = made(OUT), made(HELD)


@pytest.mark.parametrize(
    ("function", "complaint"),
    [
        (returning(NOTHING, made(HELD, ("a", 1), ("a", 2))), "returned two rows of state for k = 'a'"),
        (returning(NOTHING, made(HELD, ("z", 1))), "returned state for k = 'z', which is not among the keys"),
        (returning(made(OUT, ("z", 1)), NONE), "returned a result for k = 'z', which is not among the keys"),
        (returning(NOTHING.drop_columns(["n"]), NONE), "returned no column 'n' as results"),
        (returning(NOTHING, NONE.drop_columns(["k"])), "returned no column 'k' as state"),
        (returning(pa.table({"k": ["a"], "n": ["x"]}), NONE), "returned other types than declared as results"),
        (returning(NOTHING, pa.table({"k": ["a"], "n": ["x"]})), "returned other types than declared as state"),
        (returning(None, NONE), "returned NoneType as results, not a pyarrow.Table"),
        (lambda events, state, over: events, "returned Table, not results and state"),
        (lambda events, state, over: (events, state, over), "returned 3 values, not results and state"),
        (lambda events, state, over: 1 // 0, "failed: ZeroDivisionError"),
        (lambda events: events, "failed: TypeError"),
    ],
)
def test_what_is_wrong_is_said_with_its_operator(function: Function, complaint: str) -> None:
    with pytest.raises(
        (UserError, SchemaError), match=r"operator process-1: function .*\(events, state, over\)"
    ) as told:
        Bench(function).epoch(*events("ab"))
    assert complaint in str(told.value)


def test_record_batches_are_tables_too() -> None:
    bench = Bench(returning(made(OUT, ("a", 1)).to_batches()[0], made(HELD, ("a", 4)).to_batches()[0]))
    assert tuples(bench.epoch(*events("a")).output) == [("a", 1)] and bench.state() == [("a", 4)]
