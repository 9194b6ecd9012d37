"""Queries of all kinds over small streams, and patterns that match some of their results.

All follows from a seed: chosen at random, and not searched for, since most patterns match nothing or everything, and
the interesting ones are those between.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from random import Random
from typing import Any

import pyarrow as pa
from case import FUNCTIONS, Feed

import penstock as ps
from penstock.pattern.pattern import Pattern
from penstock.pattern.restriction import Range, Restriction, at_least, at_most, between, equal, greater, less, one_of
from penstock.pattern.schema import Schema

Row = Mapping[str, Any]

SCHEMA = "ts int, k string, n bigint, v double, id int"
TABLES = {"rates": [{"k": "a", "rate": 1}, {"k": "a", "rate": 3}]}
RATES = ps.table("rates", "k string, rate int", key="k").read_parquet("rates")
PROMISES = ".bounds('n', 0).ends()", ".bounds('n', 0).disorder(2).ends()", ".bounds('n', 0).disorder(3).ends()"


def feed(r: Random, name: str, most: int) -> Feed:
    """A stream with times more or less in order, and few different values."""
    items = []
    for i in range(r.randint(most // 2, most)):
        row = {"ts": i + r.choice((0, 0, -1, 1, 2)), "k": r.choice("aab"), "n": r.choice((0, 1, 2))}
        row["v"] = r.choice((0.5, 1.5, -1.0, math.nan))
        present = {name: value for name, value in row.items() if r.random() > 0.06}
        items.append(("", {**present, "id": i}))
    return Feed(name, tuple(items), r.choice(PROMISES), schema=SCHEMA)


@cache
def stream_of(text: str, *promises: str) -> ps.Stream:
    """A query over `s` and `t`, which promise this. Kept: reading a query takes longer than a run."""
    sources = {name: Feed(name, (), promised, schema=SCHEMA).declared for name, promised in zip("st", promises)}
    stream: ps.Stream = eval(text, {**FUNCTIONS, "rates": RATES, **sources})
    return stream


# --- queries ---------------------------------------------------------------------------------------------------------

#: Two at a time. Only some go one way as events come in, and to a NaN even the maximum may go.
AGGREGATES = (
    ("count(*)", "max(n)"),
    ("min(v)", "max(v)"),
    ("sum(n)", "count(distinct n)"),
    ("avg(n)", "bool_and(n > 0)"),
    ("min(n)", "max(n) - min(n)"),
)
LIMITS = ("", ", within=1", ", within=(0, 3)", ", between=(2, 3)", ", between=(1, None)", ", between=(None, -1)")
LABELS = ".select('window_start', 'k')"
HOW = ("inner", "left", "right", "full", "semi", "anti")
KEYS = ("'k'", "'k'", "'k'", "['k', 'n']", "{'n': 'id'}", "{'n': 'n', 'id': 'n'}", "'ts'")


def one_of_these(*texts: str) -> Callable[[Random], str]:
    return lambda r: r.choice(texts)


def window(r: Random) -> str:
    return f".window({r.randint(1, 5)}, slide={r.randint(1, 5)}, origin={r.randint(-2, 2)})"


def top(r: Random) -> str:
    per = r.choice((", per=['k']", ", per=['k', 'n']", ""))
    return r.choice((f"s.top(2, by='n desc'{per})", f"s.window(4, slide=2).top(1, by='v'{per})"))


def by_time(r: Random, below: str = "s") -> str:
    shapes = "", ".window(4)", ".window(4, slide=2)", ".window(5, slide=2, origin=1)", ".window(2, slide=3)"
    return _aggregate(r, below, r.choice(shapes))


def by_rows(r: Random, below: str = "s") -> str:
    return _aggregate(r, below, r.choice((".window(rows=2)", ".window(rows=3, slide_rows=2)")))


def by_landmark(r: Random, below: str = "s") -> str:
    return _aggregate(r, below, ".window(landmark=3)")


def by_session(r: Random, below: str = "s") -> str:
    return _aggregate(r, below, f".window(session={r.randint(1, 4)})")


def _aggregate(r: Random, below: str, window: str) -> str:
    by = r.choice((".group_by('k')", ".group_by('k', 'n')", ".group_by('n')", ""))
    x, y = r.choice(AGGREGATES)
    return f"{below}{window}{by}.agg(x={x!r}, y={y!r})"


def of_values(*aggregates: str) -> Callable[[Random], str]:
    def make(r: Random) -> str:
        return f"s{r.choice(('', '.window(4)'))}.group_by('k').agg(x={r.choice(aggregates)!r})"

    return make


def few(form: str) -> Callable[[Random], str]:
    return lambda r: form.format(few=r.choice((".select('k', 'n')", ".select('k')", ".select('n', 'k', 'id')")))


def join(how: str, left: str = "s") -> Callable[[Random], str]:
    def make(r: Random) -> str:
        on = r.choice(KEYS)
        limit = "" if on == "'ts'" else r.choice(LIMITS)
        where = r.choice(("", "", "", ", where='n <= n_right or v > 0'"))
        return f"{left}.join(t, {on}, {how!r}{limit}{where})"

    return make


def row_join(how: str) -> Callable[[Random], str]:
    def make(r: Random) -> str:
        on, rows = r.choice(("'k'", "'k'", "['k', 'n']")), r.choice(("1", "(2, 1)", "(1, None)"))
        return f"s.join(t, {on}, {how!r}, rows={rows})"

    return make


def multijoin(r: Random) -> str:
    on = r.choice(("'k'", "['k', 'n']", "[('n', 'n', 'id')]"))
    limit = r.choice(("", ", within=2", ", windows=[1, 3, None]", ", windows=[None, None, 2]"))
    return f"ps.join(s, t, s.order_by('ts'), on={on}{limit}, strategy='mjoin')"


def plan(r: Random) -> str:
    """Several operators on top of each other."""
    below = r.choice(("s", "s.union(t)", "s.distinct()", "s.order_by('id')", "s.map(twice, keeps=['k'])"))
    if r.random() < 0.4:
        return r.choice((by_time, by_time, by_rows, by_landmark, by_session))(r, below)
    text = join(r.choice(HOW), below)(r) if "t)" not in below else f"{below}{window(r)}"
    behind = ".order_by('id')", ".distinct()", ".group_by('k').agg(x='count(*)', y='max(n)')", ".select('k', m='n')"
    return f"{text}{r.choice(behind)}"


#: Aggregates that are told about their values.
BY_VALUE = ("count", "max", "min", "avg")
#: Every operator, so that each gets its share.
QUERIES: dict[str, Callable[[Random], str]] = {
    "where": one_of_these("s.where('n > 0')", "s.where('v is null or n < 2')"),
    "select": one_of_these("s.select('id', 'k', when='ts', again='ts', m='n + 1')", "s.rename(k='key', ts='when')"),
    "with_columns": one_of_these("s.with_columns(n='-n')", "s.with_columns(m='n + id', k='upper(k)')"),
    "map": one_of_these("s.map(twice, keeps=['ts', 'k'])", "s.map(odd_only, keeps=['k', 'id'])"),
    "impute": one_of_these("s.impute(twice, keeps=['ts', 'k'])", "s.impute(odd_only, keeps=['ts', 'n'])"),
    "union": one_of_these("s.union(t)", "s.union(t.select('id', 'v', 'n', 'k', 'ts'))"),
    "lookup": one_of_these("s.lookup(rates, 'k')", "s.lookup(rates, 'k', columns=['k', 'rate'])"),
    "left lookup": one_of_these("s.lookup(rates, 'k', 'left')", "s.lookup(rates, 'k', 'left', columns=['k', 'rate'])"),
    "tumbling windows": lambda r: f"s.window({r.randint(1, 4)}, origin={r.randint(-2, 2)})",
    "sliding windows": lambda r: f"s{window(r)}",
    "windows below others": lambda r: f"s{window(r)}" + r.choice((LABELS, ".where('n > 1').select('id')")),
    "aggregate by time": by_time,
    "aggregate by rows": by_rows,
    "aggregate from landmarks": by_landmark,
    "aggregate of sessions": by_session,
    "count": of_values("count(*)", "count(v)", "count(distinct n)"),
    "max": of_values("max(n)", "max(v)", "sum(n)"),
    "min": of_values("min(n)", "min(v)"),
    "avg": of_values("avg(n)", "max(n) - min(n)"),
    **{f"{how} join": join(how) for how in HOW},
    **{f"{how} join by rows": row_join(how) for how in HOW},
    "multijoin": multijoin,
    "distinct": few("s{few}.distinct()"),
    "intersect": few("s{few}.intersect(t{few})"),
    "difference": few("s{few}.difference(t{few})"),
    "order_by": one_of_these("s.order_by('ts', 'n desc')", "s.order_by('v')", "s.order_by('v desc')"),
    "order_by with slack": one_of_these("s.order_by('ts', slack=2)", "s.union(t).order_by('ts', slack=3)"),
    "top": top,
    "limit": one_of_these("s.limit(3)", "s.union(t).limit(5)"),
    "pace": one_of_these("s.pace(t, on='ts', bound=2)"),
}


# --- patterns --------------------------------------------------------------------------------------------------------

#: What operators decide by. A pattern often speaks of one of these lists, as far as it is there.
TELLING = (
    ("window_start", "window_end"),
    ("window_start", "window_end", "k", "when", "again"),
    ("k", "n"),
    ("ts", "ts_right", "ts_2", "ts_3"),
    ("ts", "ts_right", "k", "k_rates"),
    ("x",),
)


def pattern(
    r: Random, schema: Schema, rows: Sequence[Row], telling: Callable[[Pattern], bool] = lambda _: True
) -> Pattern:
    """One that matches some of the rows and not all, and is `telling`, if one is found soon; sometimes any."""
    best = found = _pattern(r, schema, rows)
    for _ in range(r.choice((0, 12, 12, 12))):
        if 0 < sum(map(found.matches_row, rows)) < len(rows):
            best = found
            if telling(found):
                break
        found = _pattern(r, schema, rows)
    return best


def _pattern(r: Random, schema: Schema, rows: Sequence[Row]) -> Pattern:
    lists = [tuple(n for n in names if n in schema) for names in (*TELLING, schema.names, schema.names)]
    names = r.choice([listed for listed in lists if listed])
    chosen = r.sample(names, min(len(names), r.choice((1, 1, 1, 2, 2, 3, 0))))
    return Pattern.by_name(schema, {n: _restriction(r, schema.type_of(n), [row[n] for row in rows]) for n in chosen})


def _restriction(r: Random, t: pa.DataType, known: Sequence[Any]) -> Restriction:
    values = [v for v in known if v is not None and v == v] or spare(t)
    one, other = r.choice(values), r.choice(values)
    made: list[Restriction] = [make(one) for make in (equal, less, at_most, greater, at_least)]
    made += [one_of([one, other]), between(min(one, other), max(one, other), r.random() < 0.5, r.random() < 0.5)]
    return Range(None, None) if r.random() < 0.08 else r.choice(made)


def spare(t: pa.DataType) -> list[Any]:
    """Values for an attribute that has none."""
    numbers: list[Any] = [0.5, 1.5] if pa.types.is_floating(t) else [0, 1, 2, 3, 5]
    return {pa.string(): ["a", "b"], pa.bool_(): [False, True]}.get(t, numbers)


def counting(r: Random) -> str:
    """Groups of several events."""
    (x, y), by = r.choice(AGGREGATES), ".group_by('k')"
    return f"s{r.choice(('', '.window(6, slide=3)'))}{r.choice(('', by))}.agg(x={x!r}, y={y!r})"


def bounds(r: Random, schema: Schema) -> Pattern:
    """Bounds on aggregated values, and perhaps on a key."""
    names = [n for n in r.choice((("x",), ("y",), ("x", "y"), ("x", "k"))) if n in schema]
    made = {n: r.choice((less, at_most, greater, at_least))(r.choice(spare(schema.type_of(n)))) for n in names}
    return Pattern.by_name(schema, made)
