"""A guard takes away the events it matches and nothing else: not a verdict, not a letter, not a promise."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.engine.source import (
    Checker,
    Known,
    PromiseState,
    Split,
    apply_guard,
    count_spared,
    open_reader,
    plan_tasks,
    read,
    reader_options,
    tell_spared,
)
from penstock.engine.source import files as reading
from penstock.engine.source.formats.read import columns_to_read
from penstock.errors import SchemaError
from penstock.operators.source.operator import Source
from penstock.pattern.pattern import Pattern
from penstock.pattern.schema import Schema
from penstock.plan.promise import (
    Adaptive,
    After,
    Bounds,
    Disorder,
    Domain,
    EndOfSource,
    Every,
    Files,
    Generated,
    InBand,
    Monitored,
    Once,
    Promise,
    WhenAll,
    WithinRows,
)

SCHEMA = Schema.parse("ts bigint, key int, zone string, v double, id bigint", time="ts")
Row = tuple[int | None, int | None, str | None, float | None]
Guard = tuple[Pattern, ...]


def patterns(*texts: str, schema: Schema = SCHEMA) -> Guard:
    return tuple(Pattern.parse(text, schema) for text in texts)


def write(path: Path, groups: Sequence[Sequence[Row]], first: int = 0, **more: Any) -> int:
    """A file with the given row groups; ids count up from `first`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    types = SCHEMA.arrow
    with pq.ParquetWriter(path, types, **more) as writer:
        for group in groups:
            rows = [(*row, first + i) for i, row in enumerate(group)]
            first += len(rows)
            columns = [pa.array(c, f.type) for c, f in zip(zip(*rows), types)] if rows else types.empty_table().columns
            writer.write_table(pa.table(columns, schema=types))
    return first


def source(path: Path, *promises: Promise, **more: Any) -> Source:
    return Source((), SCHEMA, name="t", promises=promises, reader=Files(str(path), "parquet", order="name", **more))


@dataclass
class Outcome:
    """What came of a run: events by partition in order, letters by file and row, and where the promises stand."""

    events: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    letters: dict[tuple[str, int], tuple[str, str]] = field(default_factory=dict)
    standing: dict[str, Any] = field(default_factory=dict)
    asserted: list[Pattern] = field(default_factory=list)
    saved: dict[str, int] = field(default_factory=dict)
    rows: int = 0
    dropped: int = 0
    epochs: int = 0

    @property
    def never_read(self) -> int:
        return self.saved.get("source:t never read", 0)


def run(
    src: Source,
    guard_of: Callable[[int], Guard] = lambda epoch: (),
    max_rows: int | None = None,
    parallelism: int = 1,
    crash: Callable[[int], bool] = lambda epoch: False,
) -> Outcome:
    """Epoch by epoch as the engine does it, through JSON; after a crash from positions and the plan written last."""
    out = Outcome()
    reader, state = open_reader(src), PromiseState(src)
    deltas: list[Any] = []
    out.asserted += state.initial()
    while splits := reader.plan(max_rows, None, parallelism, settled=True, guard=(guard := guard_of(out.epochs))):
        partitions = reader.partitions  # written down with the plan
        if crash(out.epochs):
            reader = open_reader(src)
            reader.restore(None, deltas)
            reader.advance(splits)
        deltas.append(json.loads(json.dumps(reader.position())))
        splits = tuple(Split.from_json(json.loads(json.dumps(s.to_json()))) for s in splits)
        state = PromiseState.from_json(src, json.loads(json.dumps(state.to_json())))
        state.register(partitions)
        reports = tell_spared(src.promises, splits)
        saved, shed = count_spared("t", splits)
        assert not shed
        for what, n in saved.items():
            out.saved[what] = out.saved.get(what, 0) + n
        found: list[tuple[Split, pa.Table]] = []
        for task in plan_tasks(state, splits, parallelism):
            checker = Checker(src.promises, src.schema)
            for split, known in task:
                before = None if known is None else Known.from_json(json.loads(json.dumps(known.to_json())), src.schema)
                if split.spared:
                    checker.pass_over(split, before)
                    continue
                batch = read(split, src.schema, None, src.promises, reader_options(src))
                checked = checker.check(batch, split, before)
                reports.append(checked.report)
                for letter in pa.concat_tables([batch.malformed, checked.rejected]).to_pylist():
                    out.letters[letter["file"], letter["row"]] = (letter["reason"], letter["detail"])
                kept, dropped = apply_guard(checked.events, guard)
                out.rows += batch.table.num_rows + batch.malformed.num_rows
                out.dropped += dropped
                found.append((split, kept))
        for split, table in sorted(found, key=lambda pair: (pair[0].partition, pair[0].ordinal)):
            out.events.setdefault(split.partition, []).extend(table.to_pylist())
        out.asserted += state.absorb(json.loads(json.dumps(reports)))
        out.epochs += 1
    assert reader.exhausted
    out.standing = state.to_json()
    return out


