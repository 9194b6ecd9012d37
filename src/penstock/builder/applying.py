"""The part of the builder for users' own functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa

from penstock.builder.built import Built, whole
from penstock.errors import UserError
from penstock.operators.impute.operator import Impute
from penstock.operators.map.operator import Map
from penstock.operators.process.operator import Process
from penstock.pattern.arguments import worded
from penstock.pattern.schema import Schema


@worded
class Applying(Built):
    """What users' functions make of a stream; `Stream` inherits it."""

    if TYPE_CHECKING:

        def where(self, predicate: str) -> Self: ...

    def map(
        self,
        function: Callable[[pa.Table], pa.Table],
        schema: str | Schema | None = None,
        *,
        keeps: Sequence[str] = (),
        time: str | Sequence[str] | None = None,
    ) -> Self:
        """Run a Python function on Arrow tables inside the tasks.

        It must treat events independently of each other: how a stream is cut into tables is not defined. `keeps`
        names attributes it passes on unchanged, so that punctuation on them survives.
        """
        out = self._made_by(function, schema, keeps, time, "map")
        return self._with(Map((self.operator,), out, function=function, keeps=tuple(keeps)))

    def impute(
        self,
        function: Callable[[pa.Table], pa.Table],
        schema: str | Schema | None = None,
        *,
        budget: int = 1000,
        keeps: Sequence[str] = (),
        where: str | None = None,
        time: str | Sequence[str] | None = None,
    ) -> Self:
        """Run an expensive Python function as `map` does, but on at most `budget` events in an epoch.

        The others wait in a queue that is part of the state, so that the rest of the query goes on. With `where`, only
        events for which that predicate is true are for the function; the others go past the queue as they are.
        """
        whole(budget, f"impute: budget={budget!r} is not possible", "events per epoch: a whole number of at least 1")
        if where is not None:
            chosen = self.where(where).impute(function, schema, budget=budget, keeps=keeps, time=time)
            return self.where(f"({where}) IS NOT TRUE")._unite((chosen,), "impute(where=…)")
        out = self._made_by(function, schema, keeps, time, "impute")
        return self._with(Impute((self.operator,), out, function=function, keeps=tuple(keeps), budget=budget))

    def process(
        self,
        function: Callable[[pa.Table, pa.Table, pa.Table], tuple[pa.Table, pa.Table]],
        state: str | Schema,
        by: str | Sequence[str],
        schema: str | Schema | None = None,
        *,
        time: str | Sequence[str] | None = None,
    ) -> Self:
        """Run a Python function that remembers something of each key: `process(visits, "n int", by="user")`.

        It is called in each epoch with the `events` that arrived, in their order, the rows of `state` of their keys,
        and no key `over`; and again with the keys that punctuation has closed: no event, their last state, and `over`,
        which is forgotten then. It returns results (of `schema`; left out, that of the events) and the state from now
        on, one row for each key at most; a key that is not among them is forgotten.

        >>> import penstock as ps, pyarrow as pa
        >>> from penstock.portal.testing import local_session
        >>> def visits(events, state, over):
        ...     seen = {row["user"]: row["n"] for row in state.to_pylist()}
        ...     results = []
        ...     for event in events.to_pylist():
        ...         seen[event["user"]] = seen.get(event["user"], 0) + 1
        ...         results.append({"user": event["user"], "visit": seen[event["user"]]})
        ...     kept = pa.Table.from_pylist([{"user": u, "n": n} for u, n in seen.items()], state.schema)
        ...     return pa.Table.from_pylist(results, pa.schema({"user": pa.int32(), "visit": pa.int32()})), kept
        >>> clicks = ps.generate("clicks", rate=2, rows=6, columns={"user": ("key", 1)}).ends()
        >>> query = clicks.process(visits, "n int", by="user", schema="user int, visit int")
        >>> query.collect(spark=local_session())["visit"].to_pylist()
        [1, 2, 3, 4, 5, 6]
        """
        keys = tuple(dict.fromkeys(self._known([by] if isinstance(by, str) else by, "process")))
        if not keys:
            raise UserError("process: by=[] names no key", hint="for one state in all: with_columns(all='1'), by='all'")
        kept = state if isinstance(state, Schema) else Schema.parse(state)
        if twice := [n for n in kept.names if n in keys]:
            raise UserError(f"process: '{twice[0]}' is in both state= and by=", hint="state= is what is kept of a key")
        out = self._made_by(function, schema, (), time, "process")
        if not out.times:
            passed = (t for t in self.schema.times if t in keys and t in out)
            out = Schema(out.attributes, tuple(t for t in passed if out.type_of(t) == self.schema.type_of(t)))
        return self._with(Process((self.operator,), out, function=function, by=keys, state=kept))

    def _made_by(
        self,
        function: Callable[..., Any],
        schema: str | Schema | None,
        keeps: Sequence[str],
        time: str | Sequence[str] | None,
        call: str,
    ) -> Schema:
        """The schema of what a function returns."""
        if not callable(function):
            raise UserError(f"{call}: {function!r} is not a function", hint="from a pyarrow.Table to a pyarrow.Table")
        out = self.schema if schema is None else schema if isinstance(schema, Schema) else Schema.parse(schema, time)
        for name in keeps:
            if name not in out or name not in self.schema:
                raise UserError(f"{call}: keeps '{name}', which is not both an input and an output attribute")
        return out if out.times else Schema(out.attributes, tuple(t for t in self.schema.times if t in keeps))
