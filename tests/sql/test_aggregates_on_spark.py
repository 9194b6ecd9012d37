"""Every aggregate against Spark itself: type, value, and where either raises."""

# ruff: noqa: E501 - a row of a table reads best as one line.
from __future__ import annotations

import math
import os
import random
import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from spark_oracle import frame_of, interpreted

from penstock.errors import UserError
from penstock.operators.aggregate.kernel import AggregateKernel
from penstock.pattern.schema import Schema
from penstock.pattern.types import canonical_type
from penstock.sql.aggregation import Aggregation

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EVENTS = Schema.parse(
    "ts timestamp, k string, t tinyint, i int, l bigint, x double, y double, f float, m decimal(10,2), w decimal(38,10),"
    " s string, d date, ok boolean",
    time="ts",
)
START = datetime(2020, 2, 28, 23, 59, 59, 999999)
INF, NAN = math.inf, math.nan
#: Groups by name: what their columns hold, beside nulls.
GROUPS: dict[str, dict[str, list[Any]]] = {
    "plain": {
        "t": [1, -2, 3, 100], "i": [1, 2, 3, -4], "l": [10, 20, 30, 7], "x": [0.5, 1.25, -2.0, 8.0],
        "y": [1.0, 2.5, -1.0, 4.0], "f": [0.5, 1.5, 2.5, -1.0],
        "m": [Decimal("1.25"), Decimal("-0.05"), Decimal("0.01"), Decimal("7.00")],
        "w": [Decimal("1.5"), Decimal("2.0000000001"), Decimal("-3"), Decimal(0)],
        "s": ["b", "a", "", "é"], "d": [START.date(), (START + timedelta(days=9)).date()], "ok": [True, False, True],
    },
    "nulls": {},
    "odd": {"x": [1.0, NAN, 2.0], "y": [1.0, 2.0, INF], "f": [INF, 1.0], "i": [2147483647, -2147483648], "ok": [False]},
    "infinite": {"x": [INF, -INF], "y": [INF, 1.0], "f": [NAN], "ok": [True]},
    "one": {"x": [2.5], "y": [-1.0], "i": [7], "l": [-1], "m": [Decimal("0.05")], "t": [5], "f": [0.25], "s": ["z"]},
    "same": {"x": [3.0] * 3, "y": [2.0, 2.0, 2.0], "i": [5, 5, 5], "m": [Decimal("1.00")] * 3, "ok": [True, True]},
    "large": {"l": [9223372036854775807, 1], "m": [Decimal("99999999.99")] * 3, "x": [1e300, 1e300], "i": [2147483647] * 3},
    "far": {"x": [1e300, 1.0, 2.0], "y": [1.0, 2.0, 4.0], "i": [5, 5, 5]},
    "beyond": {"x": [1.7e308, -1.7e308, 1.0], "y": [1.0, 2.0, 4.0]},
    "unpaired": {"x": [1.0, None, 2.0, NAN], "y": [2.0, INF, 5.0, None], "i": [1, 3, 4, None], "m": [None, Decimal("1.00"), Decimal("0.01")]},
    "constant": {"x": [0.5, 0.5, 0.5], "y": [2.0, INF, 1.0]},
    "unbounded": {"x": [1.0, INF, 3.0], "y": [1.0, 2.0, 5.0], "i": [1, 2, 3]},
    "product": {"x": [0.0, 1e100], "y": [0.0, 1e100], "i": [1, 2]},
    "tiny": {"x": [0.0, 1e-100], "y": [0.0, 1e-100], "i": [1, 2]},
    "cancelling": {"m": [Decimal("1.00"), Decimal("1.00"), Decimal("99999999.99")], "i": [2147483647, -2147483648, 5]},
    "tied": {"x": [1.0, 2.0, None, 4.0], "y": [INF, -1.0, -1.0, INF], "i": [1, 2, 2, 1], "l": [3, 3, 4, 4], "s": ["b", None, "a", "c"]},
    "wide": {"w": [Decimal("9999999999999999999999999999.9999999999"), Decimal(1)], "x": [0.1] * 10, "y": [1.0, 2.0, 4.0]},
}  # fmt: skip
ONE = ("t", "i", "l", "x", "f", "m", "w")
AGGREGATES = (
    "count(*)", "count(i)", "count(i, x)", "count_if(i > 2)", "count(distinct i)", "count(distinct x)",
    "count(distinct m)", "count(distinct s)", "count(distinct i, s)", "sum(i) filter (where x > 0)",
    *(f"{a}({c})" for a in ("sum", "avg", "mean") for c in ONE),
    *(f"{a}({c})" for a in ("min", "max") for c in (*ONE, "s", "d", "ts", "ok")),
    *(f"{a}({c})" for a in ("var_pop", "var_samp", "variance", "stddev_pop", "stddev_samp", "stddev", "std") for c in ("i", "x", "m")),
    *(f"{a}({b})" for a in ("covar_pop", "covar_samp", "corr") for b in ("x, y", "i, x", "m, i")),
    *(f"{a}(ok)" for a in ("bool_and", "every", "bool_or", "some", "any")),
    *(f"{a}({c})" for a in ("bit_and", "bit_or", "bit_xor") for c in ("t", "i", "l")),
    "min_by(s, i)", "max_by(s, i)", "min_by(x, y)", "max_by(i, l)", "sum(i) / count(*)", "avg(m) + 1", "sum(m) / count(m)",
)  # fmt: skip
#: Where ours is exact and Spark's depends on the order and on rounding in between.
ROUNDED = ("sum(x)", "sum(f)", "avg(", "mean(", "var", "std", "cov", "corr")
RAISES = "raises"


