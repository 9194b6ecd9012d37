"""Declaring tables and looking streams up in them: what is refused, with what hint, and what comes out."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from penstock.builder.lookup import lookup
from penstock.errors import UserError
from penstock.operators.lookup.operator import tables_of
from penstock.operators.source.operator import Source
from penstock.pattern.pattern import Pattern
from penstock.pattern.schema import Schema
from penstock.plan.plan import Plan
from penstock.plan.spec import spec_of
from penstock.plan.table import Table, table

ORDERS = Source((), Schema.parse("ts timestamp, item string, n int", time="ts"), name="orders")
PRICES = table("prices", "sku string, price double, since timestamp, n int", key="sku", version="since").read_csv("p")
ITEMS = table("items", "sku string, name string", key="sku").read_parquet("items")


class Frame:
    """Looks like a DataFrame."""

    isStreaming = False  # noqa: N815 - the name in Spark

    def toArrow(self) -> Any: ...


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"name": "a b"}, "table name 'a b'. Hint: use letters, digits, - and _"),
        ({"key": "skew"}, "key 'skew' is not a column. Hint: did you mean 'sku'?"),
        ({"key": []}, r"key=\[\] is not possible. Hint: one or more different columns"),
        ({"key": ["sku", "SKU"]}, "one or more different columns"),
        ({"version": "price"}, "version 'price' is a double. Hint: it is a timestamp, a date or an integer"),
        ({"version": "since", "until": "day"}, "'since' is a timestamp, 'day' a date. Hint: declare both"),
        ({"until": "since"}, "until='since' without version="),
        ({"version": "since", "until": "since"}, "both version and until"),
        ({"key": "since", "version": "since"}, "'since' is both key and version"),
    ],
)
def test_declarations_that_are_refused(arguments: dict[str, Any], said: str) -> None:
    good: dict[str, Any] = {"name": "t", "schema": "sku string, price double, since timestamp, day date", "key": "sku"}
    with pytest.raises(UserError, match=said):
        table(**{**good, **arguments})


def test_readers_that_are_refused() -> None:
    bare = table("t", "k int", key="k")
    with pytest.raises(UserError, match=r"read_csv has no option 'delimeter'. Hint: did you mean 'delimiter'\?"):
        bare.read_csv("x", delimeter=";")
    with pytest.raises(UserError, match="read_parquet has no option 'header'"):
        bare.read_parquet("x", header=False)
    with pytest.raises(UserError, match=r"from_spark\(int\) is not a DataFrame"):
        bare.from_spark(7)
    streaming = Frame()
    streaming.isStreaming = True
    with pytest.raises(UserError, match="this DataFrame is a stream"):
        bare.from_spark(streaming)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({}, "stream attribute 'sku' is not a column. Hint: .*There are: ts, item, n"),
        ({"on": {"item": "price"}}, "the keys differ in type: stream item string, table price double"),
        ({"on": {"n": "n"}}, r"on=\{'n': 'n'\} is not its key \(sku\). Hint: on=\{'stream attribute': 'key column'\}"),
        ({"on": []}, r"on=\[\] is not its key"),
        ({"how": "full"}, "how='full' is not possible. Hint: 'inner' drops"),
        ({"as_of": "n"}, "'n' is an int, 'since' a timestamp. Hint: declare the table's column as int"),
        ({"as_of": "tz"}, "as_of 'tz' is not a column. Hint: did you mean 'ts'"),
        ({"columns": ["prise"]}, "column 'prise' is not a column. Hint: did you mean 'price'"),
        ({"columns": "price"}, r"columns='price' is not possible. Hint: a list: columns=\['price'\]"),
        ({"columns": ["n"], "suffix": ""}, "'n' would be there twice. Hint: choose another suffix="),
        ({"columns": ["price", "price"], "suffix": ""}, "'price' would be there twice"),
    ],
)
def test_lookups_that_are_refused(arguments: dict[str, Any], said: str) -> None:
    given = {"on": "item", **arguments} if arguments else {}
    with pytest.raises(UserError, match=said):
        lookup(ORDERS, PRICES, **given)


def test_what_else_is_refused() -> None:
    with pytest.raises(UserError, match="Source is not a table"):
        lookup(ORDERS, ORDERS, "item")  # type: ignore[arg-type]
    with pytest.raises(UserError, match="nothing to read from"):
        lookup(ORDERS, PRICES.without_reader, "item")
    with pytest.raises(UserError, match="as_of='ts', but the table has no versions"):
        lookup(ORDERS, ITEMS, "item", as_of="ts")
    timeless = Source((), Schema.parse("sku string, at timestamp"), name="s")
    with pytest.raises(UserError, match=r"which time attribute\? \(none is declared\)"):
        lookup(timeless, PRICES)
    assert lookup(timeless, PRICES, as_of="AT").as_of == "at"


def test_the_stream_comes_first_and_the_table_behind_it_under_names_of_its_own() -> None:
    found = lookup(ORDERS, PRICES, "item", "left")
    assert str(found.schema) == "ts timestamp, item string, n int, price double, since timestamp, n_prices int"
    assert found.schema.times == ("ts",)
    assert found.keys == (("item", "sku"),)
    assert found.reads == {"ts", "item", "n"}
    assert found.detail == "left prices on item = sku, since as of ts"
    assert Plan.of(found).nodes[-1].id == "lookup-1"
    assert str(lookup(ORDERS, PRICES, "item", columns=[]).schema) == str(ORDERS.schema)


def test_two_keys_in_any_order() -> None:
    declared = table("t", "a int, b bigint, x int", key=["a", "b"]).read_json("t")
    stream = Source((), Schema.parse("b int, c int"), name="s")
    assert lookup(stream, declared, {"b": "b", "c": "a"}).keys == (("b", "b"), ("c", "a"))
    with pytest.raises(UserError, match="is not its key"):
        lookup(stream, declared, {"b": "b"})


def test_punctuation_of_the_stream_passes() -> None:
    found = lookup(ORDERS, PRICES, "item")
    promised = Pattern.parse("[< '2026-01-01', 'a', *]", ORDERS.schema)
    (passed,) = spec_of(found).behaviour(found, False).receive([(promised,)])
    assert str(passed) == "[< '2026-01-01 00:00:00', 'a', *, *, *, *]"


def test_one_name_is_one_table() -> None:
    first = lookup(ORDERS, ITEMS, "item")
    again = lookup(first, ITEMS, "item", suffix="_2")
    assert tables_of([first, again, ORDERS]) == {"items": ITEMS}
    other = lookup(first, table("items", "sku string, name string", key="sku").read_csv("items"), "item", suffix="_3")
    with pytest.raises(UserError, match="two tables are named 'items'"):
        tables_of([first, other])
    framed = [table("f", "k string", key="k").from_spark(Frame()) for _ in range(2)]
    with pytest.raises(UserError, match="two tables are named 'f'"):
        tables_of([lookup(ORDERS, f, "item") for f in framed])


def test_tables_travel_without_their_data_frame() -> None:
    framed = table("f", "k string", key="k").from_spark(lambda: Frame(), every="10 min")
    assert str(framed).endswith("Spark every 10 min")
    assert pickle.loads(pickle.dumps(framed.without_reader)) == Table("f", framed.schema, ("k",))
