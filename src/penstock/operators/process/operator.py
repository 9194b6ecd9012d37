"""Process: a user's function with a state for each key."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

from penstock.pattern.schema import Schema
from penstock.plan.operator import Operator


@dataclass(frozen=True, eq=False)
class Process(Operator):
    """A user's function from events and the state of their keys to results and the state from then on.

    `state` are the attributes that are kept beside those of `by`, in one row for each key at most. The state of a key
    is dropped when punctuation on attributes of `by` alone says that the key is over, after the function has been
    told so.
    """

    function: Callable[[pa.Table, pa.Table, pa.Table], tuple[pa.Table, pa.Table]] = field(kw_only=True)
    by: tuple[str, ...] = field(kw_only=True)
    state: Schema = field(kw_only=True)

    @property
    def held(self) -> Schema:
        """Of the rows of state: the key, and what is kept of it."""
        below = self.inputs[0].schema
        return Schema((*below.select(self.by).attributes, *self.state.attributes))

    @property
    def kept(self) -> tuple[str, ...]:
        """The attributes of the key that results have. Of these they have no other values than events of their call."""
        below = self.inputs[0].schema
        return tuple(n for n in self.by if n in self.schema and self.schema.type_of(n) == below.type_of(n))

    @property
    def called(self) -> str:
        return f"{getattr(self.function, '__qualname__', repr(self.function))}(events, state, over)"

    @property
    def detail(self) -> str:
        return f"{self.called} by {', '.join(self.by)}"

    @property
    def meaning(self) -> str:
        """What decides results: of the function no more than its name is known."""
        return f"{getattr(self.function, '__qualname__', '?')} by {list(self.by)} with {self.state}"
