"""Results in folders by value lie where Spark itself would put them, and Spark reads them back."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

import penstock as ps
from penstock.portal.testing import local_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TEXTS = [
    "plain",
    "two words",
    "a/b",
    "k=v",
    "50%",
    "..",
    "",
    None,
    "ä{[]}^",
    "\t\n\x01",
    "q'\"",
    "\\",
    "\x7f",
    "a:b#*?",
]


def test_folders_are_those_that_spark_makes(spark: SparkSession, tmp_path: Path) -> None:
    count = len(TEXTS)
    table = pa.table(
        {
            "t": pa.array(range(count), pa.int64()),
            "text": pa.array(TEXTS, pa.string()),
            "at": pa.array([k * 1_234_500_000 for k in range(count)], pa.timestamp("us")),
            "price": pa.array([k / 8 * 10.0**k for k in range(count)], pa.float64()),
            "good": pa.array([k % 3 == 0 if k % 4 else None for k in range(count)], pa.bool_()),
        }
    )
    (tmp_path / "in").mkdir()
    pq.write_table(table, tmp_path / "in" / "a.parquet")
    schema = "t bigint, text string, at timestamp, price double, good boolean"
    for column in ("text", "at", "price", "good"):
        mine, theirs = tmp_path / f"mine {column}", tmp_path / f"theirs {column}"
        stream = ps.stream("rows", schema, time="t").read_parquet(str(tmp_path / "in")).disorder(0)
        sink = ps.parquet(mine, partition_by=[column])
        stream.start(sink, trigger="once", spark=local_session()).wait()
        spark.read.parquet(str(tmp_path / "in")).write.partitionBy(column).parquet(str(theirs))
        assert {p.name for p in mine.glob("*=*")} == {p.name for p in theirs.glob("*=*")}, column
        there = spark.read.option("recursiveFileLookup", "false").parquet(str(mine))
        assert sorted(r["t"] for r in there.collect()) == list(range(count))
        if column == "text":
            assert {r["t"]: r["text"] for r in there.collect()} == {k: t or None for k, t in enumerate(TEXTS)}
