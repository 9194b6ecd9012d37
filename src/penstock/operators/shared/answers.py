"""Answers that several rooms give alike: their specs only name them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

from penstock.plan.spec import InRoom, Lineage, Spec


class KeptBy(InRoom):
    """A kernel of the room does all of the work, and rows travel to it as they are."""

    def __init__(self, kernel: str, labours: bool) -> None:
        super().__init__("kernel", kernel)
        self.labours = labours

    def found(self) -> Callable[..., Any]:
        from penstock.kernels.step import Keeping

        kernel = super().found()
        return lambda operator, node_id: Keeping(
            kernel(operator, node_id), [i.schema for i in operator.inputs], labours=self.labours
        )


def kept_by(kernel: str, *, labours: bool = False) -> Any:
    """The step: a kernel of the room, made of the operator and its id, does all of it."""
    return KeptBy(kernel, labours)


def onto_carried(operator: Any, lineage: Lineage, pattern: Any) -> Iterator[Any]:
    """What a punctuation becomes behind an operator, under each name of what is carried twice.

    It passes if it speaks of nothing but what is carried: of what is computed, or dropped, it would promise more than
    the input did.
    """
    names: dict[str, list[str]] = {}
    for name, carried in lineage.items():
        names.setdefault(carried.origins[0][1], []).append(name)
    if names.keys() >= set(pattern.restricted):
        for chosen in product(*(names[n] for n in pattern.restricted)):
            yield pattern.onto(operator.schema, dict(zip(pattern.restricted, chosen, strict=True)))


def passing_carried(self: Spec[Any], operator: Any, heard: bool) -> Any:
    """The behaviour: what speaks of nothing but what is carried passes."""
    from penstock.plan.behaviour import ThroughBehaviour

    return ThroughBehaviour(partial(onto_carried, operator, self.lineage(operator)))


def unchanged(*, purge: bool = False, pinned: bool = False) -> Any:
    """Each result is its event, unchanged: the two match alike, so events are dropped as they come."""

    def respond(self: Spec[Any], operator: Any, pattern: Any) -> Any:
        from penstock.plan.response import Response

        mine = pattern.over(operator.inputs[0].schema)
        return Response(inputs=(mine,), send=((mine,),), purge=purge, pinned=pinned)

    return respond


def behind_only(why: str) -> Any:
    """Results are dropped behind it, and no more."""

    def respond(self: Spec[Any], operator: Any, pattern: Any) -> Any:
        from penstock.plan.responses import behind_only

        return behind_only(operator, why)

    return respond


def as_carried(otherwise: str, *, purge: bool = False) -> Any:
    """An event is dropped as it comes if all that is restricted has its value from it; `otherwise` says what else has.

    `purge`: what waits here may go as what arrives may.
    """

    def respond(self: Spec[Any], operator: Any, pattern: Any) -> Any:
        from penstock.plan.responses import before

        names = {name: carried.origins[0][1] for name, carried in self.lineage(operator).items()}
        found = before(operator, pattern, names, otherwise)
        return replace(found, purge=purge and any(p is not None for p in found.inputs))

    return respond


def as_it_is(self: Spec[Any], operator: Any, inputs: Sequence[Any], consistency: Any) -> Any:
    """At whatever point of the dial it is the same."""
    return replace(operator, inputs=tuple(inputs))
