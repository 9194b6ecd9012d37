"""`penstock check`: reports, exit codes, fixes; and PySpark scripts, whose queries are looked at but not started."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner

import penstock as ps
from penstock.contract.report import Finding, Fix, Report
from penstock.portal.check import CheckedQuery, check_file, drawn, fix_lines
from penstock.portal.cli import app
from penstock.portal.script import load
from penstock.portal.testing import local_session

Write = Callable[..., str]
runner = CliRunner()
SAFE = 'query = s.disorder("5 s").window("10 s").group_by("segment").agg(n="count(*)")\n'
UNSAFE = 'query = s.disorder("5 s").group_by("segment").agg(n="count(*)")\n'


def said(*arguments: str, code: int = 0) -> str:
    done = runner.invoke(app, list(arguments), catch_exceptions=False)
    assert done.exit_code == code, done.output
    return done.stdout


def complaint(*arguments: str) -> str:
    done = runner.invoke(app, list(arguments))
    assert done.exit_code == 2, done.output
    assert done.stdout == "" and len(done.stderr.splitlines()) == 2
    return done.stderr


# --- query files ------------------------------------------------------------------------------------------------------


def test_safe(query_file: Write) -> None:
    text = said("check", query_file(SAFE))
    assert text.startswith("query.py: safe: ")
    assert "✓ aggregate-1" in text and "✗" not in text


def test_unsafe(query_file: Write) -> None:
    text = said("check", query_file(UNSAFE), code=1)
    lines = text.splitlines()
    assert lines[0] == "query.py: unsafe: aggregate-1: state grows for ever, results are held back"
    (row,) = [line for line in lines if line.startswith("✗")]
    assert row.split(maxsplit=2)[1:] == ["aggregate-1", "unbounded  held back  no punctuation"]
    assert "    needs: traffic: segment: each value" in lines
    assert lines[-1].startswith("  traffic = traffic.punctuate(")


def test_a_stream_by_name(query_file: Write) -> None:
    file = query_file(UNSAFE + SAFE.replace("query", "other"))
    assert said("check", f"{file}:other").startswith("query.py:other: safe")
    said("check", file, code=1)


def test_json(query_file: Write) -> None:
    body = json.loads(said("check", query_file(UNSAFE), "--json", code=1))
    assert body.keys() == {"query", "safe", "culprit", "findings", "edges", "fixes", "shedding"}
    assert (body["query"], body["safe"], body["culprit"]) == ("query.py", False, "aggregate-1")
    assert [f["operator"] for f in body["findings"]] == ["source:traffic", "aggregate-1"]
    assert body["findings"][1].keys() >= {"operator", "detail", "state", "output", "why", "needs", "assumes"}
    assert body["edges"]["source:traffic"] == "ts up to"
    assert body["fixes"][0].keys() == {"stream", "declaration", "helps"}
    assert json.loads(said("check", query_file(SAFE), "--json"))["culprit"] is None


def test_feedback_that_could_live_for_ever(query_file: Write) -> None:
    text = said("check", query_file(SAFE)).splitlines()
    assert text[-1].startswith("feedback: if consumers say ") and "not [n …]" in text[-1]
    assert "not [window_start <= …]" not in text[-1]
    body = json.loads(said("check", query_file(SAFE), "--json"))
    told = [g for f in body["findings"] if f["operator"] == "aggregate-1" for g in f["feedback"]]
    assert {"not [n …]": "stays", "not [window_start <= …]": "goes"}.items() <= {
        (g["feedback"], g["fate"]) for g in told if not g["doomed"]
    }
    # What has to be mended first is not hidden behind it.
    assert "feedback:" not in said("check", query_file(UNSAFE), code=1)
    console = Console(width=100, record=True, file=sys.stderr)
    console.print(drawn(check_file(query_file(SAFE))))
    assert "feedback: if consumers say " in console.export_text()


def test_fix_can_be_pasted(query_file: Write) -> None:
    """Between the stream and the query, under the name of the stream, the printed lines make the query safe."""
    printed = said("check", query_file(UNSAFE), "--fix", code=1)
    mended = f'traffic = s.disorder("5 s")\n{printed}\n' + UNSAFE.replace('s.disorder("5 s")', "traffic")
    assert said("check", query_file(mended), "--fix") == ""


def test_fix_that_does_not_exist(query_file: Write) -> None:
    done = runner.invoke(app, ["check", query_file('query = s.agg(n="count(*)")'), "--fix"])
    assert (done.exit_code, done.stdout) == (1, "")
    assert "no declaration helps aggregate-1" in done.stderr


def test_quiet_says_it_by_its_exit_code(query_file: Write) -> None:
    assert said("check", query_file(SAFE), "--quiet") == ""
    assert said("check", query_file(UNSAFE), "-q", code=1) == ""


def test_bounded(query_file: Write) -> None:
    ended = query_file(UNSAFE.replace('("5 s")', '("5 s").ends()'))
    said("check", ended, code=1)
    assert "at the end of the run" in said("check", ended, "--bounded")
    assert said("check", query_file(UNSAFE), "--bounded", "--fix", code=1).startswith("traffic = traffic.ends()")


def test_what_only_the_data_knows_is_safe(query_file: Write) -> None:
    text = said("check", query_file('query = s.punctuated().group_by("segment").agg(n="count(*)")'))
    assert "safe if the data says enough: aggregate-1" in text and "? aggregate-1" in text


def test_nothing_is_read(query_file: Write, tmp_path: Path) -> None:
    said("check", query_file(SAFE, path=tmp_path / "not-there"))


def test_mistakes(query_file: Write, tmp_path: Path) -> None:
    assert "'sped'" in complaint("check", query_file('query = s.where("sped < 1")'))
    assert "no such file" in complaint("check", str(tmp_path / "no.py"))
    assert "--spark" in complaint("check", query_file(SAFE), "argument")
    assert "--spark" in complaint("check", query_file(SAFE), "--output-mode", "update")
    assert "--bounded" in complaint("check", "--spark", query_file(SAFE), "--bounded")


def test_on_a_terminal(query_file: Write) -> None:
    console = Console(width=100, force_terminal=True, color_system="standard", record=True, file=sys.stderr)
    console.print(drawn(check_file(query_file(UNSAFE))))
    plain, coloured = console.export_text(clear=False), console.export_text(styles=True)
    assert "✗ aggregate-1" in plain and "traffic = traffic.punctuate(" in plain
    assert "\x1b[31munbounded" in coloured and "\x1b[31mheld back" in coloured


def test_a_fix_that_helps_only_some_says_so() -> None:
    found = (Finding("a-1", "", "unbounded", "at once"), Finding("b-1", "", "constant", "held back"))
    report = Report(found, {}, (Fix("s", "s = s.ends()", ("a-1",)),))
    assert report.verdict == "unsafe: a-1: state grows for ever; unsafe too: 1 other operator"
    assert "To make a-1 safe, declare:" in str(report)


# --- penstock run -----------------------------------------------------------------------------------------------------


def test_run_refuses_before_spark_starts(query_file: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.engine.spark.session.spark_session", lambda *a, **k: pytest.fail("Spark was started"))
    told = complaint("run", query_file(UNSAFE))
    assert "error: aggregate-1" in told and "needs: traffic: segment: each value" in told
    assert "--allow-unbounded" in told


def test_run_with_a_reason_then_state(query_file: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.engine.spark.session.spark_session", lambda *a, **k: local_session())
    kept = str(tmp_path / "kept")
    # A bounded run is not refused, and says what stays open.
    done = runner.invoke(app, ["run", query_file(UNSAFE), "--trigger", "available_now", "--checkpoint", kept])
    assert done.exit_code == 0, done.output
    assert "warning: aggregate-1" in done.stderr and "let traffic say .ends()" in done.stderr
    assert json.loads(said("state", kept, "--json"))["allowed_unbounded"] is None
    query = load(query_file(UNSAFE)).query
    with query.start(
        ps.memory(), every="50 ms", checkpoint=kept, spark=local_session(), allow_unbounded="three segments, ever"
    ):
        pass
    assert json.loads(said("state", kept, "--json"))["allowed_unbounded"]["reason"] == "three segments, ever"
    assert "allowed to grow for ever (aggregate-1): three segments, ever" in said("state", kept)


def test_reason_from_the_file_and_the_command_line(query_file: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Any] = []

    class StopError(Exception):
        pass

    def stop(self: object, queries: object, options: dict[str, Any], **more: object) -> None:
        given.append(options["allow_unbounded"])
        raise StopError

    monkeypatch.setattr("penstock.portal.watch.ForegroundRun.run", stop)
    file = query_file(UNSAFE + 'settings = {"allow_unbounded": "in the file"}\n')
    for more in ([], ["--allow-unbounded", "on the command line"]):
        with pytest.raises(StopError):
            runner.invoke(app, ["run", file, *more], catch_exceptions=False)
    assert given == ["in the file", "on the command line"]


# --- PySpark scripts --------------------------------------------------------------------------------------------------

SCRIPT = """
import sys
from pyspark.sql import SparkSession, functions as F

