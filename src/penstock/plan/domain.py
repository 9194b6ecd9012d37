"""Finite domains: which attributes can take only a few, known values, and never null.

A source declares them (`Domain`). Behind an operator an attribute still has a finite domain if it carries the values of
one that has. They decide when several punctuations together say as much as one: see `whole_groups`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from penstock.pattern.restriction import Restriction, one_of, values_of
from penstock.plan.operator import Operator
from penstock.plan.spec import Carried, spec_of
from penstock.plan.upwards import upwards

#: Attribute → the list of all its values.
Domains = Mapping[str, Restriction]


def domains(operator: Operator) -> dict[str, Restriction]:
    """The finite domains of an operator's output attributes, from the promises of the sources below.

    >>> import penstock as ps
    >>> s = ps.stream("s", "sensor int, v double").punctuate(ps.Punctuate.values("sensor", [2, 1]))
    >>> {name: str(values) for name, values in domains(s.distinct().operator).items()}
    {'sensor': '{1, 2}'}
    """
    return upwards(operator, domains_behind)


def domains_behind(operator: Operator, below: Sequence[Domains]) -> dict[str, Restriction]:
    """The finite domains behind an operator, given those of its inputs."""
    spec = spec_of(operator)
    carried = {n: values for n, c in spec.lineage(operator).items() if (values := _values(c, below)) is not None}
    return carried | {n: fact.values for n, fact in spec.facts(operator).items() if fact.values is not None}


def _values(carried: Carried, below: Sequence[Domains]) -> Restriction | None:
    """Of several origins the first that is not null counts, so one that is never null ends the search."""
    if carried.each:
        known = [below[side].get(name) for side, name in carried.origins]
        return None if None in known else _either([r for r in known if r is not None])
    parts: list[Restriction] = []
    missing = set(range(len(below)))
    for side, name in carried.origins:
        if name not in below[side]:
            return None
        parts.append(below[side][name])
        missing.discard(side)
        # A result row has at least one of the inputs, so a column with an origin in each is never null.
        if side not in carried.padded or not missing:
            return _either(parts)
    return None


def _either(listed: Sequence[Restriction]) -> Restriction:
    return one_of(v for r in listed for v in values_of(r))
