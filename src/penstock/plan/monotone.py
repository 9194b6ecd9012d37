"""Which attributes are never negative, followed from where they come into being."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.plan.operator import Operator
from penstock.plan.spec import spec_of
from penstock.plan.upwards import upwards


def is_never_negative(operator: Operator, name: str) -> bool:
    """Whether no event of an operator has a value below zero there: a source refuses it, or it is a count.

    >>> import penstock as ps
    >>> s = ps.stream("s", "cars int, v int").bounds("cars", low=0).distinct()
    >>> is_never_negative(s.operator, "cars"), is_never_negative(s.operator, "v")
    (True, False)
    """
    return name in upwards(operator, _never_negative)


def _never_negative(operator: Operator, below: Sequence[frozenset[str]]) -> frozenset[str]:
    spec = spec_of(operator)
    carried = (n for n, c in spec.lineage(operator).items() if all(o in below[side] for side, o in c.origins))
    return frozenset((*carried, *(n for n, fact in spec.facts(operator).items() if fact.never_negative)))
