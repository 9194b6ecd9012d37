"""Union: all events of all inputs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from penstock.pattern.schema import Attribute
from penstock.plan.operator import Operator
from penstock.plan.spec import Carried, Lineage


@dataclass(frozen=True, eq=False)
class Union(Operator):
    """All events of all inputs; a punctuation once every input has given it."""

    @property
    def detail(self) -> str:
        return f"{len(self.inputs)} inputs"


def of_any(operator: Operator) -> Lineage:
    """Every attribute of an event is that of the one input which it comes from."""
    ports = range(len(operator.inputs))
    return {n: Carried(tuple((port, n) for port in ports), each=True) for n in operator.schema.names}


def alike(one: Iterable[Attribute], other: Iterable[Attribute]) -> bool:
    """Whether two streams have the same attributes of the same types, in whatever order.

    >>> from penstock.pattern.schema import Schema
    >>> alike(Schema.parse("a int, b string"), Schema.parse("b string, a int"))
    True
    """
    return {a.name: a.type for a in one} == {a.name: a.type for a in other}
