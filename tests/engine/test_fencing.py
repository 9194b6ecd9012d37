"""Two writers on storage without locks: one sleeps at any step, another takes over, the first one wakes up."""

from __future__ import annotations

import contextlib
import json
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from object_store import mount

import penstock as ps
from penstock.checkpoint import lock as lock_module
from penstock.checkpoint.checkpoint import Checkpoint
from penstock.checkpoint.fault import hooked
from penstock.checkpoint.generation import Generation, TakenOverError, records_of, take
from penstock.checkpoint.lock import Lock
from penstock.checkpoint.storage import Storage
from penstock.errors import CheckpointError, PenstockError
from penstock.portal.testing import local_session

FILES, ROWS = 3, 10
ALL = ROWS * (FILES + 2)


@dataclass
class World:
    """Input on a local disk; a checkpoint, and the results, in a store without locks."""

    home: Path
    sink: str
    overlap: bool
    delivered: dict[int, list[Any]] = field(default_factory=dict)

    def feed(self, number: int) -> None:
        (self.home / "in").mkdir(parents=True, exist_ok=True)
        rows = pa.table({"t": range(ROWS * number, ROWS * (number + 1)), "k": [i % 2 for i in range(ROWS)]})
        if not (path := self.home / "in" / f"{number}.parquet").exists():
            pq.write_table(rows, path)

    def take(self, rows: pa.Table, epoch: int) -> None:
        found = sorted(tuple(r.values()) for r in rows.to_pylist())
        assert self.delivered.setdefault(epoch, found) == found, "perhaps twice, but the same"

    def start(self) -> ps.Run:
        numbers = ps.stream("numbers", "t bigint, k int", time="t").read_parquet(str(self.home / "in")).disorder(0)
        query = numbers.window(4, on="t").group_by("k").agg(n="count(*)", s="sum(t)")
        sinks = {
            "parquet": ps.parquet("store://out"),
            "json": ps.json_lines("store://out"),
            "deliver": ps.deliver(self.take),
            "local": ps.parquet(str(self.home / "local")),
        }
        return query.start(
            sinks[self.sink],
            checkpoint="store://ck",
            trigger="available_now",
            spark=local_session(),
            max_rows=ROWS,
            overlap=self.overlap,
            fuse_below=0 if self.overlap else 1 << 24,
        )

    def results(self) -> list[tuple[Any, ...]]:
        if self.sink == "deliver":
            return sorted(row for rows in self.delivered.values() for row in rows)
        folder = self.home / ("local" if self.sink == "local" else "store/out")
        found: list[tuple[Any, ...]] = []
        for file in folder.glob("part-*"):
            rows = pq.read_table(file).to_pylist() if self.sink != "json" else map(json.loads, file.open())
            found += [tuple(row.values()) for row in rows]
        return sorted(found)

    @property
    def expected(self) -> list[tuple[Any, ...]]:
        """Counted here, not by the engine: windows of 4 that have closed when `ALL - 1` was seen."""
        n: Counter[tuple[int, int]] = Counter()
        s: Counter[tuple[int, int]] = Counter()
        for t in range(ALL):
            key = t // 4 * 4, (t % ROWS) % 2
            n[key] += 1
            s[key] += t
        return sorted((w, k, n[w, k], s[w, k]) for w, k in n if w + 4 <= ALL - 1)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock_module, "MEETING", 0.001)


def expire() -> None:
    """What time does while a writer sleeps."""
    storage = Storage.at("store://ck")
    with contextlib.suppress(FileNotFoundError):
        lease = json.loads(storage.read("lease.json"))
        storage.write("lease.json", json.dumps({**lease, "renewed": 0}).encode())


def meet(world: World, stop: Callable[[str], bool]) -> str | None:
    """Writer A sleeps where `stop` says so, B takes over and runs, A wakes up, C follows. Where A slept."""
    for number in range(FILES):
        world.feed(number)
    slept: list[str] = []
    lock = threading.Lock()

    def hook(point: str) -> None:
        with lock:
            if slept or not stop(point):
                return
            slept.append(point)
        world.feed(FILES)  # So that B does not do what A would have done.
        expire()
        world.start().wait()

    error: BaseException | None = None
    run: ps.Run | None = None
    with hooked(hook):
        try:
            run = world.start()
            run.wait()
        except PenstockError as why:
            error = why
    if slept:
        first = run is not None and not run.history and error is None
        in_time = slept[0] in ("write lease.json", "written lease.json") or "generations/" in slept[0]
        assert isinstance(error, TakenOverError) or first or (in_time and isinstance(error, CheckpointError)), (
            slept,
            error,
        )
    for number in (FILES, FILES + 1):
        world.feed(number)
    world.start().wait()
    assert world.results() == world.expected, slept
    latest = Checkpoint(Storage.at("store://ck")).latest()
    assert latest is not None
    return slept[0] if slept else None


