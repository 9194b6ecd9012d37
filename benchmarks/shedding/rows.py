"""Experiments with single rows: what is lost by chance, by value, and by shutting the door (E1 to E5)."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import numpy as np

from benchmarks.shedding.server import HEADROOM, Mask, Numbers, arrivals, finished
from penstock.plan.place import Place
from penstock.shedding.admission_control import AdmissionControl
from penstock.shedding.histogram import Histogram
from penstock.shedding.network import Intake, Network, Station, Terminus
from penstock.shedding.qos import QoS
from penstock.shedding.road_map import RoadMap
from penstock.shedding.terms import Terms
from penstock.shedding.value import ValueGraph
from penstock.shedding.worthless import loss_graph

POLICIES = ("semantic", "random", *(p.value for p in AdmissionControl))
SECONDS = 12.0
STEPS = 0.05


@dataclass(frozen=True)
class Workload:
    """A network of filters over values from 0 to `top`, and what values are worth at each output.

    `above` is by station what its filter lets through: values greater than this. Below `line` a row is worth the
    utility of its output, from there on 1.
    """

    network: Network
    above: Mapping[str, float]
    line: float
    utility: Mapping[str, float]
    rates: Mapping[str, float]
    values: Mapping[str, tuple[float, float]]
    top: float = 100.0

    def sampled(self, source: str, n: int, rng: np.random.Generator) -> Numbers:
        low, high = self.values[source]
        return rng.uniform(low, high, n)


def zipf(rng: random.Random, theta: float) -> float:
    """A utility from 0 to 1; the greater theta, the rarer large ones are."""
    steps = range(11)
    return rng.choices([k / 10 for k in steps], [1 / (k + 1) ** theta for k in steps])[0]


def filters(seed: int, theta: float) -> Workload:
    """Four inputs, each behind a shared filter that splits; two branches meet in a union (E1 to E3)."""
    rng = random.Random(seed)
    stations = [Station(f"i{k}") for k in range(4)]
    above: dict[str, float] = {}
    outputs = []

    def passing(name: str, below: str, least: float, limit: float, cost: float) -> None:
        above[name] = rng.uniform(least, limit)
        stations.append(Station.of(name, below, cost, (100 - above[name]) / (100 - least)))

    for k in range(4):
        passing(f"f{k}", f"i{k}", 0, 15, rng.uniform(1, 3))
        for b in range(rng.choice([2, 3])):
            passing(f"q{k}{b}", f"f{k}", above[f"f{k}"], 40, rng.uniform(1, 6))
            outputs.append(Terminus(f"q{k}{b}", f"q{k}{b}"))
    for k in (0, 1):
        passing(f"u{k}", f"f{k}", above[f"f{k}"], 40, rng.uniform(1, 3))
    stations.append(Station("union", (Intake("u0", 2), Intake("u1", 2))))
    outputs.append(Terminus("union", "union"))
    network = Network(tuple(stations), tuple(outputs))
    utility = {o.name: zipf(rng, theta) for o in outputs}
    return _scaled(Workload(network, above, 50.0, utility, {f"i{k}": rng.uniform(60, 200) for k in range(4)},
                            {f"i{k}": (0.0, 100.0) for k in range(4)}))  # fmt: skip


def twenty(seed: int, theta: float) -> Workload:
    """Twenty queries alike that share an operator (E4)."""
    rng = random.Random(seed)
    branches = [Station.of(f"q{k}", "shared", 2.0) for k in range(20)]
    network = Network((Station("in"), Station.of("shared", "in", 10.0), *branches),
                      tuple(Terminus(b.id, b.id) for b in branches))  # fmt: skip
    return _scaled(Workload(network, {}, 75.0, {b.id: zipf(rng, theta) for b in branches}, {"in": 200.0},
                            {"in": (0.0, 100.0)}))  # fmt: skip


def battalion(seed: int) -> Workload:
    """Friends and enemies on the move, united, and four queries on where they are (E5)."""
    asked = {"analysis": 0.0, "enemy tanks": 0.0, "enemy aircraft": 0.0, "across the line": 350.0}
    shares = {"analysis": 1.0, "enemy tanks": 0.3, "enemy aircraft": 0.15, "across the line": 0.4}
    costs = {"analysis": 4.0, "enemy tanks": 3.0, "enemy aircraft": 3.0, "across the line": 2.0}
    network = Network(
        (Station("friends"), Station("enemies"), Station("union", (Intake("friends", 1), Intake("enemies", 1))),
         *(Station.of(name, "union", costs[name], shares[name]) for name in asked)),
        tuple(Terminus(name, name) for name in asked),
    )  # fmt: skip
    above = {name: least for name, least in asked.items() if least}
    return _scaled(Workload(network, above, 350.0, dict.fromkeys(asked, 0.2), {"friends": 250.0, "enemies": 150.0},
                            {"friends": (0.0, 380.0), "enemies": (320.0, 500.0)}, top=500.0))  # fmt: skip


def _scaled(work: Workload) -> Workload:
    """With costs so that the machine is just full."""
    load = work.network.load(work.rates)
    stations = tuple(
        Station(s.id, tuple(Intake(i.of, i.cost / load, i.selectivity) for i in s.intakes))
        for s in work.network.stations
    )
    return Workload(Network(stations, work.network.outputs), work.above, work.line, work.utility, work.rates,
                    work.values, work.top)  # fmt: skip


def simulated(
    work: Workload, rates: Mapping[str, float], drops: Mapping[Place, float], seed: int, by_value: bool
) -> tuple[dict[str, Numbers], dict[str, Numbers]]:
    """Values that come out at each output in time, and those that would have with nothing dropped and no load."""
    rng = np.random.default_rng(seed)
    source_times, source_values, origin = [], [], []
    for source in work.network.sources:
        at = arrivals(rates[source], SECONDS, rng)
        source_times.append(at)
        source_values.append(work.sampled(source, len(at), rng))
        origin += [source] * len(at)
    times, values, came = np.concatenate(source_times), np.concatenate(source_values), np.array(origin)
    order = np.argsort(times)
    times, values, came = times[order], values[order], came[order]
    with_drops = _through(work, values, came, drops, rng, by_value)
    done = finished(times, with_drops[1]) <= SECONDS * 1.02
    full = _through(work, values, came, {}, np.random.default_rng(seed + 1), by_value)
    return ({o: values[m & done] for o, m in with_drops[0].items()}, {o: values[m] for o, m in full[0].items()})


def _through(
    work: Workload, values: Numbers, came: Any, drops: Mapping[Place, float], rng: np.random.Generator, by_value: bool
) -> tuple[dict[str, Mask], Numbers]:
    """Which rows come to each output, and what each row costs."""
    network, costs = work.network, np.zeros(len(values))

    def left(rows: Mask, place: str) -> Mask:
        share = drops.get(Place(place), 0.0)
        if not share or not rows.any():
            return rows
        if by_value:  # what is worth least lies at the low end of all graphs here
            return np.asarray(rows & (values >= np.quantile(values[rows], share)))
        return np.asarray(rows & (rng.random(len(values)) >= share))

    arcs: dict[Place, Mask] = {}
    found: dict[str, Mask] = {}
    for station in network.stations:
        if station.intakes:
            come = np.zeros(len(values), bool)
            for port, intake in enumerate(station.intakes):
                rows = arcs[Place.at(station.id, port)]
                costs += rows * intake.cost
                come |= rows
            if station.id in work.above:
                come = come & (values > work.above[station.id])
            elif len(station.intakes) == 1 and station.intakes[0].selectivity < 1:
                come = come & (
                    np.random.default_rng(len(station.id)).random(len(values)) < station.intakes[0].selectivity
                )
        else:
            come = left(came == station.id, station.id)
        for arc in network.out[station.id]:
            arcs[arc] = left(come, arc)
    for output in network.outputs:
        found[output.name] = arcs[output.arc]
    return found, costs


def utilities(work: Workload, seed: int) -> tuple[dict[str, Terms], dict[str, Any]]:
    """What loss costs at each output, from what its values are worth and how often they occur."""
    _, full = simulated(work, work.rates, {}, seed, False)
    terms, graphs = {}, {}
    for name, values in full.items():
        worth = ValueGraph.of({"x": [((0, work.line), work.utility[name]), ((work.line, work.top), 1)]})
        below = int((values <= work.line).sum())
        histogram = Histogram.of({(0.0, work.line): below, (work.line, work.top): len(values) - below})
        graphs[name] = loss_graph(worth, histogram).concave()
        terms[name] = Terms.of(QoS(), graphs[name])
    return terms, graphs


def losses(work: Workload, factor: float, policy: str, seed: int) -> tuple[float, float]:
    """Percent of tuple utility and of value utility that is lost at so many times the rates."""
    terms, graphs = utilities(work, seed)
    rates = {s: factor * r for s, r in work.rates.items()}
    excess = work.network.load(rates) - HEADROOM
    drops: Mapping[Place, float]
    if policy in ("semantic", "random"):
        roads = RoadMap.build(work.network, rates, terms, step=STEPS)
        drops = roads.rows[roads.first(excess, rates)].drops
    else:
        inputs = AdmissionControl(policy).drops(work.network, rates, excess, seed=seed)
        drops = {Place(s): share for s, share in inputs.items()}
    got, full = simulated(work, rates, drops, seed, policy == "semantic")
    lost, worthless = [], []
    for name, all_values in full.items():
        if len(all_values):
            lost.append(1 - graphs[name].at(100 * len(got[name]) / len(all_values)))
            worth = [float(np.where(v <= work.line, work.utility[name], 1).sum()) for v in (got[name], all_values)]
            worthless.append(1 - worth[0] / worth[1] if worth[1] else 0.0)
    return 100 * fmean(lost), 100 * fmean(worthless)


def run(quick: bool) -> dict[str, Any]:
    """E1 to E5."""
    seeds = range(1 if quick else 3)
    factors = (1.0, 1.25, 1.5, 2.0, 3.0, 4.0)

    def curve(make: Any, policy: str, measure: int, at: Sequence[float] = factors) -> list[float]:
        return [fmean(losses(make(s), f, policy, s)[measure] for s in seeds) for f in at]

    both = {p: [[fmean(x) for x in zip(*(losses(filters(s, 1.0), f, p, s) for s in seeds), strict=True)]
                for f in factors] for p in POLICIES}  # fmt: skip
    skews, ratios = (0.0, 0.5, 1.0, 2.0), {}
    for factor in (1.25, 1.5, 2.0):
        found = []
        for theta in skews:
            make = lambda s, theta=theta: filters(s, theta)  # noqa: E731
            by = [curve(make, p, 1, (factor,))[0] for p in ("random", "semantic")]
            found.append(by[0] / by[1] if by[1] else 0.0)
        ratios[str(factor)] = found
    shared = {}
    for theta in (0.5, 1.0, 2.0):
        make = lambda s, theta=theta: twenty(s, theta)  # noqa: E731
        doors, ls = (curve(make, p, 0) for p in ("input-uniform", "random"))
        shared[str(theta)] = [a / b if b > 0.5 else None for a, b in zip(doors, ls, strict=True)]
    movers = {p: curve(battalion, p, 1) for p in ("semantic", "random", "input-uniform")}
    return {
        "factors": factors,
        "E1": {p: [x[0] for x in c] for p, c in both.items()},
        "E2": {p: [x[1] for x in c] for p, c in both.items()},
        "E3": {"skews": skews, "ratio": ratios},
        "E4": shared,
        "E5": movers,
    }
