"""Variance, covariance and correlation as aggregate functions; their partials are `deviations`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pyarrow as pa
from sqlglot import exp

from penstock.sql import deviations
from penstock.sql.partial import AggregateValue, ReadFunction, only_if

if TYPE_CHECKING:
    from penstock.sql.aggregate_reader import AggregateReader

#: From the column of a partial and its count to SQL.
Final = Callable[[str, str], str]


def moment(final: Final) -> ReadFunction:
    """Count, mean and squared deviations of one attribute."""

    def read(r: AggregateReader, arguments: list[exp.Expr], keep: str | None) -> AggregateValue:
        x = f"CAST({only_if(r.number('variance', arguments[0]).sql, keep)} AS DOUBLE)"
        p = r.add(deviations.ONE, deviations.of_one(x), deviations.merged_one())
        return AggregateValue(final(p, f"CAST({p}.n AS DOUBLE)"), pa.float64())

    return read


def comoment(final: Final) -> ReadFunction:
    """The same for two attributes, over the events that have both."""

    def read(r: AggregateReader, arguments: list[exp.Expr], keep: str | None) -> AggregateValue:
        a, b = (r.number("covariance", argument).sql for argument in arguments[:2])
        x, y = f"CAST({only_if(a, keep)} AS DOUBLE)", f"CAST({only_if(b, keep)} AS DOUBLE)"
        p = r.add(deviations.TWO, deviations.of_two(x, y), deviations.merged_two())
        return AggregateValue(final(p, f"CAST({p}.n AS DOUBLE)"), pa.float64())

    return read


def population(of: Final) -> Final:
    return lambda p, n: of(p, f"NULLIF({n}, 0)")


def sample(of: Final) -> Final:
    return lambda p, n: f"CASE WHEN {n} > 1 THEN {of(p, f'({n} - 1)')} END"


def root(of: Final) -> Final:
    return lambda p, n: f"sqrt({of(p, n)})"


#: What comes of them.
MOMENTS: dict[str, ReadFunction] = {
    "var_pop": moment(population(deviations.variance)),
    "var_samp": moment(sample(deviations.variance)),
    "stddev_pop": moment(root(population(deviations.variance))),
    "stddev_samp": moment(root(sample(deviations.variance))),
    "covar_pop": comoment(population(deviations.covariance)),
    "covar_samp": comoment(sample(deviations.covariance)),
    "corr": comoment(lambda p, n: f"CASE WHEN {n} > 1 THEN {deviations.correlation(p)} END"),
}
