"""Every operator and function of the tables against Spark itself: type, value, and where either raises."""

# ruff: noqa: E501 - a row of a table or a template of SQL reads best as one line.
from __future__ import annotations

import itertools
import math
import os
import random
import re
import struct
import sys
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from datetime import date, datetime, timedelta
from decimal import Context, Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pytest
from composed import Composer, many
from functions_page import page
from operator_rows import OPERATORS
from spark_oracle import RAISES, Answer, answer, ask, frame_of
from tried import TRIED

from penstock.errors import UserError
from penstock.pattern.schema import Schema
from penstock.sql.catalog import INSTEAD, functions
from penstock.sql.expression import Expression, evaluate
from penstock.sql.function import Function

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

INF, NAN = math.inf, math.nan
TEXTS = [
    "",
    "a",
    "abc,ab",
    " a b ",
    "O'Brien",
    "Éßx",
    "e\u0301a",
    "😀a\U0001d4d0",
    "a_b%c",
    "line\nend\n",
    "Straße 12",
    None,
]
#: Names and types of the columns, with the values that are tried in them.
COLUMNS: dict[str, tuple[str, list[Any]]] = {
    "t": ("tinyint", [0, 1, -1, 12, 30, 127, -128, None]),
    "h": ("smallint", [0, 7, -9, 2024, 32767, -32768, None]),
    "i": ("int", [0, 1, -1, 7, -12, 255, 2147483647, -2147483648, None]),
    "j": ("int", [0, 1, -1, 3, -4, 2147483647, -2147483648, None]),
    "l": ("bigint", [0, 1, -1, 65, 300, 10**10, 9223372036854775807, -9223372036854775808, None]),
    "k": ("bigint", [0, 1, -1, 10, 9223372036854775807, -9223372036854775808, None]),
    "f": ("float", [0.0, 1.5, -2.25, 1e10, INF, NAN, None]),
    "x": ("double", [0.0, -0.0, 1.0, -1.0, 0.5, 2.5, -2.5, 2.675, 1.005, 1e-7, 0.0001, 123456.789, 1e7, 12345678.9, 1e16,
                     9.2e18, 9223372036854775808.0, 1e300, -1e300, INF, -INF, NAN, None]),
    "y": ("double", [0.0, 1.0, -0.5, 3.0, 1e10, INF, NAN, None]),
    "m": ("decimal(10,2)", ["0.00", "1.00", "-1.25", "12.50", "0.05", "99999999.99", "-99999999.99", None]),
    "n": ("decimal(20,6)", ["0.000000", "1.500000", "-2.345678", "0.000005", "12345678901234.999999", None]),
    "z": ("decimal(5,0)", ["0", "1", "-7", "99999", None]),
    "w": ("decimal(38,10)", ["0.0000000000", "1.0000000001", "-12345678901234567890.1234567891", None]),
    "s": ("string", TEXTS),
    "r": ("string", ["", "a", "b", "É", "ab", None]),
    "g": ("string", ["1", " 12 ", "+5", "-7", "2.7", "abc", "", "1e3", "NaN", "-Infinity", "128", "99999999999", "true", "N", None]),
    "u": ("string", ["0", "1.005", "-1.5", ".5", "5.", "1e400", "inf", "1d", "0x1", "1 2", "yes", "T", "on", "\t7\n", None]),
    "q": ("string", ["2020-02-29", "2021-02-29", "2020-1-5", "2020", "2020-01", " 2020-01-05 junk", "2020-01-05T", "2020-01-05 01:02:03",
                     "2020-01-05 1:2", "2020-01-05 1", "2020-01-05T01:02:03.123456789Z", "2020-01-05 01:02:03 +02:00", "2020-01-05 01:02:03-0830",
                     "2020-01-05 24:00:00", "2020-01-05 01:60:00", "0001-01-01", "9999-12-31 23:59:59.999999", "20200105", "abc", "",
                     "2020-01-05 01:02:03.", "2020-01-05 01:02:03.123", "2020-13-01", None]),
    "o": ("string", ["0x1p3", " -0X1.8p1", "+NaN", "-nan", "1\x7f", "\x7f1", "\uff11\uff12", "\u0661.5", "1e-400", "ye\u017f", "YES", "fALSE", "2020-01-05Z", "2020-01-05 01:02Z",
                     "2020-01-05 01:02:03 Europe/Paris", "2020-01-05 01:02:03CET", "2020-01-05 01:02:03+1", "2020-01-05 01:02:03 UTC+01:30", "2020-01-05 01:02:03+123",
                     "2020-01-05 01:02:03+18:00", "2020-01-05 01:02:03+19", "2020-01-05 01:02:03+01:60", "2020-01-05 01:02:03UT", "2020-01-05 01:02:03 junk", "12345", "12345-01-01",
                     "+2020-01-05", "-0001-01-01", "20200-01-01 01:02:03", "2020-01-05t01:02:03", "2020-01-05 01:02:03.5", "2020-01-05 01:02:03.1234567", "today", None]),
    "b": ("binary", [b"", b"a", b"\x00\xff", "É".encode(), None]),
    "ok": ("boolean", [True, False, None]),
    "no": ("boolean", [True, False, None]),
    "d": ("date", [date(1, 1, 1), date(1582, 10, 10), date(1969, 12, 31), date(1970, 1, 1), date(2020, 2, 29), date(2021, 1, 31), date(2026, 12, 28), date(9999, 12, 31), None]),
    "e": ("date", [date(1970, 1, 1), date(2020, 2, 28), date(2021, 3, 31), date(9999, 1, 1), None]),
    "ts": ("timestamp", [datetime(1, 1, 1), datetime(1969, 12, 31, 23, 59, 59, 999999), datetime(1970, 1, 1), datetime(2020, 2, 29, 12, 30, 15, 123456),
                         datetime(2021, 1, 31, 0, 0, 0, 500000), datetime(2026, 7, 4, 13, 5, 9), datetime(9999, 12, 31, 23, 59, 59, 999999), None]),
    "us": ("timestamp", [datetime(1970, 1, 1, 0, 0, 0, 1), datetime(2020, 2, 28, 13), datetime(2021, 3, 31, 0, 0, 0, 500000), datetime(1960, 2, 29, 12, 30, 15), None]),
}  # fmt: skip
SCHEMA = Schema.parse(", ".join(f"{name} {t}" for name, (t, _) in COLUMNS.items()))
#: Columns that stand for a kind of argument.
BY_KIND = {
    "string": ["s"], "text": ["s"], "binary": ["b"], "boolean": ["ok"], "int": ["i", "t"], "bigint": ["l", "i"], "double": ["x", "i", "m"],
    "number": ["i", "l", "x", "m", "n", "t"], "integral": ["i", "l", "t"], "date": ["d", "ts"], "timestamp": ["ts", "d"], "moment": ["ts"], "day": ["d"], "any": ["i", "s"],
}  # fmt: skip
SECOND = {"s": "r", "i": "j", "l": "k", "x": "y", "m": "n", "d": "e", "ts": "us", "ok": "no"}
#: Functions whose results would fill the memory if all numbers were tried.
LONG = ("repeat", "space")
#: How many rows a comparison has at most.
MOST = 80