spark = SparkSession.builder.master("spark://nowhere:7077").appName("mine").getOrCreate()
clicks = spark.readStream.format("rate").load().selectExpr("timestamp AS ts", "value % 7 AS user")
"""


@pytest.fixture
def script(tmp_path: Path) -> Write:
    def write(text: str) -> str:
        file = tmp_path / "job.py"
        file.write_text(SCRIPT + text)
        return str(file)

    return write


@pytest.mark.usefixtures("spark")
def test_a_started_query_is_checked_and_not_started(script: Write, spark: Any) -> None:
    file = script(
        "print('noise')\n"
        "seen = clicks.dropDuplicates(['user'])\n"
        "query = seen.writeStream.format('memory').queryName('seen_users').start()\n"
        "query.awaitTermination()\n"
        "spark.streams.awaitAnyTermination()\n"
        "assert not query.isActive and query.lastProgress is None\n"
        "spark.stop()\n"
    )
    body = json.loads(said("check", "--spark", file, "--json", code=1))
    assert body["query"] == "job.py: seen_users (line 9)"
    assert (body["output_mode"], body["safe"]) == ("append", False)
    assert spark.streams.active == [] and spark.range(1).count() == 1  # Nothing runs, and nothing was stopped.
    text = said("check", "--spark", file, code=1)
    assert "noise" not in text and "dropDuplicates" in text
    assert "withWatermark" in said("check", "--spark", file, "--fix", code=1)
    assert said("check", "--spark", file, "--quiet", code=1) == ""


@pytest.mark.usefixtures("spark")
def test_output_modes_are_those_of_the_script(script: Write) -> None:
    file = script(
        "def main():\n"
        "    counts = clicks.withWatermark('ts', '1 minute').groupBy(F.window('ts', '1 minute')).count()\n"
        "    counts.writeStream.outputMode('update').format('noop').start()\n"
        "    counts.writeStream.format('noop').start(outputMode='complete')\n"
        "    counts.writeStream.toTable('counts')\n"
        "    sys.exit()\n"
        "if __name__ == '__main__':\n"
        "    main()\n"
    )
    bodies = [json.loads(line) for line in said("check", "--spark", file, "--json", code=1).splitlines()]
    assert [(b["output_mode"], b["safe"]) for b in bodies] == [("update", True), ("complete", False), ("append", True)]


@pytest.mark.usefixtures("spark")
def test_variables_of_a_script_that_starts_nothing(script: Write) -> None:
    file = script(
        "users = int(sys.argv[1])\nseen = clicks.dropDuplicates(['user'])\nalias = seen\nold = spark.range(3)\n"
    )
    bodies = [json.loads(line) for line in said("check", "--spark", file, "7", "--json", code=1).splitlines()]
    assert [(b["query"], b["safe"]) for b in bodies] == [("job.py: clicks", True), ("job.py: seen", False)]
    assert said("check", "--spark", f"{file}:clicks", "7").startswith("job.py: clicks: ")
    assert "clicks, seen" in complaint("check", "--spark", f"{file}:sen", "7")
    assert "line 7" in complaint("check", "--spark", file)  # The argument is missing.


@pytest.mark.usefixtures("spark")
def test_scripts_with_nothing_to_check(script: Write, tmp_path: Path) -> None:
    assert "no streaming query" in complaint("check", "--spark", script("del clicks\n"))
    bare = tmp_path / "notebook.py"
    bare.write_text("df = spark.readStream.format('rate').load()\n")
    assert "SparkSession.builder.getOrCreate()" in complaint("check", "--spark", str(bare))
    wrong = complaint("check", "--spark", script("clicks.select('usr')\n"))
    assert "job.py, line 7" in wrong and "UNRESOLVED_COLUMN" in wrong and "Project" not in wrong


def test_what_spark_needs_is_all_of_it() -> None:
    """The declarations at sources alone would not do: a join wants a range of time as well."""
    join = Finding(
        "join on ad", "", "unbounded", "at once", (), (".withWatermark(…) on clicks", "AND clicks.ts BETWEEN …")
    )
    fixes = (Fix("clicks", ".withWatermark(…)", ("join on ad",)),)
    checked = CheckedQuery("job.py", Report((Finding("limit", "", "constant", "at once"), join), {}, fixes), spark=True)
    assert list(fix_lines(checked)) == ["# job.py: join on ad", *(f"#   {n}" for n in join.needs)]


def test_check_spark_is_loaded_on_demand() -> None:
    import subprocess

    code = "import sys, penstock as ps; assert 'pyspark' not in sys.modules; ps.check_spark; ps.no_such"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "has no attribute 'no_such'" in done.stderr.splitlines()[-1]
