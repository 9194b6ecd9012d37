"""A run on Spark that gives up windows, killed with −9 and started again: they are missing whole, the rest is exact."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import penstock as ps
from penstock.portal.testing import local_session

QUERY = """import penstock as ps
cars = ps.stream("cars", "ts bigint, lane bigint", time="ts").read_parquet("in", order="name").disorder(5)
query = cars.where("lane < 6").window(20, slide=10).group_by("lane").agg(n="count(*)", total="sum(ts)")
sink = ps.parquet("out")
qos = ps.QoS(gap=4)
settings = {"max_rows": 500, "trigger": "available_now"}
"""


def rows(folder: Path) -> Counter[tuple[int, ...]]:
    tables = [pq.read_table(f).to_pylist() for f in sorted(folder.glob("*.parquet"))]
    return Counter(tuple(row.values()) for table in tables for row in table)


@pytest.mark.spark
def test_killed_while_it_sheds(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for n in range(40):
        ts = list(range(250 * n, 250 * n + 250))
        pq.write_table(pa.table({"ts": ts, "lane": [t % 8 for t in ts]}), tmp_path / "in" / f"{n:02}.parquet")
    (tmp_path / "query.py").write_text(QUERY)
    command = [sys.executable, "-m", "penstock_command", "run", "query.py", "--master", "local[2]"]
    command += ["--shedding", "50%"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        assert process.stdout is not None
        said = ""
        while "epoch 5:" not in said:
            more = process.stdout.readline()
            assert more, said
            said += more
        time.sleep(0.05)
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate(timeout=60)
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=400, check=False)
    assert done.returncode == 0, done.stderr
    assert "goes on after epoch" in done.stdout and "windows dropped, at most 4 in a row" in done.stdout

    cars = ps.stream("cars", "ts bigint, lane bigint", time="ts").read_parquet(str(tmp_path / "in"), order="name")
    query = cars.disorder(5).where("lane < 6").window(20, slide=10).group_by("lane").agg(n="count(*)", total="sum(ts)")
    query.start(ps.parquet(str(tmp_path / "free")), trigger="available_now", spark=local_session()).wait()
    free, found = rows(tmp_path / "free"), rows(tmp_path / "out")
    kept = {row[0] for row in found}
    assert found == Counter({row: n for row, n in free.items() if row[0] in kept})
    account = f"read_json('{tmp_path}/out/_penstock/checkpoint/shed/0*.json')"
    (gone,) = duckdb.sql(f"SELECT list(w) FROM (SELECT unnest(dropped_windows) AS w FROM {account})").fetchall()
    assert {int(w) for w in gone[0]} & {row[0] for row in free} == {row[0] for row in free} - kept
    assert 0.3 < len(kept) / len({row[0] for row in free}) < 0.7
