"""Streams that can be started: the builder of the algebra, plus the way to run what it built."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa

from penstock.analysis.bounds import with_bounds
from penstock.analysis.check import check
from penstock.builder.lasting import lasting_schema
from penstock.builder.stream import StreamBuilder
from penstock.contract.report import Report
from penstock.engine.progress import Progress
from penstock.engine.query import Queries, Query, turn
from penstock.engine.run import Run, Trigger, TriggerName
from penstock.engine.sink import MemoryTarget, Target, memory
from penstock.errors import UserError, counted, did_you_mean, shortly
from penstock.kernels.ticks import to_tick
from penstock.operators.source.operator import Source
from penstock.pattern.arguments import checked, worded
from penstock.pattern.duration import parse_duration
from penstock.pattern.schema import SYNC, Schema
from penstock.pattern.types import coerce_value
from penstock.plan.consistency import Consistency
from penstock.plan.promise import Generated, Inbox, Lifetime
from penstock.shedding.policy import Shedding
from penstock.shedding.qos import QoS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: The column kinds of the generator that a user may ask for, and their types.
_GENERATED = {
    "serial": "bigint",
    "key": "int",
    "uniform": "double",
    "normal": "double",
    "category": "string",
    "chance": "boolean",
    "trip": "bigint",
}


@worded
class Stream(StreamBuilder):
    """A stream of events: build a query by chaining calls, `check` it, then `start` it."""

    def check(self, *, bounded: bool = False) -> Report:
        """Whether, operator by operator, state stays bounded and every result appears; and what to declare if not.

        Nothing is read and nothing started. `bounded` is the question for runs that end by themselves: there,
        streams that say `ends()` release everything at the end. Where streams `expect(…)` rates, the report gives
        bounds of state and delay too. It is true if the query is safe.

        >>> rides = stream("rides", "ts timestamp, trip int", time="ts").disorder("5 s")
        >>> bool(rides.window("1 min").group_by("trip").agg(n="count(*)").check())
        True
        >>> report = rides.group_by("trip").agg(n="count(*)").check()
        >>> print(report.verdict)
        unsafe: aggregate-1: state grows for ever, results are held back
        >>> print(report.fixes[0].short)
        rides = rides.punctuate(ps.Punctuate.after("trip", "1 h"))
        """
        plan = self.plan
        return with_bounds(check(plan, bounded=bounded), plan)

    def start(
        self,
        sink: Target,
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
        qos: QoS | None = None,
        shedding: Shedding | None = None,
        **settings: Any,
    ) -> Run:
        """Start the query and return its handle.

        `checkpoint` is the folder from which a later start goes on; without one it lies beside a file sink, and is
        thrown away with other sinks. Settings: `max_rows` and `max_bytes` per epoch, `buckets`, `memory` per task;
        `durability`: "commit" (an epoch that is committed survives power loss) or "process" (it survives a kill of the
        process, and nobody waits for the disk); `on_error="fail"` stops the run at an event on which an expression
        fails, which else becomes a dead letter.

        A query that would run until it is stopped, and keep state or hold results back for ever, is refused (see
        `check`), unless `allow_unbounded` says why that is fine. A bounded run gets a line in `warnings` instead.

        Spark is started (or, if `spark` is a function, asked for) when it is clear that the query may run: that its
        paths exist, its checkpoint is free and its own, and its sink too.

        `consistency` says how long results wait and how long they can be corrected. Left out, they wait until they are
        final; at `ps.Consistency.middle(remember="1 h")` they are told at once, and corrected. Each row then has a
        `_weight`: +1 says that it holds from now on, −1 that it no longer does.

        `qos` says what the results are worth when the machine cannot give all of them, and `shedding` how much is given
        up: as much as the load demands (`ps.Shedding.auto()`, the default with `qos`) or by hand
        (`ps.Shedding.to("60%")`). What is delivered is exact. Without both, nothing is ever given up.

        `feedback` is told to the run before its first epoch; `run.feedback(…)` tells it more while it goes on.
        """
        if isinstance(sink, list | tuple | set) and sink:
            raise UserError(
                f"start() takes one sink, not {len(sink)}",
                hint="start them together: ps.start([query.to(sink), query.to(another)], checkpoint=…)",
            )
        if not isinstance(sink, Target):
            raise UserError(
                f"start(sink={shortly(sink)}) is not a sink", hint="ps.parquet('out'), ps.memory(), ps.console()…"
            )
        return Queries((self.to(sink, qos=qos),)).start(
            trigger=trigger,
            every=every,
            checkpoint=checkpoint,
            dead_letters=dead_letters,
            spark=spark,
            master=master,
            listener=listener,
            allow_unbounded=allow_unbounded,
            feedback=feedback,
            consistency=consistency,
            shedding=shedding,
            **settings,
        )

    def at(self, consistency: Consistency) -> Self:
        """The query at another point of the dial, to look at what it becomes there: `check`, `explain`, `trace`.

        >>> rides = stream("rides", "ts timestamp, trip int", time="ts").disorder("5 s")
        >>> early = rides.window("1 min").group_by("trip").agg(n="count(*)").at(Consistency.middle(remember="1 h"))
        >>> print(early.schema)
        window_start timestamp, trip int, n bigint, _weight bigint
        """
        (operator,) = turn([self.operator], consistency)
        return replace(self, operator=operator)

    def to(self, sink: Target, *, qos: QoS | None = None) -> Query:
        """The query together with where its results go, for `ps.start([…])`, which starts several at once.

        `qos` says what the results are worth beside those of the others, when not all can be given.
        """
        return Query(self, sink, qos)

    def collect(self, **options: Any) -> pa.Table:
        """Run over everything there is now and return the results: for tests, notebooks and small answers."""
        target = memory()
        options.setdefault("trigger", "available_now")
        run = self.start(target, **options).wait()
        found = target.table()
        if letters := run.dead_letters().num_rows:
            # Nothing is lost silently, not even here, where there is no folder to leave them in.
            outside = counted(letters, "event was", "events were")
            warnings.warn(f"{outside} not let in: start() the query to see them", stacklevel=2)
        return self.schema.arrow.empty_table() if found is None else found


@checked
def stream(
    name: str,
    schema: str | Schema,
    *,
    time: str | Sequence[str] | None = None,
    lifetime: tuple[str, str] | None = None,
) -> Stream:
    """Declare a stream by its name, its attributes and its time attribute.

    >>> stream("traffic", "ts timestamp, segment int, speed double", time="ts")
    <Stream source (ts timestamp, segment int, speed double)>

    Rows that hold for a time have a `lifetime` instead: the attributes with the first moment at which one holds, and
    the first at which it no longer does, or null. `.changes(…)` says how lifetimes are shortened afterwards.
    """
    if not name or not name.replace("_", "").replace("-", "").isalnum():
        raise UserError(f"stream name {name!r} is not possible", hint="use letters, digits, - and _")
    parsed = schema if isinstance(schema, Schema) else Schema.parse(schema, time)
    if SYNC in parsed and not parsed.lifetime:
        raise UserError(f"stream '{name}': attribute '{SYNC}' is reserved", hint="give it another name")
    if lifetime is not None:
        parsed = lasting_schema(name, parsed, lifetime)
        return Stream(Source((), parsed, name=name, promises=(Lifetime(*parsed.lifetime),)))
    return Stream(Source((), parsed, name=name))


@checked
def generate(
    name: str = "generated",
    *,
    rate: float | None = None,
    rows: int | None = None,
    seed: int = 0,
    start: str = "2026-01-01 00:00:00",
    disorder: str | int = 0,
    partitions: int = 1,
    columns: Mapping[str, str | tuple[Any, ...]] | None = None,
    punctuate: Mapping[str, int] | None = None,
) -> Stream:
    """A stream made by a seeded generator: `ps.generate(rate=1000, rows=1_000_000)`.

    Events carry `ts` (from `start`, `rate` events a second of event time, up to `disorder` late), `key` and `value`,
    or the `columns` asked for, each a kind with its arguments: `columns={"user": ("key", 1000), "paid": ("chance",
    0.1)}` (kinds: serial, key, uniform, normal, category, chance, trip). Without `rows` it never ends and keeps pace
    with the clock. `punctuate={"trip": 100}` puts a record into the stream after every 100 events that says which
    values of the attribute are over.

    >>> generate(rate=100, rows=10, columns={"speed": ("uniform", 0, 120)})
    <Stream source (ts timestamp, speed double)>
    """
    wanted = columns if columns is not None else {"key": ("key", 100), "value": "normal"}
    kinds: list[tuple[str, str, tuple[Any, ...]]] = [("ts", "time", ())]
    for column, kind in wanted.items():
        given = (kind,) if isinstance(kind, str) else tuple(kind)
        if not given or not isinstance(given[0], str) or given[0] not in _GENERATED:
            raise UserError(
                f"generate: column '{column}' is {kind!r}", hint=did_you_mean(str(given[:1] or ""), _GENERATED)
            )
        kinds.append((column, given[0], given[1:]))
    declared = ", ".join(f"`{c}` {'timestamp' if k == 'time' else _GENERATED[k]}" for c, k, _ in kinds)
    if rate is not None and not (_is_number(rate, int, float) and 0 < rate < math.inf):
        raise UserError(f"generate(rate={shortly(rate)}) is not possible", hint="events a second, more than 0")
    if rows is not None and not (_is_number(rows) and rows >= 0):
        raise UserError(f"generate(rows={shortly(rows)}) is not possible", hint="a number of events")
    if not (_is_number(partitions) and partitions >= 1):
        raise UserError(
            f"generate(partitions={shortly(partitions)}) is not possible", hint="a whole number of at least 1"
        )
    if not _is_number(seed):
        raise UserError(f"generate(seed={shortly(seed)}) is not possible", hint="a whole number")
    late = parse_duration(disorder, where="generate disorder") if disorder else 0
    first = to_tick(coerce_value(start, pa.timestamp("us")))
    said = tuple((punctuate or {}).items())
    for attribute, every in said:
        if attribute not in {c for c, _, _ in kinds} or not (_is_number(every) and every >= 1):
            raise UserError(
                f"generate(punctuate={{'{attribute}': {shortly(every)}}}) is not possible",
                hint="a column, and a number of events",
            )
    reader = Generated(rows, rate, seed, first, partitions, late, tuple(kinds), punctuate=said)
    made = Stream(Source((), Schema.parse(declared, "ts"), name=name, reader=reader)).disorder(disorder or "0 s")
    return made.punctuated() if said else made


def _is_number(value: object, *kinds: type) -> bool:
    return isinstance(value, kinds or int) and not isinstance(value, bool)


@checked
def from_spark(frame: DataFrame, *, name: str = "spark", time: str | Sequence[str] | None = None) -> Stream:
    """Take any Structured Streaming DataFrame as a stream.

    Its micro-batches go through a durable inbox, each under its batch id, so nothing is read twice.
    """
    if not getattr(frame, "isStreaming", False):
        raise UserError(
            f"from_spark(name='{name}'): this DataFrame is not a stream", hint="use spark.readStream, or read_parquet"
        )
    fields = ", ".join(
        f"`{f.name.replace('`', '``')}` {f.dataType.simpleString().replace('timestamp_ntz', 'timestamp')}"
        for f in frame.schema.fields
    )
    return Stream(Source((), Schema.parse(fields, time), name=name, reader=Inbox(frame)))


__all__ = ["MemoryTarget", "Stream", "from_spark", "generate", "stream"]