def wanted(events: dict[str, list[dict[str, Any]]], guard: Guard) -> dict[str, list[dict[str, Any]]]:
    return {p: [e for e in rows if not any(g.matches_row(e) for g in guard)] for p, rows in events.items()}


def without_nan(events: dict[str, list[dict[str, Any]]]) -> str:
    return str({p: rows for p, rows in sorted(events.items()) if rows})


# Groups hold a narrow range of each attribute, as files do that are written in order; now and then one does not.
@st.composite
def row_groups(draw: st.DrawFn) -> list[Row]:
    key, ts = draw(st.integers(0, 5)), draw(st.integers(-20, 40))
    zone = draw(st.sampled_from(["north", "south"]))
    spread = draw(st.integers(0, 3))
    odd = draw(st.integers(0, 9))
    rows: list[Row] = [
        (ts + draw(st.integers(0, 8)), key + draw(st.integers(0, spread)), zone, float(draw(st.integers(0, 3))))
        for _ in range(draw(st.integers(1, 5)))
    ]
    strange: dict[int, Row] = {
        0: (None, key, zone, 1.0),
        1: (ts, None, zone, 1.0),
        2: (ts, key, None, 1.0),
        3: (ts, key, zone, float("nan")),
    }
    return [*rows, strange[odd]] if odd in strange else rows


guards = st.lists(
    st.sampled_from(
        [
            "[< 10, *, *, *, *]",
            "[[0, 30), *, *, *, *]",
            "[>= 20, *, *, *, *]",
            "[*, 2, *, *, *]",
            "[*, {1, 3}, *, *, *]",
            "[*, >= 4, *, *, *]",
            "[*, *, 'south', *, *]",
            "[*, *, < 'p', *, *]",
            "[*, *, *, >= 0, *]",
            "[< 25, <= 3, *, *, *]",
            "[*, [2, 3], 'north', *, *]",
            "[*, *, *, *, *]",
        ]
    ),
    min_size=1,
    max_size=3,
).map(lambda texts: patterns(*texts))
SPARING: list[tuple[Promise, ...]] = [
    (),
    (EndOfSource(),),
    (Disorder("ts", 6),),
    (Disorder("ts", 0), Every("ts", 7), EndOfSource()),
    (Disorder("ts", 9), Bounds("ts", -15, 45)),
    (Disorder("ts", 5), Domain("key", (0, 1, 2, 3, 4))),
    (Disorder("id", 3),),
    (Bounds("key", 0, 4), Domain("zone", ("north",))),
]
READING: list[tuple[Promise, ...]] = [
    (WithinRows("ts", 3),),
    (Disorder("ts", 8), Monitored("ts")),
    (Disorder("ts", 8), Disorder("id", 2)),
    (Disorder("ts", 8), After("key", "ts", 4)),
    (WhenAll("key", (0, 1, 2, 3, 4, 5, 6, 7, 8), "ts", 4),),
    (Once("id"),),
    (Adaptive("ts", 0.9, 2, 8, 4),),
]


