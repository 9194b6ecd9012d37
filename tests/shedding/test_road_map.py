"""Plans made ahead: where drops stand, what they save, in which order, and the way back."""

from __future__ import annotations

import itertools
import json
import random
from itertools import pairwise

import pytest
from networks import random_network

from penstock.errors import UserError
from penstock.plan.place import Place
from penstock.shedding.graph import Graph
from penstock.shedding.network import Intake, Network, Station, Terminus
from penstock.shedding.qos import QoS
from penstock.shedding.road_map import RoadMap, drift
from penstock.shedding.terms import DropLocations, Terms

#: Figure 3.3 of the source: op1 with the branches B and D; beside it a query of its own.
SPLIT = Network(
    (
        Station("A"),
        Station("F"),
        Station.of("op1", "A", 4, 0.5),
        Station.of("B", "op1", 6),
        Station.of("D", "op1", 10),
        Station.of("f", "F", 3),
    ),
    (Terminus("B", "B"), Terminus("D", "D"), Terminus("f", "f")),
)


def test_drop_locations_are_sources_and_the_branches_of_splits() -> None:
    assert set(DropLocations(SPLIT).places) == {"A", "F", "B#0", "D#0"}


def test_what_a_chain_precedes_is_pushed_to_the_source_and_what_meets_again_is_no_split() -> None:
    chain = Network((Station("in"), Station.of("a", "in", 1), Station.of("b", "a", 1)), (Terminus("out", "b"),))
    assert set(DropLocations(chain).places) == {"in"}
    meeting = (Station("in"), Station.of("a", "in", 1), Station.of("b", "in", 1))
    united = Network((*meeting, Station("u", (Intake("a", 1), Intake("b", 1)))), (Terminus("u", "u"),))
    assert set(DropLocations(united).places) == {"in"}


def test_theorem_2_a_drop_at_the_input_may_be_smaller() -> None:
    c1, s1, c2, rate, excess = 3.0, 0.5, 8.0, 10.0, 14.0
    network = Network((Station("in"), Station.of("a", "in", c1, s1), Station.of("b", "a", c2)), (Terminus("b", "b"),))
    full = network.load({"in": rate})
    early, late = excess / (rate * (c1 + s1 * c2)), excess / (rate * s1 * c2)
    assert full - network.load({"in": rate}, {Place.at("a", 0): early}) == pytest.approx(excess)
    assert full - network.load({"in": rate}, {Place.at("b", 0): late}) == pytest.approx(excess)
    assert early < late


@pytest.mark.parametrize(("c1", "early"), [(1.0, False), (20.0, True)])
def test_theorem_3_the_input_wins_if_what_is_shared_costs_more(c1: float, early: bool) -> None:
    """All of branch b is to be saved. At the input that costs both outputs, behind the split b alone."""
    s1, c2, c3 = 0.5, 30.0, 2.0
    network = Network(
        (Station("in"), Station.of("a", "in", c1, s1), Station.of("b", "a", c2), Station.of("c", "a", c3)),
        (Terminus("b", "b"), Terminus("c", "c")),
    )
    roads = RoadMap.build(network, {"in": 1}, {"b": Terms(), "c": Terms()}, step=0.01)
    plan = roads.rows[roads.first(s1 * c2, {"in": 1})]
    assert early == (s1 * c2 < c1 + s1 * c3)
    assert (plan.delivered["c"] < 1) == early


def test_theorem_4_what_all_branches_drop_belongs_in_front_of_the_split() -> None:
    places = DropLocations(SPLIT)
    assert places.drops({"B": 0.6, "D": 0.6}) == {"A": pytest.approx(0.4)}
    both = places.coefficient(Place.at("B", 0)) + places.coefficient(Place.at("D", 0))
    assert places.coefficient(Place("A")) > 0.5 * both


def test_a_drop_pushed_up_to_others_leaves_totals_as_they_are() -> None:
    """p_B' = 1 - (1 - p_B) / (1 - p_A), and nothing of what is subsumed."""
    places = DropLocations(SPLIT)
    for p_a, p_b in ((0.2, 0.5), (0.5, 0.2), (0.3, 0.3)):
        drops = places.drops({"B": 1 - max(p_a, p_b), "D": 1 - p_a})
        assert drops["A"] == pytest.approx(p_a)
        assert drops.get("B#0", 0) == pytest.approx(0 if p_b <= p_a else 1 - (1 - p_b) / (1 - p_a))


def test_steps_of_a_tenth() -> None:
    network = Network((Station("in"), Station.of("a", "in", 1)), (Terminus("a", "a"),))
    roads = RoadMap.build(network, {"in": 1}, {"a": Terms()}, step=0.1)
    shares = [row.delivered["a"] for row in roads.rows]
    assert [1 - b / a for a, b in pairwise(shares[:4])] == pytest.approx([0.1, 1 - 80 / 90, 1 - 70 / 80])


