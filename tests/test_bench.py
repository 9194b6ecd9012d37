"""How a case is run: who takes part how often, what is chosen, what is written; contestants are made up."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

sys.path.append(str(Path(__file__).parents[1]))  # The benchmarks are beside the package, not in it.
from benchmarks.aggregates.workload import Windows
from benchmarks.bench import Bench
from benchmarks.contest import DUCKDB, FLINK, NATIVE, NATIVES, PATHWAY, PENSTOCK, POLARS, Contestant
from benchmarks.races import Race

#: Seconds of a whole run and of a beginning.
SECONDS = {PENSTOCK.name: 1.0, DUCKDB.name: 0.5, PATHWAY.name: 30.0, FLINK.name: 3.0}
SECONDS |= {c.name: s for c, s in zip(NATIVES, (12.0, 9.0, 10.0, 40.0, 41.0, 42.0), strict=True)}


class MadeUp(Race):
    def prepared(self, contestant: Contestant, root: Path) -> tuple[dict[str, Any], Callable[[Path], list[str]]]:
        wrong = contestant.name == PATHWAY.name and self.slug == "wrong"
        return {"rows": self.rows}, lambda out: ["2" if wrong else "1", str(self.rows)]


@dataclass
class Those:
    """Answers at once what a contestant would have answered."""

    package: str = "aggregates"
    warm: set[str] = field(default_factory=set)
    turns: Counter[tuple[str, int]] = field(default_factory=Counter)

    def why_not(self, contestant: Contestant) -> str | None:
        return "no environment" if contestant is POLARS else None

    def idle(self, contestant: Contestant) -> float:
        return 0.0

    def drop(self, contestant: Contestant) -> None:
        pass

    def run(self, contestant: Contestant, job: dict[str, Any]) -> dict[str, Any]:
        self.turns[contestant.name, job["rows"]] += 1
        if contestant is FLINK and job["rows"] == 10_000_000 and self.turns[FLINK.name, job["rows"]] == 2:
            raise RuntimeError("it died")
        seconds, epochs = SECONDS[contestant.name], [9.0, 1.0, 3.0]
        return {"seconds": seconds, "cpu": 1.0, "peak": 1, "done": True, "epochs": epochs, "rows": job["rows"]}


def run(tmp_path: Path, slug: str = "made-up") -> tuple[Those, dict[str, Any]]:
    those, bench = Those(), Bench(tmp_path / "results.json", tmp_path, {}, quick=False)
    bench.record = {"cases": {}}
    race = MadeUp(slug, "made up", Windows(5_000_000, 2, 1_000))
    bench.race(those, race, patience=40.0)  # type: ignore[arg-type]
    return those, json.loads((tmp_path / "results.json").read_text())["cases"][slug]


def test_the_best_settings_take_part_and_the_next_best_once(tmp_path: Path) -> None:
    _, told = run(tmp_path)
    assert told["native"] == NATIVES[1].name and len(told["series"][NATIVE]) == 5
    assert len(told["series"][NATIVES[2].name]) == 1 and NATIVES[0].name not in told["series"]
    assert len(told["search"]) == 6 and told["search"][NATIVES[3].name] == 40.0


def test_who_is_slow_gets_fewer_turns_and_who_fails_none(tmp_path: Path) -> None:
    _, told = run(tmp_path)
    runs = {name: len(r) for name, r in told["series"].items()}
    assert runs[PENSTOCK.name] == runs[DUCKDB.name] == 5 and runs[PATHWAY.name] == 1 and runs[FLINK.name] == 1
    assert told["missing"] == {POLARS.name: "no environment", FLINK.name: "it failed"}


def test_the_first_epoch_does_not_count(tmp_path: Path) -> None:
    _, told = run(tmp_path)
    assert told["complete"] and {r["epoch"] for r in told["series"][PENSTOCK.name]} == {2.0}


def test_whoever_finds_something_else_ends_it(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="Pathway: 2"):
        run(tmp_path, "wrong")