def events(groups: dict[str, dict[str, list[Any]]]) -> pa.Table:
    rows = []
    for key, columns in groups.items():
        for n in range(1 + max((len(v) for v in columns.values()), default=1)):
            values = {c: v[n] if n < len(v) else None for c, v in columns.items()}
            rows.append({"k": key, "ts": START + timedelta(seconds=len(rows)), **values})
    return pa.Table.from_pylist(rows, schema=EVENTS.arrow)


def ours(text: str, table: pa.Table) -> tuple[pa.DataType | None, dict[str, Any]]:
    """The answer of each group, put together from two parts; where one raises, each group by itself."""
    try:
        parsed = Aggregation.parse("a", text, EVENTS, "ts", keys=("k",))
    except UserError as error:
        return None, {"": str(error)}
    kernel = AggregateKernel(EVENTS, ("k",), [parsed])

    def answers(rows: pa.Table) -> dict[str, Any]:
        odd = pa.array([n % 2 == 1 for n in range(rows.num_rows)])
        parts = [kernel.partial(rows.filter(odd)), kernel.partial(rows.filter(pc.invert(odd)))]
        found = kernel.finalize(kernel.merge(parts))
        return dict(zip(found["k"].to_pylist(), found["a"].to_pylist(), strict=True))

    try:
        return parsed.type, answers(table)
    except Exception:
        found = {}
        for key in dict.fromkeys(table["k"].to_pylist()):
            try:
                found |= answers(table.filter(pc.equal(table["k"], key)))
            except Exception:
                found[key] = RAISES
        return parsed.type, found