def test_ratios_rise_along_the_textbook_graph() -> None:
    loss = Graph(((100, 1), (50, 0.7), (0, 0)))
    network = Network((Station("in"), Station.of("a", "in", 2)), (Terminus("a", "a"),))
    roads = RoadMap.build(network, {"in": 1}, {"a": Terms(loss)}, step=0.25)
    lost = [b.lost - a.lost for a, b in pairwise(roads.rows)]
    assert lost == pytest.approx([0.15, 0.15, 0.35, 0.35])


def concave(rng: random.Random) -> Graph:
    """Breaks at multiples of a quarter, so that plans on that grid are breaks of the optimum."""
    lost = sorted(rng.random() + 0.01 for _ in range(4))
    left = [1 - sum(lost[: k + 1]) / sum(lost) for k in range(4)]
    return Graph(((100, 1), *((100 - 25 * (k + 1), max(0.0, u)) for k, u in enumerate(left))))


@pytest.mark.parametrize("seed", range(40))
def test_the_greedy_order_is_optimal_for_outputs_apart(seed: int) -> None:
    """Against all plans in steps of a quarter: none saves as much and loses less."""
    rng = random.Random(seed)
    n = rng.randint(2, 4)
    stations = [s for k in range(n) for s in (Station(f"in{k}"), Station.of(f"s{k}", f"in{k}", 1 + 9 * rng.random()))]
    network = Network(tuple(stations), tuple(Terminus(f"o{k}", f"s{k}") for k in range(n)))
    terms = {f"o{k}": Terms(concave(rng), weight=0.1 + rng.random()) for k in range(n)}
    assert_none_is_better(network, terms, {s: rng.random() + 0.1 for s in network.sources}, 0.25)


@pytest.mark.parametrize("seed", range(40))
def test_the_greedy_order_is_optimal_for_branches_of_one_split(seed: int) -> None:
    """Against all plans in steps of a tenth."""
    rng = random.Random(seed)
    n = rng.randint(2, 3)
    stations = [Station("in"), Station.of("op", "in", 9 * rng.random(), rng.random())]
    stations += [Station.of(f"s{k}", "op", 9 * rng.random()) for k in range(n)]
    network = Network(tuple(stations), tuple(Terminus(f"s{k}", f"s{k}") for k in range(n)))
    assert_none_is_better(network, {f"s{k}": Terms(weight=0.05 + rng.random()) for k in range(n)}, {"in": 1}, 0.1)


def assert_none_is_better(network: Network, terms: dict[str, Terms], rates: dict[str, float], step: float) -> None:
    places = DropLocations(network)
    tried = []
    for shares in itertools.product([k * step for k in range(round(1 / step) + 1)], repeat=len(terms)):
        plan = dict(zip(terms, shares, strict=True))
        saved = sum(seconds * rates[source] for source, seconds in places.savings(plan).items())
        tried.append((saved, sum(t.lost(plan[o]) for o, t in terms.items())))
    for row in RoadMap.build(network, rates, terms, step=step).rows:
        best = min(lost for saved, lost in tried if saved >= row.saves(rates) - 1e-9)
        assert row.lost <= best + 1e-9, row


@pytest.mark.parametrize("seed", range(60))
def test_rows_of_random_networks(seed: int) -> None:
    rng = random.Random(seed)
    network = random_network(rng)
    names = [o.name for o in network.outputs]
    gaps = {n: rng.choice([None, 1, 3]) for n in names}
    terms = {n: Terms.of(QoS(gap=gaps[n], weight=0.1 + rng.random())) for n in names if rng.random() < 0.8}
    rates = {s: 1 + rng.random() * 9 for s in network.sources}
    cost = rng.choice([0.0, 0.02])
    places = DropLocations(network)
    off = tuple(n for n in terms if gaps[n])
    step = max(0.2, 1.01 * places.least_step(cost))
    if step > 1:
        with pytest.raises(UserError, match="costs more than it saves"):
            RoadMap.build(network, rates, terms, step=1, drop_cost=cost)
        return
    roads = RoadMap.build(network, rates, terms, step=step, drop_cost=cost, off=off)
    first, last = roads.rows[0], roads.rows[-1]
    assert not first.drops and first.lost == 0 and set(first.delivered.values()) == {1.0}
    for above, row in pairwise(roads.rows):
        assert row.saves(rates) > above.saves(rates)
        assert all(row.delivered[n] <= above.delivered[n] for n in names)
        assert row.lost >= above.lost
    for row in roads.rows:
        # What is promised is what the network does with these drops, at any rates.
        other = {s: rng.random() * 50 for s in rates}
        standing = {p: share for p, share in row.drops.items() if p not in network.by_id}
        admitted = {s: r * (1 - row.drops.get(Place(s), 0)) for s, r in other.items()}
        reading = sum(network.by_id[s].reading * (other[s] - admitted[s]) for s in other)
        looking = cost * sum(other[s] for s in other if Place(s) in row.drops)
        with_drops = network.load(admitted, standing, drop_cost=cost) + reading + looking
        assert network.load(other) - with_drops == pytest.approx(row.saves(other), abs=1e-6)
        # And each output delivers what it says.
        full, now = network.rates(other), network.rates(admitted, standing)
        for output in network.outputs:
            if full[output.arc] > 0:
                assert now[output.arc] / full[output.arc] == pytest.approx(row.delivered[output.name], abs=1e-9)
        for name in terms:
            assert row.delivered[name] >= terms[name].least - 1e-9 or name in row.off
        assert all(row.delivered[n] == 1 for n in names if n not in terms)
    assert last.off <= set(off)
    assert RoadMap.from_json(json.loads(json.dumps(roads.to_json()))) == roads
    walk_back(roads)


