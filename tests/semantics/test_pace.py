"""Pace: what passes, what is dropped and what is promised, however the stream is cut, overlapped and restarted.

Which events are too far behind depends on the epochs, so the reference is given the same ones: those that the engine
has planned.
"""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from backend import Outcome, assert_grammatical, difference, on_kernels, on_spark
from case import Case, Cut, Feed, at
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from random_cases import cuts, feeds_named

import penstock as ps
from penstock.engine.tasks.watch import Watch
from penstock.operators.pace.operator import Pace
from penstock.operators.pace.step import PaceStep
from penstock.pattern.types import value_from_json
from penstock.plan.operator import Operator
from penstock.reference.interpret import Result, interpret
from penstock.reference.item import breaches, events

#: Where a pace may stand: over sources, behind stateless operators, behind and before operators with state.
QUERIES = (
    "s.pace(t, on='ts', bound={0})",
    "s.where('v > 0').pace(t.with_columns(v='v * 2'), s, on='ts', bound={0})",
    "s.pace(t.select('n', 'k', 'ts', 'id', 'd', 'v'), on='ts', bound={0}).pace(s, on='ts', bound={1})",
    "s.pace(t, on='ts', bound={0}).window(5).group_by('k').agg(n='count(*)', ids='sum(id)')",
    "s.pace(t, on='ts', bound={0}).order_by('ts')",
    "s.pace(t.distinct(), on='ts', bound={0})",
    "s.pace(t.union(s.distinct()), on='ts', bound={0})",
    "s.join(t, 'k', within=4).pace(s.join(s, 'k', within=2), on='ts', bound={0})",
    "(w := s.window(3).group_by('k').agg(id='max(id)')).pace(w.where(\"k = 'a'\"),"
    " t.window(2).group_by('k').agg(id='max(id)'), on='window_start', bound={0})",
    "s.pace(t, on='ts', bound={0}).window(4).group_by('k').agg(id='max(id)').rename(window_start='ts')"
    ".pace(t.select('k', 'id', ts='cast(ts as bigint)'), on='ts', bound={1}).window(6, on='ts').agg(n='count(*)')",
)


@st.composite
def paces(draw: st.DrawFn, max_rows: int = 9, ends: bool = True) -> Case:
    text = draw(st.sampled_from(QUERIES)).format(draw(st.integers(0, 12)), draw(st.integers(0, 12)))
    # Of files of text it is not known beforehand how many rows an epoch reads.
    feeds = tuple(replace(draw(feeds_named(n, 1, False, max_rows, ends)), format="parquet") for n in ("s", "t"))
    return Case(text, tuple(f for f in feeds if f.name == "s" or "t." in text or "(t" in text))


def silent(stream: ps.Stream) -> ps.Stream:
    """The same query, with paces that tell nobody."""
    made: dict[int, Operator] = {}

    def rebuilt(operator: Operator) -> Operator:
        if id(operator) not in made:
            switches = operator.switches
            if isinstance(operator, Pace):
                switches = replace(switches, propagate=False)
            made[id(operator)] = replace(operator, inputs=tuple(map(rebuilt, operator.inputs)), switches=switches)
        return made[id(operator)]

    return replace(stream, operator=rebuilt(stream.operator))


def referred(case: Case, found: Outcome) -> Result:
    """The reference over the epochs that the engine has planned."""
    order: list[str] = []
    ends: list[int] = []
    for _, plan in sorted(found.plans.items()):
        for source, splits in plan.splits.items():
            order += [source.removeprefix("source:")] * sum(s["rows"] for s in splits)
        ends.append(len(order))
    inputs = {f.name: f.arrivals() for f in case.feeds}
    result = interpret(case.stream().plan, inputs, order=order, punctuate_at=ends[:-1], traced=False)
    for node, items in result.streams.items():
        assert not breaches(items), f"{node} breaks its word"
    return result


def letters_of(result: Result) -> list[tuple[str, str, Any]]:
    return sorted(((d.source, d.kind, d.row["id"]) for d in result.dead_letters), key=repr)


@given(paces(), cuts())
@settings(max_examples=14)
def test_reference_and_kernels_agree_when_nobody_is_told(case: Case, cut: Cut) -> None:
    found = on_kernels(case, cut, change=silent)
    expected = referred(case, found)
    assert difference(events(expected.outputs), found.rows) == ([], [])
    assert found.letters == letters_of(expected)
    assert_grammatical(found)
    assert found.state == 0


