"""The join in PyFlink, as an interval join of its Table API. Runs in an environment of its own.

The wheels on PyPI bring no Parquet format, so the rows come from and go to CSV. Both inputs are one file each: the
file source takes files in no particular order, and rows behind the watermark would be dropped.
"""

from __future__ import annotations

import shutil
import tempfile
import time

from pyflink.common import Configuration
from pyflink.table import EnvironmentSettings, TableEnvironment

from benchmarks.joins.turn import Answer, Job, take_turns

SETTINGS = {
    "parallelism.default": "2",
    "taskmanager.numberOfTaskSlots": "2",
    "taskmanager.memory.managed.size": "64m",
    "table.local-time-zone": "UTC",
    "pipeline.object-reuse": "true",
    # Others commit after every epoch; so often comes close to it.
    "execution.checkpointing.interval": "5 s",
}


def environment(checkpoint: str) -> TableEnvironment:
    configuration = Configuration()
    for key, value in {**SETTINGS, "execution.checkpointing.dir": f"file://{checkpoint}"}.items():
        configuration.set_string(key, value)
    return TableEnvironment.create(
        EnvironmentSettings.new_instance().in_streaming_mode().with_configuration(configuration).build()
    )


def run(job: Job) -> Answer:
    checkpoint = tempfile.mkdtemp(prefix="flink-")
    began = time.perf_counter()
    tables = environment(checkpoint)
    for side in ("left", "right"):
        tables.execute_sql(
            f"CREATE TABLE {side}_input (ts BIGINT, `key` BIGINT, seq BIGINT, `value` DOUBLE, "
            "t AS TO_TIMESTAMP_LTZ(ts, 3), WATERMARK FOR t AS t - INTERVAL '1' SECOND) "
            f"WITH ('connector' = 'filesystem', 'path' = '{job[side]}', 'format' = 'csv')"
        )
    tables.execute_sql(
        "CREATE TABLE results (`key` BIGINT, ts BIGINT, seq BIGINT, `value` DOUBLE, ts_right BIGINT, "
        "seq_right BIGINT, value_right DOUBLE) "
        f"WITH ('connector' = 'filesystem', 'path' = '{job['out']}', 'format' = 'csv')"
    )
    width = f"INTERVAL '{job['band'] // 1000 if job['band'] else 0}' SECOND"
    band = "" if job["band"] is None else f"AND r.t BETWEEN l.t - {width} AND l.t + {width}"
    tables.execute_sql(
        "INSERT INTO results SELECT l.`key`, l.ts, l.seq, l.`value`, r.ts, r.seq, r.`value` "
        f"FROM left_input l JOIN right_input r ON l.`key` = r.`key` {band}"
    ).wait()
    seconds = time.perf_counter() - began
    shutil.rmtree(checkpoint, ignore_errors=True)
    return {"seconds": seconds, "done": True, "epochs": []}


if __name__ == "__main__":
    take_turns("flink", run)
