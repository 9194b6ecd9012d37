"""Whatever was told and taken back on the way, what holds in the end is what DuckDB says in batch, in SQL of its own.

An aggregate over a join over aggregates, which no system that only updates can chain, and one more on top.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from backend import difference, on_kernels, on_spark
from case import SCHEMA, Case, Cut
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from random_cases import cuts, feeds_named
from test_speculation import at_once, holding

import penstock as ps
from penstock.plan.weight import WEIGHT


@dataclass(frozen=True)
class Chain:
    """A query over `s` and `t`, and the same as SQL over tables of these names."""

    query: str
    sql: str


@st.composite
def sides(draw: st.DrawFn, name: str, of: str) -> Chain:
    """An aggregate by key, in windows or (without a label) over all; names are `of` a side."""
    where, kept = draw(st.sampled_from((("", ""), (".where('id % 3 <> 0')", "AND id % 3 <> 0"))))
    size, origin = draw(st.sampled_from((4, 7, 10))), draw(st.sampled_from((0, 3, -5)))
    functions = {"c": "count(*)", "m": "max(n)", "u": "count(distinct n)", "a": "sum(d)"}
    made = ", ".join(f"{f}{of}={text!r}" for f, text in functions.items())
    chosen = ", ".join(f"{text} AS {f}{of}" for f, text in functions.items())
    start = f"{origin} + CAST(floor((ts - {origin}) / {size}) AS INT) * {size}"
    return Chain(
        f"{name}{where}.window({size}, origin={origin}).group_by('k').agg({made})",
        f"SELECT {start} AS window_start, k, {chosen} FROM {name} WHERE ts IS NOT NULL {kept} GROUP BY ALL",
    )


_OUTER = (
    (".group_by('k').agg(n='count(*)', m='max(mx)', u='count(distinct cy)', s='sum(cx)')", "k"),
    (".group_by('window_start').agg(n='count(*)', m='max(mx)', u='count(distinct cy)', s='sum(cx)')", "window_start"),
    (".group_by('cx').agg(n='count(*)', m='max(mx)', u='count(distinct cy)', s='sum(cy)')", "cx"),
    (".agg(n='count(*)', m='max(mx)', u='count(distinct cy)', s='sum(cx)')", ""),
)


@st.composite
def chains(draw: st.DrawFn) -> Chain:
    x, y = draw(sides("s", "x")), draw(sides("t", "y"))
    how = draw(st.sampled_from(("inner", "left", "right", "full")))
    keys = draw(st.sampled_from((("k", "window_start"), ("k",))))
    right = y.query if len(keys) > 1 else f"{y.query}.select('k', 'cy', 'my', 'uy', 'ay')"
    query = f"({x.query}).join({right}, {list(keys)!r}, {how!r})"
    chosen = "*" if len(keys) > 1 else "* EXCLUDE (window_start)"
    sql = f"SELECT * FROM ({x.sql}) x {how} JOIN (SELECT {chosen} FROM ({y.sql})) y USING ({', '.join(keys)})"
    outer, by = draw(st.sampled_from(_OUTER))
    by_and = f"{by}, " if by else ""
    added = "cy" if by == "cx" else "cx"
    meant = f"count(*) AS n, max(mx) AS m, count(DISTINCT cy) AS u, CAST(sum({added}) AS BIGINT) AS s"
    grouped = f"GROUP BY {by}" if by else "HAVING count(*) > 0"
    query, sql = f"{query}{outer}", f"SELECT {by_and}{meant} FROM ({sql}) {grouped}"
    if draw(st.booleans()):
        query = f"{query}.where('n > 0').group_by('u').agg(groups='count(*)', most='max(s)')"
        sql = f"SELECT u, count(*) AS groups, max(s) AS most FROM ({sql}) WHERE n > 0 GROUP BY u"
    return Chain(query, sql)


@st.composite
def cases(draw: st.DrawFn) -> tuple[Case, Chain]:
    chain = draw(chains())
    return Case(chain.query, tuple(draw(feeds_named(name, 1, False, 12, True)) for name in ("s", "t"))), chain


def truth(case: Case, chain: Chain, letters: Sequence[tuple[str, str, Any]]) -> list[dict[str, Any]]:
    """What SQL says of the events that were let in."""
    dead = {(stream, event) for stream, _, event in letters}
    schema = ps.stream("any", SCHEMA).schema.arrow
    with duckdb.connect(config={"threads": 1}) as db:
        for feed in case.feeds:
            rows = [r for r in feed.rows() if (feed.name, r["id"]) not in dead]
            db.register(feed.name, pa.Table.from_pylist(rows, schema=schema))
        found: list[dict[str, Any]] = db.sql(chain.sql).to_arrow_table().to_pylist()
    return found


def check(given_: tuple[Case, Chain], cut: Cut, dial: ps.Consistency, run: Any = on_kernels) -> None:
    case, chain = given_
    found = run(case, cut, change=lambda s: at_once(s, dial))
    told = holding(found.rows) if dial.speculates else found.rows
    only_batch, only_told = difference(truth(case, chain, found.letters), told)
    assert not only_batch and not only_told, f"only in batch {only_batch}, only told {only_told}"
    assert found.state == 0
    assert not dial.speculates or all(WEIGHT in row for row in found.rows)


@given(cases(), cuts())
@settings(max_examples=40)
def test_told_at_once(given_: tuple[Case, Chain], cut: Cut) -> None:
    check(given_, cut, ps.Consistency.middle())


@given(cases(), cuts(), st.sampled_from(((0, 4), (2, 4), (4, 4), (3, 30), (30, 30))))
@settings(max_examples=25)
def test_anywhere_on_the_dial(given_: tuple[Case, Chain], cut: Cut, dial: tuple[int, int]) -> None:
    """What is later than is remembered is a dead letter, and DuckDB is not told of it either."""
    case, chain = given_
    plain = tuple(replace(f, promises=".ends()") for f in case.feeds)
    plain = tuple(replace(f, items=tuple(i for i in f.items if not isinstance(i[1], str))) for f in plain)
    block, remember = dial
    check((Case(case.query, plain), chain), cut, ps.Consistency.at(block=block, remember=remember))


@pytest.mark.spark
def test_on_spark(spark: Any) -> None:
    @given(cases(), cuts(max_rows=(5, 8, None)))
    @settings(max_examples=3, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
    def run(given_: tuple[Case, Chain], cut: Cut) -> None:
        check(given_, cut, ps.Consistency.middle(), lambda *a, **k: on_spark(*a, spark, **k))

    run()
