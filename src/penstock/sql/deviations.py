"""Counts, means and squared deviations in doubles, merged after Chan et al.: stable, unlike sums of squares.

Spark adds one number after the other. Where that comes to the same in every order, so does this, infinities included;
where it does not, there is no answer to give, and it raises. A mean that is not finite says which of the two: not a
number where the answer is not a number in any order, infinite where Spark's answer depends on the order.
"""

from __future__ import annotations

import pyarrow as pa

#: From here on the difference of two numbers may be too large for a double.
_HUGE = repr(2.0**1023)
#: A sum of many numbers is one of much smaller ones, times this; a power of two changes no digit.
_SCALE = 2.0**64
_NAN, _INF = "CAST('nan' AS DOUBLE)", "CAST('inf' AS DOUBLE)"

#: A part without values has no mean: taken for zero it would be far from large numbers.
_MERGING = (
    "list_reduce(list_sort(list({{p}})), lambda a, b: CASE WHEN a.n = 0 THEN b WHEN b.n = 0 THEN a ELSE {merged} END)"
)
_SHARE = "(b.n / CAST(NULLIF(a.n + b.n, 0) AS DOUBLE))"

#: The state of one attribute, and of two that are looked at together.
ONE = pa.struct([("n", pa.int64()), ("mean", pa.float64()), ("m2", pa.float64())])
TWO = pa.struct([("n", pa.int64()), *((part, pa.float64()) for part in ("mx", "my", "xx", "yy", "xy"))])


def of_one(x: str) -> str:
    """The state of the doubles that `x` gives, null where there is none.

    Numbers that are not finite stay out of DuckDB's aggregates, and make the whole not a number.
    """
    finite = f"CASE WHEN isfinite({x}) THEN {x} END"
    size, spread = f"max(abs({x}))", f"var_pop({finite})"
    mean = (
        f"CASE WHEN NOT isfinite({size}) THEN {_NAN} WHEN {size} >= {_HUGE} OR isnan({spread}) THEN {_INF}"
        f" ELSE {_mean(finite)} END"
    )
    m2 = f"CASE WHEN NOT isfinite({size}) THEN {_NAN} ELSE {spread} * count({x}) END"
    return f"{{'n': count({x}), 'mean': COALESCE({mean}, 0e0), 'm2': COALESCE({m2}, 0e0)}}"


def of_two(x: str, y: str) -> str:
    """The state of pairs of doubles; those with a null do not count, whatever the other one is."""
    given = f"{x} IS NOT NULL AND {y} IS NOT NULL"
    # Each one's own deviations are those of all pairs: a constant beside an infinity is still constant.
    keep_x, keep_y = (f"FILTER (WHERE {given} AND isfinite({z}))" for z in (x, y))
    both = f"FILTER (WHERE {given} AND isfinite({x}) AND isfinite({y}))"
    n, sx, sy = (f"{call} FILTER (WHERE {given})" for call in ("count(*)", f"max(abs({x}))", f"max(abs({y}))"))
    vx, vy, vxy = f"(var_pop({x}) {keep_x})", f"(var_pop({y}) {keep_y})", f"(covar_pop({x}, {y}) {both})"
    parts = {
        # An infinite x gives an infinity or not a number, by what comes before it; an infinite y is never a number.
        "mx": f"CASE WHEN isnan({sx}) THEN {_NAN} WHEN {sx} >= {_HUGE} OR isnan({vx}) OR isnan({vxy}) THEN {_INF}"
        f" ELSE {_mean(x, keep_x)} END",
        "my": f"CASE WHEN NOT isfinite({sy}) THEN {_NAN} WHEN {sy} >= {_HUGE} OR isnan({vy}) THEN {_INF}"
        f" ELSE {_mean(y, keep_y)} END",
        "xx": f"CASE WHEN NOT isfinite({sx}) THEN {_NAN} WHEN NOT isfinite({vx}) THEN {_INF} ELSE {vx} * {n} END",
        "yy": f"CASE WHEN NOT isfinite({sy}) THEN {_NAN} WHEN NOT isfinite({vy}) THEN {_INF} ELSE {vy} * {n} END",
        "xy": f"{vxy} * {n}",
    }
    return f"{{'n': {n}, " + ", ".join(f"'{k}': COALESCE({v}, 0e0)" for k, v in parts.items()) + "}"


