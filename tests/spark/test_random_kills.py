"""`kill -9` at random moments of tasks that stay, of executors and of drivers: the output is that of a run that nobody
disturbed. There are 40 of them in every test, and 1,000 in the long search.

Moments are counted from epochs and runs as this machine does
them, so that a quick machine meets as many of them as a slow one.
"""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from forked import ended, forked_driver
from killed_driver import kill_group, spark_driver
from scenario import SCENARIOS, Outcome, held, orphans, outcome, same

from penstock.engine.spark.residents import lodging_of
from penstock.portal.testing import local_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Tried = Callable[[str], None]
NAMES = ("windows", "compacting", "two-levels", "joined-open", "folded by value")


class Undisturbed:
    """The input of each query, and what it gives if nothing happens."""

    def __init__(self, folders: pytest.TempPathFactory) -> None:
        self.folders = folders
        self.known: dict[str, tuple[Path, Outcome]] = {}

    def __call__(self, name: str) -> tuple[Path, Outcome]:
        if name not in self.known:
            home = self.folders.mktemp(name)
            SCENARIOS[name].prepare(home)
            SCENARIOS[name].start(home, home, local_session()).wait()
            self.known[name] = home, outcome(home)
        return self.known[name]

    def check(self, name: str, home: Path) -> None:
        source, expected = self(name)
        SCENARIOS[name].start(source, home, local_session()).wait()
        assert same(outcome(home), expected), name
        assert held(home) == held(source), name
        assert orphans(home) == [], name


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    return Undisturbed(tmp_path_factory)


# --- drivers --------------------------------------------------------------------------------------------------------


def kill_drivers(undisturbed: Undisturbed, home: Path, kills: int, seed: int) -> str:
    """Kill as many drivers as that, up to three of a run one after the other."""
    chance, killed, turn = random.Random(seed), 0, 0
    lasts: dict[str, float] = {}
    while killed < kills:
        name, place = NAMES[turn % len(NAMES)], home / f"driver-{turn}"
        source, _ = undisturbed(name)
        if name not in lasts:
            process, line = forked_driver(name, source, home / name)
            assert line.recv() == "begun"
            began = time.monotonic()
            assert set(line.recv()) == {"resident"}
            lasts[name] = time.monotonic() - began
            undisturbed.check(name, home / name)
        lines = []
        for _ in range(3):
            process, line = forked_driver(name, source, place)
            lines.append(line)
            assert line.recv() == "begun"
            if line.poll(chance.random() * lasts[name]):
                break  # It got through.
            process.kill()
            process.join()
            killed += 1
        SCENARIOS[name].start(source, place, local_session()).wait()
        for line in lines:
            ended(line)
        undisturbed.check(name, place)
        turn += 1
    return f"{killed:,} drivers in {turn} runs"


def test_killed_drivers(undisturbed: Undisturbed, tmp_path: Path) -> None:
    kill_drivers(undisturbed, tmp_path, 20, seed=4)


@pytest.mark.fuzz
@pytest.mark.timeout(3600)
def test_fuzz_killed_drivers(undisturbed: Undisturbed, tmp_path: Path, tried: Tried) -> None:
    tried(kill_drivers(undisturbed, tmp_path, 600, seed=40))


