"""What others do: each saves what it must, and no more; which inputs lose is what tells them apart."""

from __future__ import annotations

import random

import pytest
from networks import random_network

from penstock.plan.place import Place
from penstock.shedding.admission_control import AdmissionControl
from penstock.shedding.network import Network, Station, Terminus

THREE = Network(
    tuple(s for k, c in enumerate((1.0, 2.0, 7.0)) for s in (Station(f"i{k}"), Station.of(f"s{k}", f"i{k}", c))),
    tuple(Terminus(f"s{k}", f"s{k}") for k in range(3)),
)
RATES = {"i0": 10.0, "i1": 10.0, "i2": 10.0}


@pytest.mark.parametrize("policy", AdmissionControl)
@pytest.mark.parametrize("seed", range(25))
def test_what_is_asked_for_is_saved(policy: AdmissionControl, seed: int) -> None:
    rng = random.Random(seed)
    network = random_network(rng)
    rates = {s: rng.random() * 20 for s in network.sources}
    reading = sum(rates[s] * network.by_id[s].reading for s in rates)
    work = network.load(rates) - reading
    for excess in (-5.0, 0.0, 0.3 * work, 0.9 * work, 2 * work):
        drops = policy.drops(network, rates, excess, seed=seed)
        assert all(0 <= share <= 1 + 1e-12 for share in drops.values())
        left = network.load({s: r * (1 - drops[s]) for s, r in rates.items()})
        left += sum(rates[s] * drops[s] * network.by_id[s].reading for s in rates)
        assert network.load(rates) - left == pytest.approx(min(max(excess, 0), work), abs=1e-6)


def test_who_loses() -> None:
    by = {p: p.drops(THREE, RATES, 50) for p in AdmissionControl}
    assert by[AdmissionControl.TOP_COST] == {"i0": 0, "i1": 0, "i2": pytest.approx(50 / 70)}
    assert by[AdmissionControl.UNIFORM] == {"i0": 1, "i1": 1, "i2": pytest.approx(20 / 70)}
    assert by[AdmissionControl.UNIFORM_COST] == dict.fromkeys(RATES, pytest.approx(0.5))


def test_chance_is_of_the_seed_alone_and_reaches_every_input() -> None:
    chosen = [AdmissionControl.RANDOM.drops(THREE, RATES, 5, seed=s) for s in range(40)]
    assert chosen == [AdmissionControl.RANDOM.drops(THREE, RATES, 5, seed=s) for s in range(40)]
    assert {name for drops in chosen for name, share in drops.items() if share} == set(RATES)


def test_they_ask_nothing_about_outputs() -> None:
    """A shared input loses for all of its outputs, however little one of them is worth."""
    shared = Network((Station("in"), Station.of("a", "in", 1), Station.of("b", "in", 9)),
                     (Terminus("a", "a"), Terminus("b", "b")))  # fmt: skip
    for policy in AdmissionControl:
        (share,) = policy.drops(shared, {"in": 1}, 5).values()
        assert shared.rates({"in": 1 - share})[Place("a")] == shared.rates({"in": 1 - share})[Place("b")] == 0.5
