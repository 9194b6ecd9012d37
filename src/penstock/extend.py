"""Operators from outside: all that a package of its own needs to add one.

An operator is a frozen record, a subclass of `Operator`. What Penstock may ask of it stands in a subclass of `Spec`,
and `register` makes it known. `put_on` puts it on a stream. The tutorial is docs/add-an-operator.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from penstock.builder.stream import StreamBuilder
from penstock.errors import UserError
from penstock.kernels.stateful import Fresh, Held, Stateful, Stepped
from penstock.kernels.step import (
    Asked,
    Keeping,
    Leaving,
    Noting,
    Passing,
    Reading,
    Rows,
    SqlStep,
    TableStep,
)
from penstock.operators.shared.families import AtOnceSpec, KeepingSpec
from penstock.operators.shared.thinning import ThinningSpec
from penstock.pattern.pattern import Pattern
from penstock.plan.behaviour import Behaviour, ThroughBehaviour
from penstock.plan.operator import Operator
from penstock.plan.orders import Answer, Orders
from penstock.plan.response import Response
from penstock.plan.spec import (
    Carried,
    Fact,
    Lineage,
    Measurements,
    Retraction,
    Spec,
    Surroundings,
    Told,
    Traits,
    found_in,
    given,
    made_in,
    of_one,
    register,
    registered,
    same,
    spec_of,
)
from penstock.reference.item import Assertion, Event, Item
from penstock.reference.running import Running

S = TypeVar("S", bound=StreamBuilder)


def put_on(stream: S, make: Callable[[Operator], Operator]) -> S:
    """The stream with an operator on top of it: `make` is given the operator below, and makes the new one.

    >>> import penstock as ps
    >>> from penstock.operators.limit.operator import Limit
    >>> cars = ps.stream("cars", "ts int")
    >>> put_on(cars, lambda below: Limit((below,), below.schema, count=3)).operator.detail
    'the first 3'
    """
    operator = make(stream.operator)
    if not isinstance(operator, Operator):
        raise UserError(
            f"put_on: {make!r} made {operator!r}", hint="return an operator whose first input is the one given"
        )
    spec_of(operator)  # Known now, or an error that names it: not when the query runs.
    return replace(stream, operator=operator)


__all__ = [
    "Answer",
    "Asked",
    "Assertion",
    "AtOnceSpec",
    "Behaviour",
    "Carried",
    "Event",
    "Fact",
    "Fresh",
    "Held",
    "Item",
    "Keeping",
    "KeepingSpec",
    "Leaving",
    "Lineage",
    "Measurements",
    "Noting",
    "Operator",
    "Orders",
    "Passing",
    "Pattern",
    "Reading",
    "Response",
    "Retraction",
    "Rows",
    "Running",
    "Spec",
    "SqlStep",
    "Stateful",
    "Stepped",
    "Surroundings",
    "TableStep",
    "ThinningSpec",
    "ThroughBehaviour",
    "Told",
    "Traits",
    "found_in",
    "given",
    "made_in",
    "of_one",
    "put_on",
    "register",
    "registered",
    "same",
    "spec_of",
]
