"""The rate and cost model: the known numbers, and the laws that every plan obeys."""

from __future__ import annotations

import math
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from join_model import Growing, Steady, held, join_rate, join_window, joined, multiway_cost, multiway_rate, selected

from penstock.builder.join_cost import Input, Probe, arrival_cost, direction_cost, join_cost, throughput

R, S, T = Input(10, 100, 1, 5, 1), Input(20, 200, 1, 5, 1), Input(5, 50, 1, 5, 1)
RS, ST = 0.01, 0.05

rates = st.floats(0.1, 1000)
shares = st.floats(0.001, 1)
inputs = st.builds(Input, rates, st.floats(0, 10_000), rates, rates, rates)


@pytest.mark.parametrize(("t", "rate"), [(1, 2.0), (5, 18.0), (10, 38.0)])
def test_without_windows_the_rate_grows(t: int, rate: float) -> None:
    assert Growing(0.01, (10, 20)).rate(t) == pytest.approx(rate)


@given(shares, rates, rates, st.integers(1, 30))
def test_without_windows_the_rates_are_those_of_the_formula_and_sum_up_to_all_matches(
    f: float, r: float, s: float, t: int
) -> None:
    growing = Growing(f, (r, s))
    assert growing.rate(t) == pytest.approx(f * (r * (s * t) + s * (r * t) - r * s), rel=1e-6)
    assert sum(growing.rate(u) for u in range(1, t + 1)) == pytest.approx(f * r * s * t * t)


def test_with_windows_the_rate_and_the_window_of_the_result_are_constant() -> None:
    assert join_rate(R, S, RS) == pytest.approx(40)
    assert join_window(R, S, RS) == pytest.approx(200)


def test_the_cost_of_a_join_is_that_of_its_two_directions() -> None:
    assert (direction_cost(R, S), direction_cost(S, R), join_cost(R, S)) == (120, 90, 210)
    assert throughput(join_rate(R, S, RS), join_cost(R, S)) == pytest.approx(0.190476, abs=1e-6)


def test_two_orders_of_three_inputs_deliver_the_same_at_different_cost() -> None:
    first = joined(R, S, RS)
    second = joined(S, T, ST)
    assert (second.rate, second.window) == (pytest.approx(100), pytest.approx(500))
    assert join_cost(S, T) == pytest.approx(175)
    left_cost, right_cost = join_cost(R, S) + join_cost(first, T), join_cost(S, T) + join_cost(R, second)
    assert (left_cost, right_cost) == (pytest.approx(525), pytest.approx(945))
    left_rate, right_rate = join_rate(first, T, ST), join_rate(R, second, RS)
    assert (left_rate, right_rate) == (pytest.approx(150), pytest.approx(150))
    assert throughput(left_rate, left_cost) == pytest.approx(0.2857, abs=1e-4)
    assert throughput(right_rate, right_cost) == pytest.approx(0.1587, abs=1e-4)


@given(st.tuples(inputs, inputs, inputs), st.tuples(shares, shares, shares))
def test_every_order_of_joining_delivers_at_the_same_rate(
    three: tuple[Input, Input, Input], f: tuple[float, float, float]
) -> None:
    pairwise = {frozenset((0, 1)): f[0], frozenset((1, 2)): f[1], frozenset((0, 2)): f[2]}
    found = []
    for a, b, c in permutations(range(3)):
        pair = joined(three[a], three[b], pairwise[frozenset((a, b))])
        found.append(joined(pair, three[c], pairwise[frozenset((a, c))] * pairwise[frozenset((b, c))]))
    expected = math.prod(f) * sum(
        three[i].rate * math.prod(three[j].window for j in range(3) if j != i) for i in range(3)
    )
    for result in found:
        assert result.rate == pytest.approx(expected)
        assert result.window == pytest.approx(found[0].window)


def _probes(order: list[tuple[Input, float]]) -> list[Probe]:
    return [Probe(store.match, f * store.window) for store, f in order]


def test_one_join_over_three_inputs() -> None:
    """By hand: R 20 + 10·(5 + 2·5), S 40 + 20·(5 + 1·5), T 10 + 5·(5 + 10·5); each completes 50 results."""
    ways = [_probes([(S, RS), (T, ST)]), _probes([(R, RS), (T, ST)]), _probes([(S, ST), (R, RS)])]
    assert [arrival_cost(i, w) for i, w in zip((R, S, T), ways)] == pytest.approx([170, 240, 285])
    assert multiway_cost((R, S, T), ways) == pytest.approx(695)
    assert multiway_rate((R, S, T), ways) == pytest.approx(150)


@given(inputs, inputs, shares)
def test_over_two_inputs_both_kinds_of_join_are_the_same(a: Input, b: Input, f: float) -> None:
    ways = [_probes([(b, f)]), _probes([(a, f)])]
    assert multiway_cost((a, b), ways) == pytest.approx(join_cost(a, b))
    assert multiway_rate((a, b), ways) == pytest.approx(join_rate(a, b, f))


@given(st.lists(st.builds(Probe, st.just(3.0), st.floats(0, 50)), min_size=2, max_size=4), inputs)
def test_with_equal_costs_the_most_selective_probe_goes_first(probes: list[Probe], source: Input) -> None:
    best = min(arrival_cost(source, order) for order in permutations(probes))
    assert arrival_cost(source, sorted(probes, key=lambda p: p.matches)) == pytest.approx(best)


def test_an_empty_probe_ends_the_way_of_an_event() -> None:
    assert arrival_cost(R, [Probe(5, 0), Probe(1000, 9)]) == arrival_cost(R, [Probe(5, 0)])


def test_a_selection_thins_rate_and_window_alike() -> None:
    thinned = selected(S, 0.25)
    assert (thinned.rate, thinned.window) == (5, 50)
    assert selected(S, 1.0) == S


def test_a_window_of_time_holds_as_many_events_as_come_in_it() -> None:
    assert held(rate=20, time=10) == 200
    assert Input(20, held(20, 10)) == Input(20, 200)


@pytest.mark.parametrize("results", [Steady(40.0), Growing(0.01, (10, 20)), Growing(0.001, (3, 4, 5))])
def test_the_time_to_some_results_is_when_they_are_there(results: Steady | Growing) -> None:
    for wanted in (1.0, 100.0, 12_345.0):
        assert results.outputs(results.time_to(wanted)) == pytest.approx(wanted)
    assert results.time_to(0) == 0


def test_what_never_matches_never_gets_there() -> None:
    assert Steady(0).time_to(1) == math.inf
    assert Growing(0, (10, 20)).time_to(1) == math.inf


def test_a_join_without_windows_overtakes_one_that_started_faster() -> None:
    """Fix a time and count the results, or fix the results and ask for the time: the winner depends on which."""
    steady, growing = Steady(40.0), Growing(0.01, (10, 20))
    assert steady.outputs(10) > growing.outputs(10)
    assert steady.outputs(30) < growing.outputs(30)
    assert steady.time_to(200) < growing.time_to(200)
    assert steady.time_to(2000) > growing.time_to(2000)
