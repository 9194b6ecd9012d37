"""Which operators give out an event in the epoch in which it comes, and which may keep it for a later one."""

from __future__ import annotations

from penstock.plan.operator import Operator
from penstock.plan.spec import traits_of
from penstock.plan.upwards import below_and_itself


def passes_at_once(operator: Operator) -> bool:
    """Whether an event that comes to the operator leaves it in the same epoch, or never.

    >>> import penstock as ps
    >>> s = ps.stream("s", "a int")
    >>> passes_at_once(s.operator), passes_at_once(s.distinct().operator)
    (True, False)
    """
    return traits_of(operator).at_once


def comes_as_read(operator: Operator) -> bool:
    """Whether the events that leave an operator in an epoch were read in it.

    An operator that keeps events may give many at once, and a function may make whatever events it likes.
    """
    return all(traits.at_once and traits.makes != "any" for traits in map(traits_of, below_and_itself(operator)))


def finds_several(operator: Operator) -> bool:
    """Whether somewhere below, an event may find several rows of a table: one with versions gives one at most."""
    return any(traits_of(each).makes == "several" for each in below_and_itself(operator))
