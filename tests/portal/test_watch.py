"""A run in the foreground: what it says while it runs, and what it amounts to."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import penstock as ps
from penstock.checkpoint.storage import seal
from penstock.engine.query import Queries
from penstock.engine.terminal import terminal
from penstock.portal.outcome import print_summary
from penstock.portal.testing import local_session
from penstock.portal.watch import ForegroundRun


def watched(home: Path, rows: int = 3) -> tuple[dict[str, Any], str]:
    """The summary of a run over `rows` events, of which the last is still open, and what was printed meanwhile."""
    (home / "in").mkdir(exist_ok=True)
    if not (home / "in" / "0.parquet").exists():
        pq.write_table(pa.table({"t": pa.array(range(rows), pa.int32())}), home / "in" / "0.parquet")
    numbers = ps.stream("numbers", "t int", time="t").read_parquet(str(home / "in")).disorder(0)
    options = {"trigger": "available_now", "checkpoint": str(home / "kept")}
    out = io.StringIO()
    watch = ForegroundRun("numbers.py", "lines", terminal(out, width=200))
    run = watch.run(Queries.of(numbers.group_by("t").agg(n="count(*)").to(ps.memory())), options, spark=local_session())
    return watch.summary(run), out.getvalue()


def test_an_idle_restart_says_where_it_goes_on_and_what_is_open(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, _ = watched(tmp_path, 1)
    assert (first["rows_in"], first["epochs"], first["state_rows"]) == (1, 1, 1)
    print_summary(first)
    said = capsys.readouterr().out
    assert "1 row in, 0 out, 1 epoch," in said and "peaked at 1 row (" in said and "1 row is open" in said
    again, printed = watched(tmp_path)
    assert (again["rows_in"], again["epochs"], again["state_rows"]) == (0, 0, 1)
    assert printed == "goes on after epoch 1\n"
    print_summary(again)
    said = capsys.readouterr().out
    assert "0 rows in, 0 out, 0 epochs," in said and "1 row is open" in said
    assert "nothing was new: all input was read by epoch 1" in said


def test_warnings_that_come_later_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    requests = tmp_path / "kept" / "control" / "requests"
    requests.mkdir(parents=True)
    (requests / "1.json").write_bytes(seal({"text": "not [1]\x1b[2J"}))
    watched(tmp_path)
    errors = capsys.readouterr().err
    assert "warning: feedback" in errors and "\x1b" not in errors
