"""RowsJoin: two inputs, joined with the last rows of each key."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.operators.join.operator import Join


@dataclass(frozen=True, eq=False)
class RowsJoin(Join):
    """Two inputs, joined on equal keys: in order of time, each event with the last rows of the other side before it.

    With `rows` (n, m) a left event joins the last m right events before it and a right event the last n left ones; None
    is no limit. `times` are the attributes that give the order.
    """

    @property
    def kind(self) -> str:
        return "join"
