"""Queries with their sinks, several of which may run together and share work."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Literal

from penstock.analysis.bounds import with_bounds
from penstock.analysis.check import check
from penstock.analysis.speculate import speculate, told_apart_by
from penstock.builder.held import folded, settled
from penstock.builder.stream import StreamBuilder, explained
from penstock.contract.report import Report
from penstock.engine.admission import admit
from penstock.engine.overload import check_qos, wished
from penstock.engine.progress import Progress
from penstock.engine.run import Run, Trigger, TriggerName, parse_trigger
from penstock.engine.settings import Settings, check_setting
from penstock.engine.sink import Target
from penstock.engine.spark.gateway import check_session
from penstock.errors import UserError, did_you_mean, shortly
from penstock.operators.sink.operator import Sink
from penstock.plan.consistency import Consistency
from penstock.plan.operator import Operator
from penstock.plan.plan import Plan
from penstock.plan.weight import is_weighted
from penstock.shedding.policy import Shedding
from penstock.shedding.qos import QoS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SETTINGS = tuple(Settings.__dataclass_fields__)


@dataclass(frozen=True, eq=False)
class Query:
    """A stream and where it goes: what `stream.to(sink)` gives.

    >>> import penstock as ps
    >>> ps.generate().where("key = 1").to(ps.parquet("out"))
    <Query select (ts timestamp, key int, value double) to ps.parquet('out')>
    """

    stream: StreamBuilder
    sink: Target
    #: What its results are worth when not all of them can be given.
    qos: QoS | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.sink, Target):
            raise UserError(
                f"to({shortly(self.sink)}) is not a sink", hint="ps.parquet('out'), ps.memory(), ps.console()…"
            )
        if self.qos is not None:
            check_qos(self.qos, self.stream.schema)

    def __repr__(self) -> str:
        return f"<Query {self.stream.operator.kind} ({self.stream.schema}) to {self.sink!r}>"


@dataclass(frozen=True, eq=False)
class Queries:
    """Queries that run together: what several of them need is computed once, and an epoch is committed for all."""

    parts: tuple[Query, ...]

    @classmethod
    def of(cls, given: object) -> Queries:
        """What `ps.start` is given, or `queries = […]` of a query file."""
        parts = [given] if isinstance(given, Query) else given
        if not isinstance(parts, list | tuple) or not parts:
            raise UserError(
                f"start({shortly(given)}): these are no queries with sinks",
                hint="a list of them: ps.start([slow.to(ps.parquet('slow')), fast.to(ps.parquet('fast'))])",
            )
        for part in parts:
            if isinstance(part, StreamBuilder):
                raise UserError(
                    f"start(): {part!r} has no sink", hint="say where it goes: stream.to(ps.parquet('out'))"
                )
            if not isinstance(part, Query):
                raise UserError(f"start(): {shortly(part)} is not a query", hint="stream.to(ps.parquet('out'))")
        for k, part in enumerate(parts):
            if any(part.sink is other.sink for other in parts[:k]):
                raise UserError(
                    f"start(): {part.sink!r} is given twice", hint="give each query a sink of its own, or union() them"
                )
        return cls(tuple(parts))

    @cached_property
    def told(self) -> tuple[Query, ...]:
        """The queries, with results that may be corrected in the form in which their sinks take them."""
        found = []
        for part in self.parts:
            root, form = part.stream.operator, part.sink.takes
            if form != "log" and is_weighted(root):
                keys = told_apart_by(root)
                if form == "final":
                    root = settled(root, keys)
                elif form == "fold":
                    root = folded(root, keys, part.sink.fitted(root.schema).laid_out_by)
                part = replace(part, stream=replace(part.stream, operator=root), sink=part.sink.paired(keys))
            found.append(part)
        return tuple(found)

    @cached_property
    def plan(self) -> Plan:
        """All operators, and the sinks."""
        sinks = []
        for part in self.told:
            operator = part.stream.operator
            target = part.sink.fitted(operator.schema)
            sinks.append(Sink((operator,), operator.schema, target=target, qos=part.qos))
        return Plan.of(*sinks)

    @property
    def streams(self) -> Plan:
        """All operators without the sinks: what is checked."""
        return Plan.of(*(part.stream.operator for part in self.told))

    def at(self, consistency: Consistency) -> Queries:
        """The same queries at another point of the dial."""
        # Rows that hold for a time are final piece by piece, of which no operator but the last takes care.
        lasting = any(n.operator.schema.lifetime for n in self.streams.sources)
        waits = all(part.sink.takes == "final" for part in self.parts) and not lasting
        if isinstance(consistency, Consistency) and waits:
            consistency = consistency.waiting()
        roots = turn([part.stream.operator for part in self.parts], consistency)
        pairs = zip(self.parts, roots, strict=True)
        return Queries(tuple(replace(p, stream=replace(p.stream, operator=root)) for p, root in pairs))

    def explain(self, format: Literal["text", "mermaid"] = "text", *, punctuation: bool = False) -> str:
        """The plan as text or as a Mermaid flow chart."""
        return explained(self.plan, format, punctuation)

    def check(self, *, bounded: bool = False) -> Report:
        """Whether, operator by operator, state stays bounded and every result appears; and what to declare if not."""
        plan = self.streams
        return with_bounds(check(plan, bounded=bounded), plan)

    def start(
        self,
        *,
        trigger: Trigger | TriggerName | None = None,
        every: str | None = None,
        checkpoint: str | None = None,
        dead_letters: str | None = None,
        spark: SparkSession | Callable[[], SparkSession] | None = None,
        master: str | None = None,
        listener: Callable[[Progress], None] | None = None,
        allow_unbounded: str | None = None,
        feedback: str | Sequence[str] = (),
        consistency: Consistency | None = None,
        shedding: Shedding | None = None,
        **settings: Any,
    ) -> Run:
        """Start them; see `Stream.start`."""
        queries = self if consistency is None else self.at(consistency)
        for name in settings:
            if name not in _SETTINGS:
                raise UserError(f"start(): unknown setting '{name}'", hint=did_you_mean(name, _SETTINGS))
        for name, value in settings.items():
            check_setting(name, value)
        if not any(is_weighted(n.operator) for n in queries.streams):
            # What takes rows back says here that nobody has said how results are to be corrected.
            turn([n.operator for n in queries.streams.sources], Consistency.strong())
        chosen = parse_trigger(trigger, every)
        admission = admit(queries.streams, bounded=chosen.bounded, allow_unbounded=allow_unbounded)
        if spark is None:
            from penstock.engine.spark.session import spark_session

            spark = partial(spark_session, master)
        elif not callable(spark):
            check_session(spark)
        return Run(
            queries.plan,
            trigger=chosen,
            checkpoint=checkpoint,
            dead_letters=dead_letters,
            settings=Settings(**settings),
            feedback=[feedback] if isinstance(feedback, str) else feedback,
            spark=spark,
            listener=listener,
            admission=admission,
            wish=wished(queries.plan, shedding),
        )


def turn(operators: Sequence[Operator], consistency: Consistency) -> tuple[Operator, ...]:
    """What queries become at another point of the dial."""
    if not isinstance(consistency, Consistency):
        raise UserError(
            f"consistency={shortly(consistency)} is not possible",
            hint="ps.Consistency.strong(), .middle(remember='1 h'), .weak(block='5 s', remember='1 min')",
        )
    if any(map(is_weighted, operators)):
        raise UserError("the dial is turned twice", hint="query.at(…), or start(…, consistency=…), not both")
    return speculate(operators, consistency)


def start(queries: Query | Sequence[Query], **options: Any) -> Run:
    """Start several queries together: `ps.start([a.to(ps.parquet("x")), b.to(ps.parquet("y"))], checkpoint="c")`.

    What they have in common runs once, and the results of an epoch are committed for all of them or for none. Options
    are those of `Stream.start`. Feedback and demands name the sink that they are about, as `run.sinks` does.
    """
    return Queries.of(queries).start(**options)
