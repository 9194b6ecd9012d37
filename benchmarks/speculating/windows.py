"""(d) At what speed: counts and sums by key in windows of ten seconds, of which 20 % of the events come late.

Who tells results at once and corrects them does so in every epoch. All must find the same in the end.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.process import ROOT, Process

ORIGIN = 1_700_000_000_000_000
SECOND = 1_000_000
WINDOW = 10 * SECOND
DISORDER = 10 * SECOND


@dataclass(frozen=True)
class Work:
    rows: int
    epochs: int
    keys: int
    name: str

    @property
    def slug(self) -> str:
        return f"disordered-{self.rows}x{self.epochs}x{self.keys}"


WORKS = (
    Work(50_000, 20, 1_000, "1 M rows in epochs of 50 k, 1 k keys"),
    Work(500_000, 10, 1_000, "5 M rows in epochs of 500 k, 1 k keys"),
    Work(50_000, 20, 100_000, "1 M rows in epochs of 50 k, 100 k keys"),
)
QUICK = (Work(50_000, 8, 100, "400 k rows in epochs of 50 k, 100 keys"),)


#: Seconds in a case after which somebody is not asked again, unless told otherwise.
PATIENCE = 12.0


@dataclass(frozen=True)
class Contestant:
    """Who takes part: a process by its module and arguments, and what it is told."""

    name: str
    module: str
    arguments: tuple[str, ...] = ()
    job: dict[str, Any] = field(default_factory=dict, hash=False)
    reads: str = "parquet"
    package: str = ""
    #: With more rows than this it is not asked.
    most: int = 10_000_000


ROOM = "benchmarks.speculating"
BEFORE = Contestant("the code before the dial", f"{ROOM}.on_penstock", ("before",))
PLAIN = Contestant("Penstock, nothing said", f"{ROOM}.on_penstock")
STRONG = Contestant("Penstock, strong", f"{ROOM}.on_penstock", job={"dial": "strong"})
MIDDLE = Contestant("Penstock, middle", f"{ROOM}.on_penstock", job={"dial": "middle"})
APPEND = Contestant("Structured Streaming, append mode", f"{ROOM}.on_spark", job={"mode": "append"})
UPDATE = Contestant("Structured Streaming, update mode", f"{ROOM}.on_spark", job={"mode": "update"})


def _pathway(name: str, how: str, cutoff: int | None = None) -> Contestant:
    job = {"how": how, "width": WINDOW, "cutoff": cutoff}
    most = 1_000_000 if "every epoch" in name else 10_000_000
    return Contestant(f"Pathway, {name}", f"{ROOM}.on_pathway", job=job, reads="csv", package="pathway", most=most)


PATHWAYS = (
    _pathway("computed windows, in one commit", "computed"),
    _pathway("computed windows, told in every epoch", "computed epochs"),
    _pathway("its windows with a cutoff, in one commit", "windows", DISORDER),
    _pathway("its windows with a cutoff, told in every epoch", "windows epochs", DISORDER),
)
CONTESTANTS = (BEFORE, PLAIN, STRONG, MIDDLE, APPEND, UPDATE, *PATHWAYS)


def make(work: Work, root: Path) -> Path:
    """One file per epoch, as Parquet and as CSV: 8,333 events a second, 20 % of them up to ten seconds late."""
    folder = root / work.slug
    if (folder / "complete").exists():
        return folder
    shutil.rmtree(folder, ignore_errors=True)
    for kind in ("parquet", "csv"):
        (folder / kind).mkdir(parents=True)
    rng = np.random.default_rng(11)
    count = work.rows * work.epochs
    late = np.where(rng.random(count) < 0.2, rng.integers(0, DISORDER, count), 0)
    table = pa.table(
        {
            "ts": np.arange(count, dtype=np.int64) * 120 + DISORDER - late + ORIGIN,
            "key": pa.array(rng.integers(0, work.keys, count), pa.int32()),
            "value": pa.array(rng.integers(0, 1000, count), pa.int32()),
        }
    )
    for epoch in range(work.epochs):
        rows = table.slice(epoch * work.rows, work.rows)
        path = folder / "parquet" / f"{epoch:04d}.parquet"
        timed = rows.set_column(0, "ts", rows["ts"].cast(pa.timestamp("us", tz="UTC")))
        pq.write_table(timed, path, row_group_size=max(1, min(250_000, work.rows // 2)))
        # Structured Streaming takes files in the order of their times, which must not be all the same.
        os.utime(path, (1_700_000_000 + epoch, 1_700_000_000 + epoch))
        duckdb.sql(f"COPY rows TO '{folder}/csv/{epoch:04d}.csv' (HEADER)")
    (folder / "complete").touch()
    return folder


def found(out: Path, work: Work) -> list[str]:
    """Of the windows that no later event can change: how many groups, and a checksum of them."""
    with duckdb.connect(config={"threads": 2}) as db:
        return _found(db, out, work)


def _found(db: Any, out: Path, work: Work) -> list[str]:
    last = ORIGIN + (work.rows * work.epochs - 1) * 120
    closed = last - 2 * WINDOW
    w = "epoch_us(window_start)"
    if csv := list(out.glob("*.csv")):
        rows, w, weight = f"read_csv('{csv[0]}')", "w", "diff"
    else:
        rows = f"read_parquet('{out}/**/*.parquet', union_by_name = true)"
        names = db.sql(f"SELECT * FROM {rows} LIMIT 0").columns
        w = "epoch_us(window_start)" if "window_start" in names else w
        weight = "_weight" if "_weight" in names else "1"
    if (out / "update").exists():  # Each result as often as it was told, the last with the greatest count.
        rows = f"(SELECT * FROM {rows} QUALIFY row_number() OVER (PARTITION BY window_start, key ORDER BY n DESC) = 1)"
    ((count, total),) = db.sql(
        f"SELECT count(*), coalesce(sum(hash(w, key, n, s)), 0) FROM (SELECT {w}::BIGINT AS w, key::BIGINT AS key, "
        f"n::BIGINT AS n, s::BIGINT AS s FROM {rows} GROUP BY ALL HAVING sum({weight}) <> 0) WHERE w < {closed}"
    ).fetchall()
    return [str(count), str(total)]


@contextmanager
def processes(contestants: tuple[Contestant, ...], pathway: str, before: str) -> Iterator[dict[str, Process]]:
    """One for each module and its arguments; whoever is not there does not take part."""
    from penstock.engine.spark.java import find_java

    java = {} if "JAVA_HOME" in os.environ else {"JAVA_HOME": str(find_java().home)}
    made: dict[str, Process] = {}
    with ExitStack() as stack:
        logs = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="contest-logs-")))
        for c in contestants:
            key = " ".join((c.module, *c.arguments))
            if key in made or (c.package and not Path(pathway).exists()) or (c is BEFORE and not before):
                continue
            python = {"python": pathway} if c.package else {}
            env = {**java, **({"PYTHONPATH": f"{before}/src:{ROOT}"} if c is BEFORE else {})}
            log = logs / f"{len(made)}.log"
            made[key] = Process([c.module, *c.arguments], log, env={} if c.package else env, **python)
            stack.callback(made[key].close)
        yield made


def run(
    quick: bool,
    rounds: int,
    pathway: str,
    before: str,
    works: str = "",
    budget: float = 600,
    patience: float = PATIENCE,
    those: Sequence[str] = (),
) -> dict[str, Any]:
    """Everybody in turn, so many rounds, or those that begin within the budget; a first, short one is not counted.

    Each round begins with another one: whoever comes first in a process pays for what has gone to sleep. `those`: only
    contestants with one of these in their names.
    """
    root = Path(tempfile.gettempdir()) / "penstock-speculation"
    chosen = [w for w in (QUICK if quick else WORKS) if works in w.name]
    cases = []
    contestants = tuple(c for c in CONTESTANTS if not those or any(t in c.name for t in those))
    with processes(contestants, pathway, before) as running:
        for work in (*QUICK, *chosen):
            folder = make(work, root)
            series: dict[str, list[dict[str, Any]]] = {}
            warming, began = work in QUICK and not quick, time.monotonic()
            for number in range(1 if warming else rounds):
                if number and time.monotonic() - began > budget:
                    break
                first = number % len(contestants)
                for c in (*contestants[first:], *contestants[:first]):
                    so_far = series.setdefault(c.name, [])
                    process = running.get(" ".join((c.module, *c.arguments)))
                    # Whoever takes long is not asked again and again: its ratio is clear.
                    patient = sum(r["seconds"] for r in so_far) < patience and work.rows * work.epochs <= c.most
                    if process is not None and patient and not (warming and c in PATHWAYS[1:]):
                        so_far.append(_turn(process, c, work, folder))
            told = {name: runs[0]["found"] for name, runs in series.items() if runs}
            if len({tuple(f) for f in told.values()}) > 1:
                raise SystemExit(f"{work.name}: the contestants do not agree: {json.dumps(told, indent=1)}")
            if work in chosen:
                cases.append({"name": work.name, "rows": work.rows * work.epochs, "series": series})
    return {"cases": cases, "pathway": Path(pathway).exists(), "before": bool(before)}


def _turn(process: Process, c: Contestant, work: Work, folder: Path) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="contest-out-") as out:
        job = {"data": str(folder / c.reads), "rows": work.rows, "out": out, **c.job}
        answer = process.run(job)
        print(f"{work.name}: {c.name}: {answer['seconds']:.2f} s", flush=True)
        epochs = answer.get("epochs", [])[1:]
        kept = {k: answer[k] for k in ("seconds", "cpu", "peak")}
        epoch = statistics.median(epochs) if epochs else None
        return {**kept, "epoch": epoch, "found": found(Path(out), work)}