def merged_one() -> str:
    return _MERGING.format(merged=f"{{'n': a.n + b.n, 'mean': {_met('mean')}, 'm2': {_squared('m2', 'mean')}}}")


def merged_two() -> str:
    moved = "COALESCE((b.mx - a.mx) * (b.my - a.my) * (a.n * " + _SHARE + "), 0e0)"
    parts = {
        "mx": _met("mx"),
        "my": _met("my"),
        "xx": _squared("xx", "mx"),
        "yy": _squared("yy", "my"),
        "xy": f"a.xy + b.xy + {moved}",
    }
    return _MERGING.format(merged="{'n': a.n + b.n, " + ", ".join(f"'{k}': {v}" for k, v in parts.items()) + "}")


def variance(p: str, count: str) -> str:
    """The squared deviations in the state `p`, over `count`: infinite where they are too large, as in Spark."""
    m2 = f"CASE WHEN isinf({p}.mean) THEN {_raising('numbers beyond 8.9e307')} ELSE {p}.m2 END"
    return f"({m2}) / {count}"


def covariance(p: str, count: str) -> str:
    """The common deviations in the state `p`, over `count`.

    Squares that fit into a double bound every sum on the way, in whatever order; without them Spark may meet
    infinities of both signs.
    """
    far = _any(p, "isinf", "mx", "my", "xx", "yy")
    xy = (
        f"CASE WHEN {_any(p, 'isnan', 'mx', 'my')} THEN {_NAN}"
        f" WHEN {far} THEN {_raising('an infinite number, or numbers about 1e154 apart')} ELSE {p}.xy END"
    )
    return f"({xy}) / {count}"


def correlation(p: str) -> str:
    """The common deviations by those of each. As in Spark the squares are multiplied: that may be zero, or infinite."""
    product = f"sqrt({p}.xx * {p}.yy)"
    # Numbers too large come first: whether they are all the same is seen only where no part of them stands alone.
    huge = " OR ".join(f"(isinf({p}.m{z}) AND NOT isnan({p}.{z}{z}))" for z in "xy")
    return (
        f"CASE WHEN {huge} THEN {_raising('numbers beyond 8.9e307')} WHEN {p}.xx = 0 OR {p}.yy = 0 THEN NULL"
        f" WHEN {_any(p, 'isnan', 'xx', 'yy')} THEN {_NAN}"
        f" WHEN {_any(p, 'isinf', 'xx', 'yy')} THEN {_raising('numbers about 1e154 apart')}"
        f" WHEN {product} = 0 THEN error('division by zero') ELSE {p}.xy / {product} END"
    )


def _mean(x: str, keep: str = "") -> str:
    return f"(favg({x} * {1 / _SCALE!r}) {keep}) * {_SCALE!r}"


def _met(mean: str) -> str:
    """The mean of two parts; where their difference is not finite, from each one's share."""
    a, b = f"a.{mean}", f"b.{mean}"
    apart = f"{a} * (1e0 - {_SHARE}) + {b} * {_SHARE}"
    return f"COALESCE(CASE WHEN isfinite({b} - {a}) THEN {a} + ({b} - {a}) * {_SHARE} ELSE {apart} END, 0e0)"


def _squared(part: str, mean: str) -> str:
    moved = f"b.{mean} - a.{mean}"
    square = f"({moved}) * ({moved}) * (a.n * {_SHARE})"
    return f"a.{part} + b.{part} + COALESCE(CASE WHEN isfinite({moved}) THEN {square} ELSE {_INF} END, 0e0)"


def _any(p: str, test: str, *parts: str) -> str:
    return " OR ".join(f"{test}({p}.{part})" for part in parts)


def _raising(what: str) -> str:
    return f"error('{what}: the answer would depend on their order')"
