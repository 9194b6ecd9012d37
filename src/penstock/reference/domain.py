"""Which attributes can take only a few, known values: read off the plan, from the sources upwards."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
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