@settings(max_examples=25)
@given(
    files=st.lists(st.lists(row_groups(), min_size=1, max_size=4), min_size=1, max_size=4),
    guard=guards,
    promises=st.sampled_from([*SPARING, *SPARING, *READING]),
    max_rows=st.one_of(st.none(), st.integers(1, 12)),
    parallelism=st.integers(1, 3),
    folders=st.booleans(),
    crashes=st.sets(st.integers(0, 6)),
)
def test_a_guard_takes_away_what_it_matches_and_nothing_else(
    tmp_path_factory: pytest.TempPathFactory,
    files: list[list[list[Row]]],
    guard: Guard,
    promises: tuple[Promise, ...],
    max_rows: int | None,
    parallelism: int,
    folders: bool,
    crashes: set[int],
) -> None:
    folder = tmp_path_factory.mktemp("in")
    first, origin = 0, {}
    for i, groups in enumerate(files):
        path = folder / (f"{'ab'[i % 2]}/" if folders else "") / f"{i}.parquet"
        rows = [row for group in groups for row in group]
        origin.update({(str(path), n): dict(zip(SCHEMA.names, (*row, first + n))) for n, row in enumerate(rows)})
        first = write(path, groups, first)
    src = source(folder, *promises, partitions="directory" if folders else "single")
    free = run(src, max_rows=max_rows, parallelism=parallelism)
    told = run(src, lambda epoch: guard, max_rows, parallelism, lambda epoch: epoch in crashes)

    assert without_nan(told.events) == without_nan(wanted(free.events, guard))
    assert told.letters.items() <= free.letters.items()
    for place in free.letters.keys() - told.letters.keys():
        assert any(p.matches_row(origin[place]) for p in guard)
    assert {k: v for k, v in told.standing.items() if k != "last"} == {
        k: v for k, v in free.standing.items() if k != "last"
    }
    assert told.rows + told.never_read == free.rows == len(origin)
    matching = sum(map(len, free.events.values())) - sum(map(len, told.events.values()))
    letters = free.letters.keys() - told.letters.keys()
    assert told.dropped + told.never_read == matching + len(letters)
    if promises in READING:
        assert told.never_read == 0
    for pattern in told.asserted:  # what was asserted on the way is no more than is true in the end
        assert any(p.contains(pattern) for p in free.asserted)


@settings(max_examples=20)
@given(
    groups=st.lists(row_groups(), min_size=1, max_size=8),
    guards_by_epoch=st.lists(st.one_of(st.just(()), guards), min_size=1, max_size=5),
    promises=st.sampled_from(SPARING),
    max_rows=st.integers(1, 6),
)
def test_guards_that_come_and_go_between_epochs(
    tmp_path_factory: pytest.TempPathFactory,
    groups: list[list[Row]],
    guards_by_epoch: list[Guard],
    promises: tuple[Promise, ...],
    max_rows: int,
) -> None:
    folder = tmp_path_factory.mktemp("in")
    write(folder / "a.parquet", groups)
    src = source(folder, *promises)
    free = run(src, max_rows=max_rows)
    told = run(src, lambda epoch: guards_by_epoch[epoch % len(guards_by_epoch)], max_rows)
    before = {e["id"]: e for e in free.events.get("", [])}
    after = {e["id"]: e for e in told.events.get("", [])}
    assert after.keys() <= before.keys()
    anywhere = [p for guard in guards_by_epoch for p in guard]
    assert all(any(p.matches_row(before[i]) for p in anywhere) for i in before.keys() - after.keys())
    assert told.standing == free.standing


