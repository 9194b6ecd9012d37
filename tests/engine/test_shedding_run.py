"""Whole runs, in this process, that give up windows: what is delivered is exact, whatever goes and wherever cut."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import penstock as ps
from penstock.checkpoint.fault import Crash, hooked
from penstock.portal.testing import local_session

Row = tuple[Any, ...]
FOLDER = Path(tempfile.mkdtemp(prefix="penstock-shed-"))


def traffic(name: str = "traffic", kind: str = "parquet", slack: int = 7) -> ps.Stream:
    stream = ps.stream(name, "ts bigint, k bigint", time="ts")
    folder = str(FOLDER / name)
    read = stream.read_parquet(folder, order="name") if kind == "parquet" else stream.read_json(folder, order="name")
    return read.disorder(slack)


def tumbling(s: ps.Stream) -> ps.Stream:
    return s.where("k < 4").window(10).group_by("k").agg(n="count(*)", total="sum(ts)")


def sliding(s: ps.Stream) -> ps.Stream:
    return s.window(12, slide=5).group_by("k").agg(n="count(*)")


def nested(s: ps.Stream) -> ps.Stream:
    inner = s.window(4).group_by("k").agg(n="count(*)").rename(window_start="at")
    return inner.window(20, slide=8, on="at").group_by("k").agg(most="max(n)")


def united(s: ps.Stream) -> ps.Stream:
    return s.where("k = 0").union(s.where("k > 1")).window(10).group_by("k").agg(n="count(*)")


def joined(s: ps.Stream) -> ps.Stream:
    counts = s.window(10).group_by("k").agg(n="count(*)")
    sums = s.where("k > 0").window(10).group_by("k").agg(total="sum(ts)")
    return counts.join(sums, on=["window_start", "k"])


QUERIES = (tumbling, sliding, nested, united, joined)


def write(name: str, parts: Sequence[Sequence[tuple[int, int]]], kind: str = "parquet", group: int = 8) -> None:
    shutil.rmtree(FOLDER / name, ignore_errors=True)
    (FOLDER / name).mkdir(parents=True)
    for n, part in enumerate(parts):
        if kind == "parquet":
            table = pa.table(
                {"ts": [t for t, _ in part], "k": [k for _, k in part]}, pa.schema({"ts": "int64", "k": "int64"})
            )
            pq.write_table(table, FOLDER / name / f"{n:03}.parquet", row_group_size=group)
        else:
            text = "".join(json.dumps({"ts": t, "k": k}) + "\n" for t, k in part)
            (FOLDER / name / f"{n:03}.json").write_text(text)


def start(query: ps.Stream, out: str, trigger: str = "available_now", **options: Any) -> ps.Run:
    options = {"max_rows": 30, "spark": local_session(), **options}
    return query.start(ps.parquet(str(FOLDER / out)), trigger=trigger, **options).wait()  # type: ignore[arg-type]


def results(out: str) -> Counter[Row]:
    tables = [pq.read_table(f) for f in sorted((FOLDER / out).glob("*.parquet"))]
    return Counter(tuple(row.values()) for table in tables for row in table.to_pylist())


def fresh(query: ps.Stream, out: str, **options: Any) -> tuple[Counter[Row], ps.Run]:
    shutil.rmtree(FOLDER / out, ignore_errors=True)
    run = start(query, out, **options)
    return results(out), run


def dropped_windows(free: Counter[Row], found: Counter[Row]) -> set[int]:
    """The windows that are missing, after a look at whether all others are there as they were."""
    kept = {row[0] for row in found}
    assert found == Counter({row: n for row, n in free.items() if row[0] in kept})
    return {row[0] for row in free} - kept


def straight(rows: int = 600) -> list[list[tuple[int, int]]]:
    return [[(t, t % 5) for t in range(first, first + 60)] for first in range(0, rows, 60)]


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("kind", ["parquet", "json"])
def test_whole_windows_go_and_the_others_are_exact(query: Any, kind: str) -> None:
    write("traffic", straight(), kind)
    free, before = fresh(query(traffic(kind=kind)), "free")
    found, run = fresh(query(traffic(kind=kind)), "shed", shedding=ps.Shedding.to("50%"))
    missing = dropped_windows(free, found)
    assert run.progress is not None and before.progress is not None
    told = run.progress.shedding["outputs"]["sink-1"]
    assert 0.2 < len(missing) / len({row[0] for row in free}) < 0.8
    assert told["share"] == 0.5 and told["dropped"] >= len(missing)
    shed = run.progress.total_shed
    # A good part of it never came to the aggregate, and none of it is taken for something else.
    assert sum(n for what, n in shed.items() if what.startswith("source:traffic") and "group" not in what) > 50
    assert run.saved == {} and run.progress.total_dead == before.progress.total_dead
    assert run.progress.frontier == before.progress.frontier
    assert before.progress.shedding == {} and before.progress.total_shed == {}


def test_what_was_shed_is_told_apart_from_what_a_consumer_ignores() -> None:
    write("traffic", straight())
    free, _ = fresh(tumbling(traffic()), "free", feedback=["not [*, 1, *, *]"])
    found, run = fresh(
        tumbling(traffic()), "shed", feedback=["not [*, 1, *, *]"], shedding=ps.Shedding.to("50%"), fuse_below=0
    )
    assert dropped_windows(free, found)
    assert run.progress is not None
    spared, shed = run.saved, run.progress.total_shed
    assert spared["source:traffic dropped"] > 0 and shed["source:traffic never read"] > 0
    # Each of the 600 rows is read and used, ignored or given up, once.
    rows = [n for counts in (spared, shed) for what, n in counts.items() if what.endswith(("dropped", "never read"))]
    assert run.progress.total_rows_in + sum(rows) == 600


def test_without_a_word_of_it_nothing_is_written_or_counted() -> None:
    write("traffic", straight())
    _, run = fresh(tumbling(traffic()), "free")
    assert run.driver.manifest.shed == {}
    plan = run.driver.checkpoint.plan_of(run.driver.manifest.epoch)
    assert plan is not None and plan.shed == {}


@pytest.mark.parametrize("gap", [1, 4])
@pytest.mark.parametrize("share", ["0%", "60%"])
def test_no_more_windows_in_a_row_go_than_the_gap_allows(gap: int, share: str) -> None:
    write("traffic", straight())
    free, _ = fresh(tumbling(traffic()), "free")
    found, run = fresh(tumbling(traffic()), "shed", shedding=ps.Shedding.to(share), qos=ps.QoS(gap=gap))
    missing = dropped_windows(free, found)
    row = longest = 0
    for window in sorted({r[0] for r in free}):
        row = row + 1 if window in missing else 0
        longest = max(longest, row)
    assert 0 < longest <= gap
    assert run.progress is not None
    assert run.progress.shedding["outputs"]["sink-1"]["longest_gap"] == longest
    if share == "0%":
        assert len(missing) == round(60 * gap / (gap + 1))


@settings(max_examples=25)
@given(data=st.data())
def test_with_any_drops_changed_at_any_epoch_what_comes_would_have_come(data: st.DataObject) -> None:
    """Events out of order, some too late; an epoch a part, each with its own policy, and a restart before each."""
    query = data.draw(st.sampled_from(QUERIES))
    kind = data.draw(st.sampled_from(["parquet", "json"]))
    gap = data.draw(st.sampled_from([None, 1, 2, 3]))
    times = st.tuples(st.integers(0, 60), st.integers(-9, 9), st.integers(0, 4))
    parts = [
        [(max(0, 25 * n + t + late), k) for t, late, k in part]
        for n, part in enumerate(data.draw(st.lists(st.lists(times, min_size=1, max_size=40), min_size=1, max_size=6)))
    ]
    policies = [data.draw(st.sampled_from(["0%", "20%", "50%", "90%", "off"])) for _ in parts]
    write("traffic", parts, kind, group=data.draw(st.sampled_from([3, 8])))
    shutil.rmtree(FOLDER / "free", ignore_errors=True)
    shutil.rmtree(FOLDER / "shed", ignore_errors=True)
    qos = None if gap is None else ps.QoS(gap=gap)
    dropped: set[int] = set()
    kept_ones: set[int] = set()
    last = -100
    # Both in step, a file an epoch, so that what is late is the same.
    held = [FOLDER / "traffic" / f for f in sorted(p.name for p in (FOLDER / "traffic").iterdir())]
    aside = FOLDER / "aside"
    shutil.rmtree(aside, ignore_errors=True)
    aside.mkdir()
    for file in held:
        file.rename(aside / file.name)
    for file, policy in zip(held, policies, strict=True):
        shutil.copy(aside / file.name, file)
        start(query(traffic(kind=kind)), "free", "once")
        run = start(query(traffic(kind=kind)), "shed", "once", shedding=ps.Shedding.parse(policy), qos=qos)
        state = run.driver.shedder.state
        now = {n for o in state.outlooks.values() for a, b in o.outstanding for n in range(a, b + 1)}
        # What was decided once stays so: of the windows that have begun, none that was kept goes, or comes back.
        assert not now & kept_ones
        dropped |= now
        settled = list(run.driver.shedder.settled.values())
        kept_ones |= {n for each in settled for n in range(each.first, each.last + 1)} - dropped
        last = max([last, *now])
    found, free = results("shed"), results("free")
    assert not found - free
    output = run.driver.shedder.outputs[0]
    assert {output.number(row[0]) for row in found} & dropped == set()
    kept = {row[0] for row in free if output.number(row[0]) not in dropped}
    assert found == Counter({row: n for row, n in free.items() if row[0] in kept})
    if gap is not None:
        row = 0
        for number in range(min(dropped, default=0), last + 1):
            row = row + 1 if number in dropped else 0
            assert row <= gap


@pytest.mark.parametrize("point", ["planned", "scanned", "merged", "commit", "published"])
@pytest.mark.parametrize("at", [1, 3])
def test_after_a_crash_the_same_windows_are_missing(point: str, at: int) -> None:
    write("traffic", straight())
    shedding = ps.Shedding.to("50%", seed=3)
    free, _ = fresh(sliding(traffic()), "shed", shedding=shedding, fuse_below=0)
    seen = 0

    def crash(reached: str) -> None:
        nonlocal seen
        seen += reached == point
        if seen == at and reached == point:
            raise Crash(point)

    with hooked(crash), pytest.raises(BaseException):  # noqa: B017 - the plug is pulled
        fresh(sliding(traffic()), "shed", shedding=shedding, fuse_below=0)
    assert seen == at
    again = start(sliding(traffic()), "shed", shedding=shedding, fuse_below=0)
    assert results("shed") == free
    # The account names what is missing, each window once.
    dropped = [int(w) for some in again.account["dropped_windows"].to_pylist() for w in some]
    assert len(dropped) == len(set(dropped)) == again.driver.manifest.shed["tallies"]["sink-1"]["dropped"]
    assert set(dropped).isdisjoint(row[0] for row in free)
    assert again.driver.manifest.shed["tallies"]["sink-1"]["windows"] > 100


def test_it_is_turned_while_the_run_is_down_and_stays_so() -> None:
    write("traffic", straight(1200))
    shutil.rmtree(FOLDER / "shed", ignore_errors=True)
    query = tumbling(traffic())
    first = start(query, "shed", "once", shedding=ps.Shedding.off())
    first.shed(ps.Shedding.to("0%"))
    second = start(query, "shed", "once", shedding=ps.Shedding.off())
    third = start(query, "shed", "once", shedding=ps.Shedding.off())
    assert second.progress is not None
    assert third.driver.feedback.shedding == second.driver.feedback.shedding == ps.Shedding.to("0%")
    # Whoever starts it with another word means that one.
    fourth = start(query, "shed", "once", shedding=ps.Shedding.to("90%"))
    assert fourth.driver.feedback.shedding is None


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        ({"shedding": "60%"}, "shedding='60%' is not possible"),
        ({"qos": {"gap": 3}}, "is not possible"),
        ({"qos": ps.QoS(value={"speed": [((0, 1), 0.5)]})}, "the results have no attribute 'speed'"),
    ],
)
def test_mistakes_are_told_before_anything_runs(wrong: dict[str, Any], complaint: str) -> None:
    write("traffic", straight())
    with pytest.raises(ps.UserError, match=complaint):
        start(tumbling(traffic()), "shed", **wrong)


def test_what_cannot_be_shed_says_why() -> None:
    write("traffic", straight())
    with pytest.raises(ps.UserError, match=r"nothing of this query can be given up: .*the start of a window"):
        start(traffic().group_by("k").agg(n="count(*)"), "shed", shedding=ps.Shedding.to("60%"))
    with pytest.raises(ps.UserError, match=r"started without qos= and shedding="):
        fresh(tumbling(traffic()), "free")[1].shed(ps.Shedding.off())


def test_as_much_goes_as_the_load_demands_and_comes_back_when_it_falls() -> None:
    write("traffic", straight(6000))
    free, _ = fresh(tumbling(traffic()), "free", max_rows=60)
    loads = iter([None, 1.5, 1.5, 1.5, 0.5])
    shares: list[float] = []

    def look(progress: ps.Progress) -> None:
        shares.append(progress.shedding["outputs"]["sink-1"]["share"])
        if (load := next(loads, None)) is not None:
            told.driver.feedback.shed(ps.Shedding.auto(load=load))

    shutil.rmtree(FOLDER / "shed", ignore_errors=True)
    query = tumbling(traffic()).to(ps.parquet(str(FOLDER / "shed")), qos=ps.QoS(gap=4))
    told = ps.start(
        query, trigger="available_now", shedding=ps.Shedding.auto(), max_rows=60, spark=local_session(), listener=look
    )
    told.wait()
    dropped_windows(free, results("shed"))
    assert shares[0] == 1.0 and min(shares) < 0.8 and shares[-1] == 1.0
    at = shares.index(min(shares))
    assert shares[at:].count(1.0) >= len(shares) - at - 8


def test_what_its_gap_keeps_from_giving_enough_is_switched_off_whole_and_on_again() -> None:
    write("traffic", straight(2400))
    free, _ = fresh(tumbling(traffic()), "free", max_rows=100)
    shutil.rmtree(FOLDER / "shed", ignore_errors=True)
    warned: list[str] = []
    files = sorted((FOLDER / "traffic").iterdir())
    aside = FOLDER / "aside"
    shutil.rmtree(aside, ignore_errors=True)
    aside.mkdir()
    for file in files[20:]:
        file.rename(aside / file.name)
    for load in (4.0, 0.5):
        run = start(
            tumbling(traffic()), "shed", "once", shedding=ps.Shedding.auto(load=load), qos=ps.QoS(gap=1), max_rows=None
        )
        warned += run.warnings
        for file in files[20:]:
            if (aside / file.name).exists():
                (aside / file.name).rename(file)
    assert any("sink-1 is switched off: with every gap of 1" in w for w in warned)
    assert any("sink-1 is switched on again" in w for w in warned)
    missing = dropped_windows(free, results("shed"))
    assert missing == set(range(0, 1200, 10))


def test_events_of_single_results_go_by_chance() -> None:
    write("traffic", straight())
    query = traffic().where("k > 0")
    free, _ = fresh(query, "free")
    found, run = fresh(query, "shed", shedding=ps.Shedding.to("70%", seed=5))
    again, _ = fresh(query, "shed", shedding=ps.Shedding.to("70%", seed=5), max_rows=47)
    assert not found - free and 0.6 < sum(found.values()) / sum(free.values()) < 0.8
    assert again == found  # Whatever the cut: a row of a Parquet file has its chance by where it stands.
    other, _ = fresh(query, "shed", shedding=ps.Shedding.to("70%", seed=6))
    assert other != found
    assert run.progress is not None and run.progress.total_shed["source:traffic by chance"] > 100


@pytest.mark.parametrize("query", [tumbling, sliding])
def test_what_is_worth_least_goes_first_and_the_rest_is_exact(query: Any) -> None:
    write("traffic", straight(3000))
    worth = ps.QoS(value={"k": [(0, 0.1), (1, 0.2), (2, 0.9), (3, 1), (4, 1)]})
    free, _ = fresh(query(traffic()), "free")
    found, run = fresh(query(traffic()), "shed", shedding=ps.Shedding.to("50%"), qos=worth)
    missing = free - found
    assert not found - free and missing
    assert {row[1] for row in missing} <= {0, 1}
    # From the first window that was open when it was known how often values occur, all of them are missing.
    first = min(row[0] for row in missing)
    assert all(row not in found for row in free if row[0] > first + 20 and row[1] == 0)
    assert run.progress is not None
    assert sum(n for what, n in run.progress.total_shed.items() if what.startswith("source:traffic")) > 300


@settings(max_examples=10)
@given(data=st.data())
def test_values_that_are_wanted_again_come_back_whole(data: st.DataObject) -> None:
    query = data.draw(st.sampled_from([tumbling, sliding]))
    worth = ps.QoS(value={"k": [((0, 1), 0.1), ((2, 3), 0.5), (4, 1)]})
    times = st.tuples(st.integers(0, 40), st.integers(-6, 6), st.integers(0, 4))
    parts = data.draw(st.lists(st.lists(times, min_size=5, max_size=40), min_size=3, max_size=7))
    policies = [data.draw(st.sampled_from(["off", "30%", "70%"])) for _ in parts]
    write("traffic", [[(max(0, 20 * n + t + late), k) for t, late, k in part] for n, part in enumerate(parts)])
    for name in ("free", "shed", "aside"):
        shutil.rmtree(FOLDER / name, ignore_errors=True)
    (FOLDER / "aside").mkdir()
    held = sorted((FOLDER / "traffic").iterdir())
    for file in held:
        file.rename(FOLDER / "aside" / file.name)
    for file, policy in zip(held, policies, strict=True):
        shutil.copy(FOLDER / "aside" / file.name, file)
        start(query(traffic()), "free", "once")
        start(query(traffic()), "shed", "once", shedding=ps.Shedding.parse(policy), qos=worth)
    assert not results("shed") - results("free")
    assert {row[1] for row in results("free") - results("shed")} <= {0, 1, 2, 3}


def test_rows_of_single_events_go_by_value_too() -> None:
    write("traffic", straight())
    query = traffic().where("ts >= 0")
    worth = ps.QoS(value={"k": [(0, 0.1), (1, 0.2)]})
    free, _ = fresh(query, "free")
    found, _ = fresh(query, "shed", shedding=ps.Shedding.to("50%"), qos=worth)
    missing = free - found
    assert not found - free and {row[1] for row in missing} == {0, 1}


def test_rows_go_by_value_though_other_outputs_read_the_same_events() -> None:
    write("traffic", straight())
    events, worth = traffic(), ps.QoS(value={"k": [(0, 0.1), (1, 0.2)]})
    much = {"free": "100%", "shed": "50%"}
    for folder in much:
        shutil.rmtree(FOLDER / folder, ignore_errors=True)
        queries = [events.where(f"ts >= {n}").to(ps.parquet(str(FOLDER / folder / str(n))), qos=worth) for n in (0, 1)]
        options = {"checkpoint": str(FOLDER / folder / "checkpoint"), "max_rows": 30, "spark": local_session()}
        ps.start(queries, trigger="available_now", shedding=ps.Shedding.to(much[folder]), **options).wait()
    for n in "01":
        missing = results(f"free/{n}") - (found := results(f"shed/{n}"))
        assert not found - results(f"free/{n}") and {row[1] for row in missing} == {0, 1}
