"""The logical operators: frozen records of what to compute, each with the schema of its output.

Operators refer to their inputs directly, so a query is a directed acyclic graph of such records. Two consumers of
one record share its work. Identity, not equality, makes a node: `Plan` gives each a stable id.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyarrow.types import is_date, is_timestamp

from penstock.algebra.duration import format_duration
from penstock.algebra.feedback import Switches
from penstock.algebra.source import Adaptive, After, Ahead, Disorder, Every, OnViolation, Promise, Reader
from penstock.errors import UnknownOperatorError

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.algebra.aggregation import Aggregation
    from penstock.algebra.expression import Expression
    from penstock.algebra.schema import Schema
    from penstock.algebra.window import Window


@dataclass(frozen=True, eq=False)
class Operator:
    """One node of a plan."""

    inputs: tuple[Operator, ...]
    schema: Schema
    switches: Switches = field(default=Switches(), kw_only=True)

    @property
    def kind(self) -> str:
        return type(self).__name__.lower()

    @property
    def detail(self) -> str:
        """What this operator does, in a few words, for `explain`."""
        return ""


def unknown(operator: Operator, asked: str) -> UnknownOperatorError:
    """What to raise where an operator is of a kind that nobody has thought of: any answer would be a guess.

    >>> from penstock.algebra.schema import Schema
    >>> print(unknown(Operator((), Schema.parse("a int")), "what it keeps"))
    operator 'operator' (Operator) is not known here: what it keeps. Hint: add its case
    """
    what = f"operator '{operator.kind}' ({type(operator).__name__}) is not known here: {asked}"
    return UnknownOperatorError(what, hint="add its case")


@dataclass(frozen=True, eq=False)
class Source(Operator):
    """Events from outside, checked against schema and promises before anyone sees them."""

    name: str = ""
    reader: Reader | None = None
    promises: tuple[Promise, ...] = ()
    on_violation: OnViolation = "reject"

    @property
    def detail(self) -> str:
        reader = type(self.reader).__name__.lower() if self.reader is not None else "nothing to read yet"
        path = getattr(self.reader, "path", "")
        promised = "; ".join(self._shown(p) for p in self.promises) or "no punctuation promised"
        return f"{self.name} from {reader}{' ' + path if path else ''} ({promised})"

    def _shown(self, promise: Promise) -> str:
        """A promise as text, with lengths of time where its own text can only count ticks."""
        match promise:
            case Disorder():
                return f"disorder({promise.attribute} within {self._extent(promise.attribute, promise.slack)})"
            case Adaptive():
                low, high = (self._extent(promise.attribute, t) for t in (promise.at_least, promise.at_most))
                return f"disorder({promise.attribute} as {promise.quantile:.12g} of the events, {low} to {high})"
            case Ahead():
                return f"{promise.attribute} at most {self._extent(promise.attribute, promise.most)} ahead"
            case Every():
                return f"every {self._extent(promise.attribute, promise.period)} of {promise.attribute}"
            case After():
                gap = self._extent(promise.attribute, promise.gap)
                return f"{promise.key} over after {gap} of {promise.attribute}"
            case _:
                return str(promise)

    def _extent(self, attribute: str, ticks: int) -> str:
        t = self.schema.type_of(attribute)
        if is_date(t):
            return f"{ticks} day{'s' * (ticks != 1)}"
        return format_duration(ticks) if is_timestamp(t) else f"{ticks} tick{'s' * (ticks != 1)}"


@dataclass(frozen=True, eq=False)
class Select(Operator):
    """Keeps the events for which the predicate is true."""

    predicate: Expression = field(kw_only=True)

    @property
    def detail(self) -> str:
        return self.predicate.text


@dataclass(frozen=True, eq=False)
class Project(Operator):
    """Renames, drops and computes attributes: one output attribute per (name, expression)."""

    columns: tuple[tuple[str, Expression], ...] = field(kw_only=True)

    @property
    def detail(self) -> str:
        return ", ".join(n if e.text == n else f"{e.text} AS {n}" for n, e in self.columns)

    @property
    def renames(self) -> dict[str, tuple[str, ...]]:
        """Input attribute → the output attributes that carry it unchanged."""
        out: dict[str, tuple[str, ...]] = {}
        for name, expression in self.columns:
            if (column := carried(expression)) is not None:
                out[column] = (*out.get(column, ()), name)
        return out


def carried(expression: Expression) -> str | None:
    """The attribute that an expression passes on unchanged, if it does nothing else."""
    if len(expression.columns) != 1:
        return None
    (column,) = expression.columns
    return column if expression.sql == '"' + column.replace('"', '""') + '"' else None


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


@dataclass(frozen=True, eq=False)
class Impute(Map):
    """An expensive function with a queue of its own: results as of Map, but at most `budget` events in an epoch.

    The others wait, and punctuation that speaks of them waits with them.
    """

    budget: int = 1000

    @property
    def detail(self) -> str:
        return f"{self.called}, {self.budget:,} an epoch"


@dataclass(frozen=True, eq=False)
class Union(Operator):
    """All events of all inputs; a punctuation once every input has given it."""

    @property
    def detail(self) -> str:
        return f"{len(self.inputs)} inputs"


@dataclass(frozen=True, eq=False)
class Pace(Operator):
    """A union of inputs that may not fall behind each other: events more than `bound` behind the latest are dropped.

    The latest is the greatest `on` that any input has brought in the epochs before. `bound` is in ticks of `on`. An
    event without a time passes.
    """

    on: str = field(kw_only=True)
    bound: int = field(kw_only=True)

    @property
    def detail(self) -> str:
        timed = is_timestamp(self.schema.type_of(self.on))
        extent = format_duration(self.bound) if timed else f"{self.bound:,}"
        return f"{len(self.inputs)} input{'s' * (len(self.inputs) != 1)}, {self.on} at most {extent} behind the latest"


@dataclass(frozen=True, eq=False)
class Instrument(Operator):
    """Lets everything pass and issues a feedback: once, or after every so many events; at most once in an epoch.

    `says` is the text of the feedback over what passes, or a function from the number of events so far to that text.
    """

    says: str | Callable[[int], str] = field(kw_only=True)
    every: int | None = None

    @property
    def detail(self) -> str:
        says = self.says if isinstance(self.says, str) else f"{getattr(self.says, '__qualname__', '?')}(events)"
        return f"{says} once" if self.every is None else f"{says} after every {self.every:,} events"


@dataclass(frozen=True, eq=False)
class Bucket(Operator):
    """Labels each event with the windows it belongs to, one output event per window."""

    window: Window = field(kw_only=True)

    @property
    def detail(self) -> str:
        return str(self.window)


@dataclass(frozen=True, eq=False)
class Aggregate(Operator):
    """One output event per group, when a punctuation says that the group is complete.

    When the input is a Bucket, its label is the first of `keys`.
    """

    keys: tuple[str, ...] = field(kw_only=True)
    aggregations: tuple[Aggregation, ...] = field(kw_only=True)

    @property
    def detail(self) -> str:
        by = ", ".join(self.keys) or "nothing: one group"
        return ", ".join(f"{a.text} AS {a.name}" for a in self.aggregations) + f" by {by}"


@dataclass(frozen=True, eq=False)
class Distinct(Operator):
    """Each event once, at its first appearance; two nulls count as the same value."""

    @property
    def detail(self) -> str:
        return "whole events"


@dataclass(frozen=True, eq=False)
class OrderBy(Operator):
    """Events in order. Without `slack`, exactly: a sorted prefix leaves as punctuation says that it is complete.

    With `slack` n the order is approximate and needs no punctuation (BSort): a buffer of n + 1 events gives up its
    least whenever it is full. `by` lists (attribute, descending); nulls come last either way.
    """

    by: tuple[tuple[str, bool], ...] = field(kw_only=True)
    slack: int | None = None

    @property
    def detail(self) -> str:
        order = ", ".join(f"{name} desc" if down else name for name, down in self.by)
        return order if self.slack is None else f"{order}, slack {self.slack}"


@dataclass(frozen=True, eq=False)
class Limit(Operator):
    """The first `count` events in order of arrival, and then the end: nothing more is wanted."""

    count: int = field(kw_only=True)

    @property
    def detail(self) -> str:
        return f"the first {self.count:,}"


@dataclass(frozen=True, eq=False)
class Top(Operator):
    """The best `count` events of each group of `per`, given out when punctuation says that the group is complete.

    `by` lists (attribute, descending); null comes last either way, NaN right before it. Events that are equal by it
    are told apart by their other attributes in the order of the schema, ascending, so the result is one bag.
    """

    count: int = field(kw_only=True)
    by: tuple[tuple[str, bool], ...] = field(kw_only=True)
    per: tuple[str, ...] = ()

    @property
    def order(self) -> tuple[tuple[str, bool], ...]:
        """What decides within a group, most significant first; the attributes of `per` are all the same there."""
        found: dict[str, bool] = {}
        for name, down in (*self.by, *((name, False) for name in self.schema.names)):
            found.setdefault(name, down)
        return tuple((name, down) for name, down in found.items() if name not in self.per)

    @property
    def detail(self) -> str:
        order = ", ".join(f"{name} desc" if down else name for name, down in self.by)
        per = f" per {', '.join(self.per)}" if self.per else ""
        return f"{self.count:,} by {order}{per}"


@dataclass(frozen=True, eq=False)
class Sink(Operator):
    """Where results go. `target` is a declaration from `penstock.engine.sink`, opaque to the algebra."""

    target: Any = None

    @property
    def detail(self) -> str:
        return repr(self.target) if self.target is not None else ""