def expressions(function: Function) -> list[str]:
    """What is compared for a function: its forms over the columns of each kind, and what its row names."""
    found = list(TRIED.get(function.name, ()))
    for form in function.forms:
        kinds = [k.rstrip("?*") for k in form.takes]
        if any(k.endswith("!") or k in ("texts", "any") for k in kinds) or function.name in LONG:
            continue
        for column in BY_KIND[kinds[0]] if kinds else []:
            arguments = [column]
            for kind in kinds[1:]:
                choice = [c for c in BY_KIND[kind] if c == arguments[-1]] or BY_KIND[kind]
                arguments.append(SECOND.get(choice[0], choice[0]))
            if len(arguments) <= 2:
                found.append(f"{function.name}({', '.join(arguments)})")
    return list(dict.fromkeys(found))


def rows(names: tuple[str, ...], most: int = MOST) -> pa.Table:
    """The values of some columns, each with each, thinned out evenly."""
    products = list(itertools.product(*(COLUMNS[n][1] for n in names))) if names else [()]
    chosen = products if len(products) <= most else random.Random(0).sample(products, most)
    columns = {}
    for k, name in enumerate(names):
        t = SCHEMA.select([name]).arrow.field(0).type
        values = [Decimal(r[k]) if r[k] is not None and pa.types.is_decimal(t) else r[k] for r in chosen]
        columns[name] = pa.array(values, t)
    return pa.table(columns) if columns else pa.table({"i": pa.array([1], pa.int32())})


