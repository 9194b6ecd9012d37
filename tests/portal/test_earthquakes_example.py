"""A week of earthquakes: what was said of them later corrects every hour, and all end as in the final table."""

from __future__ import annotations

import importlib.util
from datetime import timedelta
from io import StringIO
from pathlib import Path
from types import ModuleType

import duckdb
import pytest
from rich.console import Console

import penstock as ps
from penstock.portal.testing import local_session

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def example() -> ModuleType:
    spec = importlib.util.spec_from_file_location("earthquakes_example", ROOT / "examples" / "earthquakes.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_last_word_on_every_hour_is_that_of_the_final_table(example: ModuleType, tmp_path: Path) -> None:
    told = StringIO()
    assert example.print_week(tmp_path, Console(file=told, width=120), local_session())
    assert "✓ 169 hours" in told.getvalue()


def test_hours_are_told_at_once_and_corrected_for_days(
    example: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(example, "STEP", 120)
    said = example.changes(example.read_quakes())
    target, late = example.run(tmp_path, said, ps.Consistency.middle(), local_session())
    hour = example.most_corrected(target)
    times = [at for at, _ in example.told_of(target, said, hour)]
    assert times[0] < hour + timedelta(hours=4) and times[-1] > hour + timedelta(days=1)
    assert late == 0
    counted = [row["measured"] for _, row in example.told_of(target, said, hour)]
    assert counted[0] < counted[-1] == max(counted)


@pytest.mark.parametrize("block", ["0 s", "2 h", "20 h"])
def test_who_remembers_less_loses_what_is_said_later(
    example: ModuleType, tmp_path: Path, block: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And nothing else: what holds is the final table of the changes that came in time."""
    monkeypatch.setattr(example, "STEP", 400)
    said = example.changes(example.read_quakes())
    dial = ps.Consistency.at(block=block, remember="1 day")
    target, late = example.run(tmp_path, said, dial, local_session())
    newest = "max(time) OVER (ORDER BY known, id, turn ROWS UNBOUNDED PRECEDING)"
    kept = f"SELECT * FROM (SELECT *, {newest} AS newest FROM said) WHERE time > newest - INTERVAL 1 DAY"
    weighed = f"SELECT *, CASE op WHEN '-U' THEN -1 ELSE 1 END AS w FROM ({kept})"
    expected = duckdb.sql(
        f"SELECT time_bucket(INTERVAL '1 hour', time) AS window_start, sum(w)::BIGINT AS quakes FROM ({weighed}) "
        "GROUP BY ALL HAVING sum(w) > 0 ORDER BY 1"
    ).fetchall()
    holding = target.rows() if not dial.speculates else target.holding()
    assert sorted((row["window_start"], row["quakes"]) for row in holding) == expected
    assert 0 < late < said.num_rows // 2
