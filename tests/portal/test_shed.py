"""The commands about too much: `penstock shed`, `penstock qos`, `penstock calibrate`."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import penstock as ps
from penstock.portal.calibrate import calibrated
from penstock.portal.cli import app
from penstock.portal.live import plain_line
from penstock.portal.outcome import queries_of
from penstock.portal.script import load
from penstock.portal.testing import local_session

CLI = CliRunner()
QUERY = """
import penstock as ps
cars = ps.stream("cars", "ts bigint, lane bigint", time="ts").read_parquet({data!r}, order="name").disorder(0)
query = cars.where("lane < 3").window(10).group_by("lane").agg(n="count(*)")
sink = ps.parquet({out!r})
qos = ps.QoS(loss=[(100, 1), (50, .7), (0, 0)], gap=3)
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in").mkdir()
    for n in range(6):
        ts = list(range(100 * n, 100 * n + 100))
        pq.write_table(pa.table({"ts": ts, "lane": [t % 4 for t in ts]}), tmp_path / "in" / f"{n}.parquet")
    (tmp_path / "q.py").write_text(QUERY.format(data=str(tmp_path / "in"), out=str(tmp_path / "out")))
    return tmp_path


def run(**options: Any) -> ps.Run:
    script = load("q.py")
    options = {"trigger": "available_now", "max_rows": 100, "spark": local_session(), **options}
    return queries_of(script, as_json=False, quiet=True).start(**options).wait()


def say(*arguments: str) -> str:
    done = CLI.invoke(app, list(arguments))
    return f"{done.output}{done.exception or ''}"


def test_a_run_tells_what_it_gives_up_and_is_told_otherwise(home: Path) -> None:
    run(trigger="once", max_rows=None, shedding=ps.Shedding.auto(load=1.5))
    text = say("shed", "out")
    assert "sheds auto/0.9@1.5" in text and "→" in text and "sink-1 100%" in text
    told = json.loads(say("shed", "out", "--json"))
    assert told["road"]["cursor"] > 0 and told["outputs"][0]["dropped"] > 0
    assert told["delivered"]["sink-1"] < 1
    assert "waits for its next start" in say("shed", "out", "--to", "40%")
    again = run(shedding=ps.Shedding.auto(load=1.5))
    assert again.driver.feedback.shedding == ps.Shedding.to("40%") if again.progress else True
    assert "Shedding.off()" in say("shed", "out", "--off")


def test_the_account_adds_up_and_duckdb_reads_it(home: Path) -> None:
    done = run(shedding=ps.Shedding.to("40%"))
    assert done.progress is not None
    account = done.account
    tally = done.progress.shedding["outputs"]["sink-1"]
    assert sum(account["windows"].to_pylist()) == tally["windows"] == 60
    assert (
        sum(account["dropped"].to_pylist()) == tally["dropped"] == sum(map(len, account["dropped_windows"].to_pylist()))
    )
    found = duckdb.sql(
        "SELECT sum(dropped), max(longest_gap) FROM read_json('out/_penstock/checkpoint/shed/0*.json')"
    ).fetchall()
    assert found == [(tally["dropped"], tally["longest_gap"])]
    missing = {int(w) for some in account["dropped_windows"].to_pylist() for w in some}
    there = {w for f in Path("out").glob("*.parquet") for w in pq.read_table(f)["window_start"].to_pylist()}
    assert not missing & there and len(missing | there) >= 59
    line = plain_line(done.progress)
    assert "shed 40%" in line and f"{tally['dropped']} of 60 windows dropped" in line


def test_what_would_be_lost_is_known_before_the_start(home: Path) -> None:
    rows = [json.loads(line) for line in say("shed", "q.py", "--at", "+60%", "--json").splitlines()]
    assert rows[0]["load"] == "+0%" and rows[0]["sink-1"] == "100%" and rows[-1]["load"] == "+60%"
    shares = [float(row["sink-1"].rstrip("%")) for row in rows]
    assert shares == sorted(shares, reverse=True) and shares[-1] < 70
    assert all(a["utility"] >= b["utility"] for a, b in pairwise(rows))
    assert "costs are not known" in say("shed", "q.py", "--at", "+60%")
    Path("nothing.json").write_text("{}")
    assert "costs are not known" in say("shed", "q.py", "--at", "+60%", "--costs", "nothing.json")
    too_much = say("shed", "q.py", "--at", "+900%")
    assert "too much whatever is given up" in too_much or "sink-1" in too_much


