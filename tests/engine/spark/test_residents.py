"""Tasks that stay: the same answers as jobs give, whoever is killed, stopped or in the way."""

from __future__ import annotations

import contextlib
import gc
import os
import random
import signal
import threading
import time
from collections.abc import Iterator
from functools import partial
from multiprocessing.connection import Client
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from processes import ProcessContext, ProcessSession

import penstock as ps
from penstock.engine.epoch import submitting
from penstock.engine.spark import residents
from penstock.engine.spark.residents import Lodging, LostResidentError, lodging_of, slots
from penstock.engine.tasks.exchange import REPORT, Parcel
from penstock.engine.tasks.resident import Order, Resident, Shelf
from penstock.portal.testing import LocalSession

FILES = 12


def write(folder: Path, files: int = FILES, rows: int = 40) -> None:
    rng = np.random.default_rng(3)
    folder.mkdir(parents=True)
    for i in range(files):
        at = (i * rows + np.arange(rows)) * 250_000 + rng.integers(0, 1_000_000, rows)
        table = {"ts": pa.array(at, pa.timestamp("us")), "k": pa.array(rng.integers(0, 9, rows), pa.int32())}
        pq.write_table(pa.table({**table, "v": rng.normal(size=rows)}), folder / f"{i:03d}.parquet")


QUERIES = {
    "filter": lambda s: s.where("v > 0"),
    "window": lambda s: s.window("5 s").group_by("k").agg(n="count(*)", v="sum(v)"),
    "two levels": lambda s: (
        s.window("5 s").group_by("k").agg(n="count(*)").rename(window_start="w").window("10 s", on="w").agg(m="max(n)")
    ),
    "join": lambda s: s.join(s.rename(v="w"), on=["k", "ts"]),
}


def start(folder: Path, out: Path, session: Any, name: str = "window", **settings: Any) -> Any:
    stream = ps.stream("s", "ts timestamp, k int, v double", time="ts").read_parquet(str(folder)).disorder("2 s").ends()
    query = QUERIES[name](stream)
    return query.start(ps.parquet(str(out)), trigger="available_now", spark=session, max_rows=40, **settings)


def rows(out: Path) -> list[Any]:
    tables = [pq.read_table(p).to_pylist() for p in sorted(out.glob("*.parquet"))]
    return sorted((tuple(r.values()) for t in tables for r in t), key=repr)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data") / "in"
    write(folder)
    return folder


@pytest.fixture(scope="module")
def expected(data: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Any]]:
    found = {}
    for name in QUERIES:
        out = tmp_path_factory.mktemp("jobs")
        start(data, out, LocalSession(), name).wait()
        found[name] = rows(out)
    return found


@pytest.fixture
def session() -> Iterator[ProcessSession]:
    made = ProcessSession()
    yield made
    lodging = lodging_of(made.sparkContext)  # type: ignore[arg-type]
    if lodging is not None and lodging.residents is not None:
        lodging.residents.close(lost=True)


@pytest.mark.parametrize("name", QUERIES)
@pytest.mark.parametrize("parallelism", [1, 3])
def test_the_same_as_jobs(
    name: str, parallelism: int, data: Path, expected: dict[str, list[Any]], tmp_path: Path
) -> None:
    session = ProcessSession(parallelism)
    run = start(data, tmp_path, session, name, buckets=3)
    run.wait()
    assert rows(tmp_path) == expected[name]
    assert {p.path for p in run.history} == {"resident"}
    assert session.sparkContext.started == 1
    lodging_of(session.sparkContext).residents.close()  # type: ignore[arg-type,union-attr]


@pytest.mark.parametrize("name", QUERIES)
def test_a_tiny_epoch_that_no_other_follows_at_once_is_one_order(
    monkeypatch: pytest.MonkeyPatch, name: str, data: Path, expected: dict[str, list[Any]], session: Any, tmp_path: Path
) -> None:
    given: list[str] = []
    before = residents.Residents._give

    def give(self: Any, orders: Any, patience: float) -> Any:
        given.extend(order.work.func.__name__ for _, order in orders)
        return before(self, orders, patience)

    monkeypatch.setattr(residents.Residents, "_give", give)
    run = start(data, tmp_path, session, name, overlap=False)
    run.wait()
    assert rows(tmp_path) == expected[name]
    assert {p.path for p in run.history} == {"resident"}
    assert ("_all_of_it" in given) == (name in ("window", "join"))


