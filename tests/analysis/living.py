"""A plan that runs on the engine, without Spark, fed one generation of its streams after the other."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from obeying import Feed, Life, Row
from plans import Query

from penstock.checkpoint.checkpoint import Checkpoint
from penstock.checkpoint.storage import Storage
from penstock.engine.epoch.driver import Driver
from penstock.engine.settings import Settings
from penstock.engine.sink import memory
from penstock.engine.sink.folder import FileTarget
from penstock.operators.sink.operator import Sink
from penstock.pattern.pattern import Pattern
from penstock.plan.plan import Plan
from penstock.plan.promise import InBand
from penstock.portal.testing import local_session

#: In memory where there is such a folder: the disk's flushes would take most of the time.
HOME = "/dev/shm" if Path("/dev/shm").is_dir() else None


@dataclass
class Living:
    """A driver and the folders it reads."""

    plan: Plan
    driver: Driver
    feeds: tuple[Feed, ...]
    life: Life
    home: Path

    def live(self, generation: int) -> None:
        """Let a generation arrive, and run all epochs that it takes."""
        arrived = self.life.generation(generation)
        for feed in self.feeds:
            items = [item for name, item in arrived if name == feed.name]
            pq.write_table(recorded(feed, items), self.home / feed.name / f"{generation:04}.parquet")
        while self.driver.step():
            pass


@contextmanager
def living(query: Query, life: Life) -> Iterator[Living]:
    with tempfile.TemporaryDirectory(prefix="penstock-living-", dir=HOME) as folder:
        home = Path(folder)
        for feed in query.feeds:
            (home / feed.name).mkdir()
        stream = query.over({f.name: f.stream.read_parquet(str(home / f.name), order="name") for f in query.feeds})
        target = memory()
        plan = Plan.of(Sink((stream.operator,), stream.schema, target=target))
        storage = Storage.at(str(home / "checkpoint"))
        storage.make()
        (sink,) = plan.sinks
        letters = FileTarget(f"{storage.url}/dead_letters", "parquet").bind("dead", storage)
        bound = {sink.id: target.bind(sink.id, storage), "dead": letters}
        how = Settings(buckets=1, merge_above=2)
        driver = Driver(plan, local_session(), Checkpoint(storage), bound, how, bounded=False)
        try:
            driver.recover()
            yield Living(plan, driver, query.feeds, life, home)
        finally:
            driver.close()


def recorded(feed: Feed, items: Iterable[Row | Pattern]) -> pa.Table:
    rows = [{**i, "punctuation": None} if isinstance(i, dict) else {"punctuation": str(i)} for i in items]
    schema = pa.schema([*feed.schema.arrow, pa.field("punctuation", pa.string())])
    table = pa.Table.from_pylist(rows, schema)
    return table if any(isinstance(p, InBand) for p in feed.source.promises) else table.drop(["punctuation"])
