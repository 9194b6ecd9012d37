"""Thrifty and impatient joins: what they tell the other side, and that results stay what they were."""

from __future__ import annotations

from random import Random
from typing import Any

from backend import assert_grammatical, difference, on_kernels, on_reference
from case import Case, Cut, Feed
from hypothesis import given, settings
from hypothesis import strategies as st
from join_cases import join_cases
from random_cases import cuts

from penstock.analysis.propagate import Propagation
from penstock.operators.join.operator import Join
from penstock.pattern.feedback import Feedback

SENSORS = "wid int, sensor int, id int"
HOLED = "ts int, x int, id int"
PROBES = "wid int, probe int, id int"


def windows(kind: str = "inner") -> Case:
    """Sensors send many readings for every window; in window 4 no probe is on the road."""
    probes: list[Any] = []
    for wid in range(8):
        probes += [("", {"wid": wid, "probe": 1, "id": 10 * wid})] if wid != 4 else []
        probes += [("", f"[<= {wid}, *, *]")]
    sensors: list[Any] = [("", {"wid": wid, "sensor": n, "id": 100 * wid + n}) for wid in range(8) for n in range(5)]
    query = f"probe.join(sensor, 'wid', {kind!r}, thrifty=True)"
    feeds = (
        Feed("probe", tuple(probes), ".punctuated().ends()", schema=PROBES),
        Feed("sensor", tuple(sensors), ".ends()", schema=SENSORS),
    )
    return Case(query, feeds)


def test_a_window_closed_empty_on_one_side_is_told_to_the_other() -> None:
    case = windows()
    # Four probes with their punctuations are read before the sensors of window 4.
    found = on_kernels(case, Cut(file_rows=2, max_rows=2, overlap=False))
    assert difference(on_reference(case).rows, found.rows) == ([], [])
    assert found.saved.get("source:sensor dropped", 0) + found.saved.get("source:sensor never read", 0) == 5


def test_the_preserved_side_is_never_told() -> None:
    case = windows("right")
    found = on_kernels(case, Cut(file_rows=2, max_rows=2, overlap=False))
    assert difference(on_reference(case).rows, found.rows) == ([], [])
    assert not found.saved


def test_windows_with_events_do_not_hide_the_empty_one() -> None:
    operator = windows().stream().operator
    assert isinstance(operator, Join)
    behaviour = Propagation(windows().stream().plan).behaviours["join-1"]
    told: list[str] = []
    schema = operator.inputs[0].schema
    from penstock.pattern.pattern import Pattern
    from penstock.plan.orders import Answer

    for wid in (2, 3, 4, 5):
        behaviour.receive([(Pattern.parse(f"[<= {wid}, *, *]", schema),), ()])
        asked = behaviour.orders()
        assert asked is not None
        behaviour.answered([[Answer(0 if wid == 4 else 1) for _ in port] for port in asked.ask])
        told += [f"{port} {feedback}" for port, feedback in behaviour.issued()]
    assert told == ["1 not [4, *, *]"] or told == ["1 not [(3, 4], *, *]"]


def test_a_hole_is_told_though_only_the_event_behind_it_moves_time() -> None:
    """With `disorder` the step that closes the empty windows also closes the last one that has rows."""
    there = [t for t in range(120) if not 40 <= t < 60]
    feeds = (
        Feed("a", tuple(("", {"ts": t, "x": t, "id": t}) for t in there), ".disorder(0).ends()", schema=HOLED),
        Feed(
            "b", tuple(("", {"ts": n // 3, "x": n, "id": n}) for n in range(360)), ".disorder(0).ends()", schema=HOLED
        ),
    )
    case = Case("a.window(10).select('window_start', 'x').join(b.window(10), 'window_start', thrifty=True)", feeds)
    # As many events of each in an epoch, and b has three in a tick: a is far ahead.
    found = on_kernels(case, Cut(file_rows=5, max_rows=5, overlap=False))
    assert difference(on_reference(case).rows, found.rows) == ([], [])
    spared = found.saved.get("source:b dropped", 0) + found.saved.get("source:b never read", 0)
    assert spared == 60


@given(join_cases(), cuts(), st.sampled_from(("thrifty=True", "impatient=True", "thrifty=True, impatient=True")))
@settings(max_examples=25)
def test_what_a_join_tells_changes_no_result(case: Case, cut: Cut, option: str) -> None:
    if not case.query.startswith("s.join("):
        return
    tail = case.query.removeprefix("s.join(")
    told = Case(f"s.join({_with_option(tail, option)}", case.feeds)
    found = on_kernels(told, cut)
    assert difference(on_reference(case).rows, found.rows) == ([], [])
    assert_grammatical(found)


def _with_option(tail: str, option: str) -> str:
    """Put an option at the end of the first call's arguments."""
    depth = 1
    for at, char in enumerate(tail):
        depth += (char in "([{") - (char in ")]}")
        if depth == 0:
            return f"{tail[:at]}, {option}{tail[at:]}"
    raise AssertionError(tail)


def test_an_impatient_join_asks_for_partners_first() -> None:
    random = Random(3)
    case = windows()
    case = Case(case.query.replace("thrifty", "impatient"), case.feeds)
    found = on_kernels(case, Cut(file_rows=random.choice((1, 2)), max_rows=2, overlap=False))
    assert difference(on_reference(case).rows, found.rows) == ([], [])
    assert found.preferred["source:sensor"], "keys that wait are asked for"
    wish = Feedback.parse(f"prefer {found.preferred['source:sensor'][0]}", case.feeds[1].declared.schema)
    assert wish.pattern["wid"].matches(0)