def test_large_epochs_and_those_who_do_not_want_it_are_jobs(data: Path, session: Any, tmp_path: Path) -> None:
    run = start(data, tmp_path / "a", session, resident_below=0)
    run.wait()
    assert {p.path for p in run.history} == {"job"} and session.sparkContext.started == 0
    size = max(f.stat().st_size for f in data.iterdir())
    run = start(data, tmp_path / "b", session, resident_below=size // 4)
    run.wait()
    assert run.history[0].path == "job"


@pytest.mark.parametrize("name", ["window", "two levels", "join"])
def test_large_parcels_are_files_that_go_with_their_epoch(
    monkeypatch: pytest.MonkeyPatch, name: str, data: Path, expected: dict[str, list[Any]], tmp_path: Path
) -> None:
    made: list[Path] = []
    found: set[str] = set()
    depot = submitting._depot

    def kept(*given: Any) -> str | None:
        made.append(Path(depot(*given) or ""))
        return str(made[-1])

    def look(_: Any) -> None:
        found.update(file.suffix for folder in made if folder.exists() for file in folder.iterdir())

    monkeypatch.setattr(submitting, "RESIDENT_ANYWHERE", 0)
    monkeypatch.setattr(submitting, "_depot", kept)
    session = ProcessSession(2)
    session.sparkContext.large = 1
    run = start(data, tmp_path, session, name, buckets=3, fuse_below=0, listener=look, resident_below=1 << 30)
    run.wait()
    assert rows(tmp_path) == expected[name]
    assert {p.path for p in run.history} == {"resident"}
    assert made and found == {".arrow"}
    gc.collect()
    assert not any(folder.exists() for folder in made)
    lodging_of(session.sparkContext).residents.close()  # type: ignore[arg-type,union-attr]


def test_an_epoch_goes_to_tasks_that_stay_by_its_size_and_by_where_they_are(
    monkeypatch: pytest.MonkeyPatch, data: Path, tmp_path: Path
) -> None:
    monkeypatch.setattr(submitting, "RESIDENT_ANYWHERE", 1)
    for master, path in {"local[8]": "resident", "spark://host:7077": "job"}.items():
        session = ProcessSession(2, master)
        run = start(data, tmp_path / path, session)
        run.wait()
        assert {p.path for p in run.history} == {path}
        if (lodging := lodging_of(session.sparkContext)).residents is not None:  # type: ignore[arg-type,union-attr]
            lodging.residents.close()  # type: ignore[union-attr]


def test_whoever_is_killed_nothing_is_lost_or_doubled(
    monkeypatch: pytest.MonkeyPatch, data: Path, expected: dict[str, list[Any]], session: Any, tmp_path: Path
) -> None:
    """Forty times at random moments, one of the tasks or all."""
    monkeypatch.setattr(residents, "REST", 0)
    chance, killed, paths, turn = random.Random(5), 0, set(), 0

    def kill() -> None:
        nonlocal killed
        victims = [p for p in session.sparkContext.running if p.is_alive()]
        for process in chance.sample(victims, min(len(victims), chance.choice((1, 1, 2)))):
            killed += 1
            process.kill()

    def soon(progress: Any) -> None:
        # Moments are counted from epochs, so that a quick machine meets as many of them as a slow one.
        if progress.path == "resident" and chance.random() < 0.5:
            threading.Timer(chance.random() * progress.seconds, kill).start()

    while killed < 40:
        turn, name = turn + 1, chance.choice(list(QUERIES))
        assert turn < 100
        run = start(data, tmp_path / str(turn), session, name, listener=soon)
        run.wait()
        assert rows(tmp_path / str(turn)) == expected[name]
        paths |= {p.path for p in run.history}
    assert paths == {"resident", "job"}


def test_one_that_hangs_is_noticed_and_replaced(
    data: Path, expected: dict[str, list[Any]], session: Any, tmp_path: Path
) -> None:
    stopped: list[int] = []

    def stop(progress: Any) -> None:
        if progress.epoch == 4:
            stopped.extend(p.pid for p in session.sparkContext.running)
            for pid in stopped:
                os.kill(pid, signal.SIGSTOP)

    run = start(data, tmp_path, session, hung_after=2, listener=stop)
    run.wait()
    assert rows(tmp_path) == expected["window"]
    assert stopped and session.sparkContext.started == 2
    assert [p.path for p in run.history].count("job") <= 2
    assert run.history[-1].path == "resident"


def _dawdle(table: pa.Table, marker: Path) -> pa.Table:
    with contextlib.suppress(FileNotFoundError):
        marker.unlink()  # One of them only.
        time.sleep(60)
    return table


def test_a_kernel_that_does_not_come_to_an_end_is_tried_again(data: Path, session: Any, tmp_path: Path) -> None:
    (marker := tmp_path / "marker").touch()
    stream = ps.stream("s", "ts timestamp, k int, v double", time="ts").read_parquet(str(data)).disorder("2 s").ends()
    query = stream.map(partial(_dawdle, marker=marker), "ts timestamp, k int, v double")
    sink = ps.parquet(str(tmp_path / "out"))
    run = query.start(sink, trigger="available_now", spark=session, max_rows=40, hung_after=2).wait()
    assert not marker.exists() and len(rows(tmp_path / "out")) == FILES * 40
    assert run.history[0].path == "job" and run.history[-1].path == "resident"


def test_slots_are_given_back(monkeypatch: pytest.MonkeyPatch, data: Path, tmp_path: Path) -> None:
    monkeypatch.setattr(residents, "IDLE", 0.2)
    session = ProcessSession(2, "local[2]")
    context = session.sparkContext
    start(data, tmp_path / "a", session).wait()
    lodging: Lodging = lodging_of(context)  # type: ignore[arg-type,assignment]
    assert not lodging.spare
    _until(lambda: not any(p.is_alive() for p in context.running))  # Nobody had work for it for a while.
    monkeypatch.setattr(residents, "IDLE", 60)
    found = lodging.at_hand()
    assert found is not None
    context.waits = True
    _until(found.over.is_set)  # Somebody else needs the slots,
    assert lodging.at_hand() is None  # and is not robbed of them again at once.
    lodging.rest_until, context.waits = 0, False
    found = lodging.at_hand()
    assert found is not None
    lodging.make_room()
    assert found.over.is_set()
    _until(lambda: not any(p.is_alive() for p in context.running))


def test_where_there_are_spare_slots_jobs_run_beside(session: Any) -> None:
    lodging: Lodging = lodging_of(session.sparkContext)  # type: ignore[assignment]
    found = lodging.at_hand()
    lodging.make_room()
    assert found is not None and not found.over.is_set()


def test_a_session_that_makes_copies_of_slow_tasks_has_none_that_stay() -> None:
    context = ProcessContext(2)
    context.conf["spark.speculation"] = "true"
    assert Lodging(context).at_hand() is None  # type: ignore[arg-type]


def test_if_they_do_not_come_epochs_are_jobs(monkeypatch: pytest.MonkeyPatch, data: Path, tmp_path: Path) -> None:
    monkeypatch.setattr(residents, "PATIENCE", 0.1)
    session = ProcessSession()
    monkeypatch.setattr(residents, "reside", _stay_away)
    run = start(data, tmp_path, session)
    run.wait()
    assert {p.path for p in run.history} == {"job"}


def _stay_away(*_: Any) -> Any:
    time.sleep(60)
    return iter(())


def test_who_does_not_know_the_key_is_not_let_in(session: Any) -> None:
    found = lodging_of(session.sparkContext).at_hand()  # type: ignore[union-attr]
    assert found is not None
    silent = Client(found._door.address)  # Says nothing, and must not keep others out.
    with pytest.raises(Exception, match=r"digest|closed|reset|HMAC|connection"):
        Client(found._door.address, authkey=b"guess").recv()
    seat = found.seats[0]
    with Client(seat.address, authkey=found.key) as line:
        line.send(("nothing", 0))
        assert line.recv() == []
    silent.close()


def _work(fail: bool, given: Any) -> Iterator[tuple[int, Parcel]]:
    if fail:
        raise ValueError("no good")
    yield 0, Parcel(1, (0,), b"".join(p.payload for _, p in given) + b"x")
    yield 3, Parcel(1, (0,), b"y")
    yield 4, Parcel(REPORT, (0,), b"told")


def test_parcels_wait_for_their_group_and_are_forgotten(tmp_path: Path) -> None:
    one, other = (Resident(str(tmp_path / n), b"key") for n in "ab")
    done = one.carry_out(Order(partial(_work, False), name="first", buckets=4, groups=2))
    assert done.reports == (b"told",) and done.parcels and done.failed is None
    shelves = (Shelf(one.door.address, "first"),)
    done = other.carry_out(Order(partial(_work, False), shelves=shelves, group=0, name="n", buckets=4, groups=1))
    assert [p.payload for _, p in other.shelf["n"][0]] == [b"xx", b"y"]
    assert one.shelf["first"].keys() == {1}
    one.carry_out(Order(partial(_work, False), name="second", buckets=4, groups=2, forget=("first",)))
    assert one.shelf.keys() == {"second"}
    failed = one.carry_out(Order(partial(_work, True)))
    assert failed.failed is not None and "no good" in failed.failed
    one.close()
    other.close()


def test_a_failing_order_is_told_and_ends_them(session: Any) -> None:
    found = lodging_of(session.sparkContext).at_hand()  # type: ignore[union-attr]
    with pytest.raises(LostResidentError, match="no good"):
        found._give([(0, Order(partial(_work, True)))], 10)
    assert found.over.is_set()


def _sleep(_: Any) -> Iterator[tuple[int, Parcel]]:
    time.sleep(60)
    return iter(())


def test_who_waits_for_one_hears_at_once_that_all_are_let_go(session: Any) -> None:
    found = lodging_of(session.sparkContext).at_hand()  # type: ignore[union-attr]
    told: list[BaseException] = []

    def wait() -> None:
        try:
            found._give([(0, Order(_sleep))], 60)
        except LostResidentError as error:
            told.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    _until(lambda: found.busy)
    time.sleep(0.1)  # Now it waits.
    found.close()
    thread.join(20)
    assert told and all(seat.line.closed for seat in found.seats.values())


def test_slots_of_masters() -> None:
    assert [slots(m) for m in ("local", "local[7]", "local[3,2]", "local-cluster[2,1,1024]", "yarn")] == [1, 7, 3, 0, 0]


def _until(condition: Any) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)
