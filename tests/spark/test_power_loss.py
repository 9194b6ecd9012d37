"""Power loss at any step: what was committed is there, every result comes once, and nobody has to repair anything."""

from __future__ import annotations

import json
import random
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from power import Forgets, Fragile
from scenario import ROWS, events, joined, windows, write_input, write_trips

import penstock as ps
from penstock.checkpoint.checkpoint import Checkpoint
from penstock.checkpoint.disk import on_disk
from penstock.checkpoint.fault import Crash, hooked
from penstock.checkpoint.runs import run_names
from penstock.checkpoint.storage import Storage
from penstock.engine import tables
from penstock.portal.testing import local_session

Row = tuple[Any, ...]


class Sink:
    """Where results go, and what somebody who looks finds there. What was delivered is somebody else's to keep."""

    def __init__(self, kind: str, home: Path) -> None:
        self.kind, self.home = kind, home
        self.delivered: dict[int, list[Row]] = {}

    def target(self) -> Any:
        if self.kind == "deliver":
            return ps.deliver(self._take)
        made = {"parquet": ps.parquet, "json": ps.json_lines}[self.kind.split()[0]]
        by = ["key"] if "by value" in self.kind else ()
        return made(str(self.home / "out"), partition_by=by, changes="fold" if "folded" in self.kind else "log")

    def _take(self, rows: pa.Table, epoch: int) -> None:
        found = [tuple(r.values()) for r in rows.to_pylist()]
        assert self.delivered.setdefault(epoch, found) == found, "another epoch under the same id"

    def rows(self) -> Counter[Row]:
        if self.kind == "deliver":
            return Counter(row for rows in self.delivered.values() for row in rows)
        parts = sorted((self.home / "out").glob("**/part-*" if "by value" in self.kind else "part-*"))
        return Counter((*row, path.parent.name) for path in parts for row in _rows(path))


def _rows(path: Path) -> list[Row]:
    if path.suffix == ".json":
        return [tuple(json.loads(line).values()) for line in path.read_text().splitlines()]
    return [tuple(r.values()) for r in pq.read_table(path).to_pylist()]


def priced(folder: Path) -> ps.Stream:
    """With a table, of which epochs keep a snapshot."""
    prices = ps.table("prices", "key int, price double", key="key").read_parquet(str(folder.parent / "prices"))
    return events(folder).lookup(prices).window("5 s").group_by("key").agg(n="count(*)", paid="sum(price)")


def write_priced(folder: Path) -> None:
    write_input(folder)
    (folder.parent / "prices").mkdir()
    table = pa.table({"key": pa.array(range(6), pa.int32()), "price": [k / 4 for k in range(6)]})
    pq.write_table(table, folder.parent / "prices" / "a.parquet")


def told(folder: Path) -> ps.Stream:
    """With somebody behind it who says in the middle what it will ignore: here nothing that there is."""
    return windows(folder).instrument("not [*, {77}, *, *]", every=6)


