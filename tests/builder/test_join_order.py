"""The planner of joins: the known plans, and a comparison with trying everything."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import combinations, permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from join_model import joined, multiway_cost, multiway_rate

from penstock.builder.join_cost import Input, arrival_cost, join_cost
from penstock.builder.join_order import (
    EXHAUSTIVE,
    InputStatistics,
    Tree,
    best_trees,
    choose,
    probe_order,
    probes_of,
    tree_text,
)

R, S, T = Input(10, 100), Input(20, 200), Input(5, 50)
GOLDEN = InputStatistics((R, S, T), {(0, 1): 0.01, (1, 2): 0.05}, ("R", "S", "T"), shared_key=False)

rates = st.floats(0.1, 100)
inputs = st.builds(Input, rates, st.floats(0.1, 1000), rates, rates, rates)


@st.composite
def statistics(draw: st.DrawFn, least: int = 2, most: int = 4) -> InputStatistics:
    chosen = tuple(draw(st.lists(inputs, min_size=least, max_size=most)))
    pairs = list(combinations(range(len(chosen)), 2))
    shares = draw(st.lists(st.floats(0.001, 1), min_size=len(pairs), max_size=len(pairs)))
    return InputStatistics(chosen, dict(zip(pairs, shares)), shared_key=draw(st.booleans()))


def every_tree(members: tuple[int, ...]) -> Iterator[Tree]:
    if len(members) == 1:
        yield members[0]
    for size in range(1, len(members)):
        for left in combinations(members, size):
            if members[0] in left:
                right = tuple(m for m in members if m not in left)
                yield from ((x, y) for x in every_tree(left) for y in every_tree(right))


def built(tree: Tree, known: InputStatistics) -> tuple[Input, float, frozenset[int]]:
    """A tree joined step by step: what it delivers, its cost, and its inputs."""
    if isinstance(tree, int):
        return known.inputs[tree], 0.0, frozenset([tree])
    left, a, x = built(tree[0], known)
    right, b, y = built(tree[1], known)
    return joined(left, right, known.selectivity(x, y)), a + b + join_cost(left, right), x | y


def test_the_known_plans_of_three_inputs() -> None:
    choice = choose(GOLDEN)
    assert choice.shape == ((0, 1), 2)
    assert choice.cost == pytest.approx(525)
    assert choice.output_rate == pytest.approx(150)
    assert choice.throughput == pytest.approx(0.2857, abs=1e-4)
    costs = {a.shape: a.cost for a in choice.alternatives}
    assert costs == {((0, 1), 2): pytest.approx(525), (0, (1, 2)): pytest.approx(945), "mjoin": pytest.approx(695)}


def test_the_estimate_says_what_was_compared() -> None:
    assert choose(GOLDEN).estimate == (
        "output rate 150; binary ((R ⋈ S) ⋈ T): cost 525, throughput 0.2857; mjoin: cost 695, throughput 0.2158; "
        "binary (R ⋈ (S ⋈ T)): cost 945, throughput 0.1587"
    )


@given(statistics())
def test_every_tree_delivers_what_the_planner_says(known: InputStatistics) -> None:
    choice = choose(known)
    for tree in every_tree(tuple(range(len(known.inputs)))):
        assert built(tree, known)[0].rate == pytest.approx(choice.output_rate)
    ways = [probes_of(known, i, order) for i, order in enumerate(choice.probes)]
    assert multiway_rate(known.inputs, ways) == pytest.approx(choice.output_rate)


@given(statistics())
def test_no_tree_is_cheaper_than_the_first_one_found(known: InputStatistics) -> None:
    everything = sorted(built(tree, known)[1] for tree in every_tree(tuple(range(len(known.inputs)))))
    found = best_trees(known, count=3)
    assert [cost for cost, _ in found] == pytest.approx(everything[:3])
    assert [built(tree, known)[1] for _, tree in found] == pytest.approx(everything[:3])


@given(statistics())
def test_no_probe_order_is_cheaper(known: InputStatistics) -> None:
    for i, source in enumerate(known.inputs):
        others = [j for j in range(len(known.inputs)) if j != i]
        best = min(arrival_cost(source, probes_of(known, i, order)) for order in permutations(others))
        assert arrival_cost(source, probes_of(known, i, probe_order(known, i))) == pytest.approx(best)


@given(statistics(least=3))
def test_the_choice_is_the_least_cost(known: InputStatistics) -> None:
    choice = choose(known)
    ways = [probes_of(known, i, order) for i, order in enumerate(choice.probes)]
    tree = min(built(t, known)[1] for t in every_tree(tuple(range(len(known.inputs)))))
    assert choice.cost == pytest.approx(min(tree, multiway_cost(known.inputs, ways)))
    assert (choice.shape == "mjoin") == (choice.alternatives[0].shape == "mjoin")


def test_the_most_selective_store_is_asked_first() -> None:
    windows = (10, 1000, 100, 10)
    known = InputStatistics(
        tuple(Input(1, w) for w in windows), dict.fromkeys([(0, 1), (0, 2), (0, 3)], 0.1), (), False
    )
    assert probe_order(known, 0) == (3, 2, 1)


def test_many_matches_early_speak_for_intermediate_results() -> None:
    """A slow third stream against a product of two fast ones: looking it up anew for every event is dear."""
    two_fast = InputStatistics(
        (Input(100, 1000), Input(100, 1000), Input(1, 10)), {(0, 1): 1e-5, (1, 2): 0.5}, shared_key=False
    )
    assert choose(two_fast).shape == ((0, 1), 2)


def test_what_is_dear_to_keep_speaks_for_one_join() -> None:
    pairs = dict.fromkeys(combinations(range(3), 2), 0.01)
    assert choose(InputStatistics((Input(10, 1000, store=10, match=1, invalidate=10),) * 3, pairs)).shape == "mjoin"
    assert choose(InputStatistics((Input(10, 1000, store=1, match=10, invalidate=1),) * 3, pairs)).shape == ((0, 1), 2)


def test_cross_products_are_avoided_while_there_is_another_way() -> None:
    """R and T are the smallest, but nothing is compared between them."""
    known = InputStatistics((Input(1, 1), Input(1000, 1000), Input(1, 1)), {(0, 1): 0.5, (1, 2): 0.5}, shared_key=False)
    assert all(tree != ((0, 2), 1) for _, tree in best_trees(known))
    unrelated = InputStatistics(known.inputs, {}, shared_key=False)
    assert best_trees(unrelated)[0][1] == ((0, 2), 1)


def test_bushy_trees_are_found() -> None:
    """Two selective pairs, joined by a weak predicate: both pairs first."""
    known = InputStatistics((Input(100, 100),) * 4, {(0, 1): 1e-4, (2, 3): 1e-4, (1, 2): 0.1}, shared_key=False)
    assert best_trees(known)[0][1] == ((0, 1), (2, 3))


def test_equal_plans_are_chosen_in_a_fixed_order() -> None:
    same = InputStatistics((Input(10, 100),) * 3, dict.fromkeys(combinations(range(3), 2), 0.01))
    assert [tree for _, tree in best_trees(same)] == [((0, 1), 2), ((0, 2), 1), (0, (1, 2))]
    assert choose(same).probes == ((1, 2), (0, 2), (0, 1))
    two = choose(InputStatistics((R, S), {(0, 1): 0.01}))
    assert two.alternatives[0].cost == pytest.approx(two.alternatives[1].cost)
    assert two.shape == "mjoin" and two.best_tree == (0, 1)


@given(st.lists(st.integers(1, 50), min_size=2, max_size=5))
def test_with_one_key_equal_to_one_is_equal_to_all(domains: list[int]) -> None:
    """Input i has each of the keys 1…dᵢ equally often: the share of matches can be counted."""
    pairs = {(i, j): 1 / max(domains[i], domains[j]) for i, j in combinations(range(len(domains)), 2)}
    known = InputStatistics((R,) * len(domains), pairs)
    counted = min(domains) / math.prod(domains)
    assert known.share(frozenset(range(len(domains)))) == pytest.approx(counted)


def test_with_one_key_a_pair_that_was_not_given_is_as_its_best_way_round() -> None:
    known = InputStatistics((R, R, R, R), {(0, 1): 0.1, (1, 2): 0.05, (0, 3): 0.01})
    assert known.share(frozenset([0, 2])) == 0.05
    assert known.share(frozenset([2, 3])) == 0.01
    assert known.share(frozenset([0, 1, 2])) == pytest.approx(0.1 * 0.05)


def test_a_share_of_a_larger_set_that_was_counted_counts() -> None:
    known = InputStatistics((R, S, T), {(0, 1): 0.1, (1, 2): 0.1, (0, 2): 0.1, (0, 1, 2): 0.0})
    assert known.share(frozenset([0, 1, 2])) == 0
    assert choose(known).output_rate == 0


def test_many_inputs_are_planned_at_once_and_in_time() -> None:
    count = EXHAUSTIVE + 6
    known = InputStatistics(
        tuple(Input(1 + i, 10 + i) for i in range(count)), {(i, i + 1): 0.1 for i in range(count - 1)}, shared_key=False
    )
    choice = choose(known)
    assert sorted(choice.probes[3]) == [i for i in range(count) if i != 3]
    assert built(choice.best_tree, known)[2] == frozenset(range(count))
    cost = next(a.cost for a in choice.alternatives if a.shape != "mjoin")
    assert built(choice.best_tree, known)[1] == pytest.approx(cost)


def test_a_tree_reads_as_a_formula() -> None:
    assert tree_text(((0, 1), 2), GOLDEN) == "((R ⋈ S) ⋈ T)"
    assert tree_text((0, (1, 2)), InputStatistics((R, S, T))) == "(0 ⋈ (1 ⋈ 2))"
