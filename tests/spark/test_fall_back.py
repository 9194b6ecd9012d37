"""Damaged files: never a wrong answer without an error, and one epoch back wherever that gives the right one."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from plug import crash_at
from scenario import FILES, ROWS, SCENARIOS, Outcome, Scenario, outcome, windows

import penstock as ps
from penstock.checkpoint.checkpoint import Checkpoint, Manifest
from penstock.checkpoint.fault import Crash, hooked
from penstock.checkpoint.runs import run_names
from penstock.checkpoint.storage import Storage
from penstock.engine import tables
from penstock.errors import CheckpointError
from penstock.portal.testing import local_session

LAST = FILES - 1  #: The epoch after which runs stop here: one of input is left.


def put(path: Path, data: bytes) -> None:
    """Other contents under the same name. Not in place: this process may have mapped the file."""
    beside = path.with_name("beside")
    beside.write_bytes(data)
    beside.replace(path)


def flip(path: Path, rng: random.Random) -> None:
    data = bytearray(path.read_bytes())
    data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    put(path, data)


def blank(path: Path, rng: random.Random) -> None:
    """A page of zeros, as a disk leaves that had noted the size already."""
    data = bytearray(path.read_bytes())
    at = rng.randrange(len(data)) // 512 * 512
    before = bytes(data[at : at + 512])
    data[at : at + 512] = bytes(len(before))
    put(path, data)
    if not any(before):
        flip(path, rng)


def cut(path: Path, rng: random.Random) -> None:
    put(path, path.read_bytes()[: rng.randrange(path.stat().st_size)])


def empty(path: Path, rng: random.Random) -> None:
    put(path, b"")


def delete(path: Path, rng: random.Random) -> None:
    path.unlink()


DAMAGES: dict[str, Callable[[Path, random.Random], None]] = {d.__name__: d for d in (flip, blank, cut, empty, delete)}


class Patient:
    """A run that was stopped in the middle."""

    def __init__(self, scenario: Scenario, source: Path, home: Path, after: int = LAST) -> None:
        self.scenario, self.source, self.home = scenario, source, home
        with hooked(crash_at("retired", after)), pytest.raises(Crash):
            self.go_on()
        self.checkpoint = Checkpoint(Storage.at(str(home / "checkpoint")))
        newest = self.checkpoint.latest()
        assert newest is not None
        self.newest: Manifest = newest

    def go_on(self) -> ps.Run:
        return self.scenario.start(self.source, self.home, local_session()).wait()

    def path(self, name: str) -> Path:
        return self.home / "checkpoint" / name

    def runs(self) -> list[str]:
        """The files of state that only the newest manifest needs."""
        before = self.checkpoint.before(self.newest)
        return sorted(run_names(self.newest.units) - (run_names(before.units) if before is not None else set()))

    def parts(self, epoch: int) -> list[Path]:
        places = (self.home / "out", self.home / "checkpoint" / "dead_letters")
        return sorted(p for place in places for p in place.rglob(f"part-{epoch:06d}-*"))


class Undisturbed:
    def __init__(self, folders: pytest.TempPathFactory) -> None:
        self.folders = folders
        self._known: dict[str, tuple[Path, Outcome]] = {}

    def __call__(self, name: str) -> tuple[Path, Outcome]:
        if name not in self._known:
            home = self.folders.mktemp(name)
            SCENARIOS[name].prepare(home)
            SCENARIOS[name].start(home, home, local_session()).wait()
            self._known[name] = home, outcome(home)
        return self._known[name]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    return Undisturbed(tmp_path_factory)


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("name", ["windows", "no-overlap", "fused", "joined"])
def test_a_damaged_run_of_the_newest_epoch_is_made_again(
    undisturbed: Undisturbed, tmp_path: Path, name: str, damage: str
) -> None:
    source, expected = undisturbed(name)
    patient = Patient(SCENARIOS[name], source, tmp_path)
    rng = random.Random(3)
    runs = patient.runs()
    assert runs
    broken = rng.choice(runs)
    DAMAGES[damage](patient.path(broken), rng)
    run = patient.go_on()
    assert [w for w in run.warnings if broken in w and f"epoch {LAST} is run again" in w]
    assert outcome(tmp_path) == expected
    assert not patient.go_on().warnings


def test_the_first_epoch_can_be_run_again(undisturbed: Undisturbed, tmp_path: Path) -> None:
    source, expected = undisturbed("windows")
    patient = Patient(SCENARIOS["windows"], source, tmp_path, after=1)
    for name in patient.runs():
        put(patient.path(name), b"")
    assert [w for w in patient.go_on().warnings if "epoch 1 is run again" in w]
    assert outcome(tmp_path) == expected


@pytest.mark.parametrize("name", ["windows", "no-overlap", "fused", "joined", "by-value"])
def test_damage_while_it_runs_is_found_by_the_task_that_reads(
    undisturbed: Undisturbed, tmp_path: Path, name: str
) -> None:
    source, expected = undisturbed(name)
    rng = random.Random(1)
    broken: list[str] = []

    def hook(point: str) -> None:
        if point == "retired" and not broken:
            checkpoint = Checkpoint(Storage.at(str(tmp_path / "checkpoint")))
            newest = checkpoint.latest()
            assert newest is not None
            before = checkpoint.before(newest)
            if newest.epoch == LAST and before is not None:
                broken.extend(sorted(run_names(newest.units) - run_names(before.units)))
                for run in broken:
                    flip(tmp_path / "checkpoint" / run, rng)

    with hooked(hook):
        run = SCENARIOS[name].start(source, tmp_path, local_session()).wait()
    assert broken
    assert [w for w in run.warnings if "checksum" in w and f"epoch {LAST} is run again" in w]
    assert outcome(tmp_path) == expected


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_result_of_the_newest_epoch_is_made_again(
    undisturbed: Undisturbed, tmp_path: Path, damage: str
) -> None:
    source, expected = undisturbed("windows")
    patient = Patient(SCENARIOS["windows"], source, tmp_path)
    parts = patient.parts(LAST)
    assert len(parts) >= 2
    for part in parts:
        DAMAGES[damage](part, random.Random(1))
    run = patient.go_on()
    told = [w for w in run.warnings if f"epoch {LAST} is run again" in w]
    assert len(told) == 1 and any(part.name in told[0] for part in parts)
    assert outcome(tmp_path) == expected


def test_results_that_were_not_yet_published_are_looked_at(undisturbed: Undisturbed, tmp_path: Path) -> None:
    source, expected = undisturbed("windows")
    with hooked(crash_at("committed", LAST)), pytest.raises(Crash):
        SCENARIOS["windows"].start(source, tmp_path, local_session()).wait()
    staged = sorted((tmp_path / "out" / "_penstock" / "staging").glob("*"))
    assert staged
    flip(staged[0], random.Random(5))
    run = SCENARIOS["windows"].start(source, tmp_path, local_session()).wait()
    assert [w for w in run.warnings if "checksum" in w and f"epoch {LAST} is run again" in w]
    assert outcome(tmp_path) == expected


@pytest.mark.parametrize("damage", ["flip", "blank", "cut", "empty"])
def test_the_last_five_results_are_damaged(undisturbed: Undisturbed, tmp_path: Path, damage: str) -> None:
    """Those that cannot be had again are told by name; once they are restored, or given up, it goes on."""
    source, expected = undisturbed("windows")
    patient = Patient(SCENARIOS["windows"], source, tmp_path)
    parts = [p for epoch in (LAST - 1, LAST) for p in patient.parts(epoch)][-5:]
    whole = {p: p.read_bytes() for p in parts}
    older = [p for p in parts if int(p.name[5:11]) < LAST]
    assert older
    for part in parts:
        DAMAGES[damage](part, random.Random(2))
    with pytest.raises(CheckpointError, match=r"part-00000.*is damaged.*too far back.*Hint: restore it from a backup"):
        patient.go_on()
    for part in older:
        put(part, whole[part])
    patient.go_on()
    assert outcome(tmp_path) == expected


def test_older_results_may_be_taken_away(undisturbed: Undisturbed, tmp_path: Path) -> None:
    source, _ = undisturbed("windows")
    patient = Patient(SCENARIOS["windows"], source, tmp_path)
    taken = patient.parts(LAST - 1)
    for part in taken:
        part.unlink()
    assert not patient.go_on().warnings
    assert not any(part.exists() for part in taken)


def test_what_lies_too_far_back_is_told_and_changes_nothing(undisturbed: Undisturbed, tmp_path: Path) -> None:
    source, expected = undisturbed("windows")
    patient = Patient(SCENARIOS["windows"], source, tmp_path)
    before = patient.checkpoint.before(patient.newest)
    assert before is not None
    shared = sorted(run_names(patient.newest.units) & run_names(before.units))
    assert shared
    whole = {name: patient.path(name).read_bytes() for name in shared}
    for name in shared:
        put(patient.path(name), b"")
    with pytest.raises(CheckpointError, match=r"missing or damaged: 0 bytes instead of .*Hint: restore the file"):
        patient.go_on()
    for name, data in whole.items():
        put(patient.path(name), data)
    patient.go_on()
    assert outcome(tmp_path) == expected


@pytest.mark.parametrize("noted", [True, False])
def test_an_epoch_that_is_run_again_is_delivered_once(undisturbed: Undisturbed, tmp_path: Path, noted: bool) -> None:
    source, expected = undisturbed("windows")
    delivered: list[tuple[int, list[Any]]] = []

    def take(rows: pa.Table, epoch: int) -> None:
        delivered.append((epoch, sorted(tuple(r.values()) for r in rows.to_pylist())))

    def start() -> ps.Run:
        options: dict[str, Any] = {"checkpoint": str(tmp_path / "checkpoint"), "spark": local_session()}
        return windows(source / "in").start(ps.deliver(take), trigger="available_now", max_rows=ROWS, **options).wait()

    with hooked(crash_at("retired" if noted else "deliver", LAST if noted else 2)), pytest.raises(Crash):
        start()
    newest = Checkpoint(Storage.at(str(tmp_path / "checkpoint"))).latest()
    assert newest is not None
    staged = [tmp_path / "checkpoint" / o.staged for o in newest.outputs if o.staged.startswith("results/")]
    runs = [tmp_path / "checkpoint" / n for n in sorted(run_names(newest.units)) if f"/{newest.epoch:06d}-" in n]
    assert staged and runs
    for path in runs if noted else staged:
        flip(path, random.Random(1))
    run = start()
    assert [w for w in run.warnings if f"epoch {newest.epoch} is run again" in w]
    epochs = [epoch for epoch, _ in delivered]
    assert len(epochs) == len(set(epochs)) and newest.epoch in epochs
    assert sorted((row for _, rows in delivered for row in rows), key=repr) == expected.rows


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_snapshot_of_a_table_is_written_again(tmp_path: Path, damage: str) -> None:
    SCENARIOS["windows"].prepare(tmp_path)
    (tmp_path / "prices").mkdir()
    pq.write_table(pa.table({"key": pa.array(range(6), pa.int32()), "price": [1.0] * 6}), tmp_path / "prices/a.parquet")

    def start(home: Path) -> ps.Run:
        source = ps.stream("events", "ts timestamp, key int, value double", time="ts")
        read = source.read_parquet(str(tmp_path / "in"), order="name").disorder("2 s").ends()
        prices = ps.table("prices", "key int, price double", key="key").read_parquet(str(tmp_path / "prices"))
        query = read.lookup(prices).window("5 s").group_by("key").agg(n="count(*)", paid="sum(price)")
        options: dict[str, Any] = {"checkpoint": str(home / "checkpoint"), "spark": local_session()}
        sink = ps.parquet(str(home / "out"))
        return query.start(sink, trigger="available_now", max_rows=ROWS, fuse_below=0, **options).wait()

    start(tmp_path / "expected")
    with hooked(crash_at("retired", 2)), pytest.raises(Crash):
        start(tmp_path / "home")
    (snapshot,) = (tmp_path / "home" / "checkpoint" / "tables" / "prices").glob("*.arrow")
    whole = snapshot.read_bytes()
    DAMAGES[damage](snapshot, random.Random(1))
    tables._open.clear()  # As in a process that has not seen it yet.
    run = start(tmp_path / "home")
    assert [w for w in run.warnings if snapshot.name in w and "read again" in w]
    assert snapshot.read_bytes() == whole
    assert outcome(tmp_path / "home") == outcome(tmp_path / "expected")


@pytest.mark.parametrize("seed", range(12))
def test_whatever_is_damaged_the_answer_is_right_or_there_is_an_error(
    undisturbed: Undisturbed, tmp_path: Path, seed: int
) -> None:
    rng = random.Random(seed)
    name = rng.choice(["windows", "compacting", "two-levels", "joined", "joined-open"])
    source, expected = undisturbed(name)
    patient = Patient(SCENARIOS[name], source, tmp_path, after=rng.randint(1, LAST))
    files = [patient.path(n) for n in sorted(run_names(patient.newest.units))]
    files += patient.parts(patient.newest.epoch)
    for path in rng.sample(files, min(len(files), rng.choice([1, 1, 3]))):
        rng.choice(list(DAMAGES.values()))(path, rng)
    try:
        patient.go_on()
    except CheckpointError as error:
        told = str(error)
    else:
        assert outcome(tmp_path) == expected
        return
    assert "damaged" in told and "Hint" in told
