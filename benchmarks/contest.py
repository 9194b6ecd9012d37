"""Who takes part, each in a process of its own, taking turns; what a turn has brought, and the check that all agree."""

from __future__ import annotations

import math
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.joins.turn import Answer, Job
from benchmarks.native import PARTITIONS
from benchmarks.process import Process

Run = dict[str, Any]
#: Where `make bench-setup` puts those of others.
ENVIRONMENTS = Path(".venv-bench")
#: Seconds after which somebody who has not answered is not waited for any more.
HANGS = 300.0


@dataclass(frozen=True)
class Contestant:
    """A name, the module that runs it, and what it reads: Parquet, CSV per epoch, or CSV in one file.

    A `package` that the project does not depend on is in an environment of its own. `settings` go into every job;
    contestants of one module and the same arguments share a process.
    """

    name: str
    module: str
    reads: str = "parquet"
    package: str = ""
    arguments: tuple[str, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict, hash=False)

    @property
    def native(self) -> bool:
        return self.module.startswith("on_spark")


PENSTOCK = Contestant("Penstock", "on_penstock")
ONE_CORE = Contestant("Penstock, one core", "on_penstock", arguments=("local[1]",))
DUCKDB = Contestant("DuckDB", "on_duckdb")
POLARS = Contestant("Polars", "on_polars", package="polars")
FLINK = Contestant("PyFlink", "on_flink", reads="whole", package="pyflink")
PATHWAY = Contestant("Pathway", "on_pathway", reads="csv", package="pathway")


def native(store: str, partitions: int) -> Contestant:
    """Structured Streaming with a state store and a number of shuffle partitions.

    >>> native("rocksdb", 1).name
    'Structured Streaming, rocksdb store, 1 partition'
    """
    name = f"Structured Streaming, {store} store, {partitions} partition{'s' if partitions > 1 else ''}"
    return Contestant(name, "on_spark", settings={"store": store, "settings": {PARTITIONS: str(partitions)}})


NATIVES = tuple(native(store, n) for store in ("default", "rocksdb") for n in (1, 2, 4))
#: In the record, for whichever of these was the fastest.
NATIVE = "Structured Streaming"


@dataclass
class Pool:
    """Processes of contestants, started when their first turn comes and kept warm."""

    package: str
    pythons: dict[str, str] = field(default_factory=dict)
    env: dict[str, str] = field(default_factory=dict)
    warm: set[str] = field(default_factory=set)
    #: When the last turn of a contestant ended.
    last: dict[str, float] = field(default_factory=dict)
    _processes: dict[tuple[str, ...], Process] = field(default_factory=dict)
    _logs: Path = field(default_factory=lambda: Path(tempfile.mkdtemp(prefix="contest-logs-")))

    def why_not(self, contestant: Contestant) -> str | None:
        """Why a contestant cannot take part; None if it can."""
        if not contestant.package:
            return None
        python = self.pythons.get(contestant.package, sys.executable)
        try:
            found = subprocess.run([python, "-c", f"import {contestant.package}"], capture_output=True).returncode == 0
        except OSError:
            found = False
        return None if found else f"no environment with {contestant.package}: see `make bench-setup`"

    def idle(self, contestant: Contestant) -> float:
        """Seconds since its last turn."""
        return time.monotonic() - self.last.get(contestant.name, -math.inf)

    def run(self, contestant: Contestant, job: Job) -> Answer:
        """One turn; `out` of the job is a folder for results."""
        process = self._process(contestant)
        hangs = threading.Timer(HANGS, process.process.kill)
        hangs.start()
        try:
            return process.run({**job, **contestant.settings})
        finally:
            hangs.cancel()
            self.last[contestant.name] = time.monotonic()

    def _process(self, contestant: Contestant) -> Process:
        key = (contestant.module, *contestant.arguments)
        if key not in self._processes:
            from penstock.engine.spark.java import find_java

            python = self.pythons.get(contestant.package, sys.executable)
            # PyFlink has no way of its own to find a Java; the others know theirs.
            java = {} if "JAVA_HOME" in os.environ else {"JAVA_HOME": str(find_java().home)}
            log = self._logs / f"{'-'.join(key)}.log"
            command = [f"benchmarks.{self.package}.{contestant.module}", *contestant.arguments]
            self._processes[key] = Process(command, log, python=python, env={**java, **self.env})
        return self._processes[key]

    def pid(self, contestant: Contestant) -> int:
        return self._process(contestant).process.pid

    def drop(self, contestant: Contestant) -> None:
        """Start it anew before its next turn: it has died, or gave up in the middle of something."""
        process = self._processes.pop((contestant.module, *contestant.arguments), None)
        if process is not None:
            process.process.kill()

    def close(self) -> None:
        for process in self._processes.values():
            process.close()
        shutil.rmtree(self._logs, ignore_errors=True)


def environments(root: Path, given: dict[str, str]) -> dict[str, str]:
    """The Python of every package that has an environment of its own."""
    places = {name: root / name / "bin" / "python" for name in ("pyflink", "pathway", "polars")}
    return {
        **{name: str(path) for name, path in places.items() if path.exists()},
        **{k: v for k, v in given.items() if v},
    }


@contextmanager
def pool(package: str, pythons: dict[str, str]) -> Iterator[Pool]:
    those = Pool(package, pythons)
    try:
        yield those
    finally:
        those.close()


def turn(those: Pool, contestant: Contestant, job: Job, found: Callable[[Path], list[str]]) -> Run:
    """One turn of one contestant, with what it found; results are thrown away."""
    out = Path(tempfile.mkdtemp(prefix="contest-out-"))
    try:
        answer = those.run(contestant, {**job, "out": str(out)})
        if answer["done"]:
            answer["found"] = found(out)
    finally:
        shutil.rmtree(out, ignore_errors=True)
    return answer


def agree(case: str, found: Mapping[str, list[str]]) -> None:
    """Whoever is fast but wrong has not won anything.

    >>> agree("pairs", {"one": ["3", "17"], "other": ["3", "17"]})
    >>> agree("pairs", {"one": ["3", "17"], "other": ["2", "17"]})
    Traceback (most recent call last):
    SystemExit: pairs: the contestants do not agree
      one: 3, 17
      other: 2, 17
    """
    if len({tuple(f) for f in found.values()}) > 1:
        told = "\n".join(f"  {name}: {', '.join(f)}" for name, f in found.items())
        raise SystemExit(f"{case}: the contestants do not agree\n{told}")
