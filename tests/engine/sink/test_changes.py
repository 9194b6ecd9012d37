"""Results that are corrected, in the form in which a sink takes them."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock as ps
from penstock.checkpoint.fault import Crash
from penstock.checkpoint.storage import Storage
from penstock.engine.sink.final import MOST, FinalUpTo
from penstock.engine.sink.folder import FileTarget
from penstock.errors import CheckpointError, UserError
from penstock.kernels.weights import pairs
from penstock.pattern.pattern import Pattern
from penstock.pattern.schema import Schema
from penstock.plan.weight import WEIGHT
from penstock.portal.testing import local_session


def bag(rows: Iterable[Mapping[str, Any]]) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row.values()) for row in rows)


def counted(rows: int = 60) -> ps.Stream:
    """Windows of four seconds over three keys; an epoch of seven events touches some of them again and again."""
    events = ps.generate(rate=2, rows=rows, disorder="3 s", columns={"key": ("key", 3)}).ends()
    return events.window("4 s").group_by("key").agg(n="count(*)")


def run(query: ps.Stream, sink: Any, **options: Any) -> ps.Run:
    options = {"trigger": "available_now", "max_rows": 7, "consistency": ps.Consistency.middle(), **options}
    return query.start(sink, spark=local_session(), **options).wait()


def final(query: ps.Stream) -> Counter[tuple[Any, ...]]:
    return bag(query.collect(spark=local_session()).to_pylist())


# --- in memory, on a terminal -----------------------------------------------------------------------------------------


def test_memory_tells_what_holds() -> None:
    target = ps.memory()
    run(counted(), target)
    assert any(row[WEIGHT] < 0 for row in target.rows())
    assert bag(target.holding()) == final(counted())


def test_of_results_that_are_not_corrected_all_hold() -> None:
    target = ps.memory()
    assert target.holding() == []
    run(counted(), target, consistency=None)
    assert target.holding() == target.rows() != []


def test_the_console_shows_signs(capsys: pytest.CaptureFixture[str]) -> None:
    run(counted(14), ps.console())
    told = capsys.readouterr().out
    assert "epoch 1: " in told and " changes" in told and WEIGHT not in told
    assert "│ + " in told and "│ − " in told


# --- before and after -------------------------------------------------------------------------------------------------


class Keyed:
    """A table by its key, kept by somebody who is told before and after."""

    def __init__(self, *keys: str) -> None:
        self.keys, self.rows = keys, dict[tuple[Any, ...], Any]()
        self.corrected = 0

    def take(self, told: pa.Table, epoch: int) -> None:
        assert told.column_names == ["before", "after"]
        for change in told.to_pylist():
            before, after = change["before"], change["after"]
            assert before is not None or after is not None
            keys = {tuple(side[k] for k in self.keys) for side in (before, after) if side is not None}
            (key,) = keys
            assert self.rows.get(key) == before, "what it was told before"
            self.rows[key] = after
            self.corrected += before is not None and after is not None


def test_pairs_never_tear_a_correction_apart() -> None:
    keyed = Keyed("window_start", "key")
    run(counted(), ps.deliver(keyed.take, changes="pairs"))
    assert keyed.corrected > 5
    assert bag(keyed.rows.values()) == final(counted())


def test_pairs_are_found_behind_other_operators() -> None:
    query = counted().where("n <> 3").with_columns(twice="2 * n").rename(key="k")
    keyed = Keyed("window_start", "k")
    run(query, ps.deliver(keyed.take, changes="pairs"))
    assert bag(r for r in keyed.rows.values() if r is not None) == final(query)


def test_results_that_nothing_tells_apart_have_one_side() -> None:
    told: list[dict[str, Any]] = []
    run(counted().select("n"), ps.deliver(lambda rows, epoch: told.extend(rows.to_pylist()), changes="pairs"))
    assert all((r["before"] is None) != (r["after"] is None) for r in told)
    assert {r["before"] is None for r in told} == {True, False}


def test_what_is_not_corrected_has_no_before() -> None:
    keyed = Keyed("window_start", "key")
    run(counted(), ps.deliver(keyed.take, changes="pairs"), consistency=None)
    assert keyed.corrected == 0 and bag(keyed.rows.values()) == final(counted())


ROWS = st.lists(st.tuples(st.sampled_from([None, "a", "b"]), st.integers(0, 2), st.integers(-2, 2)), max_size=8)


@given(ROWS, st.sampled_from([None, (), ("k",), ("k", "n")]))
def test_pairs_say_what_the_changes_say(rows: list[tuple[str | None, int, int]], keys: tuple[str, ...] | None) -> None:
    columns = zip(*rows, strict=True) if rows else ((), (), ())
    types = (pa.string(), pa.int32(), pa.int64())
    table = pa.table({n: pa.array(c, t) for n, c, t in zip(("k", "n", WEIGHT), columns, types, strict=True)})
    found = pairs(table, keys)
    assert found.schema.field("after").type == pa.struct([("k", pa.string()), ("n", pa.int32())])
    said: Counter[tuple[Any, ...]] = Counter()
    one_sided: dict[tuple[Any, ...], set[bool]] = {}
    for change in found.to_pylist():
        sides = [(w, s) for w, s in ((-1, change["before"]), (1, change["after"])) if s is not None]
        for weight, side in sides:
            said[side["k"], side["n"]] += weight
        if len(sides) == 1 and keys is not None:
            (weight, side) = sides[0]
            one_sided.setdefault(tuple(side[k] for k in keys), set()).add(weight > 0)
        assert len({tuple(s[k] for k in keys or ()) for _, s in sides}) == 1
    expected: Counter[tuple[Any, ...]] = Counter()
    for k, n, weight in rows:
        expected[k, n] += weight
    assert {r: w for r, w in said.items() if w} == {r: w for r, w in expected.items() if w}
    assert all(len(signs) == 1 for signs in one_sided.values()), "what could be paired is"


# --- what is not possible ---------------------------------------------------------------------------------------------


def test_a_form_that_no_sink_has_is_refused() -> None:
    def nobody(rows: Any, epoch: int) -> None: ...

    with pytest.raises(UserError, match=r"changes='x'\) is not possible.*'log' or 'pairs'"):
        ps.deliver(nobody, changes="x")  # type: ignore[arg-type]
    with pytest.raises(UserError, match="needs form='arrow'"):
        ps.deliver(nobody, form="spark", changes="pairs")


def test_a_file_sink_has_forms_of_its_own(tmp_path: Path) -> None:
    for sink in (ps.parquet, ps.json_lines):
        with pytest.raises(UserError, match=r"changes='pairs'\) is not possible.*'log' or 'fold' or 'final'"):
            sink(tmp_path, changes="pairs")  # type: ignore[arg-type]
    assert repr(ps.parquet("out", changes="fold")) == "ps.parquet('out', changes='fold')"


# --- only what is final -----------------------------------------------------------------------------------------------


def read(folder: Path) -> Counter[tuple[Any, ...]]:
    """What somebody finds who opens the folder now."""
    if list(folder.rglob("part-*.json")):
        found = [json.loads(line) for p in folder.rglob("part-*") for line in p.read_text().splitlines()]
        return Counter(tuple(row.values()) for row in found)
    if not list(folder.rglob("part-*")):
        return Counter()
    table = ds.dataset(folder, partitioning="hive", exclude_invalid_files=True).to_table()
    names = [n for n in ("window_start", "key", "n") if n in table.column_names]
    return bag(table.select(names).to_pylist())


def test_final_rows_come_once_and_stay(tmp_path: Path) -> None:
    """Beside a sink that is told everything at once; without one nothing need be told early."""
    log, seen = ps.memory(), list[Counter[tuple[Any, ...]]]()
    queries = [(q := counted()).to(ps.parquet(tmp_path / "out", changes="final")), q.to(log)]
    look: Any = {"listener": lambda _: seen.append(read(tmp_path / "out"))}
    checkpoint = str(tmp_path / "c")
    options: Any = {"trigger": "available_now", "max_rows": 7, "spark": local_session(), **look}
    started = ps.start(queries, checkpoint=checkpoint, consistency=ps.Consistency.middle(), **options).wait()
    assert "settle-1" in {n.id for n in started.driver.plan.nodes}
    assert len(log.rows()) > len(log.holding())
    assert all(before <= after for before, after in pairwise(seen)), "what is final is not taken back"
    assert sum(map(bool, seen)) > 2 and seen[-1] == final(counted())


def test_where_all_want_what_is_final_nothing_is_told_early(tmp_path: Path) -> None:
    started = run(counted(), ps.parquet(tmp_path / "out", changes="final"))
    assert not any("settle" in n.id for n in started.driver.plan.nodes)
    assert read(tmp_path / "out") == final(counted())


def test_what_never_becomes_final_is_refused() -> None:
    endless = ps.generate(rate=2, columns={"key": ("key", 3)}).group_by("key").agg(n="count(*)")
    with pytest.raises(UserError, match="state grows for ever"):
        endless.start(ps.parquet("out", changes="final"), spark=local_session(), consistency=ps.Consistency.middle())


# --- the table as it is now -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("by", [(), ("key",), ("day",)])
@pytest.mark.parametrize("sink", [ps.parquet, ps.json_lines])
def test_the_folder_holds_what_holds(tmp_path: Path, sink: Any, by: tuple[str, ...]) -> None:
    """After every epoch, whichever parts that has touched, and with every start."""
    query = counted().with_columns(day="CAST(window_start AS date)") if by == ("day",) else counted()
    # Folders are named by these, and the lines of JSON do not have them; times are texts there.
    left_out = {"day", *(by if sink is ps.json_lines else ())}
    told: list[tuple[Counter[tuple[Any, ...]], Counter[tuple[Any, ...]]]] = []
    log, out = ps.memory(), tmp_path / "out"

    def look(progress: ps.Progress) -> None:
        shown = str if sink is ps.json_lines else lambda v: v
        plain = [{k: v if isinstance(v, int) else shown(v) for k, v in r.items()} for r in log.holding()]
        told.append((read(out), bag({k: v for k, v in r.items() if k not in left_out} for r in plain)))
        if len(told) in (2, 5):
            raise Crash("somebody stops")

    queries = [query.to(sink(out, partition_by=by, changes="fold")), query.to(log)]
    for _ in range(3):
        with suppress(Crash):
            ps.start(
                queries,
                checkpoint=str(tmp_path / "c"),
                consistency=ps.Consistency.middle(),
                listener=look,
                trigger="available_now",
                max_rows=7,
                buckets=2,
                spark=local_session(),
            ).wait()
    assert len(told) > 6
    for found, holding in told:
        assert found == holding
    assert not os.listdir(out / "_penstock" / "staging")


@pytest.mark.parametrize("sink", [ps.parquet, ps.json_lines])
def test_values_that_share_a_folder_do_not_replace_each_other(tmp_path: Path, sink: Any) -> None:
    """Null, an empty text and the name that Hive has for both; one of each epoch, and again in another order."""
    nothing = "__HIVE_DEFAULT_PARTITION__"
    texts = ["a", None, "", nothing]
    (tmp_path / "in").mkdir()
    for number, text in enumerate([*texts, *reversed(texts)]):
        (tmp_path / "in" / f"{number}.json").write_text(json.dumps({"ts": number, "key": text}) + "\n")
    s = ps.stream("s", "ts int, key string", time="ts").read_json(str(tmp_path / "in"), order="name").disorder(20)
    counts = s.group_by("key").agg(n="count(*)")
    found: list[Counter[tuple[Any, ...]]] = []
    log, out = ps.memory(), tmp_path / "out"

    def look(progress: ps.Progress) -> None:
        shown = read(out)
        rows = [{**r, "key": None if r["key"] in ("", nothing) else r["key"]} for r in log.holding()]
        assert shown == bag({n: v for n, v in r.items() if n != "key" or sink is ps.parquet} for r in rows)
        found.append(shown)

    ps.start(
        [counts.to(sink(out, partition_by="key", changes="fold")), counts.to(log)],
        checkpoint=str(tmp_path / "c"),
        consistency=ps.Consistency.middle(),
        listener=look,
        trigger="available_now",
        max_rows=1,
        buckets=1,
        allow_unbounded="a test",
        spark=local_session(),
    ).wait()
    assert [sum(f.values()) for f in found] == [1, 2, 3, 4, 4, 4, 4, 4]


def test_a_table_and_single_changes_do_not_share_a_folder(tmp_path: Path) -> None:
    records = Storage.at(str(tmp_path / "c"))
    table, changes = (
        FileTarget(str(tmp_path / "out"), changes="fold", folds=folds).bind("sink-1", records)
        for folds in (True, False)
    )
    table.claim("a", fresh=True)
    table.claim("a")
    with pytest.raises(UserError, match=r"holds one table, .* keep the form"):
        changes.claim("a")


def test_a_file_of_others_is_not_replaced(tmp_path: Path) -> None:
    """Under the name of a part that has not been written yet."""
    out = tmp_path / "out"

    def leave(progress: ps.Progress) -> None:
        for k in range(32):
            with suppress(FileExistsError):
                (out / f"part-{k:04d}.parquet").open("x").write("not ours")

    with pytest.raises(CheckpointError, match="which is not by this query"):
        run(counted(), ps.parquet(out, changes="fold"), listener=leave, checkpoint=str(tmp_path / "c"))


def test_of_what_is_not_corrected_a_table_grows(tmp_path: Path) -> None:
    run(counted(), ps.parquet(tmp_path / "out", changes="fold"), consistency=None)
    assert read(tmp_path / "out") == final(counted())
    assert all(n.name.startswith("part-00000") for n in (tmp_path / "out").glob("part-*"))


# --- what stands beside -----------------------------------------------------------------------------------------------


def test_what_is_final_is_said_beside_the_results(tmp_path: Path) -> None:
    """After each epoch: nothing below the bound changes any more."""
    out, log = tmp_path / "out", ps.memory()
    told: list[tuple[str, list[dict[str, Any]]]] = []

    def look(progress: ps.Progress) -> None:
        marker = json.loads((out / "_penstock" / "final.json").read_text())
        assert marker["epoch"] == progress.epoch
        assert marker["final_up_to"] == progress.final_up_to["sink-1"]
        bound = marker["final_up_to"].get("window_start", "")
        told.append((bound, [r for r in log.holding() if bound == "end" or str(r["window_start"]) < bound]))

    queries = [(q := counted()).to(ps.parquet(out, changes="fold")), q.to(log)]
    options: Any = {"trigger": "available_now", "max_rows": 7, "spark": local_session(), "listener": look}
    started = ps.start(queries, checkpoint=str(tmp_path / "c"), consistency=ps.Consistency.middle(), **options).wait()
    assert len({bound for bound, _ in told}) > 4
    last = bag(told[-1][1])
    for bound, rows in told:
        assert bag(rows) == (last if bound == "end" else bag(r for r in told[-1][1] if str(r["window_start"]) < bound))
    assert started.final_up_to == {"sink-1": {"window_start": "end"}, "sink-2": {"window_start": "end"}}


def test_what_is_final_is_known_after_a_start(tmp_path: Path) -> None:
    out = tmp_path / "out"
    query = ps.generate(rate=2, rows=30, columns={"key": ("key", 3)}).window("4 s").agg(n="count(*)")
    options: Any = {"checkpoint": str(tmp_path / "c"), "allow_unbounded": "a test"}
    before = run(query, ps.parquet(out), consistency=None, **options).final_up_to
    assert before["sink-1"]["window_start"].startswith("2026-01-01 00:00:")
    marker = (out / "_penstock" / "final.json").read_text()
    (out / "_penstock" / "final.json").unlink()
    assert run(query, ps.parquet(out), consistency=None, **options).final_up_to == before
    assert (out / "_penstock" / "final.json").read_text() == marker


def test_what_grows_with_the_stream_is_not_all_kept() -> None:
    schema = Schema.parse("trip int, at int", "at")
    known = FinalUpTo.of(schema)
    for trip in range(MOST + 7):
        known = known.told([Pattern.parse(f"[{trip}, *]", schema), Pattern.parse(f"[*, <= {trip}]", schema)])
    assert len(known.patterns) == MOST and known.patterns[-1] == f"[{MOST + 6}, *]"
    assert known.up_to == {"at": str(MOST + 7)}
    assert FinalUpTo.of(schema).restored(json.loads(json.dumps(known.to_json()))) == known
