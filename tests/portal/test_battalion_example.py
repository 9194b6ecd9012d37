"""The battle of the example: more value is lost by chance than by position, and most by whom nobody lets in."""

from __future__ import annotations

import importlib.util
import sys
from io import StringIO
from pathlib import Path
from types import ModuleType

import duckdb
import pytest
from rich.console import Console

from penstock.portal.testing import local_session

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def example() -> ModuleType:
    spec = importlib.util.spec_from_file_location("battalion_example", ROOT / "examples" / "battalion.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["battalion_example"] = module  # Dataclasses look for their module there.
    spec.loader.exec_module(module)
    return module


def test_value_lost_is_least_by_position_and_most_at_the_door(example: ModuleType, tmp_path: Path) -> None:
    battle, said = example.Battle(epochs=6, ticks=60, units=30), StringIO()
    found = example.print_comparison(battle, tmp_path, Console(file=said, width=120), local_session(), (2.0,))
    (semantic,), (random,), (admission,) = (found[way] for way in example.WAYS)
    assert 0 < semantic.lost < random.lost < admission.lost < 1
    # Nobody loses less because he does more: no more was computed than by whom rows were refused.
    assert max(semantic.done, random.done) < admission.done + 0.05
    assert "are right" in said.getvalue() and (tmp_path / "battalion.png").stat().st_size > 0


def test_a_result_that_is_not_right_is_found(example: ModuleType, tmp_path: Path) -> None:
    for folder, image in (("some", 1.0), ("all", 2.0)):
        for name in example.WORTH:
            (tmp_path / folder / name).mkdir(parents=True)
            row = f"SELECT 900 AS ts, 1 AS unit, 300 AS x, {image} AS image"
            duckdb.sql(f"COPY ({row}) TO '{tmp_path / folder / name}/0.parquet'")
    with pytest.raises(SystemExit, match="not right"):
        example.compare(tmp_path / "some", tmp_path / "all", example.Battle())
    same = example.compare(tmp_path / "all", tmp_path / "all", example.Battle())
    assert (same.lost, same.done, same.crossed) == (0, 1, 1)
