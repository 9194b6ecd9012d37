"""Finite domains: which attributes can take only a few, known values, and never null.

A source declares them (`Domain`). Behind an operator an attribute still has a finite domain if it carries the values of
one that has. They decide when several punctuations together say as much as one: see `describe`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from penstock.operators.aggregate.operator import Aggregate
from penstock.operators.distinct.operator import Distinct
from penstock.operators.instrument.operator import Instrument
from penstock.operators.join.operator import Join, JoinKind, Taken
from penstock.operators.limit.operator import Limit
from penstock.operators.lookup.operator import TableJoin
from penstock.operators.map.operator import Map
from penstock.operators.multijoin.operator import MultiJoin
from penstock.operators.order_by.operator import OrderBy
from penstock.operators.pace.operator import Pace
from penstock.operators.project.operator import Project
from penstock.operators.select.operator import Select
from penstock.operators.sink.operator import Sink
from penstock.operators.source.declared import domains_of
from penstock.operators.source.operator import Source
from penstock.operators.top.operator import Top
from penstock.operators.union.operator import Union
from penstock.operators.window.operator import Bucket
from penstock.pattern.restriction import Restriction, one_of, values_of
from penstock.plan.operator import Operator, unknown

#: Attribute → the list of all its values.
Domains = Mapping[str, Restriction]

#: The inputs of a join whose attributes may be padded with nulls.
_PADDED: dict[JoinKind, frozenset[int]] = {
    "inner": frozenset(),
    "left": frozenset({1}),
    "right": frozenset({0}),
    "full": frozenset({0, 1}),
    "semi": frozenset({1}),
    "anti": frozenset({1}),
}


def domains(operator: Operator) -> dict[str, Restriction]:
    """The finite domains of an operator's output attributes, from the promises of the sources below.

    >>> from penstock.pattern.schema import Schema
    >>> from penstock.plan.promise import Domain
    >>> source = Source((), Schema.parse("sensor int, v double"), promises=(Domain("sensor", (2, 1)),))
    >>> {name: str(values) for name, values in domains(Distinct((source,), source.schema)).items()}
    {'sensor': '{1, 2}'}
    """
    known: dict[int, dict[str, Restriction]] = {}
    # Iterative and once per operator, since plans may be deep and operators shared.
    stack = [operator]
    while stack:
        top = stack[-1]
        if missing := [i for i in top.inputs if id(i) not in known]:
            stack.extend(missing)
            continue
        known[id(top)] = domains_behind(top, [known[id(i)] for i in top.inputs])
        stack.pop()
    return known[id(operator)]


def domains_behind(operator: Operator, below: Sequence[Domains]) -> dict[str, Restriction]:
    """The finite domains behind an operator, given those of its inputs."""
    match operator:
        case Source():
            return domains_of(operator)
        case Select() | Distinct() | OrderBy() | Limit() | Top() | Bucket() | Instrument() | Sink():
            return dict(below[0])
        case TableJoin():
            return dict(below[0])  # the stream's attributes keep their names; nothing is known of the table's
        case Project():
            return {n: below[0][old] for old, names in operator.renames.items() if old in below[0] for n in names}
        case Map():
            return {n: below[0][n] for n in operator.keeps if n in below[0]}
        case Aggregate():
            return {n: below[0][n] for n in operator.keys if n in below[0]}
        case Union() | Pace():
            common = [n for n in below[0] if all(n in b for b in below)]
            return {n: _either([b[n] for b in below]) for n in common}
        case Join():
            return _taken(operator.columns, below, _PADDED[operator.how])
        case MultiJoin():
            return _taken(operator.columns, below, frozenset())
        case _:
            raise unknown(operator, "which values its attributes can take")


def _taken(columns: tuple[Taken, ...], below: Sequence[Domains], padded: frozenset[int]) -> dict[str, Restriction]:
    """Of a column with several origins the first that is not null counts, so one that is never null ends the search."""
    found: dict[str, Restriction] = {}
    for column in columns:
        parts: list[Restriction] = []
        missing = set(range(len(below)))
        for side, name in column.origins:
            if name not in below[side]:
                break
            parts.append(below[side][name])
            missing.discard(side)
            # A result row has at least one of the inputs, so a column with an origin in each is never null.
            if side not in padded or not missing:
                found[column.name] = _either(parts)
                break
    return found


def _either(listed: Sequence[Restriction]) -> Restriction:
    return one_of(v for r in listed for v in values_of(r))