def points(world: World) -> list[str]:
    """Every step of a run, in order; names that several have once."""
    found: list[str] = []

    def see(point: str) -> bool:
        generic = _generic(point)
        if generic not in found:
            found.append(generic)
        return False

    meet(world, see)
    return found


def _generic(point: str) -> str:
    """Without what is random in it."""
    head, _, tail = point.partition("generations/")
    return f"{head}generations{tail[15:]}" if tail else point


KINDS = [("parquet", True), ("parquet", False), ("json", True), ("deliver", True), ("deliver", False), ("local", False)]


def every(monkeypatch: pytest.MonkeyPatch, home: Path, sink: str, overlap: bool, stride: int) -> int:
    mount(monkeypatch, home / "0" / "store")
    names = points(World(home / "0", sink, overlap))
    tried = 0
    for index, name in enumerate(names):
        vital = name.startswith(("commit", "sweep", "copied", "publish")) and "00003" not in name
        # The next plan is written while an epoch merges: whoever sleeps there wakes up amid what others have retired.
        vital = vital or name == "write epochs/000003.plan.json"
        if index % stride and not vital:
            continue
        place = home / str(index + 1)
        mount(monkeypatch, place / "store")
        assert meet(World(place, sink, overlap), lambda point, name=name: _generic(point) == name), name  # type: ignore[misc]
        tried += 1
    return tried


@pytest.mark.parametrize(("sink", "overlap"), KINDS)
def test_whoever_slept_spoils_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sink: str, overlap: bool
) -> None:
    assert every(monkeypatch, tmp_path, sink, overlap, 10) >= 8


@pytest.mark.fuzz
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(("sink", "overlap"), KINDS)
def test_whoever_slept_anywhere_spoils_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sink: str, overlap: bool, tried: Callable[[str], None]
) -> None:
    steps = every(monkeypatch, tmp_path, sink, overlap, 1)
    assert steps >= 35
    tried(f"asleep at {steps} steps")


def test_of_two_that_begin_at_once_one_or_none_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mount(monkeypatch, tmp_path)
    root = Storage.at("store://ck")
    waiting = [take]
    met: list[Generation | None] = []

    def hook(point: str) -> None:
        if point.startswith("write generations/") and waiting:
            met.append(waiting.pop()(root))

    with hooked(hook), pytest.raises(CheckpointError, match="started at the same moment"):
        take(root)
    (other,) = met
    assert other is not None and records_of(root) == other.records
    other.check()


def test_who_has_begun_but_not_taken_over_does_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mount(monkeypatch, tmp_path)
    root = Storage.at("store://ck")
    first = take(root)
    assert first is not None
    first.records.write("meta.json", b"{}")
    root.write("generations/000002-0123abcd.json", b"")
    assert records_of(root) == first.records
    with pytest.raises(TakenOverError):
        first.check()
    third = take(root)
    assert third is not None and third.number == 3 and third.records.read("meta.json") == b"{}"


def test_a_checkpoint_that_is_copied_to_a_local_disk_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mount(monkeypatch, tmp_path / "store")
    world = World(tmp_path, "parquet", True)
    for number in range(FILES + 2):
        world.feed(number)
    world.start().wait()
    lock = Lock(Storage.at(str(tmp_path / "store/ck")))
    lock.acquire()
    local = Checkpoint(lock.storage, lock.records).latest()
    assert local is not None and local == Checkpoint(Storage.at("store://ck")).latest()
    assert lock.generation.startswith("000002-")
    lock.release()


def test_a_local_disk_has_no_generations(tmp_path: Path) -> None:
    assert take(Storage.at(str(tmp_path))) is None and not list(tmp_path.iterdir())
