"""Tables: slowly changing data that a stream is looked up in.

A table is read again when it changes. Without versions an event sees the table as it was when the event's epoch was
planned. A *versioned* table says from when on each of its rows holds, so an event sees the row of its own time,
whenever it arrives and whenever the table was read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from penstock.errors import UserError
from penstock.operators.join.operator import Taken
from penstock.plan.operator import Operator
from penstock.plan.table import Table

LookupKind = Literal["inner", "left"]


@dataclass(frozen=True, eq=False)
class TableJoin(Operator):
    """Events with what a table says about them. The one input is the stream; of `columns`, input 1 is the table.

    `keys` pairs attributes of the stream with the key of the table. `as_of` is the time at which an event looks into a
    versioned table: of the rows with its key that hold then, it gets the one with the greatest version.
    """

    kind = "lookup"
    steady = False

    table: Table = field(kw_only=True)
    keys: tuple[tuple[str, str], ...] = field(kw_only=True)
    columns: tuple[Taken, ...] = field(kw_only=True)
    how: LookupKind = "inner"
    as_of: str | None = None

    @property
    def detail(self) -> str:
        # No path: it may move, and a checkpoint is told from another by this text.
        on = " and ".join(a if a == b else f"{a} = {b}" for a, b in self.keys)
        held = f", {self.table.version} as of {self.as_of}" if self.as_of else ""
        held += f" and before {self.table.until}" if self.table.until else ""
        return f"{self.how} {self.table.name} on {on}{held}"

    def for_tasks(self) -> TableJoin:
        """The driver reads the table."""
        return replace(self, table=self.table.without_reader)

    @property
    def reads(self) -> frozenset[str]:
        """The attributes of the stream that are looked at or passed on."""
        passed = {name for column in self.columns for side, name in column.origins if side == 0}
        return frozenset(passed | {a for a, _ in self.keys} | ({self.as_of} if self.as_of else set()))


def tables_of(operators: Sequence[Operator]) -> dict[str, Table]:
    """The tables of a plan by name; two different ones of one name are an error."""
    found: dict[str, Table] = {}
    for operator in operators:
        if isinstance(operator, TableJoin):
            other = found.setdefault(operator.table.name, operator.table)
            if other != operator.table:
                raise UserError(
                    f"two tables are named '{other.name}': {other}; {operator.table}",
                    hint="give each its own name, or use one table twice",
                )
    return found