def test_costs_are_measured_without_touching_the_sink(home: Path) -> None:
    measured = calibrated(queries_of(load("q.py"), as_json=False, quiet=True), 10_000, spark=local_session())
    assert measured.operators["source:cars"].total_in == 600
    assert measured.cost("aggregate-1#0") > 0
    assert not Path("out").exists()
    Path("costs.json").write_text(json.dumps(measured.to_json()))
    rows = [json.loads(s) for s in say("shed", "q.py", "--at", "+50%", "--costs", "costs.json", "--json").splitlines()]
    assert float(rows[-1]["sink-1"].rstrip("%")) < 100


def test_graphs_are_drawn(home: Path) -> None:
    text = say("qos", "q.py")
    assert "ps.QoS(loss=[(100, 1), (50, 0.7), (0, 0)], gap=3)" in text and "•" in text
    say("qos", "q.py", "--png", "worth.png", "--quiet")
    assert Path("worth.png").stat().st_size > 1000


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("shed", "out", "--to", "150%"), "shedding to 150% is not possible"),
        (("shed", "out", "--to", "most"), "write '60%', 'auto' or 'off'"),
        (("shed", "out", "--to", "60%", "--off"), "exclude each other"),
        (("shed", "q.py"), "is a query file, not a run"),
        (("shed", "q.py", "--at", "50"), "--at 50: no load"),
        (("shed", "out"), "started without qos= and shedding="),
        (("shed", "out", "--to", ""), "write '60%', 'auto' or 'off'"),
        (("shed", "out", "--costs", "costs.json"), "--costs goes with --at"),
        (("qos", "q.py", "--png", "nowhere/worth.png"), "there is no folder 'nowhere'"),
        (("qos", "q.py", "--png", "in"), "--png 'in' is a folder"),
        (("qos", "q.py", "--png", "worth.docx"), "nothing is drawn as '.docx'"),
        (("calibrate", "q.py", "--out", "nowhere/costs.json"), "there is no folder 'nowhere'"),
        (("shed", "nowhere"), "is not the checkpoint of a run"),
    ],
)
def test_mistakes(home: Path, arguments: tuple[str, ...], complaint: str) -> None:
    text = Path("q.py").read_text()
    Path("q.py").write_text(text.replace("qos =", "worth ="))
    run()
    Path("q.py").write_text(text)
    assert complaint in say(*arguments)


def test_a_query_file_with_nonsense_for_qos_is_refused(home: Path) -> None:
    for wrong, complaint in (
        ("qos = 3", "is no quality of service"),
        ("qos = ps.QoS(gap=0)", "gap=0"),
        ("qos = ps.QoS(loss=[(100, 1), (50, .4), (0, 0)])", "be concave"),
        ("qos = ps.QoS(weight=0)", "weight=0"),
    ):
        Path("bad.py").write_text(QUERY.format(data="in", out="out2").split("qos =")[0] + wrong)
        assert complaint in say("qos", "bad.py")


def test_check_says_what_can_be_shed(home: Path) -> None:
    text = say("check", "q.py")
    assert "shedding: sink-1: window drops by window_start, before cars is processed" in text
    assert "shedding: sink-1: gap=3 lets at most 75% of the windows go, 3 in a row" in text
    events = QUERY.format(data="in", out="out").replace('.window(10).group_by("lane").agg(n="count(*)")', "")
    Path("events.py").write_text(events)
    assert "lets at most 75% of the results go; how many in a row, only windows can promise" in say(
        "check", "events.py"
    )
    Path("q.py").write_text(Path("q.py").read_text().replace("qos =", "worth ="))
    assert "shedding:" not in say("check", "q.py")
    assert json.loads(say("check", "q.py", "--json"))["shedding"]
