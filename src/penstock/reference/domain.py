"""Which attributes can take only a few, known values: read off the plan, from the sources upwards."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import gcd
from typing import Any

from penstock.pattern.restriction import values_of
from penstock.plan.operator import Operator
from penstock.plan.spec import Carried, spec_of

#: Attribute → every value that it can have; null is never among them.
Domains = Mapping[str, tuple[Any, ...]]


def domains(node: Operator, *, but: Iterable[str] = ()) -> dict[str, tuple[Any, ...]]:
    """The attributes of an operator's output whose values are all known, without those named in `but`.

    >>> import penstock as ps
    >>> sensor = ps.stream("s", "id int, v int").punctuate(ps.Punctuate.values("id", [3, 4]))
    >>> domains(sensor.distinct().operator)
    {'id': (3, 4)}
    """
    below = [domains(i) for i in node.inputs]
    spec = spec_of(node)
    found = {n: tuple(values_of(fact.values)) for n, fact in spec.facts(node).items() if fact.values is not None}
    for name, carried in spec.lineage(node).items():
        values = _values(carried, below)
        if values is not None:
            found[name] = values
    return {name: values for name, values in found.items() if name not in set(but)}


def _values(carried: Carried, below: Sequence[Domains]) -> tuple[Any, ...] | None:
    """All values of its origins, if one of these is surely there."""
    values: dict[Any, None] = {}
    sides: set[int] = set()
    for side, attribute in carried.origins:
        if attribute not in below[side]:
            return None
        values.update(dict.fromkeys(below[side][attribute]))
        sides.add(side)
        # Never null from here on: this side is in every row, or one of all the sides is.
        if not carried.each and (side not in carried.padded or len(sides) == len(below)):
            break
    else:
        if not carried.each:
            return None
    return tuple(values)


def grid_of(node: Operator, attribute: str) -> tuple[int, int]:
    """(step, first): the values of an attribute are `first` plus multiples of `step`; step 1 where nothing is known.

    >>> import penstock as ps
    >>> s = ps.stream("s", "ts int", time="ts")
    >>> grid_of(s.window(10, origin=3).agg(n="count(*)").operator, "window_start")
    (10, 3)
    """
    spec = spec_of(node)
    fact = spec.facts(node).get(attribute)
    if fact is not None and fact.grid is not None:
        return fact.grid.step, fact.grid.phase
    carried = spec.lineage(node).get(attribute)
    if carried is None:
        return 1, 0
    known = [grid_of(node.inputs[i], name) for i, name in carried.origins]
    first = known[0][1]
    return gcd(*(step for step, _ in known), *(first - other for _, other in known)), first
