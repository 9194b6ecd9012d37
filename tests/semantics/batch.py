"""The batch answer: what DuckDB says to the whole query over all events that were let in, written out as plain SQL.

Windows are joins with the list of all windows, aggregates are SQL written here by hand: nothing of ours is used but
the list of operators.
"""

from __future__ import annotations

from typing import Any

import duckdb
import pyarrow as pa
from case import Case

from penstock.operators.aggregate.operator import Aggregate
from penstock.operators.distinct.operator import Distinct
from penstock.operators.join.operator import Join
from penstock.operators.map.operator import Map
from penstock.operators.multijoin.operator import MultiJoin
from penstock.operators.project.operator import Project
from penstock.operators.rows_join.operator import RowsJoin
from penstock.operators.select.operator import Select
from penstock.operators.sink.operator import Sink
from penstock.operators.source.operator import Source
from penstock.operators.top.operator import Top
from penstock.operators.union.operator import Union
from penstock.operators.window.operator import Bucket
from penstock.plan.plan import Node, Plan
from penstock.plan.window import CountWindow, LandmarkWindow, SessionWindow, TimeWindow

_HAS = "FILTER (WHERE v IS NOT NULL)"
#: Name → what a query says, and what it means in DuckDB.
AGGREGATES = {
    "n0": ("count(*)", "count(*)"),
    "n1": ("count(v)", "count(v)"),
    "s0": ("sum(v)", "fsum(v)"),
    "s1": ("sum(n)", "CAST(sum(n) AS BIGINT)"),
    "s2": ("sum(d)", "CAST(sum(d) AS DECIMAL(38, 2))"),
    "m0": ("avg(d)", "CAST(sum(d) AS DOUBLE) / count(d)"),
    "lo": ("min(k)", "min(k)"),
    "hi": ("max(d)", "max(d)"),
    "distinct0": ("count(distinct k)", "count(DISTINCT k)"),
    "distinct1": ("count(distinct k, n)", "count(DISTINCT CASE WHEN k IS NOT NULL AND n IS NOT NULL THEN (k, n) END)"),
    "first0": ("first(v)", f"(list(v ORDER BY ts, v) {_HAS})[1]"),
    "last0": ("last(v)", f"(list(v ORDER BY ts DESC, v DESC) {_HAS})[1]"),
    "by0": ("max_by(k, id)", "(list(k ORDER BY id DESC, k DESC NULLS FIRST))[1]"),
    "some": ("any_value(n)", "min(n)"),
    "if0": ("count_if(v > 0)", "count(*) FILTER (WHERE v > 0)"),
    "and0": ("bool_and(n > 0)", "bool_and(n > 0)"),
    "filtered": ("sum(n) filter (where v > 0)", "CAST(sum(n) FILTER (WHERE v > 0) AS BIGINT)"),
    "ratio": ("sum(n) / count(*)", "CAST(sum(n) AS DOUBLE) / count(*)"),
    "var0": ("var_samp(id)", "var_samp(id)"),
    "dev0": ("stddev_pop(id)", "stddev_pop(id)"),
}
_MEANING = {**dict(AGGREGATES.values()), "max(x)": "max(x)", "sum(c)": "CAST(sum(c) AS BIGINT)"}


def batch(case: Case, dead: set[tuple[str, Any]]) -> list[dict[str, Any]]:
    """The answer over the events that are not dead, given as pairs of stream and id."""
    stream = case.stream()
    plan = Plan.of(Sink((stream.operator,), stream.schema))
    db = duckdb.connect(config={"threads": 1})
    rows = {f.name: [r for r in f.rows() if (f.name, r["id"]) not in dead] for f in case.feeds}
    for number, node in enumerate(plan):
        table = _answer(node, {n.id: f"node{i}" for i, n in enumerate(plan)}, db, rows)
        db.register(f"node{number}", table)
    answer: list[dict[str, Any]] = table.select(list(stream.schema.names)).cast(stream.schema.arrow).to_pylist()
    return answer


