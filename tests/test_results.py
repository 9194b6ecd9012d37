"""What the pages say of measurements is what was measured: their tables are those that `results.json` gives."""

from __future__ import annotations

import copy
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.append(str(Path(__file__).parents[1]))  # The benchmarks are beside the package, not in it.
from benchmarks import tables
from benchmarks.contest import NATIVE, PENSTOCK
from benchmarks.pages import PAGES, RESULTS, TABLES, others, rewritten
from benchmarks.profile import PHASES
from benchmarks.sampled.sitecustomize import COMPUTING, NOT_COMPUTING, PLACES, ROOTS, phase

ROOT = Path(__file__).parents[1]


def record() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(RESULTS.read_text())
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_pages_have_the_tables_of_the_record(page: Path) -> None:
    text = page.read_text()
    assert "<!-- measured:" in text
    assert rewritten(text, record()) == text  # Else: python -m benchmarks.pages


def test_every_table_is_on_a_page_once() -> None:
    named = [
        n for page in PAGES for n in re.findall(r"<!-- measured: (\w+) -->\n.+?<!-- end -->", page.read_text(), re.S)
    ]
    assert sorted(named) == sorted([*TABLES, *others()])


def test_another_record_gives_other_pages() -> None:
    other = copy.deepcopy(record())
    slug = next(s for s in tables.RACES if s in other["cases"])
    for run in other["cases"][slug]["series"][PENSTOCK.name]:
        run["seconds"] *= 3
        run["epoch"] *= 3
    # The page on shedding has tables of what was simulated alone.
    changed = [page.name for page in PAGES if rewritten(page.read_text(), other) != page.read_text()]
    assert changed == ["README.md", "results.md"]


def _race(ours: list[float], theirs: list[dict[str, Any]]) -> dict[str, Any]:
    run = {"done": True, "cpu": 1.0, "peak": 2**20, "epoch": 0.5}
    return {
        "name": "a case",
        "rows": 1_000,
        "complete": True,
        "native": f"{NATIVE}, default store, 1 partition",
        "search": {f"{NATIVE}, default store, 1 partition": 1.0, f"{NATIVE}, rocksdb store, 1 partition": None},
        "missing": {"Polars": "not there"},
        "series": {PENSTOCK.name: [{**run, "seconds": s} for s in ours], NATIVE: [{**run, **t} for t in theirs]},
    }


def test_who_gave_up_is_told_what_it_would_have_taken() -> None:
    case = _race([1.0] * 5, [{"seconds": 90.0, "done": False, "rows": 250}])
    assert tables.times(case, NATIVE) == [360.0]
    table = tables.races_table({"cases": {"join": case}})
    assert "| ≈ 360 s, 1 run | 1.0 | 1 | 360 × | 500 |" in table
    assert "| 1.00 s (1.00–1.00) |" in table and "| Polars | not there |" in table


def test_ratios_have_the_range_over_the_rounds() -> None:
    case = _race([1.0, 2.0, 1.5, 1.0, 2.0], [{"seconds": 6.0}, {"seconds": 6.0}])
    assert "| 4.0 × (3.0–6.0) |" in tables.races_table({"cases": {"join": case}})
    assert "| **1.50 s** | – | 4.0 × (3.0–6.0) | – |" in tables.readme_table({"cases": {"join": case}})


def test_settings_show_who_was_given_up() -> None:
    assert "| **1.0** | – |" in tables.settings_table({"cases": {"join": _race([1.0], [{"seconds": 2.0}])}})


def _phase(*stack: tuple[str, str]) -> str:
    """What the sampler makes of a stack of files and functions, the outermost first."""

    def look() -> str:
        return phase(sys._getframe(1))

    inner: Any = look
    for path, name in reversed(stack):
        known: dict[str, Any] = {"inner": inner}
        exec(compile(f"def {name}(): return inner()", f"/somewhere/{path}", "exec"), known)
        inner = known[name]
    return str(inner())


@pytest.mark.parametrize(
    ("told", "stack"),
    [
        ("read", [("penstock/engine/tasks/scan.py", "scan"), ("penstock/engine/source/formats/read.py", "read")]),
        ("pre-aggregate", [("penstock/engine/tasks/scan.py", "scan"), ("penstock/kernels/duck.py", "run")]),
        (
            "pre-aggregate",  # not the exchange: it is a kernel that computes
            [
                ("penstock/engine/tasks/scan.py", "scan"),
                ("penstock/engine/tasks/send.py", "send"),
                ("penstock/kernels/fold.py", "together"),
            ],
        ),
        (
            "exchange",
            [
                ("penstock/engine/tasks/scan.py", "scan"),
                ("penstock/engine/tasks/exchange.py", "scatter"),
                ("penstock/kernels/hash.py", "hash_keys"),
            ],
        ),
        ("merge", [("penstock/engine/tasks/merge.py", "merge"), ("penstock/operators/join/kernel.py", "step")]),
        ("read state", [("penstock/engine/tasks/merge.py", "merge"), ("penstock/checkpoint/runs.py", "read_run")]),
        ("write", [("penstock/engine/tasks/merge.py", "merge"), ("penstock/checkpoint/runs.py", "write_run")]),
        ("exchange", [("pyspark/worker.py", "main"), ("pickle.py", "loads")]),
    ],
)
def test_the_sampler_puts_time_down_to_who_asked_for_it(told: str, stack: list[tuple[str, str]]) -> None:
    assert _phase(*stack) == told


def test_the_sampler_knows_places_that_are_there() -> None:
    """Code that moved would be counted as the rest, and nobody would notice."""
    parts = [p for p, *_ in (*PLACES, *ROOTS)] + [*COMPUTING, *NOT_COMPUTING]
    missing = [p for p in parts if p.startswith("penstock/") and not (ROOT / "src" / p).exists()]
    assert missing == []
    functions = [(p, f) for p, f, _ in PLACES if p.endswith(".py") and f]
    assert [f for p, f in functions if f"def {f}(" not in (ROOT / "src" / p).read_text()] == []
    assert {told for *_, told in (*PLACES, *ROOTS)} | {"rest"} == set(PHASES)
