"""Every mistake a user can make on the command line: one line that says what, one that says what to do, code 2."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from penstock.portal.cli import app

Write = Callable[..., str]
runner = CliRunner()


def complaint(*arguments: str) -> tuple[str, str]:
    """The two lines of a refused command."""
    done = runner.invoke(app, list(arguments))
    assert done.exit_code == 2, (done.output, done.exception)
    assert done.stdout == ""
    lines = done.stderr.splitlines()
    assert len(lines) == 2, done.stderr
    assert lines[0].startswith("error: ") and lines[1].startswith("hint: ")
    return lines[0], lines[1]


MISTAKES = {
    "unknown column": ('query = s.where("sped < 40")', "'sped'", "speed"),
    "unknown grouping column": ('query = s.window("1 s").group_by("segmnt").agg(n="count(*)")', "'segmnt'", "segment"),
    "unknown function": ('query = s.select("ts", x="squirt(speed)")', "squirt", ""),
    "wrong type": ('query = s.where("speed")', "query.py, line 3", ""),
    "bad interval": ('query = s.disorder("5 parsecs")', "parsecs", ""),
    "window slide 0": ('query = s.window("10 s", slide="0 s")', "line 3", ""),
    "bad schema": ('query = ps.stream("x", "ts timestmp")', "timestmp", "timestamp"),
    "bad sink": ("query = s\nsink = 5", "5", "ps.parquet"),
    "bad settings": ("query = s\nsettings = 5", "5", "max_rows"),
    "no query": ("slow = s", "no variable 'query'", "query.py:"),
    "query of another kind": ("query = 5", "int", "query.py:s"),
    "syntax error": ("query = = s", "line 3", ""),
    "failing file": ("query = undefined_name", "NameError", ""),
    "exiting file": ("raise SystemExit(3)", "SystemExit", ""),
}


@pytest.mark.parametrize("command", ["run", "explain", "trace"])
@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_in_the_query_file(query_file: Write, mistake: str, command: str) -> None:
    text, says, hints = MISTAKES[mistake]
    error, hint = complaint(command, query_file(text))
    assert says in error
    assert hints in hint


@pytest.mark.parametrize("command", ["run", "trace"])
def test_missing_path(query_file: Write, tmp_path: Path, command: str) -> None:
    error, _ = complaint(command, query_file(path=tmp_path / "nowhere"))
    assert "nowhere" in error and "does not exist" in error


@pytest.mark.parametrize("command", ["run", "trace"])
def test_empty_directory(query_file: Write, tmp_path: Path, command: str) -> None:
    (tmp_path / "void").mkdir()
    error, _ = complaint(command, query_file(path=tmp_path / "void"))
    assert "no file to read" in error


@pytest.mark.parametrize("command", ["run", "trace"])
def test_unreadable_file(query_file: Write, tmp_path: Path, command: str) -> None:
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "a.parquet").write_text("this is not Parquet, however it is named")
    error, _ = complaint(command, query_file(path=tmp_path / "bad"))
    assert "a.parquet" in error and "not a Parquet file" in error


def test_damaged_file(query_file: Write, tmp_path: Path) -> None:
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "a.parquet").write_bytes(b"PAR1" + b"x" * 100 + b"PAR1")
    error, _ = complaint("run", query_file(path=tmp_path / "bad"), "--trigger", "available_now")
    assert "a.parquet" in error


def test_file_of_another_schema(query_file: Write, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    pq.write_table(pa.table({"ts": [1], "velocity": [2.0]}), tmp_path / "other" / "a.parquet")
    error, _ = complaint("run", query_file(path=tmp_path / "other"))
    assert "a.parquet" in error


def test_missing_query_file(tmp_path: Path) -> None:
    (tmp_path / "traffic.py").touch()
    error, hint = complaint("run", str(tmp_path / "trafic.py"))
    assert "trafic.py" in error and "traffic.py" in hint


def test_folder_instead_of_file(tmp_path: Path) -> None:
    assert "folder" in complaint("run", str(tmp_path))[0]


def test_missing_stream_of_a_file(query_file: Write) -> None:
    error, hint = complaint("explain", query_file("query = s") + ":quarry")
    assert "'quarry'" in error and "query" in hint


@pytest.mark.parametrize(
    "options", [["--trigger", "sometimes"], ["--every", "5 parsecs"], ["--every", "1 s", "--trigger", "once"]]
)
def test_bad_options(query_file: Write, options: list[str]) -> None:
    complaint("run", query_file(), *options)


def test_trace_of_no_rows(query_file: Write) -> None:
    assert "--rows 0" in complaint("trace", query_file(), "--rows", "0")[0]


def test_unknown_command_is_answered_with_the_nearest() -> None:
    done = runner.invoke(app, ["explian"])
    assert done.exit_code == 2
    assert "explain" in done.stderr


def test_a_defect_keeps_its_stack_trace(query_file: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    def defect(_: str) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("penstock.portal.cli.load", defect)
    assert isinstance(runner.invoke(app, ["explain", query_file()]).exception, ZeroDivisionError)
