"""Lifetime join: two rows that match, for as long as both hold."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from penstock.plan.operator import Operator

if TYPE_CHECKING:
    from penstock.operators.join.operator import Taken
    from penstock.sql.expression import Expression


@dataclass(frozen=True, eq=False)
class LifetimeJoin(Operator):
    """Pairs of rows with equal keys, none of them null, and lifetimes that overlap: the pair holds where both do.

    `columns` are attributes of the one or the other row; `residual` is a further condition, over the names of `pair`.
    """

    kind = "join"
    word = "join"

    keys: tuple[tuple[str, str], ...] = field(kw_only=True)
    columns: tuple[Taken, ...] = field(kw_only=True)
    pair: tuple[tuple[int, str, str], ...] = field(kw_only=True)
    residual: Expression | None = field(default=None, kw_only=True)

    def keys_of(self, port: int) -> tuple[str, ...]:
        return tuple(pair[port] for pair in self.keys)

    @property
    def detail(self) -> str:
        on = ", ".join(a if a == b else f"{a} = {b}" for a, b in self.keys)
        return f"on {on}, while both hold" + (f", where {self.residual.text}" if self.residual is not None else "")