@given(paces(), cuts())
@settings(max_examples=10)
def test_telling_those_before_changes_no_result(case: Case, cut: Cut) -> None:
    found = on_kernels(case, cut)
    expected = referred(case, found)
    assert difference(events(expected.outputs), found.rows) == ([], [])
    # What was not even brought needs no letter, be it late for the source or for the pace.
    left = letters_of(expected)
    for letter in found.letters:
        left.remove(letter)
    assert all(kind in ("paced", "late") for _, kind, _ in left)
    assert rows_saved(found) if left else True
    assert_grammatical(found)


@given(paces(ends=False), cuts())
@settings(max_examples=12)
def test_what_is_promised_before_the_end_is_true(case: Case, cut: Cut) -> None:
    found = on_kernels(case, cut)
    assert_grammatical(found)
    assert difference(found.rows, events(referred(case, found).outputs)) == ([], [])


@given(case=paces(), cut=cuts(max_rows=(3, 5, None)))
@settings(max_examples=3, phases=(Phase.generate,), suppress_health_check=list(HealthCheck))
def test_spark_agrees(spark: Any, case: Case, cut: Cut) -> None:
    found = on_spark(case, cut, spark, change=silent)
    expected = referred(case, found)
    assert difference(events(expected.outputs), found.rows) == ([], [])
    assert found.letters == letters_of(expected)


# --- by definition ----------------------------------------------------------------------------------------------------


def feed(name: str, *times: int, promises: str = ".ends()") -> Feed:
    return Feed(name, tuple(("", {"ts": t, "k": "a", "id": i, "v": 1.0}) for i, t in enumerate(times)), promises)


def numbered(name: str, numbers: list[int | None]) -> Feed:
    # The time of a stream is never null, but any other attribute may be.
    return Feed(name, tuple(("", {"ts": 0, "k": "a", "id": i, "n": n}) for i, n in enumerate(numbers)))


@given(
    st.lists(st.one_of(st.none(), st.integers(-40, 40)), max_size=12),
    st.lists(st.one_of(st.none(), st.integers(-40, 40)), max_size=12),
    st.integers(0, 20),
    cuts(max_rows=(1, 2, 3)),
)
@settings(max_examples=9)
def test_an_event_passes_if_it_is_near_enough_to_the_latest_of_the_epochs_before(
    s: list[int | None], t: list[int | None], bound: int, cut: Cut
) -> None:
    case = Case(f"s.pace(t, on='n', bound={bound})", (numbered("s", s), numbered("t", t)))
    found = on_kernels(case, cut, change=silent)
    rest = {"source:s": list(s), "source:t": list(t)}
    latest: int | None = None
    dropped = 0
    floors: list[int] = []
    for number, plan in sorted(found.plans.items()):
        read = {i: sum(x["rows"] for x in splits) for i, splits in plan.splits.items()}
        arrived = [v for i, n in read.items() for v in rest[i][:n]]
        rest = {i: values[read.get(i, 0) :] for i, values in rest.items()}
        passing = [v for v in arrived if latest is None or v is None or v >= latest - bound]
        dropped += len(arrived) - len(passing)
        out = [row["n"] for row in found.epochs.get(number, ())]
        assert sorted(map(str, out)) == sorted(map(str, passing))
        assert plan.told == ({} if latest is None else {"pace-1": latest - bound})
        floors += plan.told.values()
        latest = max((v for v in (latest, *arrived) if v is not None), default=None)
    assert floors == sorted(floors)
    assert len(s) + len(t) == len(found.rows) + dropped == len(found.rows) + len(found.letters)


def test_a_pace_promises_though_its_inputs_do_not_and_windows_close() -> None:
    case = Case(
        "s.pace(t, on='ts', bound=5).window(10).agg(n='count(*)')",
        (feed("s", *range(0, 60, 2), promises=""), feed("t", *range(30), promises="")),
    )
    found = on_kernels(case, Cut(max_rows=4, file_rows=4))
    # Time has come to 58, and what is before 53 cannot pass: all windows up to 50 are complete.
    assert sorted(r["window_start"] for r in found.rows) == [0, 10, 20, 30, 40]
    assert found.state > 0


@pytest.mark.parametrize("cut", [Cut(max_rows=2, file_rows=2), Cut(max_rows=2, file_rows=2, restart=True)])
def test_a_source_that_is_told_drops_what_a_pace_would(cut: Cut) -> None:
    # The second stream is far behind from its third epoch on.
    s, t = feed("s", *range(0, 200, 10)), feed("t", *range(20))
    case = Case("s.pace(t, on='ts', bound=30)", (s, t))
    quiet, told = on_kernels(case, cut, change=silent), on_kernels(case, cut)
    assert not quiet.saved and len(quiet.letters) > 8
    assert difference(quiet.rows, told.rows) == ([], [])
    assert len(told.letters) < len(quiet.letters)
    assert len(told.letters) + rows_saved(told) == len(quiet.letters)


