"""Variance and covariance as partials: count, mean and squared deviations, merged after Chan et al."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from sqlglot import exp

from penstock.sql.partial import AggregateValue, ReadFunction, only_if

if TYPE_CHECKING:
    from penstock.sql.aggregate_reader import AggregateReader

#: A part without values has no mean: taken for zero it would be far from large numbers.
_MERGING = (
    "list_reduce(list_sort(list({{p}})), lambda a, b: CASE WHEN a.n = 0 THEN b WHEN b.n = 0 THEN a ELSE {merged} END)"
)


def moment(final: str) -> ReadFunction:
    """Count, mean and squared deviations, merged after Chan et al.: stable, unlike sums of squares."""

    def read(r: AggregateReader, arguments: list[exp.Expr], keep: str | None) -> AggregateValue:
        x = f"CAST({only_if(r.number('variance', arguments[0]).sql, keep)} AS DOUBLE)"
        finite = f"CASE WHEN isfinite({x}) THEN {x} END"
        m2 = f"CASE WHEN count({x}) > count({finite}) THEN 'nan'::DOUBLE ELSE var_pop({finite}) * count({x}) END"
        partial = f"{{'n': count({x}), 'mean': COALESCE(favg({finite}), 0e0), 'm2': COALESCE({m2}, 0e0)}}"
        merged = (
            "{'n': a.n + b.n,"
            " 'mean': a.mean + COALESCE((b.mean - a.mean) * (b.n / CAST(NULLIF(a.n + b.n, 0) AS DOUBLE)), 0e0),"
            " 'm2': a.m2 + b.m2 + COALESCE((b.mean - a.mean) * (b.mean - a.mean)"
            " * (a.n / CAST(NULLIF(a.n + b.n, 0) AS DOUBLE)) * b.n, 0e0)}"
        )
        type_ = pa.struct([("n", pa.int64()), ("mean", pa.float64()), ("m2", pa.float64())])
        column = r.add(type_, partial, _MERGING.format(merged=merged))
        checked = f"CASE WHEN isinf({column}.m2) THEN error('Overflow in variance') ELSE {column}.m2 END"
        return AggregateValue(final.format(n=f"CAST({column}.n AS DOUBLE)", m2=checked), pa.float64())

    return read


def comoment(final: str) -> ReadFunction:
    """The same for two attributes, over the events that have both."""

    def read(r: AggregateReader, arguments: list[exp.Expr], keep: str | None) -> AggregateValue:
        a, b = (r.number("covariance", argument).sql for argument in arguments[:2])
        x, y = f"CAST({only_if(a, keep)} AS DOUBLE)", f"CAST({only_if(b, keep)} AS DOUBLE)"
        both = f"isfinite({x}) AND isfinite({y})"
        # All pairs are counted; one that is not finite makes the whole not a number.
        n = f"count(*) FILTER (WHERE {x} IS NOT NULL AND {y} IS NOT NULL)"
        parts = {
            "mx": f"favg({x}) FILTER (WHERE {both})",
            "my": f"favg({y}) FILTER (WHERE {both})",
            "xx": f"(var_pop({x}) FILTER (WHERE {both})) * {n}",
            "yy": f"(var_pop({y}) FILTER (WHERE {both})) * {n}",
            "xy": f"CASE WHEN bool_or(({both}) = FALSE) THEN 'nan'::DOUBLE"
            f" ELSE (covar_pop({x}, {y}) FILTER (WHERE {both})) * {n} END",
        }
        partial = f"{{'n': {n}, " + ", ".join(f"'{k}': COALESCE({v}, 0e0)" for k, v in parts.items()) + "}"
        share = "(b.n / CAST(NULLIF(a.n + b.n, 0) AS DOUBLE))"
        sums = {
            "mx": f"a.mx + COALESCE((b.mx - a.mx) * {share}, 0e0)",
            "my": f"a.my + COALESCE((b.my - a.my) * {share}, 0e0)",
            **{
                f"{u}{v}": f"a.{u}{v} + b.{u}{v} + COALESCE((b.m{u} - a.m{u}) * (b.m{v} - a.m{v}) * a.n * {share}, 0e0)"
                for u, v in ("xx", "yy", "xy")
            },
        }
        merged = "{'n': a.n + b.n, " + ", ".join(f"'{k}': {v}" for k, v in sums.items()) + "}"
        type_ = pa.struct([("n", pa.int64()), *((k, pa.float64()) for k in parts)])
        p = r.add(type_, partial, _MERGING.format(merged=merged))
        return AggregateValue(
            final.format(n=f"CAST({p}.n AS DOUBLE)", xx=f"{p}.xx", yy=f"{p}.yy", xy=f"{p}.xy"), pa.float64()
        )

    return read


POPULATION, SAMPLE = "({m2}) / NULLIF({n}, 0)", "CASE WHEN {n} > 1 THEN ({m2}) / ({n} - 1) END"