def test_what_lies_behind_a_spared_row_group_is_still_late(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", [[(10, 1, "n", 0.0)], [(99, 7, "n", 0.0), (70, 7, "n", 0.0)], [(12, 1, "n", 0.0)]])
    src = source(tmp_path, Disorder("ts", 5))
    for parallelism in (1, 3):
        told = run(src, lambda epoch: patterns("[*, 7, *, *, *]"), parallelism=parallelism)
        assert told.never_read == 2
        assert [e["ts"] for e in told.events[""]] == [10]
        assert list(told.letters.values()) == [("late", "[< 94, *, *, *, *]")]
        assert told.standing["disorder"] == {"ts": 94}


def test_a_row_group_may_be_spared_between_two_parts_that_one_task_reads(tmp_path: Path) -> None:
    # Five rows do not fit into an epoch of three: the second part has no statistics, so the task itself goes on.
    write(tmp_path / "a.parquet", [[(i, 1, "n", 0.0) for i in range(5)], [(50, 7, "n", 0.0)], [(9, 1, "n", 0.0)]])
    src = source(tmp_path, Disorder("ts", 5))
    reader, state = open_reader(src), PromiseState(src)
    guard = patterns("[*, 7, *, *, *]")
    reader.plan(3, None, 2, guard=guard)
    splits = reader.plan(3, None, 2, guard=guard)
    assert [(s.start, s.stop, s.high, s.spared, s.last) for s in splits] == [
        (3, 5, None, False, False),
        (5, 6, 50, True, False),
        (6, 7, 9, False, True),
    ]
    (task,) = plan_tasks(state, splits, 2)
    assert [s.spared for s, _ in task] == [False, True, False]
    told = run(src, lambda epoch: guard, 3, 2)
    assert len(told.letters) == 1
    assert told.never_read == 1


def test_a_guard_that_comes_in_the_middle_of_a_row_group_spares_the_rest_of_it(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", [[(80, 7, "n", 0.0), *((i, 7, "n", 0.0) for i in range(9))], [(70, 1, "n", 0.0)]])
    src = source(tmp_path, Disorder("ts", 5))
    told = run(src, lambda epoch: patterns("[*, 7, *, *, *]") if epoch else (), max_rows=4)
    assert told.saved == {"source:t never read": 6, "source:t row groups skipped": 1}
    assert told.epochs == 2
    assert told.letters[str(tmp_path / "a.parquet"), 10] == ("late", "[< 75, *, *, *, *]")


def test_what_is_spared_costs_no_task_and_nothing_of_the_budget(tmp_path: Path) -> None:
    for i in range(6):
        write(tmp_path / f"{i}.parquet", [[(i, i % 3, "n", 0.0)] * 4] * 2)
    src = source(tmp_path, Disorder("ts", 5))
    guard = patterns("[*, {1, 2}, *, *, *]")
    splits = open_reader(src).plan(16, None, 2, guard=guard)
    assert [(s.path[-9:], s.spared) for s in splits] == [
        ("0.parquet", False),
        ("1.parquet", True),
        ("2.parquet", True),
        ("3.parquet", False),
    ]
    assert sum(s.bytes for s in splits if s.spared) == 0
    assert all(not s.spared for task in plan_tasks(PromiseState(src), splits, 2) for s, _ in task)
    saved = {"source:t never read": 16, "source:t row groups skipped": 4, "source:t files skipped": 2}
    assert count_spared("t", splits) == (saved, {})
    everything = open_reader(src).plan(1, None, 2, guard=patterns("[*, *, *, *, *]"))
    assert len(everything) == 6
    assert plan_tasks(PromiseState(src), everything, 2) == []


def test_an_epoch_does_not_pass_over_files_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "_MOST_SPARED", 2)
    for i in range(5):
        write(tmp_path / f"{i}.parquet", [[(i, 1, "n", 0.0)]])
    reader = open_reader(source(tmp_path))
    guard = patterns("[*, 1, *, *, *]")
    assert [len(reader.plan(10, None, 1, guard=guard)) for _ in range(4)] == [2, 2, 1, 0]
    # Unless it is to read everything there is.
    assert [len(open_reader(source(tmp_path)).plan(None, None, 1, guard=guard)) for _ in range(2)] == [5, 5]


def test_guards_that_only_together_match_a_row_group(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", [[(3, 1, "n", 0.0), (8, 2, "n", 0.0)], [(3, 1, "n", 0.0), (12, 1, "n", 0.0)]])
    src = source(tmp_path)
    assert run(src, lambda _: patterns("[< 5, *, *, *, *]", "[[5, 9), *, *, *, *]")).never_read == 2
    assert run(src, lambda _: patterns("[*, 1, *, *, *]", "[*, 2, *, *, *]")).never_read == 4
    # Each leaves something of another attribute: nothing is known of the pairs.
    assert run(src, lambda _: patterns("[< 5, *, *, *, *]", "[*, 2, *, *, *]")).never_read == 0


@pytest.mark.parametrize(
    ("rows", "guard", "more"),
    [
        ([(1, None, "n", 0.0), (2, 1, "n", 0.0)], "[*, 1, *, *, *]", {}),
        ([(1, 1, "n", float("nan")), (2, 1, "n", 0.0)], "[*, *, *, 0, *]", {}),
        ([(1, 1, "n", 0.0)], "[*, *, *, 0, *]", {}),
        ([(1, 1, "n", 0.0)], "[*, 1, *, *, *]", {"write_statistics": False}),
        ([(1, 1, "n", 0.0), (2, 3, "n", 0.0)], "[*, {1, 3}, *, *, *]", {}),
    ],
)
def test_what_statistics_do_not_prove_is_read(tmp_path: Path, rows: list[Row], guard: str, more: Any) -> None:
    write(tmp_path / "a.parquet", [rows], **more)
    told = run(source(tmp_path), lambda _: patterns(guard))
    assert told.never_read == 0
    assert told.rows == len(rows)
    assert told.dropped == sum(patterns(guard)[0].matches_row(dict(zip(SCHEMA.names, (*r, 0)))) for r in rows)


@pytest.mark.parametrize("promises", READING, ids=str)
def test_where_rows_tell_more_than_their_maximum_all_are_read(tmp_path: Path, promises: tuple[Promise, ...]) -> None:
    write(tmp_path / "a.parquet", [[(10, 7, "n", 0.0), (11, 7, "n", 0.0)], [(12, 1, "n", 0.0)]])
    told = run(source(tmp_path, *promises), lambda _: patterns("[*, 7, *, *, *]"))
    assert (told.never_read, told.dropped) == (0, 2)
    assert [e["ts"] for e in told.events[""]] == [12]


def test_punctuations_among_the_rows_are_read(tmp_path: Path) -> None:
    schema = Schema.parse("ts bigint, key int", time="ts")
    table = pa.table({"ts": [1, 2], "key": pa.array([1, 1], pa.int32()), "punctuation": ["[< 9, 1]", None]})
    pq.write_table(table, tmp_path / "a.parquet")
    src = Source((), schema, name="t", promises=(InBand(),), reader=Files(str(tmp_path), "parquet"))
    told = run(src, lambda _: patterns("[*, 1]", schema=schema))
    assert told.never_read == 0
    assert [str(p) for p in told.asserted] == ["[< 9, 1]"]


def test_a_file_that_does_not_fit_the_schema_is_an_error_though_nobody_wants_its_rows(tmp_path: Path) -> None:
    pq.write_table(pa.table({"ts": [1], "key": pa.array([1], pa.int32())}), tmp_path / "a.parquet")
    with pytest.raises(SchemaError, match="has no column 'zone'"):
        run(source(tmp_path), lambda _: patterns("[*, 1, *, *, *]"))


def test_texts_that_statistics_cut_short(tmp_path: Path) -> None:
    # Too long for statistics, or cut short outwards: either way nothing may be proved that is not so.
    long = "n" * 5_000
    write(tmp_path / "a.parquet", [[(1, 1, long + "a", 0.0), (2, 1, long + "b", 0.0)]])
    src = source(tmp_path)
    guard = patterns(f"[*, *, '{long}a', *, *]")
    assert [e["ts"] for e in run(src, lambda _: guard).events[""]] == [2]


def test_text_and_generated_rows_are_dropped_one_by_one(tmp_path: Path) -> None:
    schema = Schema.parse("ts bigint, key int", time="ts")
    guard = patterns("[*, {0, 2}]", schema=schema)
    (tmp_path / "c").mkdir()
    (tmp_path / "j").mkdir()
    (tmp_path / "c/a.csv").write_text("ts,key\n" + "".join(f"{i},{i % 3}\n" for i in range(9)))
    (tmp_path / "j/a.json").write_text("".join(json.dumps({"ts": i, "key": i % 3}) + "\n" for i in range(9)))
    columns = (("ts", "serial", ()), ("key", "key", (3,)))
    readers: list[Any] = [
        Files(str(tmp_path / "c"), "csv"),
        Files(str(tmp_path / "j"), "json"),
        Generated(9, None, 3, 0, columns=columns),
    ]
    for reader in readers:
        src = Source((), schema, name="t", promises=(Disorder("ts", 1),), reader=reader)
        free, told = run(src), run(src, lambda _: guard, max_rows=4)
        assert told.events == wanted(free.events, guard)
        assert told.never_read == 0
        assert 0 < told.dropped < 9
        assert told.standing["disorder"] == free.standing["disorder"]


def test_guards_have_the_columns_read_that_they_look_at() -> None:
    guard = patterns("[*, 1, *, *, *]", "[*, *, 'n', < 3, *]")
    assert columns_to_read(SCHEMA, ["id"], (), guard) == SCHEMA.names
    assert columns_to_read(SCHEMA, ["id"], ()) == ("ts", "id")


def test_nothing_to_drop_costs_no_copy() -> None:
    table = pa.table({"a": [1, None, 3], "b": [1.0, 2.0, float("nan")]})
    schema = Schema.parse("a bigint, b double")
    assert apply_guard(table, patterns("[7, *]", "[1, 2]", "[*, [5, 7]]", schema=schema)) == (table, 0)
    assert apply_guard(table, patterns("[7, *]", schema=schema))[0] is table
    cases: list[tuple[list[str], list[int | None]]] = [
        (["[*, >= 0]"], []),
        (["[*, > 5]"], [1, None]),  # NaN is the greatest of all
        (["[*, <= inf]"], [3]),
        (["[*, *]"], []),
        (["[1, *]", "[3, *]"], [None]),
    ]
    for texts, left in cases:
        kept, dropped = apply_guard(table, patterns(*texts, schema=schema))
        assert kept.column("a").to_pylist() == left
        assert dropped == 3 - len(left)
