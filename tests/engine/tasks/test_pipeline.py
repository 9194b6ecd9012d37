"""Where the rows of a flow come to rest."""

from __future__ import annotations

import pyarrow as pa

import penstock as ps
from penstock.engine.tasks.pipeline import Pipeline
from penstock.operators.sink.operator import Sink
from penstock.plan.plan import Plan


def test_a_window_shared_by_an_aggregate_and_a_projection_counts_every_event_once() -> None:
    stream = ps.stream("s", "ts int, k int, v int", time="ts")
    windowed = stream.window(10, slide=5)
    counted = windowed.group_by("k").agg(n="count(*)")
    both = counted.union(windowed.select("window_start", "k", n="cast(v as bigint)"))
    pipeline = Pipeline(Plan.of(Sink((both.operator,), both.schema)))
    events = pa.table({"ts": [3], "k": [1], "v": [7]}, schema=stream.schema.arrow)
    reached = {target: pa.concat_tables(tables) for target, tables in pipeline.flow("source:s", events).items()}
    assert reached["aggregate-1"]["window_start"].to_pylist() == [-5, 0]
    assert reached["aggregate-1"]["__p0"].to_pylist() == [1, 1]
    assert reached["sink-1"]["n"].to_pylist() == [7, 7]
