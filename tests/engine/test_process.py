"""A function with state in a run: as the reference, however a stream is cut; keys end, and a restart goes on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import penstock as ps
from penstock.errors import CheckpointError, UserError
from penstock.portal.testing import local_session
from penstock.reference.interpret import interpret
from penstock.reference.item import Assertion, Event

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = "ts int, trip int, speed int"
OUT = "trip int, ts int, n int"


def numbered(events: pa.Table, state: pa.Table, over: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Each event with its number in its trip; of a trip that is over, its last time and minus its length."""
    seen = {row["trip"]: row for row in state.to_pylist()}
    results = [{"trip": o["trip"], "ts": seen[o["trip"]]["last"], "n": -seen[o["trip"]]["n"]} for o in over.to_pylist()]
    for event in events.to_pylist():
        row = seen.setdefault(event["trip"], {"trip": event["trip"], "n": 0, "last": None})
        row["n"], row["last"] = row["n"] + 1, event["ts"]
        results.append({"trip": event["trip"], "ts": event["ts"], "n": row["n"]})
    out = pa.schema({"trip": pa.int32(), "ts": pa.int32(), "n": pa.int32()})
    return pa.Table.from_pylist(results, out), pa.Table.from_pylist(list(seen.values()), state.schema)


#: Trips of ten events each that begin one after the other, so that three are on their way at a time; some have no trip.
ROWS = [{"ts": t, "trip": None if t % 17 == 0 else t // 30 * 3 + t % 3, "speed": t % 50} for t in range(300)]


def write(home: Path, *parts: list[dict[str, Any]], first: int = 1) -> None:
    (home / "in").mkdir(exist_ok=True)
    for number, rows in enumerate(parts, first):
        (home / "in" / f"{number:03}.json").write_text("".join(f"{json.dumps(row)}\n" for row in rows))


def trips(home: Path) -> ps.Stream:
    read = ps.stream("trips", SCHEMA, time="ts").read_json(str(home / "in"), order="name").disorder(0)
    return read.punctuate(ps.Punctuate.after("trip", 12, on="ts"))


def query(home: Path) -> ps.Stream:
    return trips(home).process(numbered, "n int, last int", by="trip", schema=OUT)


def run(stream: ps.Stream, home: Path, **settings: Any) -> tuple[ps.Run, list[tuple[Any, ...]]]:
    target = ps.memory()
    chosen = {"trigger": "available_now", "buckets": 3, "checkpoint": str(home / "checkpoint"), **settings}
    done = stream.start(target, **({"spark": local_session()} | chosen)).wait()
    return done, bag(target.rows())


def bag(rows: list[Any]) -> list[tuple[Any, ...]]:
    return sorted((tuple(row.values()) for row in rows), key=str)


def by_reference(stream: ps.Stream, rows: list[dict[str, Any]] = ROWS) -> list[tuple[Any, ...]]:
    outputs = interpret(stream.plan, {"trips": rows}).outputs
    return bag([item.row for item in outputs if isinstance(item, Event)])


@pytest.mark.parametrize("rows", [7, 50, 1000])
def test_it_agrees_with_the_reference_however_the_stream_is_cut(tmp_path: Path, rows: int) -> None:
    write(tmp_path, ROWS)
    stream = query(tmp_path)
    done, found = run(stream, tmp_path, max_rows=rows)
    assert len(done.history) >= 300 // (rows + 2)
    assert found == by_reference(stream)
    assert sum(1 for _, _, n in found if n < 0) >= 25, "trips that are over are told"


def test_state_ends_with_its_keys(tmp_path: Path) -> None:
    write(tmp_path, ROWS)
    done, _ = run(query(tmp_path), tmp_path, max_rows=30)
    assert max(p.state_rows for p in done.history) <= 8  # Of 30 trips, and the events that have none.
    assert sum(p.work.get("process-1 ended", 0) for p in done.history) >= 25


def test_the_end_is_the_end_of_all_keys(tmp_path: Path) -> None:
    write(tmp_path, ROWS)
    stream = trips(tmp_path).ends().process(numbered, "n int, last int", by="trip", schema=OUT)
    done, found = run(stream, tmp_path)
    assert done.progress is not None and done.progress.state_rows == 0
    assert found == by_reference(stream) and (None, 289, -18) in found


def test_a_restart_goes_on_where_it_was(tmp_path: Path) -> None:
    write(tmp_path, ROWS[:104])
    _, first = run(query(tmp_path), tmp_path, max_rows=20)
    write(tmp_path, ROWS[104:], first=2)
    _, second = run(query(tmp_path), tmp_path, max_rows=20)
    assert sorted(first + second, key=str) == by_reference(query(tmp_path))


def test_another_function_or_state_is_another_query(tmp_path: Path) -> None:
    write(tmp_path, ROWS[:50])
    run(query(tmp_path), tmp_path)
    other = trips(tmp_path).process(numbered, "n long, last int", by="trip", schema=OUT)
    with pytest.raises(CheckpointError, match="process-1: definition was"):
        run(other, tmp_path)


def test_punctuation_on_keys_passes_behind_their_last_results(tmp_path: Path) -> None:
    """So counts of trips behind it are complete: they are the same as those of the reference, and none is held back."""
    write(tmp_path, ROWS)
    stream = query(tmp_path).group_by("trip").agg(events="count(*)", least="min(n)")
    assert stream.check().safe
    _, found = run(stream, tmp_path, max_rows=40)
    assert found == by_reference(stream) and len(found) >= 25
    assert all(least == 1 - events for _, events, least in found)


def test_what_passes_is_what_the_check_says(tmp_path: Path) -> None:
    stream = query(tmp_path)
    outputs = interpret(stream.plan, {"trips": ROWS}).outputs
    told = [item.pattern for item in outputs if isinstance(item, Assertion)]
    assert told and all(p.restricted == ("trip",) for p in told), (
        "nothing of time: who knows what a function does to it"
    )
    text = stream.explain(punctuation=True)
    assert "keys leave on `trip: each value`" in text
    without = trips(tmp_path).process(lambda e, s, o: (e.select(["ts"]), s), "n int", by="trip", schema="ts int")
    assert not [i for i in interpret(without.plan, {"trips": ROWS[:40]}).outputs if isinstance(i, Assertion)]


def test_the_contract(tmp_path: Path) -> None:
    (found,) = (f for f in query(tmp_path).check().findings if f.operator == "process-1")
    assert (found.state, found.output) == ("bounded", "at once")
    timed = ps.stream("cars", SCHEMA, time="ts").read_json(str(tmp_path)).disorder(5)
    report = timed.process(numbered, "n int, last int", by="trip", schema=OUT).check()
    assert not report.safe and "keys never leave" in str(report) and "trip" in str(report)
    few = timed.punctuate(ps.Punctuate.values("trip", [1, 2])).process(numbered, "n int, last int", "trip", OUT)
    (found,) = (f for f in few.check().findings if f.operator == "process-1")
    assert (found.state, found.output) == ("constant", "at once")


def test_feedback_is_kept_behind_it(tmp_path: Path) -> None:
    write(tmp_path, ROWS)
    done, found = run(query(tmp_path), tmp_path, feedback=["not [4, *, *]"])
    assert found == [row for row in by_reference(query(tmp_path)) if row[0] != 4]
    assert done.progress is not None and set(done.progress.saved) == {"process-1 dropped"}


def test_a_function_that_fails_ends_the_run_and_state_is_where_it_was(tmp_path: Path) -> None:
    healthy = True

    def numbering(events: pa.Table, state: pa.Table, over: pa.Table) -> tuple[pa.Table, pa.Table]:
        if not healthy and 150 in events["ts"].to_pylist():
            raise ValueError("no 150 today")
        return numbered(events, state, over)

    write(tmp_path, ROWS)
    stream = trips(tmp_path).process(numbering, "n int, last int", by="trip", schema=OUT)
    healthy, target = False, ps.memory()
    settings: dict[str, Any] = {"checkpoint": str(tmp_path / "checkpoint"), "max_rows": 40, "spark": local_session()}
    with pytest.raises(UserError, match=r"operator process-1: function .*numbering.* failed: ValueError: no 150 today"):
        stream.start(target, trigger="available_now", **settings).wait()
    healthy = True
    _, second = run(stream, tmp_path, max_rows=40, buckets=None)
    assert sorted(bag(target.rows()) + second, key=str) == by_reference(stream)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"by": []}, "names no key"),
        ({"by": "tripp"}, "unknown column 'tripp'"),
        ({"state": "trip int"}, "'trip' is in both"),
        ({"function": 3}, "3 is not a function"),
        ({"state": "n nonsense"}, "nonsense"),
    ],
)
def test_wrong_arguments_are_told_at_once(tmp_path: Path, arguments: dict[str, Any], complaint: str) -> None:
    given: dict[str, Any] = {"function": numbered, "state": "n int, last int", "by": "trip", "schema": OUT} | arguments
    with pytest.raises(UserError, match=complaint):
        trips(tmp_path).process(**given)