def _answer(node: Node, names: dict[str, str], db: Any, rows: dict[str, list[dict[str, Any]]]) -> pa.Table:
    operator = node.operator
    below = [names[i] for i in node.inputs]
    match operator:
        case Source():
            return pa.Table.from_pylist(rows[operator.name], schema=operator.schema.arrow)
        case Select():
            return db.sql(f"SELECT * FROM {below[0]} WHERE {operator.predicate.sql}").to_arrow_table()
        case Project():
            columns = ", ".join(f'{e.sql} AS "{n}"' for n, e in operator.columns)
            return db.sql(f"SELECT {columns} FROM {below[0]}").to_arrow_table().cast(operator.schema.arrow)
        case Map():
            found = db.sql(f"SELECT * FROM {below[0]}").to_arrow_table().cast(operator.inputs[0].schema.arrow)
            return operator.function(found)
        case Union():
            columns = ", ".join(operator.schema.names)
            return db.sql(" UNION ALL ".join(f"SELECT {columns} FROM {b}" for b in below)).to_arrow_table()
        case Bucket():
            return _windows(operator, below[0], db)
        case Aggregate():
            keys, table = operator.keys, below[0]
            if isinstance(operator.window, SessionWindow):
                keys = (operator.window.start, *keys)
                table = _sessions(operator, below[0])
            by = ", ".join(keys)
            named = [f"{_MEANING[a.text]} AS {a.name}" for a in operator.aggregations]
            group = f"GROUP BY {by}" if by else "HAVING count(*) > 0"
            if isinstance(operator.window, LandmarkWindow):  # Those of periods that have brought the group an event.
                group += f" HAVING max({operator.window.on}) >= {operator.window.label} - {operator.window.every}"
            return db.sql(f"SELECT {', '.join([*keys, *named])} FROM {table} {group}").to_arrow_table()
        case Top():
            return _best(operator, below[0], db)
        case Distinct():
            return db.sql(f"SELECT DISTINCT * FROM {below[0]}").to_arrow_table()
        case Join():
            return _joined(operator, below, db)
        case MultiJoin():
            return _all_joined(operator, below, db)
        case _:
            return db.sql(f"SELECT * FROM {below[0]}").to_arrow_table()


def _best(operator: Top, below: str, db: Any) -> pa.Table:
    """Rows by their number within the group. DuckDB puts NaN above all numbers, and so first if descending."""
    order = []
    for name, down in (*operator.by, *((n, False) for n in operator.schema.names)):
        floating = pa.types.is_floating(operator.schema.type_of(name))
        order += [f"{name} IS NULL", *([f"isnan({name})"] if floating else []), f"{name} {'DESC' if down else 'ASC'}"]
    group = f"PARTITION BY {', '.join(operator.per)}" if operator.per else ""
    number = f"row_number() OVER ({group} ORDER BY {', '.join(order)})"
    return db.sql(f"SELECT * FROM {below} QUALIFY {number} <= {operator.count}").to_arrow_table()


def _joined(join: Join, below: list[str], db: Any) -> pa.Table:
    """The join as SQL knows it; attributes go by unique names."""
    named = {(side, a): n for side, a, n in join.pair}
    sides = [
        f"(SELECT {', '.join(f'{a} AS {n}' for side, a, n in join.pair if side == k)} FROM {below[k]})" for k in (0, 1)
    ]
    equals = "IS NOT DISTINCT FROM" if join.null_safe else "="
    on = [f"{named[0, a]} {equals} {named[1, b]}" for a, b in join.keys]
    if join.band is not None:
        apart = f"{named[1, join.band.right]} - {named[0, join.band.left]}"
        on += [f"{apart} >= {join.band.low}"] if join.band.low is not None else []
        on += [f"{apart} <= {join.band.high}"] if join.band.high is not None else []
    if join.residual is not None:
        on.append(f"({join.residual.sql})")
    columns = (f"coalesce({', '.join(named[o] for o in c.origins)}) AS {c.name}" for c in join.columns)
    kind = "FULL OUTER" if join.how == "full" else join.how.upper()
    said = f"SELECT {', '.join(columns)} FROM {sides[0]} {kind} JOIN {sides[1]} ON {' AND '.join(on)}"
    return db.sql(said).to_arrow_table()


