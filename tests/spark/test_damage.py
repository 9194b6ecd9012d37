"""Damage and accidents: one clear line, nothing lost, and the same checkpoint goes on once the cause is mended."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from plug import crash_at
from scenario import ROWS, SCENARIOS, Outcome, events, orphans, outcome, windows

import penstock as ps
from penstock.checkpoint.disk import Disk, on_disk
from penstock.checkpoint.fault import Crash, hooked
from penstock.checkpoint.storage import seal, unseal
from penstock.engine.source.files import FilesReader
from penstock.errors import CheckpointError, PenstockError, SchemaError, SourceError, UserError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WINDOWS = SCENARIOS["windows"]


@pytest.fixture(scope="module")
def undisturbed(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Outcome]:
    home = tmp_path_factory.mktemp("undisturbed")
    WINDOWS.prepare(home)
    WINDOWS.start(home, home, spark).wait()
    return home, outcome(home)


class Patient:
    """A run that stopped in the middle: two of its four epochs have happened."""

    def __init__(self, home: Path, spark: SparkSession, expected: Outcome) -> None:
        self.home, self.spark, self.expected = home, spark, expected
        with hooked(crash_at("retired", 2)), pytest.raises(Crash):
            self.go_on()

    @property
    def checkpoint(self) -> Path:
        return self.home / "checkpoint"

    def go_on(self, **settings: Any) -> ps.Run:
        return WINDOWS.start(self.home, self.home, self.spark, **settings).wait()

    def fails(self, kind: type[PenstockError], text: str) -> None:
        """Going on fails with one line that matches."""
        with pytest.raises(kind, match=text) as caught:
            self.go_on()
        assert "\n" not in str(caught.value) and caught.value.hint

    def is_well(self) -> ps.Run:
        """Going on gives the right answer."""
        run = self.go_on()
        assert outcome(self.home) == self.expected
        self.go_on()
        assert orphans(self.home) == []
        return run

    def manifests(self) -> list[Path]:
        return sorted(self.checkpoint.glob("epochs/*.commit.json"))

    def runs(self) -> list[Path]:
        return sorted(self.checkpoint.glob("state/**/*.arrow"))

    def contents(self) -> dict[str, bytes]:
        files = [p for p in self.home.rglob("*") if p.is_file() and p.name != "lock"]
        return {str(p): p.read_bytes() for p in files}


@pytest.fixture
def patient(spark: SparkSession, undisturbed: tuple[Path, Outcome], tmp_path: Path) -> Patient:
    source, expected = undisturbed
    shutil.copytree(source / "in", tmp_path / "in")  # With its times: it must be the same input.
    return Patient(tmp_path, spark, expected)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


# --- the checkpoint -------------------------------------------------------------------------------------------------


def test_last_manifest_damaged(patient: Patient) -> None:
    cut(patient.manifests()[-1])
    run = patient.is_well()
    assert [w for w in run.warnings if "000002.commit.json" in w and "run again" in w]


def test_last_manifest_damaged_after_a_restart(patient: Patient) -> None:
    """A start sweeps; it must not sweep what the manifest before the last needs."""
    with hooked(crash_at("written epochs/000004.plan.json", 1)), pytest.raises(Crash):
        patient.go_on()
    cut(patient.manifests()[-1])
    patient.is_well()


def test_all_manifests_damaged(patient: Patient) -> None:
    whole = {p: p.read_bytes() for p in patient.manifests()}
    for path in whole:
        cut(path)
    before = patient.contents()
    patient.fails(CheckpointError, "neither of its last two manifests is whole.*nothing has been changed")
    assert patient.contents() == before
    for path, data in whole.items():
        path.write_bytes(data)
    patient.is_well()


@pytest.mark.parametrize("damage", ["deleted", "cut"])
def test_runs_damaged(patient: Patient, damage: str) -> None:
    whole = {p: p.read_bytes() for p in patient.runs()}
    assert whole
    for path in whole:
        cut(path) if damage == "cut" else path.unlink()
    patient.fails(CheckpointError, r"aggregate-1, bucket \d: state run .* is missing or damaged.*restore the file")
    for path, data in whole.items():
        path.write_bytes(data)
    patient.is_well()


def test_checkpoint_of_another_query(patient: Patient, tmp_path: Path) -> None:
    other = events(tmp_path / "in").window("20 s", slide="10 s").group_by("key").agg(n="count(*)", total="sum(value)")
    before = patient.contents()
    with pytest.raises(CheckpointError, match=r"another query: .*5 s.*10 s.*Hint: use a new checkpoint"):
        other.start(ps.parquet(str(tmp_path / "other")), checkpoint=str(patient.checkpoint), spark=patient.spark)
    assert patient.contents() == before  # The other folder was not claimed either.
    patient.is_well()


def test_checkpoint_of_another_version(patient: Patient) -> None:
    meta = patient.checkpoint / "meta.json"
    whole = meta.read_bytes()
    meta.write_bytes(seal({**unseal(whole, "meta"), "format": 99, "version": "9.9"}))
    patient.fails(CheckpointError, r"has format 99 \(Penstock 9\.9\); this is Penstock .* reads format 6")
    meta.write_bytes(whole)
    patient.is_well()


def test_two_runs_on_one_checkpoint(patient: Patient) -> None:
    reader = windows(patient.home / "in")
    with reader.start(
        ps.parquet(str(patient.home / "out")),
        every="1 min",
        checkpoint=str(patient.checkpoint),
        spark=patient.spark,
        max_rows=ROWS,
    ) as first:
        patient.fails(CheckpointError, rf"in use by another run \(process {os.getpid()} on .*stop that run first")
        assert first.active
    patient.go_on()
    # A run without an end may have read all there is: then the end of the stream is an epoch of its own.
    assert outcome(patient.home).rows == patient.expected.rows
    assert orphans(patient.home) == []


def test_sink_of_another_checkpoint(patient: Patient, tmp_path: Path) -> None:
    before = patient.contents()
    with pytest.raises(
        UserError, match=r"holds the results of another checkpoint.*Hint: continue with that checkpoint"
    ):
        windows(tmp_path / "in").start(
            ps.parquet(str(tmp_path / "out")), checkpoint=str(tmp_path / "new"), spark=patient.spark
        )
    assert {k: v for k, v in patient.contents().items() if not k.startswith(str(tmp_path / "new"))} == before
    patient.is_well()


def test_dead_letters_among_results(patient: Patient, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is the folder of the results"):
        windows(tmp_path / "in").start(
            ps.parquet(str(tmp_path / "o")), dead_letters=str(tmp_path / "o"), spark=patient.spark
        )


def test_files_of_others_in_the_sink_stay(patient: Patient) -> None:
    """Spark, too, calls its files part-…; only exactly our own names are ours to sweep."""
    names = ("part-00007-1c2b3a4d-c000.snappy.parquet", "part-of-something.txt", "part-000099-x000.parquet")
    for name in names:
        (patient.home / "out" / name).write_bytes(b"precious")
    patient.go_on()
    assert all((patient.home / "out" / name).read_bytes() == b"precious" for name in names)


# --- the disk -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("record", ["000004.plan.json", "000003.commit.json"])
def test_disk_full_for_records(patient: Patient, monkeypatch: pytest.MonkeyPatch, record: str) -> None:
    sync = os.fsync

    def full(descriptor: int) -> None:
        if record in os.readlink(f"/proc/self/fd/{descriptor}"):
            raise OSError(28, "No space left on device")
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", full)
    with on_disk(Disk()):
        patient.fails(CheckpointError, rf"cannot write .*{record}.*No space left on device.*nothing is lost")
    monkeypatch.undo()
    patient.is_well()


@pytest.mark.parametrize("folder", ["checkpoint/state/aggregate-1/0", "out/_penstock/staging"])
def test_folder_not_writable(patient: Patient, folder: str) -> None:
    """A file in place of the folder: what a task writes there fails, whoever runs it."""
    path, aside = patient.home / folder, patient.home / "aside"
    path.rename(aside)

    def hook(point: str) -> None:
        # A task of the run that was stopped may have made the folder anew meanwhile.
        if point == "planned" and not path.is_file():
            shutil.rmtree(path, ignore_errors=True)
            path.write_bytes(b"")

    with hooked(hook):
        patient.fails(CheckpointError, r"cannot write results to .*|state run .* is missing or damaged.*")
    path.unlink(missing_ok=True)
    aside.rename(path)
    patient.is_well()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(folder)], capture_output=True)
    if mounted.returncode:
        pytest.skip("no right to mount a small disk here")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.mark.parametrize("place", ["checkpoint/state", "out"])
def test_disk_full_for_tasks(
    spark: SparkSession,
    undisturbed: tuple[Path, Outcome],
    small_disk: Path,
    tmp_path: Path,
    place: str,
    request: pytest.FixtureRequest,
) -> None:
    """A real full disk below the state, then below the results."""
    source, expected = undisturbed
    home = tmp_path / "home"
    (home / place).mkdir(parents=True)
    subprocess.run(["mount", "--bind", str(small_disk), str(home / place)], check=True)
    request.addfinalizer(lambda: subprocess.run(["umount", "-l", str(home / place)], check=True))

    def fill(point: str) -> None:
        if point == "planned":
            with contextlib.suppress(OSError), (small_disk / "full").open("wb", buffering=0) as file:
                while True:
                    file.write(b"x" * 4096)

    with hooked(fill), pytest.raises(CheckpointError, match=r"cannot write (state|results) to .*No space left.*Hint"):
        WINDOWS.start(source, home, spark).wait()
    (small_disk / "full").unlink()
    WINDOWS.start(source, home, spark).wait()
    assert outcome(home) == expected


# --- the input ------------------------------------------------------------------------------------------------------


def rewrite(path: Path, change: Callable[[pa.Table], pa.Table]) -> None:
    pq.write_table(change(pq.read_table(path)), path, row_group_size=ROWS // 3)


def test_file_changes_between_plan_and_scan(patient: Patient, tmp_path: Path) -> None:
    """It was never consumed, so the changed file is what counts, in a plan made anew."""
    last = tmp_path / "in" / "03.parquet"

    def hook(point: str) -> None:
        if point == "written epochs/000004.plan.json":
            rewrite(last, lambda t: t.slice(0, ROWS // 2))

    with hooked(hook):
        patient.fails(SourceError, r"03\.parquet' changed since it was planned.*write new events to a new file")
    run = patient.go_on()
    assert [w for w in run.warnings if "03.parquet' changed after epoch 4 was planned" in w]
    fresh = tmp_path / "fresh"
    WINDOWS.start(tmp_path, fresh, patient.spark).wait()
    assert outcome(tmp_path) == outcome(fresh)


def test_consumed_file_changes(patient: Patient, tmp_path: Path) -> None:
    first = tmp_path / "in" / "00.parquet"
    before, times = first.read_bytes(), first.stat()
    rewrite(first, lambda t: t.slice(1))
    patient.fails(SourceError, r"00\.parquet' changed after it was read.*write new events to a new file")
    first.write_bytes(before)
    os.utime(first, ns=(times.st_atime_ns, times.st_mtime_ns))
    patient.is_well()


def test_schema_drifts(patient: Patient, tmp_path: Path) -> None:
    last = tmp_path / "in" / "03.parquet"
    before = last.read_bytes()
    rewrite(last, lambda t: t.rename_columns(["ts", "key", "valeu"]))
    patient.fails(SchemaError, r"03\.parquet' has no column 'value'.*did you mean 'valeu'")
    last.write_bytes(before)
    patient.is_well()


def test_planned_file_is_gone(patient: Patient, tmp_path: Path) -> None:
    last, aside = tmp_path / "in" / "03.parquet", tmp_path / "aside.parquet"

    def hook(point: str) -> None:
        if point == "written epochs/000004.plan.json":
            last.rename(aside)

    with hooked(hook):
        patient.fails(SourceError, r"03\.parquet' is gone, but it was planned.*put it back")
    aside.rename(last)
    patient.is_well()


def test_trouble_while_looking_ahead_loses_nothing(
    spark: SparkSession, undisturbed: tuple[Path, Outcome], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One reader has moved on when the other fails: the epoch must not be planned again from there."""
    source, _ = undisturbed

    def start(home: Path) -> ps.Run:
        left, right = events(source / "in"), events(source / "in", name="more")
        both = left.union(right).window("5 s").group_by("key").agg(n="count(*)", total="sum(value)")
        sink, checkpoint = ps.parquet(str(home / "out")), str(home / "checkpoint")
        settings = {"checkpoint": checkpoint, "spark": spark, "max_rows": ROWS, "fuse_below": 0}
        return both.start(sink, trigger="available_now", **settings)  # type: ignore[arg-type]

    start(tmp_path / "expected").wait()
    plan, calls = FilesReader.plan, 0

    def sometimes(self: FilesReader, *arguments: Any, **more: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 4:
            raise SourceError("stream 'events': cannot be listed", hint="try again")
        return plan(self, *arguments, **more)

    monkeypatch.setattr(FilesReader, "plan", sometimes)
    with pytest.raises(SourceError, match="cannot be listed"):
        start(tmp_path / "troubled").wait()
    start(tmp_path / "troubled").wait()
    assert outcome(tmp_path / "troubled") == outcome(tmp_path / "expected")
