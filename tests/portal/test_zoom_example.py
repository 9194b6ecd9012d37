"""The map of the example: what is off the screen is not read, what is on it stays the same, and all is forgotten."""

from __future__ import annotations

import importlib.util
import sys
from io import StringIO
from pathlib import Path
from types import ModuleType

import pytest
from rich.console import Console

from penstock.portal.testing import local_session

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def example() -> ModuleType:
    spec = importlib.util.spec_from_file_location("zoom_example", ROOT / "examples" / "zoom.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["zoom_example"] = module  # Dataclasses look for their module there.
    spec.loader.exec_module(module)
    return module


def test_only_what_is_on_the_screen_is_read(example: ModuleType, tmp_path: Path) -> None:
    day = example.Day(files=8, segments=20, reports=3, grouped=5, zoomed=(10, 14), since=2, until=5)
    told = StringIO()
    runs = example.print_comparison(day, tmp_path, Console(file=told, width=120), local_session())
    plain, zoomed = runs[example.PLAIN], runs[example.TOLD]
    assert plain.read == [60] * 8
    # One row group of four, from the epoch on that has heard it to the last that it speaks of.
    assert zoomed.read == [60, 60, 15, 15, 15, 60, 60, 60]
    assert not any(plain.guards) and max(zoomed.guards) > 0 and zoomed.guards[-1] == 0
    assert plain.results.num_rows - zoomed.results.num_rows == 3 * 15
    assert "the same" in told.getvalue() and (tmp_path / "zoom.png").stat().st_size > 0