def walk_back(roads: RoadMap) -> None:
    """Down row by row and up again, each time only by the changes: what stands is what the row says, exactly."""
    standing: dict[Place, float] = {}
    way = [*range(len(roads.rows)), *reversed(range(len(roads.rows) - 1))]
    for here, there in pairwise(way):
        for place, share in roads.changes(here, there).items():
            standing[place] = share
            if not share:
                del standing[place]
        assert standing == roads.rows[there].drops
    assert not standing


def test_the_first_row_that_saves_enough() -> None:
    roads = RoadMap.build(SPLIT, {"A": 10, "F": 10}, {"B": Terms(), "D": Terms(), "f": Terms()}, step=0.1)
    for rates in ({"A": 10.0, "F": 10.0}, {"A": 1.0, "F": 30.0}, {"A": 5.0}):
        most = roads.rows[-1].saves(rates)
        for excess in (0.1 * most, 0.5 * most, most):
            row = roads.first(excess, rates)
            assert roads.rows[row - 1].saves(rates) < excess <= roads.rows[row].saves(rates) + 1e-6
        assert roads.first(-5, rates) == 0 and roads.first(2 * most, rates) == len(roads.rows) - 1


def test_what_cannot_keep_its_gap_is_switched_off_whole_the_costliest_first() -> None:
    gap = Terms.of(QoS(gap=1))
    roads = RoadMap.build(SPLIT, {"A": 1, "F": 1}, {"B": gap, "D": gap, "f": gap}, step=0.5, off=("B", "D", "f"))
    partly = [row for row in roads.rows if not row.off]
    assert partly[-1].delivered == {"B": 0.5, "D": 0.5, "f": 0.5}
    off = [set(row.off) for row in roads.rows[len(partly) :]]
    assert off == [{"D"}, {"D", "B"}, {"D", "B", "f"}]
    assert roads.rows[-1].saves({"A": 1, "F": 1}) == pytest.approx(SPLIT.load({"A": 1, "F": 1}))


def test_a_drop_that_costs_more_than_it_saves_is_never_chosen() -> None:
    network = Network((Station("in"), Station.of("a", "in", 1), Station.of("b", "in", 10)),
                      (Terminus("a", "a"), Terminus("b", "b")))  # fmt: skip
    with pytest.raises(UserError, match=r"a step of 0.1"):
        RoadMap.build(network, {"in": 1}, {"a": Terms(), "b": Terms()}, step=0.1, drop_cost=0.1)
    roads = RoadMap.build(network, {"in": 1}, {"a": Terms(), "b": Terms()}, step=0.11, drop_cost=0.1)
    saved = [row.saves({"in": 1}) for row in roads.rows]
    assert all(b > a for a, b in pairwise(saved))


def test_a_short_piece_of_a_graph_that_does_not_pay_for_its_drop_is_passed_over() -> None:
    network = Network((Station("in"), Station.of("a", "in", 1)), (Terminus("a", "a"),))
    short = Terms(Graph(((100, 1), (99, 0.9999), (0, 0))))
    roads = RoadMap.build(network, {"in": 1}, {"a": short}, step=0.2, drop_cost=0.1)
    assert [row.delivered["a"] for row in roads.rows[:2]] == [1, 0.6]
    assert roads.rows[1].saves({"in": 1}) == pytest.approx(0.3)
    assert roads.rows[-1].delivered["a"] == 0


def test_how_far_costs_have_drifted() -> None:
    other = Network((Station("in"), Station.of("a", "in", 1)), (Terminus("a", "a"),))
    assert drift(SPLIT, SPLIT) == 0 and drift(SPLIT, other) == float("inf")