def ours(text: str, table: pa.Table) -> Answer:
    try:
        parsed = Expression.parse(text, SCHEMA)
    except UserError as error:
        return Answer(None, refusal=str(error))

    # A struct, to tell null from what raises.
    guarded = replace(parsed, sql=f"TRY({{'v': {parsed.sql}}})", type=pa.struct([("v", parsed.type)]))
    try:
        return answer(evaluate(guarded, table))
    except duckdb.Error:
        # DuckDB computes what occurs twice before TRY: only of a row alone is it known whether it raises.
        found = [_alone(guarded, table.slice(k, 1)) for k in range(table.num_rows)]
        return answer(pa.chunked_array(found, guarded.type))


def _alone(guarded: Expression, row: pa.Table) -> pa.Array:
    try:
        return evaluate(guarded, row).combine_chunks()
    except duckdb.Error:
        return pa.nulls(1, guarded.type)


def same(a: Any, b: Any, close: int) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        if math.isnan(a) or math.isnan(b):
            return math.isnan(a) and math.isnan(b)
        if a == b:
            return math.copysign(1, a) == math.copysign(1, b) or bool(close)
        return not math.isinf(a) and not math.isinf(b) and abs(a - b) <= close * math.ulp(a)
    return type(a) is type(b) and a == b


def differences(spark: SparkSession, table_of: dict[str, Function]) -> list[str]:
    """Where we and Spark disagree, one line per expression."""
    groups: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for text in table_of:
        bare = re.sub(
            r"'(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.)*\"|\bfrom\b|\be\(\)|\b(?:extract|date_part)\(\w+", " ", text
        )
        words = re.findall(r"[a-z_]+\b(?!\()", bare)
        used = tuple(n for n in COLUMNS if n in words)
        groups[used].append(text)
    found = []
    for used, texts in groups.items():
        table = rows(used)
        frame = frame_of(spark, table).cache()
        for start in range(0, len(texts), 40):
            part = texts[start : start + 40]
            for text, theirs in zip(part, ask(spark, frame, part), strict=True):
                found += _difference(text, table, theirs, table_of[text])
        frame.unpersist()
    return found


def _difference(text: str, table: pa.Table, theirs: Answer, function: Function) -> list[str]:
    mine = ours(text, table)
    if "more than 38 digits" in mine.refusal and "38 digits" in function.note:
        return []
    if mine.type != theirs.type:
        return [f"{text}: type {mine.type} {mine.refusal}, Spark {theirs.type} {theirs.refusal[:90]}"]
    wrong = [
        (row, a, b)
        for row, a, b in zip(table.to_pylist(), mine.values, theirs.values, strict=True)
        # A function that says so may raise where Spark answers; a value, and null is one, may never differ.
        if not same(a, b, function.close) and not (a == RAISES and "raises" in function.note)
    ]
    if not wrong:
        return []
    row, a, b = wrong[0]
    return [f"{text}: {len(wrong)} of {table.num_rows} rows differ, e.g. {row}: {a!r}, Spark {b!r}"]


@pytest.mark.parametrize("family", ["operators", *dict.fromkeys(f.family for f in functions().values())])
def test_spark_gives_the_same(spark: SparkSession, family: str) -> None:
    rows_of = [f for f in (*OPERATORS, *functions().values()) if f.family == family]
    table = {text: f for f in rows_of for text in expressions(f)}
    assert len(table) >= len(rows_of) / 2
    assert differences(spark, table) == []


@pytest.mark.fuzz
def test_spark_gives_the_same_for_random_values(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, tried: Callable[[str], None]
) -> None:
    """The same expressions on values that nobody chose."""
    dice = random.Random(int(os.environ.get("PENSTOCK_SEED", "1")))
    monkeypatch.setattr(
        sys.modules[__name__],
        "COLUMNS",
        {n: (t, [*(random_value(n, t, dice) for _ in range(60)), None]) for n, (t, _) in COLUMNS.items()},
    )
    table = {text: f for f in (*OPERATORS, *functions().values()) if f.name not in LONG for text in expressions(f)}
    _same_in_every_java(spark)
    assert differences(spark, table) == []
    tried(f"{len(table)} expressions on up to {MOST} rows")


