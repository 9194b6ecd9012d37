"""RowsJoin: two inputs, joined with the last rows of each key."""

from __future__ import annotations

from dataclasses import dataclass, field

from penstock.operators.join.operator import Joined


@dataclass(frozen=True, eq=False)
class RowsJoin(Joined):
    """Two inputs, joined on equal keys: in order of time, each event with the last rows of the other side before it.

    With `rows` (n, m) a left event joins the last m right events before it and a right event the last n left ones; None
    is no limit. `times` are the attributes that give the order.
    """

    kind = "join"

    rows: tuple[int | None, int | None] = field(kw_only=True)
    times: tuple[str, str] = field(kw_only=True)

    @property
    def nearness(self) -> str:
        left, right = self.rows
        return f"last {left or 'all'} left and {right or 'all'} right rows of each key"
