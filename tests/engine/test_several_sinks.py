"""Several sinks of one run: what they share runs once, and an epoch counts for all of them or for none."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import penstock as ps
from penstock.checkpoint.checkpoint import Checkpoint, Manifest
from penstock.checkpoint.fault import Crash, hooked
from penstock.checkpoint.storage import Storage
from penstock.errors import UserError
from penstock.feedback.consumer import Consumer
from penstock.portal.testing import local_session
from penstock.reference.interpret import interpret
from penstock.reference.item import Event

ROWS = [(minute, segment, 10 * segment + minute) for minute in range(8) for segment in range(3)]


def feed(home: Path) -> None:
    (home / "in").mkdir(parents=True, exist_ok=True)
    for minute in range(8):
        rows = [r for r in ROWS if r[0] == minute]
        names = ("minute", "segment", "speed")
        table = pa.table({n: pa.array([r[k] for r in rows], pa.int32()) for k, n in enumerate(names)})
        pq.write_table(table, home / "in" / f"{minute}.parquet")


def streams(home: Path) -> tuple[ps.Stream, ps.Stream, ps.Stream]:
    """Events that two others read, and that are a result themselves."""
    cars = ps.stream("cars", "minute int, segment int, speed int", time="minute")
    shared = cars.read_parquet(str(home / "in"), order="name").disorder(0).ends().where("speed > 2")
    return shared, shared.window(2).group_by("segment").agg(n="count(*)"), shared.window(4).agg(top="max(speed)")


def start(home: Path, sinks: Callable[[int], Any] | None = None, **options: Any) -> ps.Run:
    queries = [
        s.to(ps.parquet(str(home / f"out{k}")) if sinks is None else sinks(k)) for k, s in enumerate(streams(home))
    ]
    given = {"trigger": "available_now", "max_rows": 3, "checkpoint": str(home / "ck"), "spark": local_session()}
    return ps.start(queries, **{**given, **options})


def rows(folder: Path) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(r.values()) for p in folder.glob("part-*") for r in pq.read_table(p).to_pylist())


def expected(home: Path) -> list[Counter[tuple[Any, ...]]]:
    """Each on its own, by the interpreter."""
    names = ("minute", "segment", "speed")
    arrivals = [dict(zip(names, r)) for r in ROWS]
    found = (interpret(s.plan, {"cars": arrivals}).outputs for s in streams(home))
    return [Counter(tuple(i.row.values()) for i in items if isinstance(i, Event)) for items in found]


def test_each_gets_its_results_and_what_is_shared_runs_once(tmp_path: Path) -> None:
    feed(tmp_path)
    run = start(tmp_path).wait()
    assert [rows(tmp_path / f"out{k}") for k in range(3)] == expected(tmp_path)
    assert run.progress is not None and run.progress.total_rows_in == len(ROWS)  # Read once.
    assert [n.operator.kind for n in run.driver.plan].count("select") == 1
    manifest = Checkpoint(Storage.at(str(tmp_path / "ck"))).latest()
    assert manifest is not None and {o.sink for o in manifest.outputs} <= set(run.sinks)
    assert list(run.sinks.values()) == [f"ps.parquet('{tmp_path}/out{k}')" for k in range(3)]


def test_all_of_it_is_what_the_interpreter_makes_of_one_plan(tmp_path: Path) -> None:
    feed(tmp_path)
    run = start(tmp_path).wait()
    arrivals = [dict(zip(("minute", "segment", "speed"), r)) for r in ROWS]
    result = interpret(run.driver.plan, {"cars": arrivals})
    for k, sink in enumerate(run.sinks):
        items = result.streams[sink]
        found = Counter(tuple(i.row.values()) for i in items if isinstance(i, Event))
        assert found == rows(tmp_path / f"out{k}")


@pytest.mark.parametrize("kind", ["files", "mixed"])
def test_a_crash_at_any_step_changes_nothing(tmp_path: Path, kind: str) -> None:
    """Also between two sinks, one of which has published an epoch and the other has not."""
    feed(tmp_path)
    delivered: dict[int, Any] = {}

    def take(table: pa.Table, epoch: int) -> None:
        found = sorted(tuple(r.values()) for r in table.to_pylist())
        assert delivered.setdefault(epoch, found) == found

    def sinks(k: int) -> Any:
        return ps.deliver(take) if kind == "mixed" and k == 1 else ps.parquet(str(tmp_path / f"out{k}"))

    seen: set[str] = set()

    def hook(point: str) -> None:
        step = "".join(c for c in point if not c.isdigit())
        if step not in seen or (point.startswith(("publish", "deliver")) and point not in seen):
            seen.update((step, point))
            raise Crash(point)

    for _ in range(300):
        try:
            with hooked(hook):
                start(tmp_path, sinks).wait()
            break
        except Crash:
            continue
    else:
        pytest.fail("not through")
    assert len([s for s in seen if s.startswith("publish part-0")]) >= 4
    found = [rows(tmp_path / f"out{k}") for k in range(3)]
    if kind == "mixed":
        found[1] = Counter(row for given in delivered.values() for row in given)
    assert found == expected(tmp_path)


# --- left out after a crash -------------------------------------------------------------------------------------------


def newest(home: Path) -> Manifest:
    return Checkpoint(Storage.at(str(home / "ck"))).latest() or Manifest(0)


def crashed(home: Path, point: str, sinks: Callable[[int], Any] | None = None, of: int = 1) -> None:
    """A run that has crashed at the first step of this name in an epoch with results for `of` sinks."""

    def hook(step: str) -> None:
        if step.startswith(point) and len({o.sink for o in newest(home).outputs}) >= of:
            raise Crash(step)

    with hooked(hook), pytest.raises(Crash):
        start(home, sinks).wait()


def start_without(home: Path) -> ps.Run:
    """Without the first sink: those of operators with state cannot be left out."""
    queries = [s.to(ps.parquet(str(home / f"out{k}"))) for k, s in enumerate(streams(home)) if k]
    given = {"trigger": "available_now", "max_rows": 3, "checkpoint": str(home / "ck"), "spark": local_session()}
    return ps.start(queries, **given).wait()


@pytest.mark.parametrize("point", ["committed", "publish part", "settle", "published"])
def test_a_sink_that_is_left_out_after_a_crash_still_gets_its_last_epoch(tmp_path: Path, point: str) -> None:
    feed(tmp_path)
    crashed(tmp_path, point, of=3)
    out = tmp_path / "out0"
    staged = [o.staged for o in newest(tmp_path).outputs if o.sink == "sink-1"]
    waits = [path for name in staged if (path := out / name).exists()]
    owed = rows(out) + Counter(tuple(r.values()) for path in waits for r in pq.read_table(path).to_pylist())
    assert waits if point == "committed" else staged
    run = start_without(tmp_path)
    assert rows(out) == owed != expected(tmp_path)[0]
    assert [rows(tmp_path / f"out{k}") for k in (1, 2)] == expected(tmp_path)[1:]
    assert any("left out" in w for w in run.warnings) == bool(waits)
    # And if it comes back, it gets what is new from then on, and keeps what it has.
    start(tmp_path).wait()
    assert rows(out) == owed


def test_one_whose_folder_is_gone_does_not_hold_up_the_others(tmp_path: Path) -> None:
    feed(tmp_path)
    crashed(tmp_path, "committed")
    shutil.rmtree(tmp_path / "out0")
    start_without(tmp_path)
    assert rows(tmp_path / "out2") == expected(tmp_path)[2] and not (tmp_path / "out0").exists()


def test_what_only_a_function_can_take_is_not_left_out_before_it_has_it(tmp_path: Path) -> None:
    feed(tmp_path)
    taken: dict[int, list[tuple[Any, ...]]] = {}

    def take(table: pa.Table, epoch: int) -> None:
        taken[epoch] = [tuple(r.values()) for r in table.to_pylist()]

    def sinks(k: int) -> Any:
        return ps.deliver(take) if k == 0 else ps.parquet(str(tmp_path / f"out{k}"))

    crashed(tmp_path, "deliver", sinks)
    with pytest.raises(
        UserError, match=r"sink-1, ps\.deliver\(take\), is left out, and its results of epoch 1 .*once more with all"
    ):
        start_without(tmp_path)
    crashed(tmp_path, "planned", sinks)
    assert list(taken) == [1]
    start_without(tmp_path)  # It has them now.
    assert list(taken) == [1] and rows(tmp_path / "out1") == expected(tmp_path)[1]


def test_what_is_damaged_and_belongs_to_one_left_out_is_not_passed_on(tmp_path: Path) -> None:
    feed(tmp_path)
    crashed(tmp_path, "committed")
    (staged,) = (tmp_path / "out0/_penstock/staging").iterdir()
    whole = staged.read_bytes()
    staged.write_bytes(whole[:-7])
    with pytest.raises(UserError, match=r"sink-1, .* are damaged and have to be made again"):
        start_without(tmp_path)
    # Nor is an epoch run again without it of which nobody knows any more what it had made.
    staged.write_bytes(whole)
    (tmp_path / "ck/epochs/000001.commit.json").write_bytes(b"torn")
    with pytest.raises(UserError, match=r"sink-1, .* epoch 1 may have to be made again.*once more with all"):
        start_without(tmp_path)
    start(tmp_path).wait()
    assert [rows(tmp_path / f"out{k}") for k in range(3)] == expected(tmp_path)


# --- talking to one of several ----------------------------------------------------------------------------------------


def kept_going(tmp_path: Path, **options: Any) -> ps.Run:
    feed(tmp_path)
    return start(tmp_path, trigger=None, every="10 ms", **options)


def test_who_talks_says_to_whom(tmp_path: Path) -> None:
    run = kept_going(tmp_path)
    try:
        first, counted, top = run.sinks
        with pytest.raises(UserError, match=rf"3 results.*which is meant.*to='{first}'.*{counted} \(of aggregate"):
            run.feedback("not [*, 1, *]")
        with pytest.raises(UserError, match="3 results"):
            run.demand()
        with pytest.raises(UserError, match=r"no operator 'sink'.*There are: .*sink"):
            run.feedback("not [*, 1, *]", to="sink")
        told = run.feedback("not [*, 1, *]", to=counted)
        root = next(n.inputs[0] for n in run.driver.plan if n.id == counted)
        assert told.to == root  # Nobody else reads it: its own name says as much.
        assert run.feedback("not [*, 1, *]", to=root).to == root
        # Others read the shared operator, too, and have not said so.
        assert run.feedback("not [*, 1, *]", to=first).to == first
        shared = next(n.id for n in run.driver.plan if n.operator.kind == "select")
        assert "operators behind" in str(run.feedback("not [*, 99, *]", to=shared))
        assert run.demand(to=top).schema.names[:2] == ["window_start", "top"]
        assert run.demand("[*, 1, *]", to=counted).schema.names[:3] == ["window_start", "segment", "n"]
        assert run.partials(to=top).schema.names[1] == "top"
        assert run.partials(to=counted).schema.names[2] == "n"
        assert set(run.partials(to=counted)["segment"].to_pylist()) <= {1}
        with pytest.raises(UserError, match="is not what the query results in"):
            run.demand(to=shared)
    finally:
        run.stop()


def test_what_one_ignores_the_others_still_get(tmp_path: Path) -> None:
    """One of three consumers of the shared operator ignores a segment: the others are given it as before."""
    feed(tmp_path)
    run = start(tmp_path, feedback=())
    run.wait()
    before = [rows(tmp_path / f"out{k}") for k in range(3)]
    other = tmp_path / "other"
    feed(other)
    queries = start(other, trigger="once", max_rows=None)
    first, *_ = queries.sinks
    queries.wait()
    consumer = ps.consumer(str(other / "ck"))
    with pytest.raises(UserError, match="3 results"):
        consumer.feedback("not [*, 1, *]")
    receipt = consumer.feedback("not [*, 1, *]", to=first)
    assert receipt.to == first
    again = start(other)
    again.wait()
    assert [rows(other / f"out{k}") for k in range(3)] == before
    assert isinstance(consumer, Consumer) and [e.sink for e in consumer.exits] == list(again.sinks)


def test_feedback_to_one_of_two_is_heard_and_waits_for_the_other(tmp_path: Path) -> None:
    feed(tmp_path)
    shared, _, _ = streams(tmp_path)
    given = {"trigger": "available_now", "max_rows": 3, "checkpoint": str(tmp_path / "ck"), "spark": local_session()}

    def go(*told: tuple[str, str]) -> ps.Run:
        queries = [shared.to(ps.parquet(str(tmp_path / k))) for k in "ab"]
        run = ps.start(queries, **{**given, "trigger": None, "every": "1 h", "max_rows": 1})
        for text, to in told:
            run.feedback(text, to=to)
        run.stop()
        return ps.start(queries, **given).wait()

    done = go(("not [*, 1, *]", "sink-1"))
    everything = Counter(r for r in ROWS if r[2] > 2)
    assert rows(tmp_path / "b") == everything
    assert not [w for w in done.warnings if "refused" in w]


# --- what is refused --------------------------------------------------------------------------------------------------


def test_what_cannot_be_started_together_is_said(tmp_path: Path) -> None:
    feed(tmp_path)
    shared, counted, _ = streams(tmp_path)
    out = ps.parquet(str(tmp_path / "out"))
    for given, said in (
        ([], "no queries with sinks.*a list of them"),
        (5, "5.*no queries with sinks"),
        ([shared], r"<Stream select .* has no sink.*stream\.to"),
        ([shared.to(out), 7], "7 is not a query"),
        ([shared.to(out), counted.to(out)], "is given twice"),
    ):
        with pytest.raises(UserError, match=said):
            ps.start(given, trigger="once", spark=local_session())  # type: ignore[arg-type]
    with pytest.raises(UserError, match=r"to\('out'\) is not a sink"):
        shared.to("out")  # type: ignore[arg-type]
    both = [shared.to(out), counted.to(ps.parquet(f"{tmp_path}/./out"))]
    with pytest.raises(UserError, match="two sinks write to"):
        ps.start(both, trigger="once", spark=local_session(), checkpoint=str(tmp_path / "ck"))
    both = [shared.to(out), counted.to(ps.memory())]
    with pytest.raises(UserError, match=r"2 sinks are written together, and no checkpoint.*checkpoint="):
        ps.start(both, trigger="once", spark=local_session())
    assert not (tmp_path / "out").exists()


def test_without_files_no_checkpoint_is_needed(tmp_path: Path) -> None:
    feed(tmp_path)
    targets = [ps.memory() for _ in range(3)]
    start(tmp_path, lambda k: targets[k], checkpoint=None).wait()
    assert [Counter(tuple(r.values()) for r in t.rows()) for t in targets] == expected(tmp_path)


def test_a_sink_may_come_and_go(tmp_path: Path) -> None:
    feed(tmp_path)
    shared, counted, _ = streams(tmp_path)
    given = {"trigger": "once", "checkpoint": str(tmp_path / "ck"), "spark": local_session()}
    one, two = counted.to(ps.parquet(str(tmp_path / "one"))), shared.to(ps.parquet(str(tmp_path / "two")))
    ps.start([one], **given).wait()
    ps.start([one, two], **given).wait()
    ps.start(one, **given).wait()
    assert rows(tmp_path / "one") == expected(tmp_path)[1] and not rows(tmp_path / "two")


def test_a_query_file_may_have_several(tmp_path: Path) -> None:
    from penstock.portal.check import check_file
    from penstock.portal.script import load

    feed(tmp_path)
    head = "import penstock as ps\ncars = ps.stream('cars', 'minute int, speed int', time='minute').disorder(0)\n"
    head += f"cars = cars.read_parquet('{tmp_path}/in')\nslow = cars.where('speed < 9')\n"
    file = tmp_path / "both.py"
    file.write_text(head + "queries = [slow.to(ps.memory()), slow.window(2).agg(n='count(*)').to(ps.memory())]")
    script = load(str(file))
    assert script.title == "both.py" and len(script.query.plan.sinks) == 2
    assert check_file(str(file)).report.safe
    assert script.query.explain().count("(shared, drawn above)") == 1
    for text, said in (
        ("queries = [slow]", r"both\.py: queries: <Stream .* has no sink"),
        ("queries = 5", r"both\.py: queries: .*no queries"),
        ("queries = [slow.to(ps.memory())]\nsink = ps.memory()", "both queries and sink"),
        ("query = slow\nsink = [ps.memory(), ps.console()]", r"names 2 sinks.*queries = \[query\.to"),
    ):
        file.write_text(head + text)
        with pytest.raises(UserError, match=said):
            load(str(file))


def test_the_command_line_runs_several(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from typer.testing import CliRunner

    from penstock.portal import cli

    feed(tmp_path)
    monkeypatch.setattr("penstock.engine.spark.session.spark_session", lambda *a, **k: local_session())
    file = tmp_path / "both.py"
    file.write_text(
        "import penstock as ps\n"
        "cars = ps.stream('cars', 'minute int, segment int, speed int', time='minute').disorder(0).ends()\n"
        f"slow = cars.read_parquet('{tmp_path}/in', order='name').where('speed > 2')\n"
        f"queries = [slow.to(ps.parquet('{tmp_path}/out0')),\n"
        f"           slow.window(2).group_by('segment').agg(n='count(*)').to(ps.parquet('{tmp_path}/out1'))]\n"
    )
    run = CliRunner()
    refused = run.invoke(cli.app, ["run", str(file), "--trigger", "available_now"])
    assert refused.exit_code == 2 and "no checkpoint is named" in refused.output
    kept = ["--checkpoint", str(tmp_path / "ck")]
    done = run.invoke(cli.app, ["run", str(file), "--trigger", "available_now", *kept])
    assert done.exit_code == 0, done.output
    assert [rows(tmp_path / f"out{k}") for k in range(2)] == expected(tmp_path)[:2]
    told = run.invoke(cli.app, ["feedback", str(tmp_path / "ck"), "not [*, 1, *]"])
    assert told.exit_code == 2 and "2 results" in told.output and "to='sink-1'" in told.output
    told = run.invoke(cli.app, ["feedback", str(tmp_path / "ck"), "not [*, 1, *]", "--to", "sink-2"])
    assert told.exit_code == 0 and "left for aggregate-1" in told.output
    shown = run.invoke(cli.app, ["explain", str(file)])
    assert shown.exit_code == 0 and "sink-2: ps.parquet(" in shown.output
    for command in ("check", "trace"):
        assert run.invoke(cli.app, [command, str(file)]).exit_code == 0