@pytest.mark.fuzz
def test_spark_gives_the_same_for_random_expressions(spark: SparkSession, tried: Callable[[str], None]) -> None:
    """Expressions inside each other: no other type and no other value, and null is one; what raises inside may raise."""
    dice = random.Random(int(os.environ.get("PENSTOCK_SEED", "1")))
    close = {f.name for f in functions().values() if f.close}
    without = {*LONG, "lpad", "rpad", *close}
    tables = [f for f in (*OPERATORS, *functions().values()) if f.name not in without]
    composer = Composer(SCHEMA, [text for f in tables for text in expressions(f)])
    found, rounds = [], 50
    for _ in range(rounds):
        texts = many(composer.compose, 40, dice)
        table = pa.table(
            {
                a.name: pa.array([Decimal(v) if pa.types.is_decimal(a.type) and v else v for v in values], a.type)
                for a in SCHEMA
                for values in [dice.choices(COLUMNS[a.name][1], k=40)]
            }
        )
        frame = frame_of(spark, table).cache()
        for text, theirs in zip(texts, ask(spark, frame, texts), strict=True):
            if "codec can't decode" in theirs.refusal:
                continue  # bytes that are no text: Spark has it nevertheless, but cannot send it
            function = Function(text, "composed", (), note="raises")
            found += _difference(text, table, theirs, function)
        frame.unpersist()
    assert found == []
    tried(f"{40 * rounds} expressions on 40 rows")


def test_a_cube_root_is_next_to_the_exact_one() -> None:
    """The C library's own may be four units in the last place away; Java's is one at most."""
    dice = random.Random(3)
    numbers = [dice.uniform(-10, 10) for _ in range(2_000)]
    numbers += [math.ldexp(dice.uniform(1, 2), dice.randint(-1074, 1023)) for _ in range(2_000)]
    context = Context(prec=40)
    for x, root in zip(numbers, ours("cbrt(x)", pa.table({"x": numbers})).values, strict=True):
        # Exact: the cubes of the neighbours lie on either side of x.
        low, high = sorted(context.power(Decimal(root + side * math.ulp(root)), 3) for side in (-1, 1))
        assert low < Decimal(x) < high, x


@pytest.mark.fuzz
@pytest.mark.parametrize("name", [f.name for f in functions().values() if f.close and "the same" not in f.note])
def test_no_last_place_is_further_from_sparks_than_the_page_says(
    spark: SparkSession, name: str, tried: Callable[[str], None]
) -> None:
    """Of many more numbers than the other comparisons have: the C library is far off at one in a thousand only."""
    dice = random.Random(int(os.environ.get("PENSTOCK_SEED", "1")))
    columns = {n: [random_value(n, "double", dice) for _ in range(50_000)] for n in ("x", "y")}
    table = pa.table({n: pa.array(values, pa.float64()) for n, values in columns.items()})
    frame = spark.createDataFrame(table)
    function = functions()[name]
    for text in {f"{name}({', '.join('xy'[: len(form.takes)])})" for form in function.forms} | {f"{name}(x)"}:
        if ours(text, table.slice(0, 1)).type is None:
            continue
        values = frame.selectExpr(f"{text} AS v").toArrow().column(0).to_pylist()
        assert _difference(text, table, Answer(pa.float64(), tuple(values)), function) == []
        tried(f"{text} on {len(values)} rows")


def _same_in_every_java(spark: SparkSession) -> None:
    """Leave out doubles that this Java writes with more digits than needed, as versions before 19 do."""
    assert spark._jvm is not None
    write = spark._jvm.java.lang.Double.toString
    for t, values in COLUMNS.values():
        if t in ("float", "double"):
            kept = [v for v in values if v is None or not math.isfinite(v) or Decimal(write(v)) == Decimal(repr(v))]
            assert len(kept) > len(values) / 2
            values[:] = kept


