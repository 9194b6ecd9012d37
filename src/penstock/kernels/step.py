"""What an operator is to a task: its step, one of six forms, and no task need know which operator it is.

Rows leave a source or an operator with state and are pushed from step to step until they come to rest. Neighbouring
steps in SQL are fused into one statement, so rows are looked at once.

- `Reading`: a source. The scan reads it.
- `SqlStep`: a statement around the statement of its input (select, project, windows, lookup).
- `TableStep`: a function of Arrow tables, which may note something and be told something (map, pace, instrument).
- `Passing`: rows as they are (union).
- `Keeping`: rows travel to the bucket where a kernel keeps them (aggregates, joins, and all others with state).
- `Leaving`: rows are results (sink).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import pyarrow as pa

from penstock.kernels.duck import query, quote
from penstock.kernels.stateful import Shrinking, Stateful
from penstock.pattern.schema import Schema
from penstock.sql.fallible import Fallible

BASE = "__base"
EVERYTHING = f"SELECT * FROM {BASE}"
#: Behind an operator that can fail on an event: no later condition is asked before it, so that the same events fail
#: whatever a statement is put together from.
FENCE = " OFFSET 0"


def registered(name: str) -> str:
    """The name under which a prepared table is known to queries; no attribute or other table can have it."""
    return f"__table_{name}"


@dataclass(frozen=True)
class Rows:
    """Rows that need not have been computed yet: a statement over a table, and tables that it looks things up in.

    >>> rows = Rows(pa.table({"a": [1, 2]}))
    >>> rows.under(f"SELECT a + 1 AS b FROM ({rows.sql})").table()["b"].to_pylist(), rows.table() is rows.base
    ([2, 3], True)
    """

    base: pa.Table
    tables: Mapping[str, pa.Table] = field(default_factory=dict)
    sql: str = EVERYTHING

    def under(self, sql: str) -> Rows:
        """The rows of a statement that was put around this one."""
        return Rows(self.base, self.tables, sql)

    def table(self) -> pa.Table:
        """The rows themselves. If nothing was to be done to them, nothing is done."""
        return self.base if self.sql == EVERYTHING else query(self.sql, **{BASE: self.base}, **self.tables)

    def computed(self) -> Rows:
        """The same rows, computed."""
        return self if self.sql == EVERYTHING else Rows(self.table(), self.tables)


@dataclass(frozen=True)
class Asked:
    """What a step in SQL is told of its place: `wanted` are the attributes of its output that anybody looks at.

    `aside` are columns beside the events that go with them; `tables` the prepared tables, as queries know them.
    """

    wanted: frozenset[str]
    aside: tuple[str, ...] = ()
    tables: Mapping[str, pa.Table] = field(default_factory=dict)


class Noting(Protocol):
    """What a step notes of events in one task, and what it is told there."""

    @property
    def told(self) -> int | None:
        """What the operator's behaviour tells its tasks in this epoch."""

    def saw(self, value: int, together: Callable[[int, int], int]) -> None:
        """Note a number for the operator's behaviour; `together` makes one of two."""

    def reject(self, rows: pa.Table, schema: Schema, reason: str, detail: str, time: str | None) -> None:
        """Make dead letters of events. `detail` is SQL; `time` the attribute with their time, if they have one."""


@dataclass(frozen=True)
class Reading:
    """Of sources: the scan reads them."""


class SqlStep(ABC):
    """A statement around the statement of its one input."""

    def tried(self, wanted: frozenset[str]) -> tuple[Fallible, ...]:
        """The expressions that may fail on an event."""
        return ()

    @abstractmethod
    def reads(self, passed: frozenset[str], wanted: frozenset[str]) -> Collection[str]:
        """The attributes of the input that must be there: those that the statement names, and those it passes on.

        `passed` are the attributes of the output that are taken, `wanted` those that anybody looks at, so that they
        are computed.
        """

    @abstractmethod
    def sql(self, rows: str, asked: Asked) -> str:
        """The statement, around the one of its input."""


class TableStep(ABC):
    """A function from Arrow table to Arrow table."""

    #: The rows are made to have exactly this schema before; None takes them as they are.
    takes: Schema | None = None

    @abstractmethod
    def run(self, rows: pa.Table, noting: Noting) -> pa.Table:
        """What becomes of some rows; there is at least one."""


@dataclass(frozen=True)
class Passing:
    """Rows as they are.

    Files are read only as far as somebody needs it, so not all attributes need be there, and whoever takes them takes
    them by name.
    """


@dataclass(frozen=True)
class Leaving:
    """Rows that are results, in exactly this schema."""

    schema: Schema


class Keeping:
    """Rows that travel to the bucket where a kernel keeps them.

    By default they travel as they are, or of them what the kernel needs. Kernels whose rows can be put together before
    they travel have a step of their own.
    """

    def __init__(self, kernel: Stateful, inputs: Sequence[Schema], *, labours: bool = False) -> None:
        self.kernel = kernel
        self.inputs = tuple(inputs)
        #: Whether its work is expensive: then few rows are worth a task for each bucket too.
        self.labours = labours

    #: Whether it does what the operator right below does as well, and is given the rows that come to that.
    takes_over: bool = False
    #: Whether what travels, and what is kept, are groups: then there is a guard on these too.
    groups: bool = False

    @property
    def tried(self) -> tuple[Fallible, ...]:
        """The expressions that may fail on an event on its way."""
        return ()

    def reaching(self, rows: str) -> str:
        """SQL for those of the rows that reach it at all, where it has taken over: nothing else is asked of others."""
        return rows

    def reads(self, port: int) -> tuple[str, ...]:
        """The attributes of an input that are looked at."""
        names = self.kernel.needed[port]
        return self.inputs[port].names if names is None else names

    def sent(self, port: int, rows: Rows, careful: bool) -> pa.Table:
        """What is sent of the rows of an input. `careful`: those on which something fails are not among them."""
        schema = self.inputs[port].select(self.reads(port))
        if rows.sql != EVERYTHING:
            rows = rows.under(f"SELECT {', '.join(quote(n) for n in schema.names)} FROM ({rows.sql})")
        found = conform(rows.table(), schema)
        return self.kernel.shrink(found) if found.num_rows and isinstance(self.kernel, Shrinking) else found

    def together(self, tables: Sequence[pa.Table]) -> pa.Table:
        """What was sent at several times, or from several tasks, in one table; in order of arrival where it matters."""
        return tables[0] if len(tables) == 1 else pa.concat_tables(tables)


Step = Reading | SqlStep | TableStep | Passing | Keeping | Leaving


def conform(rows: pa.Table, schema: Schema) -> pa.Table:
    """Rows in exactly the types that a schema declares (DuckDB may widen a result)."""
    return rows if rows.schema.equals(schema.arrow) else rows.select(list(schema.names)).cast(schema.arrow)
