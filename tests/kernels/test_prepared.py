"""Statements that are kept prepared give what they would give if they were not."""

from __future__ import annotations

from collections import OrderedDict

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import FailingError
from penstock.kernels import duck
from penstock.kernels.duck import query, to_the_letter

SUMS = "SELECT k, sum(v) AS s, count(*) AS n FROM rows GROUP BY k ORDER BY k"


@pytest.fixture(autouse=True)
def _nothing_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(duck, "_kept", {})


def kept() -> list[duck.Prepared]:
    return [p for some in duck._kept.values() for p in some.values() if p is not None]


@given(st.lists(st.lists(st.tuples(st.integers(0, 3), st.integers(-9, 9) | st.none())), max_size=6))
def test_the_same_answers_whatever_the_tables(tables: list[list[tuple[int, int | None]]]) -> None:
    for rows in tables:
        table = pa.table(
            {"k": pa.array([k for k, _ in rows], pa.int32()), "v": pa.array([v for _, v in rows], pa.int64())}
        )
        answer = query(SUMS, rows=table)
        assert answer.equals(duck._asked(SUMS, {"rows": table}))
        assert answer.schema.field("s").type == pa.decimal128(38, 0)
        batch = table.combine_chunks().to_batches()
        if batch:
            assert query(SUMS, rows=batch[0]).equals(answer)


def test_a_table_of_another_schema_has_a_statement_of_its_own() -> None:
    for _ in range(3):
        assert query(SUMS, rows=pa.table({"k": [1, 1], "v": [1, 2]})).to_pylist()[0]["s"] == 3
        assert query(SUMS, rows=pa.table({"k": ["a"], "v": [0.5]})).to_pylist() == [{"k": "a", "s": 0.5, "n": 1}]
    assert len(kept()) == 2


def test_large_tables_and_statements_to_the_letter_are_planned_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(duck, "FEW", 2)
    for _ in range(3):
        query(SUMS, rows=pa.table({"k": [1, 1, 2], "v": [1, 2, 3]}))
        with to_the_letter():
            query(SUMS, rows=pa.table({"k": [1], "v": [1]}))
    assert not kept()


def test_few_are_kept_and_no_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(duck, "KEPT", 2)
    for number in range(5):
        for _ in range(2):
            query(f"SELECT v + {number} AS v FROM rows", rows=pa.table({"v": [1]}))
    assert len(kept()) == 2 and isinstance(next(iter(duck._kept.values())), OrderedDict)
    assert all(slot.table is None for p in kept() for slot in p.slots.values())


def test_a_failure_is_told_and_leaves_the_statement_usable() -> None:
    for text in ("1", "2", "x", "3"):
        rows = pa.table({"v": [text]})
        if text == "x":
            with pytest.raises(FailingError, match="'x'"):
                query("SELECT CAST(v AS INTEGER) AS v FROM rows", rows=rows)
        else:
            assert query("SELECT CAST(v AS INTEGER) AS v FROM rows", rows=rows)["v"].to_pylist() == [int(text)]
