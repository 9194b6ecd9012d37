"""The behaviour of lifetime joins: what is final of both inputs is final of pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from penstock.kernels.fold import frontier_of, tick
from penstock.kernels.ticks import from_tick
from penstock.operators.lifetime_join.operator import LifetimeJoin
from penstock.operators.shared.stock import FOREVER
from penstock.pattern.pattern import Pattern
from penstock.pattern.punctuation import PunctuationSet
from penstock.pattern.restriction import less
from penstock.pattern.schema import SYNC, Schema
from penstock.plan.behaviour import Behaviour
from penstock.plan.orders import Orders


class LifetimeJoinBehaviour(Behaviour):
    """Passes on up to when both inputs are final, and lets rows go that have ended by then."""

    def __init__(self, operator: LifetimeJoin) -> None:
        self.schemas = [i.schema for i in operator.inputs]
        self.schema = operator.schema
        #: Per input the first tick that is not final; None while nothing is.
        self.reached: list[int | None] = [None, None]
        self.told: int | None = None
        self.fresh = False

    def receive(self, arrived: Sequence[tuple[Pattern, ...]]) -> tuple[Pattern, ...]:
        for port, patterns in enumerate(arrived):
            for pattern in patterns:
                at = self._reaches(pattern, port)
                known = self.reached[port]
                if at is not None and (known is None or at > known):
                    self.reached[port] = at
        left, right = self.reached
        if left is None or right is None or (self.told is not None and min(left, right) <= self.told):
            return ()
        self.told, self.fresh = min(left, right), True
        return (_before(self.schema, self.told),)

    def _reaches(self, pattern: Pattern, port: int) -> int | None:
        if not pattern.restricted:
            return FOREVER
        said = frontier_of(pattern, SYNC)
        return None if said is None else tick(said[0], self.schemas[port].type_of(SYNC)) + said[1]

    def orders(self) -> Orders:
        """Rows that have ended by then are of no further use: no change of either input can reach them."""
        known = [() if self.told is None else (_before(schema, self.told),) for schema in self.schemas]
        release = tuple(known) if self.fresh else tuple(() for _ in known)
        self.fresh = False
        sets = zip(self.schemas, known, strict=True)
        return Orders(release, tuple(PunctuationSet(schema).add(*said) for schema, said in sets))

    def to_json(self) -> dict[str, Any]:
        return {"reached": list(self.reached), "told": self.told}

    def restore(self, stored: Mapping[str, Any]) -> None:
        self.reached, self.told = list(stored["reached"]), stored["told"]


def _before(schema: Schema, at: int) -> Pattern:
    if at == FOREVER:
        return Pattern.all(schema)
    return Pattern.by_name(schema, {SYNC: less(from_tick(at, schema.type_of(SYNC)))})
