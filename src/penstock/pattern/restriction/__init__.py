"""Restrictions: which values of one attribute a pattern speaks of.

A restriction is `*`, one value, a list of values, or a range. Null is matched by `*` alone, in every evaluation:
Python, Arrow and SQL. NaN is greater than every number, as in aggregates and in Spark: `> 3` matches it, `< 3` does
not. It cannot be named.

Containment and emptiness compare *cuts*, the gaps between neighbouring values, so that `> 3` and `>= 4` are the same
for an integer, and (3, 4) is empty, while restrictions keep the text their author wrote.
"""

from penstock.pattern.restriction.base import ANY, Anything, Restriction
from penstock.pattern.restriction.canonical import EDGES, ticks_of
from penstock.pattern.restriction.interval import Range, at_least, at_most, between, greater, less
from penstock.pattern.restriction.stored import normal, restriction_from_json, values_of
from penstock.pattern.restriction.values import NOTHING, Equal, OneOf, equal, listed, one_of

__all__ = [
    "ANY", "EDGES", "NOTHING", "Anything", "Equal", "OneOf", "Range", "Restriction", "at_least", "at_most", "between",
    "equal", "greater", "less", "listed", "normal", "one_of", "restriction_from_json", "ticks_of", "values_of",
]  # fmt: skip
