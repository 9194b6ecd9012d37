"""Snapshot: what rows come to that hold at the same time."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from penstock.plan.operator import Operator

if TYPE_CHECKING:
    from penstock.sql.aggregation import Aggregation

Empty = Literal["skip", "zero"]


@dataclass(frozen=True, eq=False)
class SnapshotAggregate(Operator):
    """One row for each group and each stretch of time in which no row of the group begins or ends.

    It is told at once, up to the ends that are known, and taken back when one of them changes.
    """

    kind = "snapshot"
    word = "snapshot"

    keys: tuple[str, ...] = field(kw_only=True)
    aggregations: tuple[Aggregation, ...] = field(kw_only=True)
    #: What is told where no row of a group holds: nothing, or what SQL says of no rows.
    empty: Empty = field(default="skip", kw_only=True)
    #: The aggregate that says how often a result is told; it is no attribute of it.
    copies: str | None = field(default=None, kw_only=True)

    @property
    def detail(self) -> str:
        if self.copies is not None:
            return "the part of each row that its pairs cover, or do not"
        by = ", ".join(self.keys) or "nothing: one group"
        return (
            ", ".join(f"{a.text} AS {a.name}" for a in self.aggregations)
            + f" by {by}, at every moment{', zeros where nothing holds' if self.empty == 'zero' else ''}"
        )
