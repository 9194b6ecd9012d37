"""Change data as Debezium writes it: what holds in the end is what the table holds, however records come.

On kernels, on Spark, and with the reference, which is told the rows of records one by one.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from test_speculation import at_once, holding

import penstock as ps
from penstock.errors import UserError
from penstock.portal.testing import local_session
from penstock.reference.interpret import interpret
from penstock.reference.item import events

ATTRIBUTES = "ts_ms bigint, id int, item string, price double"
_ROW = pa.struct([("id", pa.int32()), ("item", pa.string()), ("price", pa.float64())])
_RECORD = pa.schema([("op", pa.string()), ("before", _ROW), ("after", _ROW), ("ts_ms", pa.int64())])
_ENVELOPE = pa.schema([("schema", pa.string()), ("payload", pa.struct(list(_RECORD)))])
#: What may stand between records, and says nothing.
_ODD = ({"op": "t", "ts_ms": 0}, {"op": "c", "after": None, "ts_ms": 0}, {"ts_ms": 0})

Row = dict[str, Any]


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[Row], list[Row], list[Row]]:
    """Records in their order, those among them that say nothing, and the table that they leave."""
    table: dict[int, Row] = {}
    records, odd = [], []
    for number in range(draw(st.integers(0, 12))):
        key = draw(st.integers(1, 5))
        before = table.pop(key, None)
        after = None
        if before is None or draw(st.integers(0, 3)):
            price = draw(st.sampled_from((1.5, 2.5, 1e300, None)))
            after = table[key] = {"id": key, "item": draw(st.sampled_from(("tea", "milk", None))), "price": price}
        op = "d" if after is None else "u" if before else draw(st.sampled_from(("c", "r")))
        records.append({"op": op, "before": before, "after": after, "ts_ms": number})
        if draw(st.integers(0, 9)) == 0:
            odd.append(draw(st.sampled_from(_ODD)))
            records.append({"before": None, "after": None, "op": None, **odd[-1]})
    return records, odd, list(table.values())


def write(records: list[Row], folder: Path, form: str, wrapped: bool, each: int) -> None:
    for number, start in enumerate(range(0, max(1, len(records)), each)):
        some = records[start : start + each]
        some = [{"schema": None, "payload": r} for r in some] if wrapped else some
        if form == "json":
            folder.joinpath(f"{number:03d}.json").write_text("".join(json.dumps(r) + "\n" for r in some) or "\n")
        else:
            table = pa.Table.from_pylist(some, _ENVELOPE if wrapped else _RECORD)
            pq.write_table(table, folder / f"{number:03d}.parquet", row_group_size=2)


def prices(folder: Path, form: str, **options: Any) -> ps.Stream:
    stream = ps.stream("prices", ATTRIBUTES, time="ts_ms")
    read: ps.Stream = getattr(stream, f"read_{form}")(str(folder), order="name", **options)
    return read


def totals(stream: ps.Stream) -> ps.Stream:
    return stream.group_by("item").agg(n="count(*)", all="sum(price)", most="max(price)", kinds="count(distinct id)")


def expected(table: list[Row]) -> Counter[str]:
    """The same of the table, by hand."""
    found = []
    for item in {r["item"] for r in table}:
        rows = [r for r in table if r["item"] == item]
        known = [r["price"] for r in rows if r["price"] is not None]
        sums = {"all": sum(known) if known else None, "most": max(known, default=None)}
        found.append({"item": item, "n": len(rows), **sums, "kinds": len(rows)})
    return shown(found)


def shown(rows: list[Row]) -> Counter[str]:
    return Counter(repr(sorted(r.items())) for r in rows)


def check(history: Any, form: str, wrapped: bool, key: str | None, each: int, max_rows: int, spark: Any) -> None:
    records, odd, table = history
    with TemporaryDirectory() as home:
        write(records, Path(home), form, wrapped, each)
        query = totals(prices(Path(home), form).changes(debezium=True, key=key))
        sink = ps.memory()
        run = query.start(
            sink, consistency=ps.Consistency.middle(), max_rows=max_rows, trigger="available_now", spark=spark,
            allow_unbounded="it is a table",
        ).wait()  # fmt: skip
        assert shown(holding(sink.rows())) == expected(table)
        assert len(run.dead_letters()) == len(odd)


_HOW = (
    histories(),
    st.sampled_from(("json", "parquet")),
    st.booleans(),
    st.sampled_from((None, "id")),
    st.integers(1, 9),
    st.integers(1, 9),
)


@given(*_HOW)
@settings(max_examples=20)
def test_what_holds_is_what_the_table_holds(
    history: Any, form: str, wrapped: bool, key: str | None, each: int, max_rows: int
) -> None:
    check(history, form, wrapped, key, each, max_rows, local_session())


@pytest.mark.spark
def test_on_spark(spark: Any) -> None:
    @given(*_HOW)
    @settings(max_examples=2, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
    def run(history: Any, form: str, wrapped: bool, key: str | None, each: int, max_rows: int) -> None:
        check(history, form, wrapped, key, each, max_rows, spark)

    run()


@given(histories(), st.booleans())
def test_with_the_reference(history: Any, keyed: bool) -> None:
    records, _, table = history
    told = []
    for record in records:
        if record["op"] in ("c", "r", "u", "d"):
            gone = record["op"] == "d" if keyed else record["before"] is not None
            sides = [("-", record["before"])] * gone + [("+", record["after"])] * (record["after"] is not None)
            told += [{"ts_ms": record["ts_ms"], **row, "_change": kind} for kind, row in sides]
    stream = at_once(totals(prices(Path("x"), "json").changes(debezium=True, key="id" if keyed else None)))
    found = events(interpret(stream.plan, {"prices": told}, traced=False).outputs)
    assert shown(holding(found)) == expected(table)


def test_with_a_key_an_update_need_not_say_what_was(tmp_path: Path) -> None:
    """As databases write it by default: of a row that is deleted the key alone."""
    rows = [{"id": 1, "item": "tea", "price": 7.0}, {"id": 1, "item": "milk", "price": 6.0}]
    records = [
        {"op": "c", "before": None, "after": rows[0], "ts_ms": 1},
        {"op": "u", "before": None, "after": rows[1], "ts_ms": 2},
        {"op": "d", "before": {"id": 1, "item": None, "price": None}, "after": None, "ts_ms": 3},
        {"op": "d", "before": {"id": 9, "item": None, "price": None}, "after": None, "ts_ms": 4},
    ]
    write(records, tmp_path, "json", False, 1)
    sink = ps.memory()
    query = prices(tmp_path, "json").changes(debezium=True, key="id").select("item", "price")
    query.start(
        sink, consistency=ps.Consistency.middle(), max_rows=1, trigger="available_now", spark=local_session(),
        allow_unbounded="it is a table",
    ).wait()  # fmt: skip
    assert [(r["item"], r["_weight"]) for r in sink.rows()] == [("tea", 1), ("tea", -1), ("milk", 1), ("milk", -1)]


def test_flattened_records_have_their_key(tmp_path: Path) -> None:
    records = [
        {"op": "c", "id": 1, "item": "tea", "price": 7.0, "ts_ms": 1},
        {"op": "u", "id": 1, "item": "milk", "price": 6.0, "ts_ms": 2},
        {"op": "c", "id": 2, "item": "tea", "price": 5.0, "ts_ms": 3},
        {"op": "d", "id": 2, "item": None, "price": None, "ts_ms": 4},
    ]
    tmp_path.joinpath("a.json").write_text("".join(json.dumps(r) + "\n" for r in records))
    sink = ps.memory()
    stream = ps.stream("prices", f"{ATTRIBUTES}, op string", time="ts_ms").read_json(str(tmp_path))
    totals(stream.changes("op", key="id")).start(
        sink,
        consistency=ps.Consistency.middle(),
        trigger="available_now",
        spark=local_session(),
        allow_unbounded="table",
    ).wait()
    assert [(r["item"], r["n"]) for r in holding(sink.rows())] == [("milk", 1)]


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("null", "a tombstone"),
        ('{"schema": {}, "payload": null}', "a tombstone"),
        ('{"op": "c", "after": null, "ts_ms": 1}', "op 'c' without `after`"),
        ('{"op": "u", "after": {"id": 1}, "ts_ms": 1}', "op 'u' without `before`"),
        ('{"op": "d", "before": null, "ts_ms": 1}', "op 'd' without `before`"),
        ('{"op": "x", "after": {"id": 1}, "ts_ms": 1}', "op 'x' is no change of a row"),
        ('{"before": null, "after": {"id": 1}, "ts_ms": 1}', "no `op`"),
        ('{"op": "u", "before": {"id": 1}, "after": {"id": "one"}, "ts_ms": 1}', "'id' is not an int: 'one'"),
        ('{"op": "c", "after": {"id": 1}}', "time attribute 'ts_ms' is null"),
        ("[1]", "not a JSON object"),
        ("{", "not a JSON object"),
    ],
)
def test_a_record_that_does_not_say_it_all_is_one_dead_letter(tmp_path: Path, line: str, why: str) -> None:
    good = json.dumps({"op": "c", "after": {"id": 7}, "ts_ms": 1})
    tmp_path.joinpath("a.json").write_text(f"{good}\n\n{line}\n{good}\n")
    sink = ps.memory()
    run = prices(tmp_path, "json").changes(debezium=True).start(
        sink, consistency=ps.Consistency.middle(), trigger="available_now", spark=local_session()
    ).wait()  # fmt: skip
    assert [r["id"] for r in sink.holding()] == [7, 7]
    (letter,) = run.dead_letters().to_pylist()
    assert (letter["reason"], letter["row"]) == ("malformed", 2) and why in letter["detail"]


def test_what_cannot_be_read_so_is_refused_before_the_start(tmp_path: Path) -> None:
    stream = ps.stream("prices", ATTRIBUTES, time="ts_ms")
    for made, why in (
        (lambda: stream.read_csv("x").changes(debezium=True), "JSON lines or Parquet"),
        (lambda: stream.read_json("x").changes("item", debezium=True), "say in `op` what they do"),
        (lambda: stream.read_json("x").changes(), "which column"),
        (lambda: stream.read_json("x").changes(debezium=True, key="idd"), "no attribute 'idd'"),
        (lambda: stream.read_json("x").punctuated().changes(debezium=True), "cannot be punctuations"),
    ):
        with pytest.raises(UserError, match=why):
            made()