def random_value(name: str, type_: str, dice: random.Random) -> Any:
    """A value of a column: any of its type, those at its ends more often; texts in the shape of the chosen ones."""
    chosen = [v for v in COLUMNS[name][1] if v is not None]
    bits = {"tinyint": 7, "smallint": 15, "int": 31, "bigint": 63}.get(type_)
    if bits is not None:
        low, high = -(1 << bits), (1 << bits) - 1
        return max(
            low,
            min(
                high,
                dice.choice(
                    [dice.randint(low, high), dice.randint(-100, 100), dice.choice(chosen) + dice.randint(-2, 2)]
                ),
            ),
        )
    if type_ in ("float", "double"):
        value = dice.choice(
            [
                dice.uniform(-3, 3),
                dice.uniform(-1, 1) * 10 ** dice.randint(-18, 18),
                round(dice.uniform(-99, 99), 3),
                *chosen[:2],
            ]
        )
        # Of 15 digits: Java before 19 writes some of the others with a digit too many.
        value = float(f"{value:.15g}")
        return struct.unpack("f", struct.pack("f", value))[0] if type_ == "float" else value
    if type_.startswith("decimal"):
        precision, scale = map(int, re.findall(r"\d+", type_))
        return str(
            Decimal(
                dice.randint(-(10 ** dice.randint(1, precision)), 10 ** dice.randint(1, precision)) % 10**precision
            ).scaleb(-scale, Context(40))
        )
    if type_ == "date":
        return date.fromordinal(dice.randint(1, date.max.toordinal()))
    if type_ == "timestamp":
        return datetime(1, 1, 1) + timedelta(
            days=dice.randint(0, 3652058), microseconds=dice.randint(0, 86_399_999_999)
        )
    if type_ == "boolean":
        return dice.random() < 0.5
    if type_ == "binary":
        return dice.randbytes(dice.randint(0, 5))
    value = list(dice.choice(chosen) + dice.choice(["", dice.choice(chosen)]) if name == "s" else dice.choice(chosen))
    for _ in range(dice.randint(0, 2)):
        at = dice.randint(0, len(value))
        value[at : at + dice.randint(0, 1)] = dice.choice(LETTERS[name in ("g", "u", "q", "o")])
    return "".join(value)


#: What a text is changed by: for words, and for what is read as a number or a time.
LETTERS = (
    ["a", "B", " ", "é", "ß", "_", "%", "😀", "\n", ","],
    ["0", "1", "9", ".", "-", "+", ":", " ", "e", "T", "Z", "x"],
)


def test_letters_have_the_case_that_spark_gives_them_or_raise(spark: SparkSession) -> None:
    """All 1.1 million characters; only those that change are sent here."""
    points = spark.range(1, 0x110000).where("id < 55296 or id > 57343")
    known = points.selectExpr("decode(unhex(lpad(hex(id), 8, '0')), 'UTF-32') AS s")
    changed = known.selectExpr("s", "upper(s) AS u", "lower('a' || s) AS l").where("u <> s or l <> concat('a', s)")
    theirs = {r["s"]: (r["u"], r["l"]) for r in changed.collect()}
    characters = [chr(c) for c in range(1, 0x110000) if not 0xD800 <= c <= 0xDFFF]
    table = pa.table({"s": characters})
    upper, lower = ours("upper(s)", table).values, ours("lower('a' || s)", table).values
    wrong = [
        (c, mine, known)
        for c, *both in zip(characters, upper, lower, strict=True)
        for mine, known in zip(both, theirs.get(c, (c, f"a{c}")), strict=True)
        if mine not in (known, RAISES) or (mine == RAISES and c in "äöüßéñçøåłžĄЯжΩω")
    ]
    assert wrong == []
    assert upper.count(RAISES) == 156
    assert lower.count(RAISES) == 57


def test_every_name_is_one_of_sparks(spark: SparkSession) -> None:
    """Other names of a function are not computed in Spark: it must know them at least."""
    written_otherwise = {"extract", "dateadd", "date_diff", "timestampadd", "timestampdiff", "datediff", "position"}
    assert [n for n in functions() if n not in written_otherwise and not spark.catalog.functionExists(n)] == []


REFUSED_MIXTURES = [
    "ok = no < ok",
    "ok = s like 'a'",
    "s like 'a' = ok",
    "'a' || 1 + 1",
    "i | j || s",
]


@pytest.mark.parametrize("text", REFUSED_MIXTURES)
def test_what_spark_reads_in_another_order_needs_parentheses(text: str) -> None:
    with pytest.raises(UserError, match="write parentheses"):
        Expression.parse(text, SCHEMA)


