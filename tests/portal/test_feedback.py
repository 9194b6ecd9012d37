"""`penstock feedback` and `penstock explain --run`: talking to a run from another terminal, seeing what comes of it."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import penstock as ps
from penstock.checkpoint.storage import Storage
from penstock.feedback.log import ControlLog
from penstock.portal.cli import app
from penstock.portal.script import load
from penstock.portal.testing import local_session

runner = CliRunner()
SCHEMA = pa.schema([("ts", pa.int64()), ("segment", pa.int32()), ("speed", pa.float64())])
QUERY = """import penstock as ps

cars = ps.stream("cars", "ts bigint, segment int, speed double", time="ts").disorder(0)
cars = cars.read_parquet(r"{home}/in", order="name")
query = cars.where("speed >= 0").window(20).group_by("segment").agg(mean="avg(speed)", n="count(*)")
other = cars.group_by("segment").agg(n="count(*)")
zones = ps.table("zones", "segment int, zone string", key="segment").read_csv(r"{home}/zones.csv")
looked_up = cars.lookup(zones, "segment")
"""


def said(*arguments: object, code: int = 0) -> str:
    done = runner.invoke(app, [str(a) for a in arguments], catch_exceptions=False)
    assert done.exit_code == code, done.output
    return done.stdout


def refused(*arguments: object) -> str:
    """What is complained about, in two lines."""
    done = runner.invoke(app, [str(a) for a in arguments], catch_exceptions=False)
    assert done.exit_code == 2 and done.stdout == "", done.output
    assert len(done.stderr.splitlines()) == 2
    return done.stderr


def body(*arguments: object) -> dict[str, Any]:
    (line,) = said(*arguments, "--json").splitlines()
    return dict(json.loads(line))


def arrive(home: Path, number: int, folder: str = "in") -> None:
    """Fifty ticks, one event each, in three segments, ten to a row group. The last window stays open."""
    (home / folder).mkdir(exist_ok=True)
    ticks = range(50 * number, 50 * (number + 1))
    table = pa.table([list(ticks), [t % 3 for t in ticks], [float(t % 50) for t in ticks]], SCHEMA)
    pq.write_table(table, home / folder / f"{number:03}.parquet", row_group_size=10)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "query.py").write_text(QUERY.format(home=tmp_path))
    arrive(tmp_path, 0)
    return tmp_path


@pytest.fixture
def out(home: Path) -> Path:
    return home / "out"


def ran(home: Path, name: str = "query", **options: Any) -> None:
    """All there is, and no more."""
    query = load(f"{home / 'query.py'}:{name}").query
    target = ps.parquet(str(home / "out"))
    query.start(target, trigger="available_now", spark=local_session(), buckets=1, **options).wait()


@pytest.fixture
def going(home: Path, out: Path) -> Iterator[ps.Run]:
    """A run that has read the first file and looks for more."""
    query = load(str(home / "query.py")).query
    with query.start(ps.parquet(str(out)), every="10 ms", spark=local_session(), buckets=1) as run:
        until(lambda: run.progress is not None)
        yield run


def until(true: Any) -> None:
    deadline = time.monotonic() + 30
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def requests(out: Path) -> list[str]:
    return [said["text"] for _, said in ControlLog(Storage.at(str(out / "_penstock/checkpoint"))).requests()]


# --- to a run that is going -------------------------------------------------------------------------------------------


def test_what_is_ignored_is_told_with_its_way(home: Path, out: Path, going: ps.Run) -> None:
    lines = said("feedback", out, "not [*, 1, *, *]").splitlines()
    assert lines[0].startswith("not [*, 1, *, *] left for aggregate-1 as ")
    notes = [line for line in lines if line.startswith("note: ")]
    assert any("no punctuation on `segment`" in n for n in notes)
    way = lines[1 + len(notes) :]
    assert way[0] == "taken up, from epoch 2 on:"
    assert [line.split()[0] for line in way[1:]] == ["aggregate-1", "bucket-1", "select-1", "source:cars"]
    assert "purges state" in way[1] and way[2].endswith("passes it on") and way[4].endswith("drops them as it reads")
    arrive(home, 1)
    until(lambda: going.saved.get("source:cars dropped"))
    assert {g.place for g in going.guards()} == {"aggregate-1", "aggregate-1:groups", "source:cars"}
    assert all(g.since == 2 for g in going.guards())
    assert going.saved == {"source:cars dropped": 16, "aggregate-1 purged": 1}


def test_where_it_stops_and_why(out: Path, going: ps.Run) -> None:
    assert said("feedback", out, "not [*, *, > 40, *]").splitlines()[-1] == (
        "  aggregate-1  not [*, *, > 40.0, *]  drops results; goes no further: 'mean': known when a group is complete"
    )


def test_another_operator_may_be_told_and_machines_may_ask(out: Path, going: ps.Run) -> None:
    told = body("feedback", out, "not [*, *, > 45]", "--to", "source:cars")
    assert (told["feedback"], told["to"], told["active"], told["taken_up"]) == (
        "not [*, *, > 45.0]", "source:cars", True, True
    )  # fmt: skip
    assert told["epoch"] == 2 and [s["node"] for s in told["way"]] == ["source:cars"]
    assert len(told["remarks"]) == 2


def test_a_wish(out: Path, going: ps.Run) -> None:
    way = said("feedback", out, "prefer [*, 2, *, *]").splitlines()[-1]
    assert way.endswith("does nothing: what it promises depends on the order of files")


def test_partial_results_are_shown_as_such(out: Path, going: ps.Run) -> None:
    text = said("feedback", out, "now [*, 1, *, *]")
    assert "partial, as of epoch 2; the final results follow" in text and text.endswith("1 row\n")
    assert "partial ┃" not in text
    (row,) = body("feedback", out, "now [*, 1, *, *]")["rows"]
    assert row == {"window_start": 40, "segment": 1, "mean": 44.5, "n": 4, "partial": True, "as_of_epoch": 3}
    assert said("feedback", out, "now [7, *, *, *]") == "partial: no result that matches is under way\n"
    assert said("feedback", out, "now [*, 1, *, *]", "--quiet") == ""


def test_the_list_of_what_is_in_force(home: Path, out: Path, going: ps.Run) -> None:
    where = out / "_penstock/checkpoint"
    assert said("feedback", where) == f"{where}: after epoch 1, running; no feedback in force\n"
    said("feedback", out, "not [<= 100, 1, *, *]", "--quiet")
    arrive(home, 1)
    until(lambda: going.saved.get("source:cars dropped"))
    text = said("feedback", out)
    assert "running; 5 guards, spared 16 rows, purged 1 row of state" in text
    assert "until it is covered" in text and "source:cars: 16 rows dropped" in text
    listed = body("feedback", out)
    assert {"place": "source:cars", "pattern": "[< 120, 1, *]", "since": 2, "pinned": False} in listed["guards"]
    assert listed["spared"]["rows"] == listed["saved"]["source:cars dropped"] == 16
    # Behind that, nothing more will match: nothing is left.
    arrive(home, 2)
    arrive(home, 3)
    until(lambda: not going.guards() and going.progress is not None and not going.progress.guards)
    until(lambda: body("feedback", out)["guards"] == [])


# --- to a run that is not ---------------------------------------------------------------------------------------------


def test_a_message_waits_for_the_next_start(home: Path, out: Path) -> None:
    ran(home)
    done = runner.invoke(app, ["feedback", str(out), "not [*, 1, *, *]"])
    assert done.exit_code == 0 and "left for aggregate-1" in done.stdout
    assert done.stderr == f"warning: '{out}' is not running; the message waits for its next start\n"
    assert "waits to be taken up: not [*, 1, *, *] for aggregate-1" in said("feedback", out)
    told = body("feedback", out, "not [*, 2, *, *]")
    assert (told["active"], told["taken_up"], told["way"]) == (False, False, [])
    arrive(home, 1)
    ran(home)
    assert requests(out) == [] and body("feedback", out)["guards"]


def test_nobody_answers_for_a_run_that_is_not_there(home: Path, out: Path) -> None:
    ran(home)
    assert "is not running, so nobody would answer" in refused("feedback", out, "now [*, 1, *, *]")
    assert requests(out) == []


def test_a_demand_without_an_answer_is_taken_back(home: Path, out: Path) -> None:
    """Between the epochs of a run that looks for input once an hour."""
    query = load(str(home / "query.py")).query
    with query.start(ps.parquet(str(out)), every="1 h", spark=local_session()) as run:
        until(lambda: run.progress is not None)
        complaint = refused("feedback", out, "now [*, 1, *, *]", "--timeout", "0.1")
        assert "no answer to 'now [*, 1, *, *]' within 0.1 s" in complaint
        assert requests(out) == []
        text = said("feedback", out, "not [*, 1, *, *]", "--timeout", "0.1")
        assert text.endswith("it waits for the next epoch to be planned\n")
        assert requests(out) == ["not [*, 1, *, *]"]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("not [*, 1]",), "pattern has 2 restrictions for 4 attributes"),
        (("never [*, 1, *, *]",), "starts with 'never'"),
        (("not [*, 1, *]", "--to", "cars"), "did you mean 'source:cars'"),
        (("now [*, 1, *]", "--to", "source:cars"), ""),
        (("--to", "source:cars"), "--to source:cars: and what?"),
    ],
)
def test_mistakes_are_told_and_leave_nothing(home: Path, out: Path, arguments: tuple[str, ...], complaint: str) -> None:
    ran(home)
    assert complaint in refused("feedback", out, *arguments)
    assert requests(out) == []


def test_no_run(tmp_path: Path) -> None:
    for command in (["feedback", tmp_path, "not [1]"], ["feedback", tmp_path / "x"], ["explain", "--run", tmp_path]):
        assert "is not the checkpoint of a run" in refused(*command)


# --- explain --run ----------------------------------------------------------------------------------------------------


def test_feedback_on_a_table_says_that_keys_go_on(home: Path, out: Path) -> None:
    (home / "zones.csv").write_text("segment,zone\n0,city\n1,harbour\n")
    ran(home, "looked_up", feedback=["not [*, *, *, 'harbour']"])
    lines = [line.strip(" │└─") for line in said("explain", "--run", out).splitlines()]
    heard = "⇠ not [*, *, *, 'harbour'] (client, epoch 1): "
    assert f"{heard}drops results, passes on the keys that match in each epoch" in lines
    assert lines[-1] == "saved: 17 rows dropped"


def test_the_plan_with_the_feedback_on_its_edges(home: Path, out: Path) -> None:
    ran(home, feedback=["not [*, 1, *, *]", "not [*, *, > 40, *]"])
    where = out / "_penstock/checkpoint"
    # What was measured, too, is in tests/statistics.
    lines = said("explain", "--run", out).splitlines()
    assert [line for line in lines if "measured" not in line and "brings" not in line] == [
        f"{where}: after epoch 1, not running; 4 guards, spared 17 rows",
        "aggregate-1: avg(speed) AS mean, count(*) AS n by window_start, segment",
        "   │  → (window_start bigint, segment int, mean double, n bigint)",
        "   │  ⇠ not [*, 1, *, *] (client, epoch 1): drops results, drops what arrives, purges state, passes it on",
        "   │  ⇠ not [*, *, > 40.0, *] (client, epoch 1): drops results; "
        "goes no further: 'mean': known when a group is complete",
        "   │  in force since epoch 1: not [*, 1, *, *], on results and groups; stays until punctuation covers it",
        "   │  in force since epoch 1: not [*, *, > 40.0, *], on results",
        "   └─ bucket-1: Window.tumbling(20, on='ts')",
        "      │  → (ts bigint, segment int, speed double, window_start bigint)",
        "      │  ⇠ not [*, 1, *, *] (client, epoch 1): passes it on",
        '      └─ select-1: "speed" >= 0',
        "         │  → (ts bigint, segment int, speed double)",
        "         │  ⇠ not [*, 1, *] (client, epoch 1): passes it on",
        "         └─ source:cars: Files; Disorder('ts')",
        "               → (ts bigint, segment int, speed double)",
        "               ⇠ not [*, 1, *] (client, epoch 1): drops them as it reads",
        "               in force since epoch 1: not [*, 1, *], on what is read",
        "               saved: 17 rows dropped",
    ]
    described = body("explain", "--run", out)
    assert list(described["operators"]) == ["aggregate-1", "bucket-1", "select-1", "source:cars"]
    assert described["operators"]["source:cars"]["saved"]["dropped"] == 17
    assert [s["did"] for s in described["operators"]["select-1"]["heard"]] == ["passed on"]
    assert said("explain", "--run", out, "--quiet") == ""


def test_with_the_query_it_tells_of_punctuation_too(home: Path, out: Path) -> None:
    ran(home, feedback=["not [*, 1, *, *]"])
    text = said("explain", home / "query.py", "--run", out)
    assert "⇢ ts up to" in text and "state: groups leave" in text and "⇠ not [*, 1, *]" in text
    assert "cars from files" in text
    assert "⇢" not in said("explain", home / "query.py", "--run", out, "--plain")
    assert "query.py:other is not the query of" in refused("explain", f"{home / 'query.py'}:other", "--run", out)
    assert "--mermaid and --run exclude each other" in refused("explain", "--run", out, "--mermaid")
    assert "no query file" in refused("explain")


def test_what_was_never_read_and_what_is_over(home: Path, out: Path) -> None:
    for number in range(1, 5):
        arrive(home, number)
    ran(home, feedback=["not [< 100, *, *, *]"])
    lines = said("explain", "--run", out).splitlines()
    assert lines[0].endswith("no feedback in force, spared 100 rows, 100 of them never read")
    assert lines[-1].strip() == "saved: 100 rows never read (10 row groups, 2 whole files)"
    assert "drops them as it reads; over by now: nothing more will match" in lines[-2]


def test_what_operators_tell_each_other(home: Path, out: Path) -> None:
    """A pace whose second input lags tells it so; a feedback that one of two consumers has said waits for the other."""
    arrive(home, 0, "late")
    declared = ps.stream("late", "ts bigint, segment int, speed double", time="ts").disorder(0)
    late = declared.read_parquet(str(home / "late"), order="name")
    cars = load(str(home / "query.py")).query.operator.inputs[0].inputs[0].inputs[0]
    fast = ps.Stream(cars)
    query = fast.where("speed < 25").union(fast.where("speed >= 25")).pace(late, on="ts", bound=10)
    for number in range(1, 3):
        arrive(home, number)
    options: dict[str, Any] = {"spark": local_session(), "max_rows": 25, "buckets": 1}
    query.start(ps.parquet(str(out)), trigger="available_now", **options).wait()
    said("feedback", out, "not [*, 2, *]", "--to", "select-1")
    arrive(home, 3)
    query.start(ps.parquet(str(out)), trigger="available_now", **options).wait()
    text = said("explain", "--run", out)
    described = body("explain", "--run", out)["operators"]
    assert "issues not [< " in text and described["pace-1"]["issued"]
    heard = described["source:late"]["heard"][-1]
    assert heard["by"] == "pace-1" and heard["did"] == "drops results"
    assert "(client, epoch " in text
    waits = [s for s in described["source:cars"]["heard"] if s["did"] == "waits"]
    assert waits and "2 consumers read it" in waits[-1]["why"]
    assert text.count("source:cars") == 2 and text.count("source:cars (shared, drawn above)") == 1


# --- while it runs ----------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("spark")
def test_a_run_tells_what_it_was_spared(home: Path, out: Path) -> None:
    """On Spark: lines per epoch, the summary, and machines' form of both."""
    arrive(home, 1)
    text = QUERY.format(home=home) + f'sink = ps.parquet(r"{out}")\n'
    settings = '{"trigger": "available_now", "feedback": ["not [< 40, *, *, *]"]}'
    (home / "query.py").write_text(f"{text}settings = {settings}\n")
    lines = said("run", home / "query.py").splitlines()
    assert "spared 40 rows, 40 of them never read" in lines[-1] and lines[-1].startswith("feedback: ")
    assert any(line.startswith("epoch 1: ") and "feedback: " in line for line in lines)
    summary = json.loads(said("run", home / "query.py", "--json").splitlines()[-1])
    assert summary["saved"] == {}, "of this run, not of those before"
