"""Outer joins of rows that hold for a time: at every moment they are what SQL makes of the rows that hold then."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import pytest
from backend import Outcome, on_kernels
from case import Case, Cut, Feed
from hypothesis import given, settings
from hypothesis import strategies as st
from lifetime_cases import MOMENTS, lasting, schema
from random_cases import cuts
from test_lifetimes import at_once, check, number

from penstock.operators.lifetime_join.reference import JoinedRows
from penstock.pattern.schema import SYNC
from penstock.plan.weight import WEIGHT
from penstock.reference.interpret import interpret
from penstock.reference.item import events

Row = Mapping[str, Any]

LEFT, RIGHT = "s.changes('op', new_end='n')", "t.changes('op', new_end='n').rename(k='key', id='other')"
HOWS = ("left", "right", "full", "semi", "anti")
#: After this nothing begins and nothing ends.
LAST = 60


@st.composite
def outer_joins(draw: st.DrawFn, how: str, most: int = 8) -> Case:
    kind = draw(st.sampled_from(sorted(MOMENTS)))
    where = draw(st.sampled_from(("", ", where='v < v_right + 1'")))
    text = f"{LEFT}.join({RIGHT}, {{'k': 'key'}}, '{how}'{where})"
    return Case(text, tuple(draw(lasting(n, kind, most, ("x", "x", "x", "y", None))) for n in ("s", "t")))


def rows_of(case: Case, text: str) -> list[Row]:
    """The rows of an input that hold in the end."""
    alone = Case(text, tuple(f for f in case.feeds if f.name == text[0]))
    plan = at_once(alone.stream()).plan
    found = JoinedRows("a", "b")
    for row in events(interpret(plan, {f.name: f.arrivals() for f in alone.feeds}, traced=False).outputs):
        found.take({n: v for n, v in row.items() if n not in (SYNC, WEIGHT)}, row[WEIGHT], row[SYNC])
    return list(found.holding())


def said(row: Row) -> str:
    return repr(sorted((n, v) for n, v in row.items() if n not in ("a", "b", SYNC, WEIGHT)))


def at(rows: Iterable[Row], moment: int) -> list[Row]:
    return [r for r in rows if number(r["a"]) <= moment and (r["b"] is None or moment < number(r["b"]))]


def by_sql(left: list[Row], right: list[Row], how: str, residual: bool) -> Counter[str]:
    """The join of rows that hold at one moment, nested loops."""
    found: Counter[str] = Counter()
    alone = {"id": None, "v": None}, {"other": None, "v_right": None}
    met: set[int] = set()
    for one in left:
        partners = [r for r in right if one["k"] == r["key"] is not None and (not residual or one["v"] < r["v"] + 1)]
        met |= {id(r) for r in partners}
        mine = {n: one[n] for n in ("k", "id", "v")}
        if how in ("semi", "anti"):
            found[said(mine)] += bool(partners) == (how == "semi")
            continue
        found.update(said({**mine, "other": r["other"], "v_right": r["v"]}) for r in partners)
        if not partners and how in ("left", "full"):
            found[said({**mine, **alone[1]})] += 1
    if how in ("right", "full"):
        unmet = [r for r in right if id(r) not in met]
        found.update(said({"k": r["key"], **alone[0], "other": r["other"], "v_right": r["v"]}) for r in unmet)
    return +found


def told_at(rows: Iterable[Row], moment: int) -> Counter[str]:
    found: Counter[str] = Counter()
    for row in at(rows, moment):
        found[said(row)] += row[WEIGHT]
    assert all(n >= 0 for n in found.values())
    return +found


def holds_to(case: Case, outcome: Outcome, how: str) -> None:
    left, right = rows_of(case, LEFT), rows_of(case, RIGHT)
    for moment in range(-1, LAST):
        expected = by_sql(at(left, moment), at(right, moment), how, "where" in case.query)
        assert told_at(outcome.rows, moment) == expected, moment


@pytest.mark.parametrize("how", HOWS)
def test_at_every_moment_it_is_the_join_of_what_holds(how: str) -> None:
    @given(outer_joins(how), cuts())
    @settings(max_examples=3)
    def run(case: Case, cut: Cut) -> None:
        outcome = on_kernels(case, cut, change=at_once)
        holds_to(case, outcome, how)
        check(case, outcome)

    run()


#: Orders and the prices that held in the meantime: none at first, two at once, and none again; one order thrice.
SOME = tuple(
    Feed(
        name,
        tuple(("", {"id": v, "k": "x", "v": v, "a": a, "op": "c", "b": b}) for v, a, b in rows),
        ".disorder(2).ends()",
        schema=schema("int"),
        lifetime=("a", "b"),
    )
    for name, rows in (
        ("s", ((1, 1, 9), (1, 1, 9), (1, 1, 6), (2, 3, None), (0, 12, 14))),
        ("t", ((1, 4, 7), (1, 6, 8), (1, 13, 20))),
    )
)
BY_ONE = Cut(file_rows=1, group_rows=1, max_rows=1, buckets=1, parallelism=1, overlap=False, restart=False)


@pytest.mark.parametrize("how", HOWS)
def test_what_is_final_stays_cut_while_partners_come_and_go(how: str) -> None:
    case = Case(f"{LEFT}.join({RIGHT}, {{'k': 'key'}}, '{how}')", SOME)
    outcome = on_kernels(case, BY_ONE, change=at_once)
    holds_to(case, outcome, how)
    check(case, outcome)
