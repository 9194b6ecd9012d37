"""A streaming plan of Spark as a small tree: what of it matters for state, and nothing that needs a JVM."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from penstock.contract.template import Scheme, Template

TIMES = ("timestamp", "timestamp_ntz")
_UNKNOWN_TIME = "event_time"


@dataclass(frozen=True)
class Column:
    """A column by Spark's expression id. `delay` is that of its watermark in milliseconds, None without one.

    `derived`: computed from other columns where it is used, with its expression as the name.
    """

    id: int
    name: str
    type: str = ""
    delay: int | None = None
    derived: bool = False

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Constant:
    text: str
    micros: int | None = None

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Opaque:
    """An expression Spark cannot solve for a time: a function call, a difference of timestamps, months."""

    text: str
    columns: frozenset[int] = frozenset()

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Sum:
    """Signed parts; +1 or -1 each."""

    parts: tuple[tuple[int, Expression], ...]

    def __str__(self) -> str:
        said = " ".join(f"{'+' if sign > 0 else '-'} {part}" for sign, part in self.parts)
        return said.removeprefix("+ ")


Expression = Column | Constant | Opaque | Sum


@dataclass(frozen=True)
class Less:
    """`less < more`, or `<=`: a conjunct of a join condition."""

    less: Expression
    more: Expression
    strict: bool = False

    def __str__(self) -> str:
        return f"{self.less} {'<' if self.strict else '<='} {self.more}"


@dataclass(frozen=True)
class SparkNode:
    """An operator of the plan: its output columns and its inputs.

    `seen` are the columns of each input as the user sees them, before unused ones were cut away; empty: the same.
    """

    columns: tuple[Column, ...] = ()
    inputs: tuple[SparkNode, ...] = ()
    seen: tuple[tuple[Column, ...], ...] = field(default=(), kw_only=True)

    @property
    def streaming(self) -> bool:
        return True


@dataclass(frozen=True)
class SparkSource(SparkNode):
    name: str = field(kw_only=True)


@dataclass(frozen=True)
class Static(SparkNode):
    """A table: whatever has no streaming source below it."""

    @property
    def streaming(self) -> bool:
        return False


@dataclass(frozen=True)
class Through(SparkNode):
    """Projection, filter, sort and whatever else keeps no state."""


@dataclass(frozen=True)
class Watermark(SparkNode):
    column: Column = field(kw_only=True)
    delay: str = field(kw_only=True)


@dataclass(frozen=True)
class SparkUnion(SparkNode):
    pass


@dataclass(frozen=True)
class SparkAggregate(SparkNode):
    """`distinct`: written as SELECT DISTINCT, which Spark runs as a grouping by all columns.

    `hoards` names an aggregate that keeps every value of its group, such as collect_list.
    """

    keys: tuple[Expression, ...] = field(kw_only=True)
    distinct: bool = False
    hoards: str | None = None


@dataclass(frozen=True)
class Deduplicate(SparkNode):
    keys: tuple[Column, ...] = field(kw_only=True)
    within_watermark: bool = False


@dataclass(frozen=True)
class SparkJoin(SparkNode):
    how: str = field(kw_only=True)
    keys: tuple[tuple[Expression, Expression], ...] = field(kw_only=True)
    ranges: tuple[Less, ...] = ()


@dataclass(frozen=True)
class Custom(SparkNode):
    """State kept by a function of the user. `timed` says whether the call asks for timeouts, timers or TTL at all."""

    call: str = field(kw_only=True)
    keys: tuple[Column, ...] = field(kw_only=True)
    timed: bool = field(kw_only=True)
    setting: str = field(kw_only=True)


@dataclass(frozen=True)
class SparkLimit(SparkNode):
    rows: str = field(kw_only=True)


def walk(plan: SparkNode) -> Iterator[SparkNode]:
    """All nodes, inputs before what reads them. No recursion: plans that programs write can be deep."""
    stack: list[tuple[SparkNode, bool]] = [(plan, False)]
    while stack:
        node, done = stack.pop()
        if done:
            yield node
        else:
            stack.append((node, True))
            stack += [(i, False) for i in reversed(node.inputs)]


def scheme_of(node: SparkNode) -> Scheme:
    """A watermark is a `+` on its column, one template each."""
    names = tuple(c.name for c in node.columns)
    marked = [i for i, c in enumerate(node.columns) if c.delay is not None]
    return Scheme.of(*(Template(names, tuple("+" if i == m else "-" for i in range(len(names)))) for m in marked))


def stream_of(node: SparkNode) -> str:
    """The sources below, by name."""
    return " and ".join(dict.fromkeys(n.name for n in walk(node) if isinstance(n, SparkSource))) or "the stream"


@dataclass(frozen=True)
class EventTime:
    """What an input offers as event time: the column to write, and how far its watermark gets."""

    name: str
    reach: Literal["here", "lost", "none"]

    @property
    def missing(self) -> bool:
        return self.reach == "none"


def time_of(node: SparkNode, which: int = 0) -> EventTime:
    """The event time of an input. "lost": there is a watermark below, but not on any column that gets here."""
    input = node.inputs[which]
    columns = node.seen[which] if node.seen else input.columns
    marked = [c for c in columns if c.delay is not None]
    if marked:
        return EventTime(next((c for c in marked if c.type in TIMES), marked[0]).name, "here")
    below = [n.column for n in walk(input) if isinstance(n, Watermark)]
    if below:
        return EventTime(below[0].name, "lost")
    known = [c for c in columns if c.type in TIMES]
    known += [c for n in walk(input) if isinstance(n, SparkSource) for c in n.columns if c.type in TIMES]
    return EventTime(known[0].name if known else _UNKNOWN_TIME, "none")
