"""The command `penstock consistency`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import penstock as ps
from penstock.portal.cli import app
from penstock.portal.testing import local_session

CLI = CliRunner()


def run(home: Path, number: int, ts: int) -> ps.Run:
    (home / "in").mkdir(exist_ok=True)
    (home / "in" / f"{number}.json").write_text(json.dumps({"ts": f"2026-01-01 {ts:02}:00:00", "k": 1}) + "\n")
    cars = ps.stream("cars", "ts timestamp, k int", time="ts").read_json(str(home / "in"), order="name")
    counts = cars.window("1 h").group_by("k").agg(n="count(*)")
    dial = ps.Consistency.weak(block="1 min", remember="1 h")
    options = {"checkpoint": str(home / "ck"), "trigger": "available_now", "spark": local_session()}
    return counts.start(ps.parquet(str(home / "out")), consistency=dial, **options).wait()  # type: ignore[arg-type]


def say(home: Path, *arguments: str) -> str:
    done = CLI.invoke(app, ["consistency", str(home / "ck"), *arguments])
    return f"{done.output}{done.exception or ''}"


def test_it_is_turned_and_shown_from_another_terminal(tmp_path: Path) -> None:
    run(tmp_path, 0, 1)
    assert say(tmp_path) == "Consistency.weak(block='1 min', remember='1 h')\n"
    text = say(tmp_path, "--remember", "3 h")
    assert "Consistency.weak(block='1 min', remember='1 h') → Consistency.weak(block='1 min', remember='3 h')" in text
    assert "waits for its next start" in text
    assert run(tmp_path, 1, 5).driver.feedback.setting == {"source:cars": (3 * 3600 * 10**6, 60 * 10**6)}
    assert json.loads(say(tmp_path, "--json")) == {"consistency": {"block": "1 min", "remember": "3 h"}}
    say(tmp_path, "--block", "0 s")
    assert run(tmp_path, 2, 6).driver.feedback.setting == {"source:cars": (3 * 3600 * 10**6, 0)}
    # Both were held back until then; what was told of the third was told at once.
    assert sum(t["n"] * t["_weight"] for t in ps_rows(tmp_path)) == 3


def ps_rows(home: Path) -> list[dict[str, int]]:
    import pyarrow.parquet as pq

    return [r for p in sorted((home / "out").glob("part-*")) for r in pq.read_table(p).to_pylist()]


def test_blocking_longer_than_one_remembers_is_refused(tmp_path: Path) -> None:
    run(tmp_path, 0, 1)
    assert "block='2 h' is longer than remember='1 h'" in say(tmp_path, "--block", "2 h")
    assert "is not the checkpoint of a run" in CLI.invoke(app, ["consistency", str(tmp_path / "none")]).output
    assert not list((tmp_path / "ck" / "control").glob("requests/*.json"))


@pytest.mark.parametrize("text", ["-/-", "0 s/1 h", "5 s/-", "250 ms/1 h 30 min"])
def test_a_point_of_the_dial_is_read_as_it_is_written(text: str) -> None:
    found = ps.Consistency.parse(text)
    assert ps.Consistency.parse(found.text) == found


DIALLED = """
import penstock as ps
cars = ps.stream("cars", "ts timestamp, k int", time="ts").read_json({data!r})
query = cars.window("1 h").group_by("k").agg(n="count(*)")
settings = {{"consistency": "middle/2 h"}}
"""


@pytest.mark.parametrize("command", ["check", "explain", "trace"])
def test_a_query_file_names_its_dial_as_the_command_line_does(tmp_path: Path, command: str) -> None:
    run(tmp_path, 0, 1)
    (tmp_path / "q.py").write_text(DIALLED.format(data=str(tmp_path / "in")))
    done = CLI.invoke(app, [command, str(tmp_path / "q.py")])
    assert done.exit_code == 0, done.output
    assert {"check": "corrected", "explain": "corrected", "trace": "_weight 1"}[command] in done.output


def test_a_length_that_is_none_is_named_as_it_was_given(tmp_path: Path) -> None:
    run(tmp_path, 0, 1)
    assert "remember: 'banana' is not a duration" in say(tmp_path, "--remember", "banana")


def test_a_dial_at_the_weak_corner_is_read() -> None:
    assert ps.Consistency.parse("weak/1 min") == ps.Consistency.weak(remember="1 min")
    with pytest.raises(ps.UserError, match="consistency 'weak' is not possible"):
        ps.Consistency.parse("weak")
