"""From a file that appears to the result that a reader sees: five files a second, a filter and a window aggregate.

One process runs the query; here files are written and the folder of results is watched. A result is seen when a
reader may read it: with Penstock when its file has its name, with Structured Streaming when the log of the sink names
the file. The window aggregate answers a second of event time when the file with the next second comes.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.aggregates.workload import ORIGIN
from benchmarks.contest import PENSTOCK, Contestant, Pool, pool
from benchmarks.native import PARTITIONS

RATE = 5.0
ROWS, KEYS = 1_000, 100
#: Files that are not counted, and those that are.
WARM, COUNTED = 50, 125
#: Seconds after the last file in which results may still come.
PATIENCE = 30.0

TUNED = Contestant("Structured Streaming, tuned", "on_spark", settings={"tuned": True, "settings": {PARTITIONS: "1"}})
PLAIN = Contestant("Structured Streaming, default trigger", "on_spark", settings={"tuned": False, "settings": {}})
#: By contestant the files that are not counted and those that are; each file of the slow one waits for many others.
LENGTHS = {PENSTOCK: (WARM, COUNTED), TUNED: (25, 60), PLAIN: (20, 50)}


def write_file(folder: Path, second: int, rng: np.random.Generator) -> float:
    """A second of events, in order; when it was there, by a clock that all processes share."""
    first = ORIGIN + second * 1_000_000
    table = pa.table(
        {
            "ts": pa.array(first + np.arange(ROWS, dtype=np.int64) * (1_000_000 // ROWS), pa.timestamp("us", tz="UTC")),
            "key": pa.array(np.arange(ROWS) % KEYS, pa.int32()),
            "value": np.abs(rng.normal(size=ROWS)),
        }
    )
    beside = folder / f".{second:05d}.part"
    pq.write_table(table, beside)
    beside.rename(folder / f"{second:05d}.parquet")
    return time.perf_counter()


class Watcher(threading.Thread):
    """Notes when the results of each second are first seen."""

    def __init__(self, out: Path, column: str, log: bool) -> None:
        super().__init__(daemon=True)
        self.out, self.column, self.log = out, column, log
        self.seen: dict[int, float] = {}
        self.over = threading.Event()
        self._names: set[str] = set()

    def run(self) -> None:
        while not self.over.wait(0.001):
            for path, when in self._new():
                # Spark writes nanoseconds, and no zone.
                begins = (
                    pq.read_table(path, columns=[self.column])[self.column].cast(pa.timestamp("us")).cast(pa.int64())
                )
                for second in np.unique((begins.to_numpy() - ORIGIN) // 1_000_000).tolist():
                    self.seen.setdefault(second, when)

    def _new(self) -> Iterator[tuple[str, float]]:
        folder = self.out / "_spark_metadata" if self.log else self.out
        if not folder.exists():
            return
        names = {e.name for e in os.scandir(folder) if e.name[0] not in "._"} - self._names
        when = time.perf_counter()
        self._names |= names
        for name in sorted(names):
            if not self.log:
                if name.endswith(".parquet"):
                    yield str(folder / name), when
                continue
            for line in (folder / name).read_text().splitlines()[1:]:
                path = unquote(urlparse(json.loads(line)["path"]).path)
                if path not in self._names:
                    self._names.add(path)
                    yield path, when


def one(those: Pool, contestant: Contestant, query: str, say: Callable[[str], None]) -> dict[str, Any]:
    root = Path(tempfile.mkdtemp(prefix="latency-"))
    data, out, stop = root / "in", root / "out", root / "stop"
    for folder in (data, out):
        folder.mkdir()
    rng = np.random.default_rng(5)
    watcher = Watcher(out, "ts" if query == "filter" else "window_start", contestant.native)
    ends: list[BaseException] = []

    def work() -> None:
        try:
            job = {"data": str(data), "out": str(out), "stop": str(stop), "query": query}
            those.run(contestant, job)
        except BaseException as error:
            ends.append(error)

    runner = threading.Thread(target=work)
    written = {s: write_file(data, s, rng) for s in range(2)}
    watcher.start()
    runner.start()
    warm, counted = LENGTHS[contestant]
    last, behind = 2 + warm + counted, 0 if query == "filter" else 1
    deadline = time.monotonic() + 60
    while 0 not in watcher.seen and time.monotonic() < deadline and not ends:
        time.sleep(0.01)
    begin = time.perf_counter()
    for second in range(2, last):
        time.sleep(max(0.0, begin + (second - 2) / RATE - time.perf_counter()))
        written[second] = write_file(data, second, rng)
    deadline = time.monotonic() + PATIENCE
    wanted = range(2 + warm, last - behind)
    while not all(s in watcher.seen for s in wanted) and time.monotonic() < deadline and not ends:
        time.sleep(0.01)
    stop.touch()
    runner.join()
    watcher.over.set()
    watcher.join()
    shutil.rmtree(root, ignore_errors=True)
    if ends:
        raise ends[0]
    delays = sorted(watcher.seen[s] - written[s + behind] for s in wanted if s in watcher.seen)
    missing = len(wanted) - len(delays)
    if not delays:
        raise RuntimeError(f"{contestant.name}: no result of the {query} was seen")
    told = {
        "files": len(delays),
        "missing": missing,
        "p50": round(statistics.median(delays) * 1e3, 2),
        "p99": round(delays[min(len(delays) - 1, int(len(delays) * 0.99))] * 1e3, 2),
        "least": round(delays[0] * 1e3, 2),
        "most": round(delays[-1] * 1e3, 2),
    }
    say(f"latency    {query:7} {contestant.name:40} p50 {told['p50']:8.1f} ms, p99 {told['p99']:8.1f} ms")
    return told


def measure(data: Path, say: Callable[[str], None], *, quick: bool) -> dict[str, Any]:
    told: dict[str, Any] = {"queries": {}, "rate": RATE, "rows": ROWS, "keys": KEYS}
    with pool("aggregates", {}) as those:
        for query in ("filter", "window"):
            told["queries"][query] = {
                c.name: one(those, c, query, say) for c in ((PENSTOCK,) if quick else (PENSTOCK, TUNED, PLAIN))
            }
    return told
