"""Restrictions from one type of integers to another."""

from __future__ import annotations

import pyarrow as pa

from penstock.pattern.restriction import ANY, NOTHING, Range, Restriction, one_of, values_of
from penstock.pattern.types import integer_range


def fitted(restriction: Restriction, t: pa.DataType) -> Restriction:
    """A restriction as far as a type of integers has its values: keys that meet may differ in width.

    >>> from penstock.pattern.restriction import less
    >>> print(fitted(one_of([3, 300]), pa.int8()), fitted(less(300), pa.int8()).matches(127))
    3 True
    """
    if not pa.types.is_integer(t) or restriction is ANY:
        return restriction
    least, most = integer_range(t)
    if not isinstance(restriction, Range):
        fits = [v for v in values_of(restriction) if least <= v <= most]
        return restriction if len(fits) == len(values_of(restriction)) else one_of(fits)
    low, high = restriction.low, restriction.high
    if (low is not None and low > most) or (high is not None and high < least):
        return NOTHING
    if (low is None or low >= least) and (high is None or high <= most):
        return restriction
    low, high = None if low is None or low < least else low, None if high is None or high > most else high
    return Range(low, high, restriction.low_closed and low is not None, restriction.high_closed and high is not None)