@pytest.mark.parametrize(
    "text",
    [
        "hex(x)",
        "abs(w)",
        "md5(i)",
        "d + interval 1 quarter",
        "mid(s, 1)",
        "format_string('a', i)",
        "+s",
        "case when null then 1 end",
        "m * cast(1 as bigint) + 1L",
        "128Y",
        "unix_timestamp(i)",
        "unix_timestamp(x)",
        "to_unix_timestamp(m)",
        "try_to_timestamp(x)",
        "try_to_timestamp(f)",
        "date_format(ts, 'F')",
        "to_timestamp(i, 'yyyy-MM-dd')",
        "try_to_timestamp(m, 'yyyy-MM-dd')",
        "to_date(x, 'yyyy-MM-dd')",
        "shiftleft(null, 3)",
        "nullifzero(null)",
    ],
)
def test_what_spark_refuses_or_means_otherwise_is_refused(text: str) -> None:
    with pytest.raises(UserError):
        Expression.parse(text, SCHEMA)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("i = 'x'", "'x' is not of type bigint"),
        ("x > 'abc'", "'abc' is not of type double"),
        ("i between 'x' and 3", "'x' is not of type bigint"),
        ("i in (1, 'x', 7)", "'x' is not of type bigint"),
        ("d in ('2020-02-29', 'x')", "'x' is not of type date"),
        ("d in ('x', '2020-02-29')", "'x' is not of type date"),
        ("d = '2021-02-29'", "'2021-02-29' is not of type date"),
        ("coalesce(i, cast('x' as int))", "'x' is not of type int"),
        ("cast(300 as tinyint)", "has no value"),
        ("timestamp '2020-13-01'", "'2020-13-01' is not of type timestamp"),
        ("i + (2147483647 + 1)", "'2147483647 . 1' has no value"),
        ("1 / 0", "'1 / 0' has no value: division by zero"),
        ("mod(i, mod(1, 0))", r"'mod\(1, 0\)' has no value"),
        ("date_add(make_date(2021, 2, 30), i)", r"'make_date\(2021, 2, 30\)' has no value"),
        ("elt(0, 'a') = s", r"'elt\(0, 'a'\)' has no value"),
        ("split('a,b', ',')[2]", "has no value"),
        ("dateadd(YEAR, 400000, date '2020-01-01')", "has no value"),
        ("abs(-2147483648) > i", "has no value"),
    ],
)
def test_a_constant_without_a_value_is_refused_when_the_query_is_built(text: str, message: str) -> None:
    """Spark refuses it when it plans; here every event would be a dead letter, or answered by another value of IN."""
    with pytest.raises(UserError, match=message) as caught:
        Expression.parse(text, SCHEMA, where="select 'slow'")
    assert str(caught.value).startswith("select 'slow': ")
    assert "whenever it is computed" in (caught.value.hint or "")


@pytest.mark.parametrize(
    "text", ["try_cast('x' as int)", "try_divide(1, 0)", "try_to_date('x')", "try_add(2147483647, 1)"]
)
def test_an_attempt_at_a_constant_without_a_value_is_null(text: str) -> None:
    assert ours(text, rows(())).values == (None,)


@pytest.mark.parametrize(
    "text",
    [
        "try_cast(s as date)", "try_to_date(s)", "try_cast(s as timestamp)", "try_to_timestamp(s)", "try_cast(s as decimal(9,2))",
    ],
)  # fmt: skip
def test_an_attempt_fails_where_spark_has_an_answer(text: str) -> None:
    """Null would say that there is none."""
    known = {"date": ["12345-01-01", "-0044-03-15"], "decimal": ["１２"]}
    known["timestamp"] = [
        *known["date"],
        "10:20:30",
        "T1:2",
        "2024-01-01 10:00:00 Europe/Berlin",
        "2024-01-01 1:2:3.4 CET",
    ]
    values = next(v for k, v in known.items() if k in text)
    assert ours(text, pa.table({"s": values})).values == ("raises",) * len(values)
    assert ours(text, pa.table({"s": ["abc", "2024-13-01", None]})).values == (None, None, None)
    assert Expression.parse(text, SCHEMA).can_fail


def test_a_case_that_reads_a_text_as_a_number_can_fail() -> None:
    assert Expression.parse("case i when g then 1 end", SCHEMA).can_fail


def test_half_a_character_is_refused_and_both_halves_are_one() -> None:
    """As in Java, where a character beyond the first 65,536 is written as two."""
    with pytest.raises(UserError, match="half a character"):
        Expression.parse(r"s = 'a\ud83d'", SCHEMA)
    assert ours(r"'\ud83d\ude00'", rows(())).values == ("😀",)


def test_what_is_tried_is_there() -> None:
    assert set(TRIED) <= {f.name for f in (*OPERATORS, *functions().values())}


def test_the_page_is_up_to_date() -> None:
    """Write it anew with `python -c "from functions_page import page; print(page(), end='')"`."""
    written = Path(__file__).parents[2] / "docs" / "functions.md"
    assert written.read_text(encoding="utf-8") == page()


@pytest.mark.parametrize("name", sorted(INSTEAD))
def test_what_is_refused_is_refused_by_name(name: str) -> None:
    if name in functions():
        return
    with pytest.raises(UserError, match=name):
        Expression.parse(f"{name}(s)", SCHEMA)
