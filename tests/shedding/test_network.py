"""What a query costs: the golden network, shared stations charged once, and drops that save what they should."""

from __future__ import annotations

import random

import pytest
from networks import random_network

from penstock.errors import UserError
from penstock.plan.place import Place
from penstock.shedding.capacity import Capacity, Demand
from penstock.shedding.network import Intake, Network, Station, Terminus

#: I1 → op1 → { op2 → op3 → O1; op4 → u; op5 → u }, I2 → op6 → u → O2
GOLDEN = Network(
    (
        Station("I1"),
        Station("I2"),
        Station.of("op1", "I1", 10, 0.5),
        Station.of("op2", "op1", 10, 0.8),
        Station.of("op3", "op2", 5),
        Station.of("op4", "op1", 5, 0.9),
        Station.of("op5", "op1", 5, 0.9),
        Station.of("op6", "I2", 15, 0.75),
        Station("u", (Intake("op4", 5), Intake("op5", 5), Intake("op6", 5))),
    ),
    (Terminus("O1", "op3"), Terminus("O2", "u")),
)


def test_the_golden_coefficients() -> None:
    assert GOLDEN.coefficients[Place.at("op1", 0)] == pytest.approx(26.5)
    assert GOLDEN.coefficients[Place.at("op6", 0)] == pytest.approx(18.75)
    assert GOLDEN.load({"I1": 10, "I2": 20}) == pytest.approx(640)


def test_outputs_that_are_reached() -> None:
    assert GOLDEN.reached[Place.at("op1", 0)] == ("O1", "O2")
    assert GOLDEN.reached[Place.at("op4", 0)] == ("O2",)
    assert GOLDEN.exits == {Place.at("O1", 0): "O1", Place.at("O2", 0): "O2"}


def test_a_chain_is_the_sum_of_products() -> None:
    steps = [(3.0, 0.5), (8.0, 0.25), (16.0, 1.0)]
    network = Network(
        (Station("in"), *map(Station.of, "abc", ("in", "a", "b"), *zip(*steps, strict=True))), (Terminus("c", "c"),)
    )
    assert network.coefficients[Place.at("a", 0)] == 3 + 0.5 * 8 + 0.5 * 0.25 * 16
    assert network.out["c"] == (Place("c"),)


@pytest.mark.parametrize("seed", range(60))
def test_coefficients_and_rates_tell_the_same_load(seed: int) -> None:
    rng = random.Random(seed)
    network = random_network(rng)
    arriving = {s: rng.random() * 100 for s in network.sources}
    reading = sum(arriving[s] * network.by_id[s].reading for s in network.sources)
    by_coefficient = sum(arriving[s] * network.coefficients[a] for s in network.sources for a in network.out[s])
    assert network.load(arriving) == pytest.approx(reading + by_coefficient)


@pytest.mark.parametrize("seed", range(60))
def test_a_drop_saves_its_rate_times_what_follows_less_its_cost(seed: int) -> None:
    rng = random.Random(seed)
    network = random_network(rng)
    arriving = {s: 1 + rng.random() * 100 for s in network.sources}
    arc, share, cost = rng.choice(list(network.tails)), rng.choice([0.1, 0.5, 1.0]), rng.random()
    rate = network.rates(arriving)[arc]
    gain = rate * (share * network.coefficients[arc] - cost)
    saved = network.load(arriving) - network.load(arriving, {arc: share}, drop_cost=cost)
    assert saved == pytest.approx(gain, abs=1e-9)


def test_what_waits_and_what_epochs_cost() -> None:
    demand = Demand(GOLDEN, {"I1": 10, "I2": 20}, {"I1": 4, Place.at("u", 1): 10}, melt_rate=0.5)
    assert demand.melting == pytest.approx(0.5 * (4 * 26.5 + 10 * 5))
    capacity = Capacity(cores=800, headroom=0.75, epoch_cost=10, epochs=6)
    assert capacity.free == 540
    assert demand.excess(capacity) == pytest.approx(640 + 78 - 540)
    assert Capacity(cores=1, epoch_cost=1, epochs=2).free == 0


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda: Network((Station("a"), Station("a")), ()), "two stations are called 'a'"),
        (lambda: Network((Station.of("a", "b", 1), Station("b")), ()), "reads 'b', which is not before it"),
        (lambda: Network((Station("a"), Station.of("b", "a", -1)), ()), "cost -1"),
        (lambda: Network((Station("a"),), (Terminus("o", "b"),)), "output 'o' is of 'b'"),
        (lambda: GOLDEN.load({"I3": 1}), "no source 'I3'"),
        (lambda: Demand(GOLDEN, {}, {"op9": 1}).melting, "nothing waits at 'op9'"),
        (lambda: Capacity(cores=0), "0 cores"),
        (lambda: Capacity(cores=2, headroom=1.5), "headroom 1.5"),
    ],
)
def test_what_does_not_fit_is_refused(made: object, message: str) -> None:
    with pytest.raises(UserError, match=message):
        made()  # type: ignore[operator]
