"""What the commands print, for people and for machines."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import penstock
from penstock.engine.spark import doctor
from penstock.engine.spark.doctor import Check
from penstock.portal import cli
from penstock.portal.cli import app
from penstock.portal.script import load
from penstock.portal.testing import local_session

if TYPE_CHECKING:
    pass

Write = Callable[..., str]
runner = CliRunner()
COUNTED = 'query = s.disorder("5 s").ends().window("10 s").group_by("segment").agg(n="count(*)", total="sum(speed)")\n'


def said(*arguments: str, code: int = 0) -> str:
    done = runner.invoke(app, list(arguments), catch_exceptions=False)
    assert done.exit_code == code, done.output
    return done.stdout


def objects(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_version() -> None:
    assert said("--version") == f"penstock {penstock.__version__}\n"


def test_explain(query_file: Write) -> None:
    assert "aggregate-1" in said("explain", query_file(COUNTED))
    assert said("explain", query_file(COUNTED), "--mermaid").startswith("flowchart TD")
    assert said("explain", query_file(COUNTED), "--quiet") == ""


def test_explain_as_json(query_file: Write) -> None:
    (body,) = objects(said("explain", query_file(COUNTED), "--json"))
    assert list(body["plan"]) == ["source:traffic", "bucket-1", "aggregate-1"]


def test_a_stream_by_name(query_file: Write) -> None:
    script = load(query_file("slow = s.where('speed < 3')") + ":slow")
    assert script.title == "query.py:slow"
    assert script.query.operator.kind == "select"


def test_modules_beside_the_file_are_found(query_file: Write, tmp_path: Path) -> None:
    (tmp_path / "neighbour_of_query.py").write_text("LIMIT = 'speed < 3'")
    assert load(query_file("import neighbour_of_query as b\nquery = s.where(b.LIMIT)")).query.operator.kind == "select"


def test_trace_shows_events_dead_letters_and_results(query_file: Write) -> None:
    text = said("trace", query_file(COUNTED), "--rows", "155")
    assert "source:traffic  ts 2026-01-01 00:00:00, segment 0, speed 0.0 → passes it on" in text
    assert "dead letter: breaks" in text
    assert "end of input" in text
    assert "window_start 2026-01-01 00:00:00, segment 0, n 4, total 18.0" in text


def test_trace_takes_few_rows_and_speaks_json(query_file: Write) -> None:
    steps = objects(said("trace", query_file("query = s"), "--rows", "3", "--json"))
    assert [s["operator"] for s in steps] == ["source:traffic"] * 3
    assert steps[0]["emitted"] == ["ts 2026-01-01 00:00:00, segment 0, speed 0.0"]


def test_trace_of_malformed_lines(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.json").write_text('{"n": 1}\n{"n": "one"}\n{"n": 3}\n')
    file = tmp_path / "q.py"
    file.write_text(f'import penstock as ps\nquery = ps.stream("a", "n int").read_json(r"{tmp_path / "in"}")\n')
    lines = said("trace", str(file), "--full").splitlines()
    assert len(lines) == 3
    assert "dead letter" in lines[1]
    assert "n 3" in lines[2]


def test_trace_looks_into_tables(query_file: Write, tmp_path: Path) -> None:
    (tmp_path / "roads.csv").write_text("segment,road\n0,ring\n")
    table = f'ps.table("roads", "segment int, road string", key="segment").read_csv(r"{tmp_path / "roads.csv"}")'
    text = said("trace", query_file(f"query = s.lookup({table})"), "--rows", "1")
    assert text.splitlines()[-1].endswith("the same → emits it with road ring")


def test_trace_of_a_union_shows_the_promises_that_wait(query_file: Write) -> None:
    """What a union holds is what only one of its inputs has promised."""
    text = said("trace", query_file('u = s.disorder("5 s")\nquery = u.where("speed > 1").union(u)'), "--rows", "1")
    assert "now holds input 0: punctuation [< '2025-12-31 23:59:55', *, *]\n" in text
    assert "Pattern(" not in text


SLOW = """windows = s.disorder("30 s").where("speed >= 0").window("2 min", slide="20 s")
query = windows.group_by("segment").agg(mean="avg(speed)", n="count(*)").where("mean < 40")
"""


def test_trace_of_the_query_in_the_readme_can_be_read(query_file: Write) -> None:
    """A line says what has changed, not all that there is; --full says that."""
    short = said("trace", query_file(SLOW), "--rows", "20")
    assert max(map(len, short.splitlines())) < 300
    assert "bucket-1        the same → emits it 6 times with window_start 2025-12-31 23:58:20; 2025-12-31" in short
    assert "aggregate-1     all 6 → now holds 2025-12-31 23:58:20, 0: 1 event; " in short and "(12 in all)" in short
    full = said("trace", query_file(SLOW), "--rows", "20", "--full")
    assert max(map(len, full.splitlines())) > 2 * max(map(len, short.splitlines()))


def test_state_keeps_dates_whole_on_a_narrow_terminal(
    query_file: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = str(tmp_path / "kept")
    script = load(query_file(SLOW))
    script.query.start(penstock.memory(), checkpoint=kept, trigger="available_now", spark=local_session()).wait()
    for columns in ("80", "160"):
        monkeypatch.setenv("COLUMNS", columns)
        shown = said("state", kept)
        assert "aggregate-1" in shown and "traffic, ts < '2026-01-01 00:03:00'" in shown


def test_doctor(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [Check("java", True, "Java 17"), Check("disk", False, "full", "free some")]
    monkeypatch.setattr(doctor, "checks", lambda *a, **k: found)
    assert said("doctor", code=1) == "✓ java: Java 17\n✗ disk: full → free some\n"
    (body,) = objects(said("doctor", "--json", code=1))
    assert [c["ok"] for c in body["checks"]] == [True, False]
    assert said("doctor", "--quiet", code=1) == ""


def test_bench_says_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli, "benchmarks_folder", lambda: None)
    done = runner.invoke(app, ["bench"])
    assert done.exit_code == 2
    assert "clone the repository" in done.stderr


@pytest.mark.usefixtures("spark")
def test_run_as_json_then_look_at_its_state(query_file: Write, tmp_path: Path) -> None:
    """One run of a small query without an end, so that state stays; then `state` in all its forms."""
    kept = str(tmp_path / "checkpoint")
    file = query_file(COUNTED.replace(".ends()", ""))
    options = ["--trigger", "available_now", "--checkpoint", kept, "--max-rows", "60", "--buckets", "2"]
    lines = objects(said("run", file, "--json", *options))
    epochs = [o for o in lines if o["type"] == "epoch"]
    rows = [o["row"] for o in lines if o["type"] == "row"]
    assert [e["epoch"] for e in epochs] == list(range(1, len(epochs) + 1))
    assert lines[-1]["type"] == "summary"
    assert lines[-1]["rows_in"] == 199
    assert lines[-1]["dead"] == {"late": 1}
    assert len(rows) == lines[-1]["rows_out"] == 19 * 3
    assert rows[0].keys() == {"window_start", "segment", "n", "total"}

    (body,) = objects(said("state", kept, "--json"))
    assert body["epoch"] == len(epochs)
    assert sum(u["rows"] for u in body["units"]) == 3
    assert {"operator": "source:traffic", "attribute": "ts", "reached": "< 2026-01-01 00:03:14"} in body["frontiers"]
    assert any(f["operator"] == "aggregate-1" for f in body["frontiers"])
    shown = said("state", kept)
    assert "aggregate-1" in shown and "source:traffic" in shown and "late 1" in shown
    asked = objects(said("state", kept, "--json", "--query", 'SELECT count(*) AS n FROM "aggregate-1"'))
    assert asked == [{"n": 3}]
    assert "3 rows" in said("state", kept, "--query", 'SELECT segment FROM "aggregate-1"')
    assert objects(said("state", kept, "--json", "--query", "SELECT sum(rows)::INT AS n FROM units")) == [{"n": 3}]
    refused = runner.invoke(app, ["state", kept, "--query", "SELECT * FROM nothing"])
    assert refused.exit_code == 2
    assert '"aggregate-1"' in refused.stderr and len(refused.stderr.splitlines()) == 2

    # Nothing new: the run goes on from there and has nothing to do.
    (summary,) = objects(said("run", file, "--json", *options))
    assert (summary["epochs"], summary["total_rows_in"]) == (0, 199)
    assert summary["state_rows"] == 3 and summary["dead"] == {} and summary["total_dead"] == {"late": 1}
    # A changed query is refused in two lines.
    done = runner.invoke(app, ["run", query_file(COUNTED.replace("10 s", "20 s")), *options])
    assert done.exit_code == 2
    assert "belongs to another query" in done.stderr and len(done.stderr.splitlines()) == 2


@pytest.mark.usefixtures("spark")
def test_run_for_people(query_file: Write, tmp_path: Path) -> None:
    """Lines per epoch when stdout is no terminal; a file sink; nothing at all when quiet."""
    text = COUNTED + f'sink = ps.parquet(r"{tmp_path / "out"}")\nsettings = {{"trigger": "available_now"}}\n'
    lines = said("run", query_file(text)).splitlines()
    assert any(line.startswith("epoch 1: ") for line in lines)
    assert lines[-2].startswith("query.py: 199 rows in, 60 out")
    assert lines[-1] == "dead letters: late 1"
    assert sum(pq.read_metadata(p).num_rows for p in (tmp_path / "out").glob("*.parquet")) == 60
    assert said("run", query_file(text), "--quiet") == ""
    assert "all" in said("state", str(tmp_path / "out"))  # the checkpoint lies beside the results


@pytest.mark.spark
@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_interrupt_finishes_the_epoch(query_file: Write, tmp_path: Path) -> None:
    """A process of its own, interrupted while it waits for more input: exit code 0 and a summary."""
    file = query_file(COUNTED.replace(".ends()", "") + f'sink = ps.parquet(r"{tmp_path / "out"}")\n')
    command = [sys.executable, "-m", "penstock.portal", "run", file, "--json", "--every", "100 ms"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        assert process.stdout is not None
        first = json.loads(process.stdout.readline())
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        rest, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    assert first["type"] == "epoch"
    assert "finishing epoch" in errors
    assert json.loads(rest.splitlines()[-1])["type"] == "summary"


@pytest.mark.parametrize("command", ["explain", "check"])
def test_the_dial_is_turned_for_a_look(query_file: Write, command: str) -> None:
    file = query_file(COUNTED)
    assert "corrected" in said(command, file, "--consistency", "middle/1 h")
    assert "corrected" not in said(command, file)
