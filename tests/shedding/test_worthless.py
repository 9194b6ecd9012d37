"""From the value of rows to what loss costs: the tables of the source, and which rows go."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from penstock.shedding.histogram import Histogram
from penstock.shedding.value import Span, ValueGraph
from penstock.shedding.worthless import input_loss_graph, loss_graph, removal, valued

TABLE_3_3 = ValueGraph.of({"x": [((0, 50), 0.2), ((51, 100), 1)]})
FREQUENCIES = Histogram.of({(0, 50): 0.4, (51, 100): 0.6})


def test_table_3_3() -> None:
    pieces = valued(TABLE_3_3, FREQUENCIES)
    assert [p.share for p in pieces] == pytest.approx([0.08 / 0.68, 0.6 / 0.68])
    assert loss_graph(TABLE_3_3, FREQUENCIES).rounded(2).points == ((100, 1), (60, 0.88), (0, 0))


def test_table_3_4() -> None:
    graph = ValueGraph.of({"x": [((0, 50), 0.25), ((51, 100), 1)]})
    joined = Histogram.of({(0, 50): 0.1, (51, 100): 0.9})
    assert [round(p.share, 3) for p in valued(graph, joined)] == [0.027, 0.973]
    left, right = Histogram.of({(0, 50): 0.4, (51, 100): 0.6}), Histogram.of({(0, 50): 0.2, (51, 100): 0.8})
    assert input_loss_graph(graph, joined, left).rounded(3).points == ((100, 1), (60, 0.973), (0, 0))
    assert input_loss_graph(graph, joined, right).rounded(3).points == ((100, 1), (80, 0.973), (0, 0))


@pytest.mark.parametrize(("share", "survives"), [(0.2, 25), (0.7, 75), (0, 0), (0.4, 51), (0.1, 12)])
def test_who_survives_among_whole_numbers(share: float, survives: int) -> None:
    gone = removal(TABLE_3_3, FREQUENCIES, share, whole_numbers=True)
    assert [v for v in range(101) if not gone.removes(v)] == list(range(survives, 101))
    assert all(gone.removes(v) == any(r.matches(v) for r in gone.restrictions) for v in range(-5, 120))


def test_reals_are_cut_where_the_share_says() -> None:
    gone = removal(TABLE_3_3, FREQUENCIES, 0.7, whole_numbers=False)
    assert gone.cut == Span(51, 75.5)
    assert gone.removes(75.4) and not gone.removes(75.5) and not gone.removes(50.5)  # 50.5 is in no piece


def test_single_values_go_whole_or_not_at_all() -> None:
    graph = ValueGraph.of({"airport": [("JFK", 1), ("LGA", 0.5), ("EWR", 0.1)]})
    flights = Histogram.of({"JFK": 50, "LGA": 30, "EWR": 10, "HPN": 10})
    assert [p.worth.span.low for p in valued(graph, flights)] == ["EWR", "LGA", "JFK"]
    assert not removal(graph, flights, 0.05, whole_numbers=True).spans
    assert [s.low for s in removal(graph, flights, 0.25, whole_numbers=True).spans] == ["EWR"]
    assert [s.low for s in removal(graph, flights, 0.4, whole_numbers=True).spans] == ["EWR", "LGA"]
    # What the graph does not speak of is never given up.
    assert [s.low for s in removal(graph, flights, 1, whole_numbers=True).spans] == ["EWR", "LGA", "JFK"]
    assert loss_graph(graph, flights).points[-1] == (0, 0)


def test_what_an_input_does_not_have_is_lost_with_nothing() -> None:
    graph = ValueGraph.of({"x": [((0, 9), 0.5), ((10, 19), 1)]})
    joined = Histogram.of({(0, 9): 1, (10, 19): 1})
    assert input_loss_graph(graph, joined, Histogram.of({(10, 19): 5})).points == ((100, 1), (0, 0))
    mine = input_loss_graph(graph, joined, Histogram.of({(10, 19): 1, (30, 39): 1})).rounded(3)
    assert mine.points == ((100, 1), (50, 0), (0, 0))


def test_nothing_goes_that_was_not_asked_for_seen_or_not() -> None:
    unseen = Histogram.of({(51, 100): 5})
    assert not removal(TABLE_3_3, unseen, 0, whole_numbers=True).restrictions
    assert removal(TABLE_3_3, unseen, 0.5, whole_numbers=True).spans == (Span(0, 50),)


@st.composite
def graphs(draw: st.DrawFn) -> tuple[ValueGraph, Histogram]:
    n = draw(st.integers(1, 6))
    utilities = draw(st.lists(st.sampled_from([0, 0.1, 0.25, 0.5, 1, (0.2, 0.8), (1, 0)]), min_size=n, max_size=n))
    pieces = [((10 * k, 10 * k + 9), u) for k, u in enumerate(utilities)]
    rows = draw(st.lists(st.integers(0, 20), min_size=n + 1, max_size=n + 1))
    return ValueGraph.of({"x": pieces}), Histogram.of({(10 * k, 10 * k + 9): c for k, c in enumerate(rows)})


@given(graphs())
def test_loss_graphs_are_concave_by_themselves(made: tuple[ValueGraph, Histogram]) -> None:
    graph, histogram = made
    loss = loss_graph(graph, histogram)
    assert loss.points[0] == (100, 1) and loss.points[-1] == (0, 0)
    if any(p.share for p in valued(graph, histogram)):
        assert len(loss.concave().points) >= 2
        assert all(loss.concave().at(x) == pytest.approx(loss.at(x), abs=1e-6) for x in range(0, 101, 5))


@given(graphs(), st.integers(0, 20), st.booleans())
def test_no_more_goes_than_was_asked_for_and_only_the_least_useful(
    made: tuple[ValueGraph, Histogram], twentieths: int, whole: bool
) -> None:
    graph, histogram = made
    assume(histogram.total)
    share = twentieths / 20
    gone = removal(graph, histogram, share, whole_numbers=whole)
    spans = [*gone.spans, *([gone.cut] if gone.cut else [])]
    assert share or not spans  # nothing asked for: nothing goes, also of what was never seen
    taken = sum(histogram.share(s) for s in spans)
    assert taken <= share + 1e-6
    if not whole:
        named = sum(p.frequency for p in valued(graph, histogram))
        assert taken == pytest.approx(min(share, named), abs=1e-6)
    pieces = valued(graph, histogram)
    worst = max((p.worth.utility for p in pieces if any(s.low == p.worth.span.low for s in spans)), default=0)
    kept = [p for p in pieces if p.frequency and not any(s.low == p.worth.span.low for s in spans)]
    assert whole or all(p.worth.utility >= worst - 1e-9 for p in kept)