QUERIES: dict[str, tuple[Callable[[Path], ps.Stream], Callable[[Path], None], str, dict[str, Any]]] = {
    "overlapping": (windows, write_input, "parquet", {"max_rows": ROWS, "fuse_below": 0}),
    "one by one": (windows, write_input, "json", {"max_rows": ROWS, "fuse_below": 0, "overlap": False}),
    "delivered": (windows, write_input, "deliver", {"max_rows": ROWS, "fuse_below": 0}),
    "delivered one by one": (windows, write_input, "deliver", {"max_rows": ROWS, "overlap": False}),
    "fused": (windows, write_input, "parquet", {"max_rows": ROWS}),
    "compacting": (windows, write_input, "json", {"max_rows": ROWS // 3, "merge_above": 2, "fuse_below": 0}),
    "by value": (windows, write_input, "parquet by value", {"max_rows": ROWS, "fuse_below": 0}),
    "lines by value": (windows, write_input, "json by value", {"max_rows": ROWS, "overlap": False}),
    "folded": (windows, write_input, "parquet folded", {"max_rows": ROWS, "consistency": ps.Consistency.middle()}),
    "folded by value": (
        windows,
        write_input,
        "json folded by value",
        {"max_rows": ROWS, "fuse_below": 0, "consistency": ps.Consistency.middle()},
    ),
    "joined": (joined, write_trips, "parquet", {"max_rows": 16}),
    "open": (partial(joined, how="left", over=False), write_trips, "deliver", {"max_rows": 16}),
    "with a table": (priced, write_priced, "parquet", {"max_rows": ROWS // 2}),
    "told": (told, write_input, "json", {"max_rows": ROWS // 3, "fuse_below": 0}),
}


class Trial:
    """A query whose power is cut again and again until it gets through."""

    def __init__(self, name: str, source: Path, home: Path, forgets: Forgets = lambda how, path: False) -> None:
        self.build, _, kind, self.settings = QUERIES[name]
        self.source, self.home, self.forgets = source, home, forgets
        self.home.mkdir()
        self.sink = Sink(kind, home)
        self.points: list[str] = []

    def start(self) -> ps.Run:
        return self.build(self.source / "in").start(
            self.sink.target(),
            trigger="available_now",
            checkpoint=str(self.home / "checkpoint"),
            spark=local_session(),
            **self.settings,
        )

    def run(self, rng: random.Random, cuts: int, within: int) -> None:
        for _ in range(cuts):
            disk = Fragile(self.home, rng, rng.randint(1, within), self.forgets)
            try:
                with on_disk(disk), hooked(disk.step):
                    run = self.start().wait()
                self.well(run)
                return
            except Crash:
                self.points.append(disk.point)
                disk.leave()
                self.whole()
        self.well(self.start().wait())

    def whole(self) -> None:
        """Whatever is committed can be read, and could be run again should it be damaged later."""
        checkpoint = Checkpoint(Storage.at(str(self.home / "checkpoint")))
        manifest = checkpoint.latest()
        assert not checkpoint.warnings
        assert manifest is None or checkpoint.plan_of(manifest.epoch) is not None
        tables._open.clear()  # This process has not seen them yet.
        for plan in checkpoint.plans_after(manifest.epoch - 1 if manifest is not None else 0):
            tables.load_all(checkpoint.storage, plan.tables)

    def well(self, run: ps.Run) -> None:
        """What is on the disk is enough: nothing had to be done again because it was damaged."""
        assert not [w for w in run.warnings if "again" in w or "damaged" in w], run.warnings
        driver = run.driver
        assert run_names(driver.manifest.units) <= set(driver.checkpoint.storage.tree("state"))

    def found(self) -> tuple[Counter[Row], Counter[Row]]:
        letters = (self.home / "checkpoint" / "dead_letters").glob("part-*")
        return self.sink.rows(), Counter(row for path in sorted(letters) for row in _rows(path))


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """In memory where there is such a folder: nobody waits for this disk but the one that is pretended."""
    home = Path(tempfile.mkdtemp(prefix="penstock-power-", dir="/dev/shm" if Path("/dev/shm").is_dir() else None))
    yield home
    shutil.rmtree(home, ignore_errors=True)


class Undisturbed:
    """The input of each query, and what it gives if nothing happens."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._known: dict[str, tuple[Path, tuple[Counter[Row], Counter[Row]]]] = {}

    def __call__(self, name: str) -> tuple[Path, tuple[Counter[Row], Counter[Row]]]:
        if name not in self._known:
            source = self.folder / f"source {name}"
            source.mkdir()
            QUERIES[name][1](source / "in")
            trial = Trial(name, source, source / "home")
            trial.start().wait()
            self._known[name] = source, trial.found()
        return self._known[name]


@pytest.fixture(scope="module")
def undisturbed(folder: Path) -> Undisturbed:
    return Undisturbed(folder)


def attempt(
    name: str, undisturbed: Undisturbed, seed: int, cuts: int, forgets: Forgets = lambda how, path: False
) -> list[str]:
    """Where the power was cut, if all is well in the end."""
    source, expected = undisturbed(name)
    rng = random.Random(seed)
    home = Path(tempfile.mkdtemp(dir=undisturbed.folder)) / "home"
    try:
        trial = Trial(name, source, home, forgets)
        trial.run(rng, cuts, within=rng.choice([20, 100, 300]))
        assert trial.found() == expected
        return trial.points
    finally:
        shutil.rmtree(home.parent)


@pytest.mark.parametrize("name", QUERIES)
def test_nothing_is_lost_or_doubled_when_the_power_goes(name: str, undisturbed: Undisturbed) -> None:
    assert sum(undisturbed(name)[1][0].values()) >= 15
    points = [p for seed in range(3) for p in attempt(name, undisturbed, seed, cuts=9)]
    assert len(points) >= 20


@pytest.mark.fuzz
@pytest.mark.parametrize("name", QUERIES)
def test_fuzz_power_loss(name: str, undisturbed: Undisturbed, tried: Callable[[str], None]) -> None:
    points = 0
    for seed in range(100, 120):
        points += len(attempt(name, undisturbed, seed, cuts=12))
    tried(f"{points:,} power cuts")


#: Each wait of the protocol, by what it waits for, and a query that needs it.
WAITS = {
    "a run": ("one by one", "sync", r"checkpoint/state/.*/[^/]*\.arrow"),
    "a file of marks": ("open", "sync", r"checkpoint/state/.*marks-.*"),
    "a result": ("overlapping", "sync", r"out/_penstock/staging/.*"),
    "a result to deliver": ("delivered", "sync", r"checkpoint/results/.*"),
    "dead letters": ("overlapping", "sync", r"checkpoint/dead_letters/.*staging/.*"),
    "a plan": ("overlapping", "sync", r"checkpoint/epochs/.*plan.*"),
    "a manifest": ("overlapping", "sync", r"checkpoint/epochs/.*commit.*"),
    "the snapshot of a table": ("with a table", "sync", r"checkpoint/tables/.*"),
    "the names of runs": ("one by one", "sync_folder", r"checkpoint/state/.*/\d+"),
    "the folders of runs": ("one by one", "sync_folder", r"checkpoint/state/[^/]*"),
    "the names of staged results": ("overlapping", "sync_folder", r"out/_penstock/staging"),
    "the names of results": ("overlapping", "sync_folder", r"out"),
    "the names of results by value": ("by value", "sync_folder", r"out/key=[^/]*"),
    "the names of replaced parts": ("folded", "sync_folder", r"out"),
    "the folders of results by value": ("by value", "sync_folder", r"out"),
    "the names of records": ("overlapping", "sync_folder", r"checkpoint/epochs"),
    "the folders of the checkpoint": ("overlapping", "sync_folder", r"checkpoint"),
    "the name of a table's snapshot": ("with a table", "sync_folder", r"checkpoint/tables/[^/]*"),
}


@pytest.mark.parametrize("what", WAITS)
def test_every_wait_is_needed(what: str, undisturbed: Undisturbed) -> None:
    """A protocol that forgets to wait for one thing is found out: this test would see it."""
    name, how, pattern = WAITS[what]
    forgets: Forgets = lambda did, path: did == how and re.fullmatch(pattern, path) is not None  # noqa: E731
    for seed in range(200):
        try:
            attempt(name, undisturbed, seed, cuts=6, forgets=forgets)
        except (Exception, AssertionError):
            return
    pytest.fail(f"nobody notices that {what} is not waited for")
