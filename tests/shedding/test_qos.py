"""Quality of service: graphs that are refused with the piece that is wrong, and what a graph says of loss."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock as ps
from penstock.errors import UserError
from penstock.shedding.graph import Graph
from penstock.shedding.value import ValueGraph

LOSS = [(100, 1), (50, 0.7), (0, 0)]


def test_unit_losses_of_the_textbook_graph() -> None:
    slopes = [piece.slope for piece in ps.QoS(loss=LOSS).loss.pieces()]
    assert slopes == pytest.approx([0.006, 0.014])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"loss": [(100, 1)]}, "no graph"),
        ({"loss": [(90, 1), (0, 0)]}, r"begins with \(90, 1\)"),
        ({"loss": [(100, 1), (0, 0.5)]}, r"ends with \(0, 0.5\)"),
        ({"loss": [(100, 1), (50, 1.2), (0, 0)]}, "utility 1.2 at 50"),
        ({"loss": [(100, 1), (50, 0.8), (60, 0.7), (0, 0)]}, r"from \(50, 0.8\) to \(60, 0.7\) is out of order"),
        ({"loss": [(100, 1), (50, 0.8), (50, 0.7), (0, 0)]}, "out of order"),
        ({"loss": [(100, 1), (50, 0.5), (40, 0.6), (0, 0)]}, r"from \(50, 0.5\) to \(40, 0.6\) rises"),
        ({"loss": [(100, 1), (80, 0.9), (50, 0.2), (0, 0)]}, r"piece from \(50, 0.2\) to \(0, 0\) falls by 0.004"),
        ({"loss": [(100, 1), ("50", 0.2), (0, 0)]}, "'50' is not a number"),
        ({"loss": [(100, 1), (float("nan"), 0.2), (0, 0)]}, "nan is not a number"),
        ({"loss": "steep"}, "'steep' is no graph"),
        ({"latency": [("1 s", 1), ("2 s", 0)]}, r"latency: begins with \(1, 1\)"),
        ({"latency": [(0, 1), (1, 0.2), (9, 0)]}, r"piece from \(1, 0.2\) to \(9, 0\) falls by"),
        ({"gap": 0}, "gap=0"),
        ({"gap": 1.5}, "gap=1.5"),
        ({"gap": True}, "gap=True"),
        ({"weight": 0}, "weight=0"),
        ({"weight": "2"}, "'2' is not a number"),
        ({"value": {"x": [((0, 5), 2)]}}, r"utility 2 of \(0, 5\)"),
        ({"value": {"x": [((5, 0), 1)]}}, r"\(5, 0\) is empty"),
        ({"value": {"x": [((0, 5), 1), ((4, 9), 1)]}}, "overlap"),
        ({"value": {"x": [("a", 1), ("a", 0.5)]}}, "overlap"),
        ({"value": {"x": [(1, 1)], "y": [(1, 1)]}}, "value graphs on 2 attributes: x, y"),
        ({"value": {}}, "no value graph"),
        ({"value": {"x": []}}, "no list of pieces"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(given: dict[str, object], message: str) -> None:
    with pytest.raises(UserError, match=message) as error:
        ps.QoS(**given)
    assert error.value.hint and "\n" not in str(error.value)


def test_the_hint_mends_the_graph() -> None:
    with pytest.raises(UserError, match=r"raise \(50, 0.4\) to at least \(50, 0.5\)"):
        ps.QoS(loss=[(100, 1), (50, 0.4), (0, 0)])
    ps.QoS(loss=[(100, 1), (50, 0.5), (0, 0)])


@st.composite
def loss_graphs(draw: st.DrawFn) -> list[tuple[float, float]]:
    """Concave by construction: steps of which each loses at least as much per percent as the one before."""
    xs = sorted(draw(st.sets(st.integers(1, 99), max_size=5)), reverse=True)
    ends = [100, *xs, 0]
    slopes = sorted(draw(st.lists(st.integers(0, 50), min_size=len(ends) - 1, max_size=len(ends) - 1)))
    losses = [s * (a - b) for s, a, b in zip(slopes, ends, ends[1:], strict=False)]
    if not (total := sum(losses)):
        losses, total = [0.0] * (len(losses) - 1) + [1.0], 1
    left, points = float(total), [(100.0, 1.0)]
    for x, lost in zip(ends[1:], losses, strict=True):
        left -= lost
        points.append((x, max(0.0, left / total)))
    return points


@given(loss_graphs(), st.none() | st.integers(1, 50), st.sampled_from([1, 2, 0.25]))
def test_a_repr_can_be_pasted_back(loss: list[tuple[float, float]], gap: int | None, weight: float) -> None:
    value = {
        "x": [((0, 50), 0.2), ((51, 100), (0.5, 1)), (7.5e300, 0.1)],
    }
    texts = {"carrier": [("UA", 1), ("it's", 0.5)]}
    for graph in (value, texts, None):
        qos = ps.QoS(loss, graph, [(0, 1), ("20 s", 0.9), ("1 min", 0)], gap, weight)
        assert eval(repr(qos), {"QoS": ps.QoS}) == qos
        assert hash(qos) == hash(eval(repr(qos), {"QoS": ps.QoS}))


@given(loss_graphs(), st.floats(0, 100), st.floats(0, 100))
def test_utility_falls_ever_faster(loss: list[tuple[float, float]], x: float, y: float) -> None:
    graph = ps.QoS(loss).loss
    assert graph.at(100) == 1 and graph.at(0) == pytest.approx(0, abs=1e-9)
    assert graph.at((x + y) / 2) >= (graph.at(x) + graph.at(y)) / 2 - 1e-9
    assert (graph.at(x) - graph.at(y)) * (x - y) >= -1e-9


@given(st.lists(st.tuples(st.integers(0, 100), st.floats(0, 1)), min_size=2, max_size=8, unique_by=lambda p: p[0]))
def test_the_concave_graph_is_the_least_above(points: list[tuple[int, float]]) -> None:
    order = tuple(sorted(points, reverse=True))
    hull = Graph(order).concave()
    assert set(hull.points) <= set(order) and hull.points[0] == order[0] and hull.points[-1] == order[-1]
    slopes = [p.slope for p in hull.pieces()]
    assert all(b >= a - 1e-6 * (1 + abs(a)) for a, b in pairwise(slopes))
    assert all(hull.at(x) >= u - 1e-6 for x, u in order)


def test_values_and_what_they_are_worth() -> None:
    graph = ValueGraph.of({"x": [((0, 50), 0.2), ((51, 100), 1), ((200, 300), (0, 1))]})
    assert [graph.at(v) for v in (0, 50, 50.5, 51, 250, 1_000)] == [0.2, 0.2, 1.0, 1, 0.5, 1.0]
    assert [round(c.utility, 2) for p in graph.pieces for c in p.chunks(4)] == [0.2, 1, 0.12, 0.38, 0.62, 0.88]