@pytest.mark.spark
def test_it_runs_on_spark(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path, ROWS)
    _, found = run(query(tmp_path), tmp_path, spark=spark, max_rows=120)
    assert found == by_reference(query(tmp_path))


@pytest.mark.parametrize("counted", [False, True])
def test_a_demand_is_answered_as_if_all_keys_were_over_and_changes_nothing(tmp_path: Path, counted: bool) -> None:
    """Trips on their way are told as partial results; that somebody asked is not seen in the final ones."""
    stream = query(tmp_path)
    stream = stream.group_by("trip").agg(results="count(*)", total="sum(n)") if counted else stream
    write(tmp_path, ROWS[:104])
    asked, first = run(stream, tmp_path, feedback=f"now [*{', *' * (len(stream.schema) - 1)}]")
    partials = asked.partials().select(stream.schema.names).to_pylist()
    so_far = interpret(stream.plan, {"trips": ROWS[:104]}, ends=True).outputs
    assert len(partials) >= 3, "some trips are on their way"
    assert sorted(first + bag(partials), key=str) == bag([i.row for i in so_far if isinstance(i, Event)])
    write(tmp_path, ROWS[104:], first=2)
    _, second = run(stream, tmp_path)
    assert sorted(first + second, key=str) == by_reference(stream)


def test_a_demand_of_some_keys_is_about_these(tmp_path: Path) -> None:
    write(tmp_path, ROWS[:104])
    asked, _ = run(query(tmp_path), tmp_path, feedback="now [{9, 10}, *, < 0]")
    assert {row["trip"] for row in asked.partials().to_pylist()} == {9, 10}