def rows_saved(found: Outcome) -> int:
    return sum(n for what, n in found.saved.items() if what.endswith((" dropped", " never read")))


def test_what_consumers_ignore_does_not_hold_back_the_latest() -> None:
    # Without the late events nobody wants, those of 3 and 4 would not be too far behind: they are none the less.
    case = Case("s.pace(t, on='ts', bound=5)", (feed("s", 1, 2, 90, 3), feed("t", 1, 2, 91, 4)))
    cut = Cut(max_rows=1, file_rows=1, overlap=False)
    found = on_kernels(case, cut, said={0: ["not [> 80, *, *, *, *, *]"]})
    assert sorted(r["ts"] for r in found.rows) == [1, 1, 2, 2]


def test_an_instrument_passes_everything_and_is_heard() -> None:
    case = Case("s.instrument('not [> 20, *, *, *, *, *]', every=3)", (feed("s", *range(0, 30, 2), 25, 1),))
    found = on_kernels(case, Cut(max_rows=2, file_rows=2, overlap=False))
    # Spoken after the second epoch, which brings the fourth event; the third is the first that knows.
    expected = [t for t in (*range(0, 30, 2), 25, 1) if t <= 20]
    assert [r["ts"] for r in found.rows] == expected
    quiet = on_kernels(case, Cut(max_rows=2), change=lambda s: s.feedback(propagate=False))
    assert len(quiet.rows) == 17 and not quiet.saved


def test_letters_say_who_dropped_what_and_why() -> None:
    schema = "ts timestamp, x double, d decimal(5,2), b binary, w string, day date, ok boolean"
    pace = ps.stream("s", schema, time="ts").pace(bound="90 s").operator
    assert isinstance(pace, Pace)
    row = {"ts": at(1.5), "x": math.nan, "d": None, "b": b"\x00", "w": 'it\'s "ü"', "day": None, "ok": True}
    rows = pa.Table.from_pylist([row], schema=pace.schema.arrow)
    watch = Watch()
    assert PaceStep(pace).run(rows, watch.beside("pace-1", 200_000_000)).num_rows == 0
    (letter,) = watch.letters[0].to_pylist()
    assert (letter["stream"], letter["reason"], letter["time"]) == ("pace-1", "paced", at(1.5))
    assert letter["detail"] == (
        "ts 1970-01-01 00:00:01.5 is more than 1 min 30 s behind the latest: before 1970-01-01 00:03:20"
    )
    told = {n: value_from_json(v, pace.schema.type_of(n)) for n, v in json.loads(letter["event"]).items()}
    assert math.isnan(told.pop("x"))
    assert told == {n: v for n, v in row.items() if n != "x"}


def grid(name: str, step: int, rows: int, start: int = 0) -> Feed:
    return feed(name, *range(start, start + step * rows, step))


@pytest.mark.parametrize("cut", [Cut(max_rows=10, file_rows=20), Cut(max_rows=10, file_rows=20, restart=True)])
def test_a_source_that_skips_does_not_overtake_the_others(cut: Cut) -> None:
    """It begins far behind and goes fast: what it need not read must not take it past the others before its time."""
    case = Case("s.pace(t, on='ts', bound=50)", (grid("s", 1, 200, start=1000), grid("t", 8, 200)))
    quiet, told = on_kernels(case, cut, change=silent), on_kernels(case, cut)
    assert rows_saved(told) > 50
    assert difference(quiet.rows, told.rows) == ([], [])
    assert len(told.letters) + rows_saved(told) == len(quiet.letters)


@given(
    st.tuples(*[st.integers(1, 12)] * 2),
    st.tuples(*[st.integers(0, 400)] * 2),
    st.integers(0, 80),
    st.sampled_from((7, 10, 20, 33)),
    st.sampled_from((5, 10, None)),
)
@settings(max_examples=8)
def test_telling_sources_changes_no_result_however_fast_they_go(
    steps: tuple[int, ...], starts: tuple[int, ...], bound: int, file_rows: int, max_rows: int | None
) -> None:
    feeds = tuple(grid(n, step, 80, start) for n, step, start in zip(("s", "t"), steps, starts, strict=True))
    case = Case(f"s.pace(t.where('v > 0'), on='ts', bound={bound})", feeds)
    cut = Cut(max_rows=max_rows, file_rows=file_rows)
    quiet, told = on_kernels(case, cut, change=silent), on_kernels(case, cut)
    assert difference(quiet.rows, told.rows) == ([], [])
    assert len(told.letters) + rows_saved(told) == len(quiet.letters)