def theirs(spark: SparkSession, table: pa.Table, texts: Sequence[str]) -> list[tuple[pa.DataType, dict[str, Any]]]:
    """Spark's answers, in one query for all groups; in halves where something raises."""
    from pyspark.sql.functions import expr

    frame = frame_of(spark, table)
    types: list[Any] = [None] * len(texts)
    found: list[dict[str, Any]] = [{} for _ in texts]

    def ask(keys: Sequence[str], wanted: Sequence[int]) -> None:
        chosen = frame.where(frame.k.isin(*keys)).groupBy("k")
        try:
            answer = chosen.agg(*(expr(texts[n]).alias(f"a{n}") for n in wanted)).toArrow()
        except Exception:
            for part in (keys[: len(keys) // 2], keys[len(keys) // 2 :]) if len(keys) > 1 else ():
                ask(part, wanted)
            if len(keys) == len(wanted) == 1:
                found[wanted[0]][keys[0]] = RAISES
            elif len(keys) == 1:
                ask(keys, wanted[: len(wanted) // 2])
                ask(keys, wanted[len(wanted) // 2 :])
            return
        for n in wanted:
            column = answer[f"a{n}"]
            types[n] = canonical_type(column.type)
            for key, value in zip(answer["k"].to_pylist(), column.to_pylist(), strict=True):
                found[n][key] = value.replace(tzinfo=None) if isinstance(value, datetime) else value

    with interpreted(spark):
        ask(list(dict.fromkeys(table["k"].to_pylist())), range(len(texts)))
    return list(zip(types, found, strict=True))


def same(text: str, a: Any, b: Any, scale: float) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        if math.isnan(a) or math.isnan(b):
            return math.isnan(a) and math.isnan(b)
        return a == b or (text.startswith(ROUNDED) and math.isclose(a, b, rel_tol=1e-12, abs_tol=1e-12 * scale))
    return type(a) is type(b) and bool(a == b)


def digits(text: str, rows: pa.Table) -> float:
    """What a rounded answer is small beside: large numbers in a sum, or in a covariance, may cancel each other."""
    if not (found := re.fullmatch(r"(?:sum|avg|mean|covar_\w+)\((\w)(?:, (\w))?\)", text)):
        return 1.0
    sides = ([abs(float(v)) for v in rows[c].to_pylist() if v is not None] for c in found.groups() if c)
    return max(1.0, math.prod(max(filter(math.isfinite, side), default=0.0) for side in sides))


def tied(text: str, rows: pa.Table) -> list[Any]:
    """Of min_by and max_by, all answers that Spark may give: events with the same y have no order."""
    if not (found := re.fullmatch(r"(min|max)_by\((\w), (\w)\)", text)):
        return []
    pairs = [(x, y) for x, y in zip(rows[found[2]].to_pylist(), rows[found[3]].to_pylist()) if y is not None]
    best = (min if found[1] == "min" else max)((y for _, y in pairs), default=None)
    return [x for x, y in pairs if y == best]


def may_raise() -> frozenset[str]:
    """The functions whose line in the documentation says that they raise where Spark answers."""
    page = (Path(__file__).parents[2] / "docs" / "aggregates.md").read_text(encoding="utf-8")
    lines = re.findall(r"^\| (`.*?) \|.*\braises\b.*\|$", page, re.MULTILINE)
    return frozenset(name for line in lines for name in re.findall(r"`(\w+)", line))


def differences(spark: SparkSession, table: pa.Table, texts: Sequence[str]) -> list[str]:
    found = []
    raising = may_raise()
    for text, (type_, answers) in zip(texts, theirs(spark, table, texts), strict=True):
        mine_type, mine = ours(text, table)
        if mine_type != type_:
            found.append(f"{text}: type {mine_type} {mine.get('', '')}, Spark {type_}")
            continue
        for key, b in answers.items():
            a, rows = mine[key], table.filter(pc.equal(table["k"], key))
            if same(text, a, b, digits(text, rows)) or (a == RAISES and text.split("(")[0] in raising):
                continue
            choice = tied(text, rows)
            if len(choice) < 2 or not all(any(same(text, x, c, 0) for c in choice) for x in (a, b)):
                found.append(f"{text} of {key}: {a!r}, Spark {b!r}")
    return found


def test_spark_gives_the_same(spark: SparkSession) -> None:
    assert differences(spark, events(GROUPS), AGGREGATES) == []


@pytest.mark.fuzz
def test_spark_gives_the_same_for_random_groups(spark: SparkSession, tried: Any) -> None:
    dice = random.Random(int(os.environ.get("PENSTOCK_SEED", "20")))
    # Without the widest numbers: whether a sum raises on its way depends on the order, here and there.
    pool = {
        c: [v for g in GROUPS.values() for v in g.get(c, [])] for c in EVENTS.names if c not in ("ts", "k", "l", "w")
    }
    groups = {
        f"g{n}": {c: [dice.choice([*values, None]) for _ in range(dice.randint(0, 6))] for c, values in pool.items()}
        for n in range(40)
    }
    assert differences(spark, events(groups), AGGREGATES) == []
    tried(f"{len(AGGREGATES)} aggregates of {len(groups)} groups")