def kill_drivers_on_spark(undisturbed: Undisturbed, home: Path, kills: int, seed: int) -> str:
    """Kill drivers with their JVM and all workers, three of a run one after the other."""
    chance = random.Random(seed)
    for killed in range(kills):
        name, place = NAMES[killed // 3 % len(NAMES)], home / f"driver-{killed // 3}"
        source, _ = undisturbed(name)
        driver = spark_driver(source, place, name=name)
        assert driver.stdout.readline() == "started\n"
        time.sleep(chance.uniform(0, 3))
        kill_group(driver)
        if killed % 3 == 2 or killed == kills - 1:
            SCENARIOS[name].start(source, place, local_session()).wait()
            time.sleep(0.5)  # A worker that outlived its driver for a moment may have left a file after the sweep.
            undisturbed.check(name, place)
    return f"{kills} drivers with their JVM"


@pytest.mark.spark
def test_killed_drivers_on_spark(undisturbed: Undisturbed, tmp_path: Path) -> None:
    kill_drivers_on_spark(undisturbed, tmp_path, 3, seed=6)


@pytest.mark.fuzz
@pytest.mark.timeout(3600)
def test_fuzz_killed_drivers_on_spark(undisturbed: Undisturbed, tmp_path: Path, tried: Tried) -> None:
    tried(kill_drivers_on_spark(undisturbed, tmp_path, 30, seed=60))


# --- executors ------------------------------------------------------------------------------------------------------


def executors(group: int) -> list[int]:
    """The executors among the processes of a group."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            ours = int((folder / "stat").read_text().rsplit(")", 1)[1].split()[2]) == group
            if ours and b"CoarseGrainedExecutorBackend" in (folder / "cmdline").read_bytes():
                found.append(int(folder.name))
    return found


def kill_executors(undisturbed: Undisturbed, home: Path, kills: int, seed: int, names: tuple[str, ...] = NAMES) -> str:
    """Kill as many executors, three in each run of some queries one after the other; Spark starts others."""
    chance, killed, turn = random.Random(seed), 0, 0
    while killed < kills:
        places = [home / f"executors-{turn}-{i}" for i in range(len(names))]
        sources = [undisturbed(name)[0] for name in names]
        driver = spark_driver(
            ",".join(map(str, sources)), ",".join(map(str, places)), "local-cluster[2,1,512]", ",".join(names)
        )
        assert driver.stdout.readline() == "started\n"
        for _ in range(min(3, kills - killed)):
            time.sleep(chance.uniform(0, 2))
            while not (there := executors(driver.pid)) and driver.poll() is None:
                time.sleep(0.05)
            if there:
                os.kill(chance.choice(there), signal.SIGKILL)
                killed += 1
        said, _ = driver.communicate(timeout=200)
        assert driver.returncode == 0 and said.count("done") == len(names), said[-4000:]
        for name, place in zip(names, places, strict=True):
            undisturbed.check(name, place)
        turn += 1
    return f"{killed} executors in {turn} runs"


@pytest.mark.cluster
def test_killed_executors(undisturbed: Undisturbed, tmp_path: Path) -> None:
    kill_executors(undisturbed, tmp_path, 3, seed=7, names=NAMES[:2])


@pytest.mark.fuzz
@pytest.mark.timeout(3600)
def test_fuzz_killed_executors(undisturbed: Undisturbed, tmp_path: Path, tried: Tried) -> None:
    tried(kill_executors(undisturbed, tmp_path, 20, seed=70))


# --- tasks that stay ------------------------------------------------------------------------------------------------


def seats(spark: Any) -> list[int]:
    """The processes of the tasks that stay now."""
    lodging = lodging_of(spark.sparkContext)
    found = lodging.residents if lodging is not None else None
    return [] if found is None or found.over.is_set() else [seat.pid for seat in found.seats.values()]


def kill_tasks(spark: Any, undisturbed: Undisturbed, home: Path, kills: int, seed: int) -> str:
    """Kill as many tasks that stay as that."""
    chance, killed, turn, paths = random.Random(seed), 0, 0, set()
    timers: list[threading.Timer] = []

    def kill() -> None:
        nonlocal killed
        pids = seats(spark)
        for pid in chance.sample(pids, min(len(pids), chance.choice((1, 1, 2)))):
            with suppress(ProcessLookupError):  # It was over before anybody noticed.
                os.kill(pid, signal.SIGKILL)
                killed += 1

    def soon(progress: Any) -> None:
        if progress.path == "resident" and chance.random() < 0.7:
            timers.append(threading.Timer(chance.random() * 1.5 * progress.seconds, kill))
            timers[-1].start()

    while killed < kills:
        name, place = NAMES[turn % len(NAMES)], home / f"task-{turn}"
        source, _ = undisturbed(name)
        run = SCENARIOS[name].start(source, place, spark, listener=soon).wait()
        while timers:
            timers.pop().join()
        paths |= {p.path for p in run.history}
        undisturbed.check(name, place)
        turn += 1
    assert paths == {"resident", "job"}
    return f"{killed:,} tasks in {turn} runs"


def test_killed_tasks(spark: SparkSession, undisturbed: Undisturbed, tmp_path: Path) -> None:
    kill_tasks(spark, undisturbed, tmp_path, 14, seed=5)


@pytest.mark.fuzz
@pytest.mark.timeout(3600)
def test_fuzz_killed_tasks(spark: SparkSession, undisturbed: Undisturbed, tmp_path: Path, tried: Tried) -> None:
    tried(kill_tasks(spark, undisturbed, tmp_path, 350, seed=50))


def test_a_task_that_hangs_is_replaced(spark: SparkSession, undisturbed: Undisturbed, tmp_path: Path) -> None:
    stopped: list[int] = []

    def stop(progress: Any) -> None:
        if progress.epoch == 2:
            stopped.extend(seats(spark)[:1])
            os.kill(stopped[0], signal.SIGSTOP)

    source, _ = undisturbed("compacting")
    run = SCENARIOS["compacting"].start(source, tmp_path, spark, hung_after=3, listener=stop).wait()
    undisturbed.check("compacting", tmp_path)
    paths = [p.path for p in run.history]
    # On a busy machine another epoch may have been a job of its own, too: the first, or one that took too long.
    assert "resident" in paths[:2] and "resident" in paths[paths.index("job", 2) :]
    assert stopped[0] not in seats(spark)
    deadline = time.monotonic() + 20
    while Path(f"/proc/{stopped[0]}").exists():  # Spark has taken its slot from it too.
        assert time.monotonic() < deadline
        time.sleep(0.05)