def _all_joined(join: MultiJoin, below: list[str], db: Any) -> pa.Table:
    on = []
    for j in range(1, len(below)):
        for i in range(j):
            on += [f"t{i}.{a} = t{j}.{b}" for a, b in zip(join.keys[i], join.keys[j], strict=True)]
            if join.windows[i] is not None:
                on.append(f"t{j}.{join.times[j]} - t{i}.{join.times[i]} <= {join.windows[i]}")
            if join.windows[j] is not None:
                on.append(f"t{i}.{join.times[i]} - t{j}.{join.times[j]} <= {join.windows[j]}")
    columns = (f"t{c.origins[0][0]}.{c.origins[0][1]} AS {c.name}" for c in join.columns)
    tables = ", ".join(f"{name} t{i}" for i, name in enumerate(below))
    return db.sql(f"SELECT {', '.join(columns)} FROM {tables} WHERE {' AND '.join(on)}").to_arrow_table()


def _sessions(operator: Aggregate, below: str) -> str:
    """Each event with the last one before it, and the first one behind it, of its keys that nothing is near to."""
    window = operator.window
    assert isinstance(window, SessionWindow)
    on, gap = window.on, window.gap

    def same(a: str, b: str) -> str:
        return "".join(f" AND {a}.{k} IS NOT DISTINCT FROM {b}.{k}" for k in operator.without_label)

    def alone(side: str) -> str:
        near = f"SELECT 1 FROM {below} o WHERE {side.format('b', 'o')} BETWEEN 1 AND {gap}{same('o', 'b')}"
        return f"(SELECT * FROM {below} b WHERE NOT EXISTS ({near}))"

    first, last = alone(f"{{0}}.{on} - {{1}}.{on}"), alone(f"{{1}}.{on} - {{0}}.{on}")
    return f"""(SELECT e.* EXCLUDE (window_end),
        (SELECT CAST(max(f.{on}) AS BIGINT) FROM {first} f WHERE f.{on} <= e.{on}{same("f", "e")}) AS window_start,
        (SELECT CAST(min(l.{on}) AS BIGINT) + {gap} FROM {last} l WHERE l.{on} >= e.{on}{same("l", "e")}) AS window_end
        FROM {below} e WHERE e.{on} IS NOT NULL)"""


def _windows(operator: Bucket, below: str, db: Any) -> pa.Table:
    window, on = operator.window, operator.window.on
    match window:
        case TimeWindow():
            ((low, high),) = db.sql(f"SELECT min({on}), max({on}) FROM {below}").fetchall()
            first = 0 if low is None else (low - window.size - window.origin) // window.slide - 1
            last = 0 if high is None else (high - window.origin) // window.slide + 2
            starts = f"SELECT {window.origin} + i * {window.slide} AS __w FROM range({first}, {last}) t(i)"
            inside = f"{on} >= __w AND {on} < __w + {window.size}"
        case LandmarkWindow():
            ((high,),) = db.sql(f"SELECT max({on}) FROM {below}").fetchall()
            last = 1 if high is None else max(1, (high - window.origin) // window.every + 2)
            starts = f"SELECT {window.origin} + i * {window.every} AS __w FROM range(1, {last}) t(i)"
            inside = f"{on} >= {window.origin} AND {on} < __w"
        case SessionWindow():  # Its aggregate has them.
            return db.sql(f"SELECT *, NULL AS {window.label} FROM {below}").to_arrow_table()
        case _:
            raise AssertionError(f"{window} has no batch answer")
    return db.sql(f"SELECT e.*, __w AS {window.label} FROM {below} e JOIN ({starts}) ON {inside}").to_arrow_table()


def has_batch_answer(case: Case) -> bool:
    """Whether a batch can know the answer.

    Not of windows by count, which depend on the order of arrival; nor of joins with the last rows, which SQL cannot
    say.
    """
    operators = [n.operator for n in case.stream().plan]
    windows = [o.window for o in operators if isinstance(o, Bucket)]
    return not any(isinstance(w, CountWindow) for w in windows) and not any(isinstance(o, RowsJoin) for o in operators)
