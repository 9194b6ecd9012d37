"""`penstock state --query`: the state can be read, and nothing else can be read, written, set or reached."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.errors import UserError
from penstock.portal.state_query import select
from penstock.portal.table import print_table

STATE = {"aggregate-1": pa.table({"k": ["a", "b"], "n": [1, 2]}), "units": pa.table({"rows": [2]})}


def test_one_select_is_answered() -> None:
    assert select('WITH x AS (SELECT * FROM "aggregate-1") SELECT max(n) AS n FROM x', STATE).to_pylist() == [{"n": 2}]
    assert select('FROM "aggregate-1" SELECT k ORDER BY k DESC;', STATE)["k"].to_pylist() == ["b", "a"]


ESCAPES = (
    "SELECT * FROM read_csv('{secret}.csv')",
    "SELECT * FROM '{secret}.csv'",
    "SELECT * FROM read_parquet('{secret}.parquet')",
    "SELECT * FROM '{secret}.parquet'",
    "SELECT * FROM parquet_schema('{secret}.parquet')",
    "SELECT * FROM read_text('{secret}.csv')",
    "SELECT * FROM read_blob('{secret}.csv')",
    "SELECT * FROM read_json('{secret}.json')",
    "SELECT * FROM sniff_csv('{secret}.csv')",
    "SELECT * FROM glob('{home}/*')",
    "SELECT * FROM query('SELECT * FROM read_text(''{secret}.csv'')')",
    "SELECT (SELECT content FROM read_text('{secret}.csv'))",
    "COPY (SELECT 1) TO '{home}/out.csv'",
    "COPY \"aggregate-1\" TO '{home}/out.parquet' (FORMAT parquet)",
    "EXPORT DATABASE '{home}/out'",
    "IMPORT DATABASE '{home}/out'",
    "ATTACH '{home}/other.duckdb' AS other",
    "ATTACH '{secret}.sqlite' (TYPE sqlite)",
    "INSTALL httpfs",
    "LOAD httpfs",
    "INSTALL '{home}/evil.duckdb_extension'",
    "SELECT * FROM read_csv('https://example.com/x.csv')",
    "SET enable_external_access = true",
    "SET GLOBAL memory_limit = '100GB'",
    "RESET lock_configuration",
    "PRAGMA enable_profiling",
    "PRAGMA database_list",
    "CALL pragma_version()",
    "CREATE TABLE t AS SELECT 1",
    "CREATE VIEW units AS SELECT 1",
    "CREATE SECRET s (TYPE s3)",
    "CREATE MACRO f(x) AS x",
    "INSERT INTO units VALUES (1)",
    "DELETE FROM units",
    "DROP VIEW units",
    "CHECKPOINT",
    "VACUUM",
    "SELECT 1; COPY (SELECT 1) TO '{home}/out.csv'",
    "SELECT 1; SELECT 2",
    "PREPARE p AS SELECT 1",
    "BEGIN",
    "EXPLAIN ANALYZE SELECT 1",
    "",
    "-- nothing",
    "SELECT",
    "nonsense",
    "SELECT * FROM STATE",
    "SELECT * FROM nothing",
)


@pytest.mark.parametrize("sql", ESCAPES)
def test_nothing_else_is(sql: str, tmp_path: Path) -> None:
    secret, home = tmp_path / "secret", tmp_path / "home"
    home.mkdir()
    secret.with_suffix(".csv").write_text("a,b\n1,2\n")
    secret.with_suffix(".json").write_text('{"a": 1}\n')
    pq.write_table(STATE["units"], secret.with_suffix(".parquet"))
    sqlite3.connect(secret.with_suffix(".sqlite")).close()
    with pytest.raises(UserError, match=r"^--query: ") as refused:
        select(sql.format(secret=secret, home=home), STATE)
    assert "SELECT * FROM" in str(refused.value)
    assert not list(home.iterdir())


def test_an_answer_that_is_too_large_is_not_given() -> None:
    with pytest.raises(UserError, match="more than 64 MiB of memory"):
        select("SELECT repeat('x', 1000) AS x, range FROM range(10000000)", STATE, memory=64 << 20)
    with pytest.raises(UserError, match="memory"):
        select(
            "SELECT count(*) FROM (SELECT DISTINCT range, repeat('x', 100) FROM range(10000000))",
            STATE,
            memory=64 << 20,
        )


def test_an_answer_that_takes_too_long_is_not_waited_for() -> None:
    with pytest.raises(UserError, match=r"no answer within 0.2 s"):
        select(
            "SELECT count(*) FROM range(1000000) a, range(1000000) b WHERE a.range % 7 = b.range % 11",
            STATE,
            seconds=0.2,
        )


def test_numbers_that_json_cannot_write_are_texts(capsys: pytest.CaptureFixture[str]) -> None:
    """A bare NaN is read by few: jq and browsers refuse the line."""
    print_table(pa.table({"x": [float("nan"), float("inf"), 1.5]}), as_json=True)
    assert capsys.readouterr().out.splitlines() == ['{"x": "nan"}', '{"x": "inf"}', '{"x": 1.5}']
