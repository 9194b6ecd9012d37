"""Latest: of each key the row that was told last."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.operators.revised_aggregate.operator import RevisedAggregate


@dataclass(frozen=True, eq=False)
class Latest(RevisedAggregate):
    """Rows by key, as a table in a database has them: one that comes takes the place of the one with the same key.

    A row of weight +1 is the one that holds from now on, one of weight −1 says that there is none any more; of that
    only the key is looked at. The row that was told before is taken back, whatever is said of it now. Rows of a key
    count in the order in which they arrive.
    """

    kind = "latest"
    word = "changes"

    @property
    def detail(self) -> str:
        return f"the last row of each {', '.join(self.keys)}"

    @property
    def meaning(self) -> str:
        return self.detail
