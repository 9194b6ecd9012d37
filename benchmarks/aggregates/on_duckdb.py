"""The aggregate in DuckDB, in batch over all files at once. Division is its fast form; `time_bucket` takes longer."""

from __future__ import annotations

from benchmarks.aggregates.workload import WINDOW_SECONDS
from benchmarks.joins.on_duckdb import answer
from benchmarks.joins.turn import Answer, Job, take_turns

WIDTH = WINDOW_SECONDS * 1_000_000


def run(job: Job) -> Answer:
    placed = f"epoch_us(ts) // {WIDTH} AS w, key, count(*) AS n, sum(value) AS s"
    groups = f"SELECT {placed} FROM read_parquet('{job['data']}/*.parquet') GROUP BY ALL"
    return answer(job, f"SELECT w * {WIDTH} AS w, key, n, s FROM ({groups})")


if __name__ == "__main__":
    take_turns("duckdb", run)
