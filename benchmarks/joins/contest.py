"""Who takes part, each in a process of its own, and the check that all of them found the same pairs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import duckdb

from benchmarks.joins.turn import Answer, Job
from benchmarks.joins.workload import as_csv
from benchmarks.process import Process


@dataclass(frozen=True)
class Contestant:
    """A name, the module that runs it, and what it reads: Parquet, CSV per epoch, or CSV in one file."""

    name: str
    module: str
    reads: str = "parquet"
    store: str = "default"
    package: str = ""


PENSTOCK = Contestant("Penstock", "on_penstock")
SPARK = Contestant("Structured Streaming", "on_spark")
ROCKS = Contestant("Structured Streaming, RocksDB", "on_spark", store="rocksdb")
FLINK = Contestant("PyFlink", "on_flink", reads="whole", package="pyflink")
PATHWAY = Contestant("Pathway", "on_pathway", reads="csv", package="pathway")
DUCKDB = Contestant("DuckDB, batch", "on_duckdb")
ALL = (SPARK, ROCKS, PENSTOCK, FLINK, PATHWAY, DUCKDB)


def started(module: str, python: str, log: Path) -> Process:
    """The process of a contestant; two contestants that differ only in settings may share one."""
    from penstock.engine.spark.java import find_java

    # PyFlink has no way of its own to find a Java; the others know theirs.
    java = {} if "JAVA_HOME" in os.environ else {"JAVA_HOME": str(find_java().home)}
    return Process([f"benchmarks.joins.{module}"], log, python=python, env=java)


@dataclass
class Contest:
    """The contestants that are there, started when their first turn comes."""

    pythons: dict[str, str] = field(default_factory=dict)
    limit: float = 300.0
    _processes: dict[str, Process] = field(default_factory=dict)
    _logs: Path = field(default_factory=lambda: Path(tempfile.mkdtemp(prefix="join-contest-")))

    def why_not(self, contestant: Contestant) -> str | None:
        """Why a contestant cannot take part; None if it can."""
        if not contestant.package:
            return None
        python = self.pythons.get(contestant.package, sys.executable)
        found = subprocess.run([python, "-c", f"import {contestant.package}"], capture_output=True, text=True)
        if found.returncode == 0:
            return None
        return (
            f"not installed: make an environment from benchmarks/requirements-{contestant.package}.txt and "
            f"name its Python with --{contestant.package}-python"
        )

    def run(self, contestant: Contestant, job: Job, data: Path, sides: tuple[str, str] = ("left", "right")) -> Answer:
        """One turn. The answer has `found`: how many pairs, and a checksum over them."""
        if contestant.reads != "parquet":
            data = as_csv(data, whole=contestant.reads == "whole")
        out = Path(tempfile.mkdtemp(prefix="join-out-"))
        try:
            answer = self._process(contestant).run(
                {
                    "limit": self.limit,
                    **job,
                    "left": str(data / sides[0]),
                    "right": str(data / sides[1]),
                    "out": str(out),
                    "store": contestant.store,
                }
            )
            if answer["done"]:
                kind = "parquet" if contestant.reads == "parquet" else "csv"
                answer["found"] = found_pairs(out, kind) if job["kind"] == "pairs" else found_trips(out)
        finally:
            shutil.rmtree(out, ignore_errors=True)
        return answer

    def _process(self, contestant: Contestant) -> Process:
        if contestant.module not in self._processes:
            python = self.pythons.get(contestant.package, sys.executable)
            log = self._logs / f"{contestant.module}.log"
            self._processes[contestant.module] = started(contestant.module, python, log)
        return self._processes[contestant.module]

    def close(self) -> None:
        for process in self._processes.values():
            process.close()
        shutil.rmtree(self._logs, ignore_errors=True)


@contextmanager
def contest(pythons: dict[str, str], limit: float) -> Iterator[Contest]:
    those = Contest(pythons, limit)
    try:
        yield those
    finally:
        those.close()


_PAIR = ("key", "ts", "seq", "value", "ts_right", "seq_right", "value_right")


def found_pairs(out: Path, kind: str) -> list[str]:
    """Count and checksum, whatever the order of rows; times and numbers in forms that survive CSV."""
    if kind == "parquet":
        rows = f"'{out}/**/*.parquet'"
        times = ("epoch_ms(ts)", "epoch_ms(ts_right)")
    else:
        # Flink writes no header, Pathway writes one and two columns more.
        files = [p for p in sorted(out.rglob("*")) if p.is_file() and p.stat().st_size]
        headed = any(p.suffix == ".csv" for p in files)
        names = [*_PAIR, "time", "diff"] if headed else list(_PAIR)
        columns = {n: "DOUBLE" if n.startswith("value") else "BIGINT" for n in names}
        rows = f"read_csv({[str(p) for p in files]}, header = {headed}, columns = {columns}, auto_detect = false)"
        times = ("ts", "ts_right")
    numbers = ", ".join(f"(1000000 * {v})::BIGINT" for v in ("value", "value_right"))
    return _checked(f"SELECT hash(key, {times[0]}, seq, {times[1]}, seq_right, {numbers}) AS h FROM {rows}")


def found_trips(out: Path) -> list[str]:
    """The same for trips and their ends."""
    return _checked(f"SELECT hash(trip, epoch_us(ts), fare, epoch_us(ts_right)) AS h FROM '{out}/**/*.parquet'")


def _checked(rows: str) -> list[str]:
    with duckdb.connect(config={"threads": 2}) as db:
        (found,) = db.sql(f"SELECT count(*), coalesce(sum(h), 0) FROM ({rows})").fetchall()
    return [str(x) for x in found]


def agree(case: str, found: dict[str, list[str]]) -> None:
    """Whoever is fast but wrong has not won anything."""
    if len({tuple(f) for f in found.values()}) > 1:
        told = "\n".join(f"  {name}: {count} results, checksum {total}" for name, (count, total) in found.items())
        raise SystemExit(f"{case}: the contestants do not agree\n{told}")
