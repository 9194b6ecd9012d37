"""Aggregate functions by their definition: from the full list of values to one value, in exact arithmetic.

Numbers are added as fractions and rounded once, at the end, so no order of addition can be better than another.
Nulls never reach these functions. "No value" gives null, except for counts.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pyarrow as pa

from penstock.errors import OverflowingError

Values = Sequence[Any]


def sort_key(value: Any) -> tuple[int, Any]:
    """SQL order: NaN is greater than every other number, and null greater than everything.

    >>> max([1.0, float("nan"), float("inf")], key=sort_key)
    nan
    """
    if value is None:
        return 2, 0
    return (1, 0) if isinstance(value, float) and math.isnan(value) else (0, value)


def identity(value: Any) -> Any:
    """Equal exactly for values that SQL puts in one group: nulls are alike, NaNs are alike, 0.0 is -0.0.

    >>> identity(float("nan")) == identity(float("nan")), identity(None) == identity(0), identity(True) == identity(1)
    (True, False, False)
    """
    if isinstance(value, float):
        return ("nan",) if math.isnan(value) else value + 0.0
    if isinstance(value, tuple):
        return tuple(map(identity, value))
    return ("boolean", value) if isinstance(value, bool) else ("null",) if value is None else value


def distinct(values: Values) -> list[Any]:
    return list({identity(v): v for v in values}.values())


def total(values: Values) -> Any:
    """The sum: whole numbers stay whole, decimals stay decimals, binary floats are rounded once.

    >>> total([0.1] * 10), total([1, 2]), total([Decimal("0.10"), Decimal("0.2")]), total([])
    (1.0, 3, Decimal('0.30'), None)
    """
    if not values:
        return None
    if all(isinstance(v, int) for v in values):
        return sum(values)
    if any(isinstance(v, float) for v in values):
        if (odd := _not_finite(values)) is not None:
            return odd
        return rounded(sum(map(Fraction, values)))
    scale = max(-int(v.as_tuple().exponent) for v in values)
    return scaled(sum(map(Fraction, values), Fraction(0)), scale)


def mean(values: Values) -> float | Decimal | None:
    """The mean: of decimals a decimal with four digits more."""
    if not values:
        return None
    if all(isinstance(v, Decimal) for v in values):
        scale = max(-int(v.as_tuple().exponent) for v in values)
        return scaled(sum(map(Fraction, values), Fraction(0)) / len(values), min(38, scale + 4))
    if (odd := _not_finite(values)) is not None:
        return odd
    return rounded(sum(map(Fraction, values), Fraction(0)) / len(values))


def _not_finite(values: Values) -> float | None:
    """The sum of numbers among which some are infinite or not a number; None when all are finite."""
    odd = [v for v in values if isinstance(v, float) and not math.isfinite(v)]
    return sum(odd) if odd else None


def rounded(exact: Fraction | int) -> float:
    try:
        return float(exact)
    except OverflowError:
        raise OverflowingError("a sum is too large for a double", hint="aggregate smaller numbers") from None


def scaled(exact: Fraction, scale: int) -> Decimal:
    """A decimal with this many digits after the point, halves away from zero; by hand, since contexts round earlier.

    >>> scaled(Fraction(1, 8), 2)
    Decimal('0.13')
    """
    whole, rest = divmod(abs(exact) * 10**scale, 1)
    units = int(whole) + (rest >= Fraction(1, 2))
    return Decimal((int(exact < 0 and units > 0), tuple(map(int, str(units))), -scale))


def comoment(xs: Values, ys: Values) -> Fraction:
    """Σ(x − x̄)(y − ȳ), exactly."""
    mean_x, mean_y = Fraction(sum(map(Fraction, xs))) / len(xs), Fraction(sum(map(Fraction, ys))) / len(ys)
    return sum(((Fraction(x) - mean_x) * (Fraction(y) - mean_y) for x, y in zip(xs, ys)), Fraction(0))


def variance(values: Values, *, sample: bool) -> float | None:
    """Σ(x − x̄)² over n − 1 (sample) or n (population); infinite if the sum is too large for a double.

    >>> variance([1, 2, 3, 4], sample=True), variance([5], sample=True), variance([5], sample=False)
    (1.6666666666666667, None, 0.0)
    >>> variance([1e300, 0.0], sample=False), variance([math.inf, 0.0], sample=False)
    (inf, nan)
    """
    count = len(values) - sample
    if count < 1:
        return None
    if _not_finite(values) is not None:
        return math.nan
    _check_size(values)
    squares = comoment(values, values)
    return math.inf if _too_large(squares) else rounded(squares / count)


def deviation(values: Values, *, sample: bool) -> float | None:
    spread = variance(values, sample=sample)
    return None if spread is None else math.sqrt(spread)


def covariance(pairs: Values, *, sample: bool) -> float | None:
    """Σ(x − x̄)(y − ȳ) over n − 1 or n; an error where adding one pair after the other may overflow on the way."""
    count = len(pairs) - sample
    if count < 1:
        return None
    xs, ys = zip(*pairs)
    if any(math.isnan(x) for x in xs) or _not_finite(ys) is not None:
        return math.nan
    if _not_finite(xs) is not None:
        raise OverflowingError("a covariance with an infinite number depends on the order", hint="leave it out")
    _spreads(xs, ys)
    return rounded(comoment(xs, ys) / count)


def correlation(pairs: Values) -> float | None:
    """The covariance by both deviations; null if one of them is zero.

    >>> correlation([(1, 2), (2, 4)]), correlation([(1, 2), (1, 4)])
    (1.0, None)
    """
    if len(pairs) < 2:
        return None
    xs, ys = zip(*pairs)
    odd = [_not_finite(side) is not None for side in (xs, ys)]
    _check_size([v for o, side in zip(odd, (xs, ys)) if not o for v in side])
    if any(not o and not comoment(side, side) for o, side in zip(odd, (xs, ys))):
        return None
    if any(odd):
        return math.nan
    # In doubles, as Spark has it: the product may be infinite, or nothing.
    product = math.prod(map(float, _spreads(xs, ys)))
    if not product:
        raise OverflowingError("a correlation divides by zero", hint="aggregate larger numbers")
    return rounded(comoment(xs, ys)) / math.sqrt(product)


def _spreads(xs: Values, ys: Values) -> tuple[Fraction, Fraction]:
    """The squared deviations of both; an error if one of them is too large for a double."""
    _check_size([*xs, *ys])
    found = comoment(xs, xs), comoment(ys, ys)
    if any(map(_too_large, found)):
        raise OverflowingError("squared deviations are too large for a double", hint="aggregate smaller numbers")
    return found


def _check_size(values: Values) -> None:
    """The difference of two numbers this large may be none."""
    if any(abs(v) >= 2**1023 for v in values):
        raise OverflowingError("a deviation is too large for a double", hint="aggregate smaller numbers")


def _too_large(exact: Fraction) -> bool:
    try:
        return math.isinf(float(exact))
    except OverflowError:
        return True


def least(values: Values) -> Any:
    return min(values, key=sort_key, default=None)


def greatest(values: Values) -> Any:
    return max(values, key=sort_key, default=None)


def first(pairs: Values) -> Any:
    """The value with the least time; among several, the smallest.

    >>> first([("b", 1), ("a", 1), ("0", 2)]), last([("b", 1), ("a", 2), ("c", 2)])
    ('a', 'c')
    """
    return min(pairs, key=lambda p: (sort_key(p[1]), sort_key(p[0])), default=(None, None))[0]


def last(pairs: Values) -> Any:
    """The value with the greatest time; among several, the largest."""
    return max(pairs, key=lambda p: (sort_key(p[1]), sort_key(p[0])), default=(None, None))[0]


def _folded(combine: Callable[[Any, Any], Any]) -> Callable[[Values], Any]:
    return lambda values: functools.reduce(combine, values) if values else None


#: SQL name → function of the list of non-null values; of pairs for functions of two arguments.
FUNCTIONS: dict[str, Callable[[Values], Any]] = {
    "count": len,
    "count_if": lambda values: sum(1 for v in values if v),
    "sum": total,
    "avg": mean,
    "min": least,
    "max": greatest,
    "var_samp": functools.partial(variance, sample=True),
    "var_pop": functools.partial(variance, sample=False),
    "stddev_samp": functools.partial(deviation, sample=True),
    "stddev_pop": functools.partial(deviation, sample=False),
    "covar_samp": functools.partial(covariance, sample=True),
    "covar_pop": functools.partial(covariance, sample=False),
    "corr": correlation,
    "first": first,
    "last": last,
    "min_by": first,
    "max_by": last,
    "any_value": least,  # Any would do; the smallest does not depend on the order of arrival.
    "bool_and": lambda values: all(values) if values else None,
    "bool_or": lambda values: any(values) if values else None,
    "bit_and": _folded(operator.and_),
    "bit_or": _folded(operator.or_),
    "bit_xor": _folded(operator.xor),
}


def as_type(value: Any, kind: pa.DataType, what: str) -> Any:
    """A result in the form of its declared type; one that does not fit is an error, never another number.

    >>> as_type(3, pa.float64(), "sum(x)"), as_type(Decimal("1.5"), pa.decimal128(10, 2), "sum(x)")
    (3.0, Decimal('1.50'))
    >>> as_type(2**63, pa.int64(), "sum(x)")
    Traceback (most recent call last):
    penstock.errors.OverflowingError: sum(x) is 9223372036854775808, too large for int64. Hint: cast the argument to a \
wider type
    """
    fits = True
    if value is None or isinstance(value, bool):
        return value
    if pa.types.is_integer(kind) and isinstance(value, int):
        fits = -(1 << kind.bit_width - 1) <= value < 1 << kind.bit_width - 1
    elif pa.types.is_floating(kind):
        value = float(value)
    elif pa.types.is_decimal(kind) and isinstance(value, int | Decimal):
        value = scaled(Fraction(value), kind.scale)
        fits = abs(Fraction(value)) < 10 ** (kind.precision - kind.scale)
    if not fits:
        raise OverflowingError(f"{what} is {value}, too large for {kind}", hint="cast the argument to a wider type")
    return value
