"""What a user's data may look like on a terminal: like itself, and nothing else."""

from __future__ import annotations

import io
import json
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import penstock as ps
from penstock.engine.terminal import cell, grid, json_safe, printable, terminal, values
from penstock.portal.testing import local_session

HOSTILE = [
    "[/b]",
    "[red]",
    "[bold red]x[/]",
    ":smile:",
    "\x1b[2J",
    "\x9b2J",
    "a\rb",
    "\u202eabc",
    "[link=file:///x]y[/link]",
    "\\[b]",
    "\x00",
]


@pytest.mark.parametrize("value", HOSTILE)
def test_the_console_shows_a_value_as_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str], value: str) -> None:
    rows = {"ts": pa.array([datetime(2026, 1, 1)], pa.timestamp("us")), "name": [value]}
    (tmp_path / "in").mkdir()
    pq.write_table(pa.table(rows), tmp_path / "in" / "0.parquet")
    names = ps.stream("names", "ts timestamp, name string", time="ts").read_parquet(str(tmp_path / "in"))
    names.start(ps.console(), trigger="once", spark=local_session()).wait()
    out = capsys.readouterr().out
    assert cell(value) in out
    assert not set(out) & set("\x1b\x9b\r\x00\u202e")


def test_names_of_columns_are_no_markup_either(capsys: pytest.CaptureFixture[str]) -> None:
    terminal().print(grid(pa.table({"[/b]": [1], "[red]": [2]}), 5, "[/i] \x1b[1m"))
    out = capsys.readouterr().out
    assert "[/b]" in out and "[red]" in out and "[/i] \\x1b[1m" in out


def test_what_python_has_no_object_for_is_shown_nevertheless() -> None:
    late = pa.chunked_array([pa.array([10**18, 0, None], pa.timestamp("us"))])
    assert values(late) == ["33658-09-27 01:46:40.000000", "1970-01-01 00:00:00.000000", None]
    raw = pa.Array.from_buffers(pa.string(), 1, [None, pa.py_buffer(b"\0\0\0\0\2\0\0\0"), pa.py_buffer(b"a\xff")])
    assert values(pa.chunked_array([raw])) == ["a\\xff"]


def test_a_line_of_json_stays_json() -> None:
    for text in ("\x9b2J", "\ud800", "\u202e", "\u2028"):
        line = json_safe(json.dumps({"a": text}, ensure_ascii=False))
        assert json.loads(line) == {"a": text}
        line.encode()


def test_whatever_is_drawn_goes_through_it() -> None:
    """Also what no cell of a table is: titles, panels, the live view."""
    from penstock.engine.progress import Progress
    from penstock.portal.live import View

    view = View("[/b]\x1b[2J.py", clock=lambda: 1.0)
    told = Progress(
        1, 1, 1, 0.1, 0.1, 0.1, 1, 1, 1, frontier={"s": "[/i]"}, told="not ['[/b]\x1b[2J']", waiting=("\x9b",)
    )
    for take in (lambda: None, lambda: view.take(told)):
        take()
        out = io.StringIO()
        terminal(out, width=200).print(view)
        assert "[/b]\\x1b[2J.py" in out.getvalue() and "\x1b" not in out.getvalue() and "\x9b" not in out.getvalue()
    assert "[/i]" in out.getvalue()


def test_lines_and_tabs_stay_in_texts_not_in_cells() -> None:
    assert printable("a\n\tb") == "a\n\tb" and cell("a\n\tb") == "a\\n\\tb"


@pytest.mark.parametrize("limit", [-1, "20", None, 1.5, True])
def test_a_limit_is_a_number_of_rows(limit: object) -> None:
    with pytest.raises(ps.UserError, match="limit"):
        ps.console(limit)  # type: ignore[arg-type]
