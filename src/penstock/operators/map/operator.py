"""Map: a user's function on Arrow tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

from penstock.plan.operator import Operator


@dataclass(frozen=True, eq=False)
class Map(Operator):
    """A user's Python function from an Arrow table to an Arrow table, run inside the tasks.

    `keeps` names the attributes that the function passes on unchanged for every event; only punctuation on these
    survives it, since nothing is known of what the function does to the others.
    """

    function: Callable[[pa.Table], pa.Table] = field(kw_only=True)
    keeps: tuple[str, ...] = ()

    @property
    def called(self) -> str:
        return f"{getattr(self.function, '__qualname__', repr(self.function))}(batch)"

    @property
    def detail(self) -> str:
        return self.called

    @property
    def meaning(self) -> str:
        """What decides results: of the function no more than its name is known."""
        return f"{getattr(self.function, '__qualname__', '?')} keeps {list(self.keeps)}"
