"""The aggregate in PyFlink, by the window functions of its Table API. Runs in an environment of its own; see joins."""

from __future__ import annotations

import shutil
import tempfile
import time

from pyflink.table import TableEnvironment

from benchmarks.joins.on_flink import environment
from benchmarks.joins.turn import Answer, Job, take_turns


def run(job: Job) -> Answer:
    checkpoint = tempfile.mkdtemp(prefix="flink-")
    began = time.perf_counter()
    tables: TableEnvironment = environment(checkpoint)
    tables.execute_sql(
        "CREATE TABLE events (ts BIGINT, `key` INT, `value` DOUBLE, t AS TO_TIMESTAMP_LTZ(ts / 1000, 3), "
        "WATERMARK FOR t AS t - INTERVAL '1' SECOND) "
        f"WITH ('connector' = 'filesystem', 'path' = '{job['data']}', 'format' = 'csv')"
    )
    tables.execute_sql(
        "CREATE TABLE results (w TIMESTAMP(3), `key` INT, n BIGINT, s DOUBLE) "
        f"WITH ('connector' = 'filesystem', 'path' = '{job['out']}', 'format' = 'csv')"
    )
    tables.execute_sql(
        "INSERT INTO results SELECT window_start, `key`, count(*), sum(`value`) "
        "FROM TABLE(TUMBLE(TABLE events, DESCRIPTOR(t), INTERVAL '10' SECOND)) "
        "GROUP BY window_start, window_end, `key`"
    ).wait()
    seconds = time.perf_counter() - began
    shutil.rmtree(checkpoint, ignore_errors=True)
    return {"seconds": seconds, "done": True, "epochs": []}


if __name__ == "__main__":
    take_turns("flink", run)
