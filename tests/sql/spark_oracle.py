"""What Spark itself answers to expressions, row by row: a value, or that it raises."""

# ruff: noqa: E501 - a row of a table or a template of SQL reads best as one line.
from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock.errors import UserError
from penstock.pattern.types import canonical_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: The answer for a row at which the expression raises.
RAISES = "raises"
_NEWER = "spark.sql.datetime.java8API.enabled"


@dataclass(frozen=True)
class Answer:
    """The type of an expression and its value in each row; without a type, why it is refused."""

    type: pa.DataType | None
    values: tuple[Any, ...] = ()
    refusal: str = ""


def frame_of(spark: SparkSession, table: pa.Table) -> DataFrame:
    """The rows of a table in Spark, timestamps with the session's zone (UTC)."""
    from pyspark.sql.classic.dataframe import DataFrame

    zoned = pa.schema(
        [(f.name, pa.timestamp("us", tz="UTC") if pa.types.is_timestamp(f.type) else f.type) for f in table.schema]
    )
    # A column that may be null, for all that Spark knows: see `_ask`.
    rows = table.cast(zoned).append_column("row__", pa.array(range(table.num_rows), pa.int32()))
    made = spark.createDataFrame(rows)
    # Rows that the plan itself holds: Spark interprets what is asked of them, compiles nothing and starts no job.
    # The newer classes for dates and times: the older ones have no 10 October 1582.
    before = spark.conf.get(_NEWER)
    spark.conf.set(_NEWER, "true")
    try:
        held = spark._jsparkSession.createDataFrame(made._jdf.collectAsList(), made._jdf.schema())
    finally:
        spark.conf.set(_NEWER, str(before))
    return DataFrame(held, spark)


@contextmanager
def interpreted(spark: SparkSession) -> Iterator[None]:
    """No compiled code and no partitions: for a few rows they cost more than they gain. No log of what raises."""
    changed = {
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.sql.shuffle.partitions": "1",
    }
    before = {name: str(spark.conf.get(name)) for name in changed}
    spark.sparkContext.setLogLevel("OFF")
    try:
        for name, value in changed.items():
            spark.conf.set(name, value)
        yield
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)
        spark.sparkContext.setLogLevel("ERROR")


def ask(spark: SparkSession, frame: DataFrame, texts: list[str]) -> list[Answer]:
    """Spark's answers to several expressions over the rows of one frame, in as few queries as it allows."""
    try:
        return _ask(spark, frame, texts)
    except Exception as error:
        if len(texts) == 1:
            return [Answer(None, refusal=str(error).split("\n")[0])]
        half = len(texts) // 2
        return [*ask(spark, frame, texts[:half]), *ask(spark, frame, texts[half:])]


def _ask(spark: SparkSession, frame: DataFrame, texts: list[str]) -> list[Answer]:
    from pyspark.sql.classic.column import Column

    assert spark._jvm is not None
    catalyst = spark._jvm.org.apache.spark.sql
    parser = spark._jsparkSession.sessionState().sqlParser()
    # An expression that raises makes its struct null; one that is null makes a struct with a null. The `if` makes
    # every value nullable: a null struct of a value that never is null cannot be sent through Arrow.
    columns = [
        Column(catalyst.classic.ExpressionUtils.column(
            catalyst.catalyst.expressions.TryEval(parser.parseExpression(f"struct(if(row__ >= 0, ({text}), null) AS v)"))
        )).alias(f"c{i}")
        for i, text in enumerate(texts)
    ]  # fmt: skip
    found = frame.select(*columns).toArrow()
    return [answer(column) for column in found.columns]


def answer(column: pa.ChunkedArray) -> Answer:
    """The answer in a column of structs: a struct is null where the expression raises.

    Dates and times are compared by their numbers: Python knows no year 10,000.
    """
    structs = column.combine_chunks()
    inside = structs.field(0)
    type_ = _plain(inside.type)
    if pa.types.is_temporal(inside.type):
        inside = inside.view(pa.int32() if pa.types.is_date32(inside.type) else pa.int64())
    pairs = zip(structs.is_valid().to_pylist(), inside.to_pylist(), strict=True)
    return Answer(type_, tuple(value if valid else RAISES for valid, value in pairs))


def _plain(t: pa.DataType) -> pa.DataType:
    try:
        return canonical_type(t)
    except UserError:
        return t
