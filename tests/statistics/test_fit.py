"""Costs per row are found again from sums over epochs, and the statistics of a run stay small."""

from __future__ import annotations

import itertools
import json

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from penstock.statistics.figures import Backlog, EpochFigures
from penstock.statistics.fit import CostFit, non_negative
from penstock.statistics.measured import RunStatistics


@given(st.integers(0, 10_000), st.integers(1, 4), st.integers(5, 20))
def test_no_other_costs_of_at_least_nothing_fit_better(seed: int, unknowns: int, epochs: int) -> None:
    random = np.random.default_rng(seed)
    rows, seconds = random.uniform(0, 10, (epochs, unknowns)), random.uniform(-1, 5, epochs)
    found = non_negative(rows.T @ rows, rows.T @ seconds)
    assert (found >= 0).all()
    # The best of all ways to let some of them cost something: there are few enough to try them all.
    tried = [np.zeros(unknowns)]
    for some in itertools.chain.from_iterable(itertools.combinations(range(unknowns), n) for n in range(unknowns + 1)):
        x = np.zeros(unknowns)
        if some:
            x[list(some)] = np.linalg.lstsq(rows[:, some], seconds, rcond=None)[0]
        if (x >= 0).all():
            tried.append(x)
    best = min(float(((rows @ x - seconds) ** 2).sum()) for x in tried)
    assert float(((rows @ found - seconds) ** 2).sum()) <= best + 1e-6


@given(st.lists(st.floats(0, 0.01), min_size=1, max_size=5), st.floats(0, 1), st.integers(0, 999))
def test_costs_of_fused_operators_are_told_apart(costs: list[float], fixed: float, seed: int) -> None:
    random = np.random.default_rng(seed)
    fit = CostFit()
    for _ in range(3 * len(costs) + 4):
        rows = {f"op-{i}": float(n) for i, n in enumerate(random.integers(100, 10_000, len(costs)))}
        fit = fit.with_epoch(rows, fixed + sum(c * n for c, n in zip(costs, rows.values(), strict=True)))
    fit = CostFit.from_json(json.loads(json.dumps(fit.to_json())))
    found = fit.costs
    np.testing.assert_allclose([found[f"op-{i}"] for i in range(len(costs))], costs, atol=2e-5)
    np.testing.assert_allclose(found[""], fixed, atol=0.05)


def test_statistics_do_not_grow_with_the_run_and_come_back_as_they_were() -> None:
    found, sizes = RunStatistics(), []
    for epoch in range(200):
        rows = {"source:cars": 1000 + epoch % 7, "aggregate-1#0": 1000}
        cpu = {"source:cars": 0.002, "aggregate-1#0": 0.01, "aggregate-1": 0.001}
        backlog = {"source:cars": Backlog(50 * epoch, 1000 * epoch, 0.1)}
        found = found.after(EpochFigures(rows, rows, cpu, 0.05, 0.5, 0.5, 2, backlog))
        text = json.dumps(found.to_json())
        again = RunStatistics.from_json(json.loads(text))
        assert again.to_json() == found.to_json()
        sizes.append(len(text))
    assert max(sizes[100:]) < 1.2 * sizes[20]
    # 1,003 read in half a second, and 50 more that wait.
    assert 2_090 < found.rates["source:cars"] < 2_120


def test_what_an_epoch_costs_anyway_is_told_from_what_its_rows_cost() -> None:
    found = RunStatistics()
    for rows in (0, 0, 0, 1000, 5000, 2000, 10_000, 500):
        cpu = {"source:cars": 0.003 + rows * 2e-6}
        found = found.after(EpochFigures({"source:cars": rows}, {"source:cars": rows}, cpu, 0.08 + cpu["source:cars"]))
    assert abs(found.cost("source:cars") - 2e-6) < 1e-8
    assert abs(found.fixed - 0.08) < 1e-4
