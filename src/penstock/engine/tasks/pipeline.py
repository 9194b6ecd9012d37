"""From a logical plan to what tasks run: flows of stateless operators between exchanges.

A *flow* starts at a source or at an aggregate's output and pushes rows through select, project, map, union and bucket
until they reach the next aggregate or a sink. Neighbouring SQL operators are fused into one statement, down to the
pre-aggregation, so rows are looked at once. An aggregate is on *level* n when n exchanges lie between it and the
sources; all aggregates of one level share a stage.
"""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import cloudpickle
import pyarrow as pa

from penstock.engine.source.pruning.guard import apply_guard
from penstock.engine.tasks.origin import Origin, with_origin
from penstock.engine.tasks.watch import FILE, Watch
from penstock.errors import FailingError
from penstock.kernels.duck import query, quote, to_the_letter
from penstock.kernels.failing import sound
from penstock.kernels.stateful import Shrinking, Stateful
from penstock.operators.aggregate.kernel import AggregateKernel
from penstock.operators.aggregate.operator import Aggregate
from penstock.operators.distinct.operator import Distinct
from penstock.operators.impute.operator import Impute
from penstock.operators.instrument.operator import Instrument
from penstock.operators.join.operator import Join, Joined
from penstock.operators.limit.operator import Limit
from penstock.operators.lookup.kernel import LookupKernel, deepest, registered
from penstock.operators.lookup.operator import TableJoin
from penstock.operators.map.kernel import apply_function
from penstock.operators.map.operator import Map
from penstock.operators.multijoin.operator import MultiJoin
from penstock.operators.order_by.operator import OrderBy
from penstock.operators.pace.operator import Pace
from penstock.operators.project.operator import Project
from penstock.operators.rows_join.operator import RowsJoin
from penstock.operators.select.operator import Select
from penstock.operators.sink.operator import Sink
from penstock.operators.source.operator import Source
from penstock.operators.top.operator import Top
from penstock.operators.union.operator import Union
from penstock.operators.window.kernel import bucket_sql, members_sql
from penstock.operators.window.kernel import tried as tried_by
from penstock.operators.window.operator import Bucket
from penstock.pattern.pattern import Pattern
from penstock.pattern.schema import Schema
from penstock.pattern.types import duckdb_type
from penstock.plan.looked_at import computed, looked_at
from penstock.plan.operator import Operator, unknown
from penstock.plan.plan import Node, Plan
from penstock.plan.promise import Inbox
from penstock.plan.window import CountWindow, LandmarkWindow, Window
from penstock.sql.carried import carried
from penstock.sql.expression import Expression

BASE = "__base"
EVERYTHING = f"SELECT * FROM {BASE}"
#: Behind an operator that can fail on an event: no later condition is asked before it, so that the same events fail
#: whatever a statement is put together from.
FENCE = " OFFSET 0"


class Flow(dict[str, list[pa.Table]]):
    """Where rows have come to rest, by place; what guards have dropped; and what operators have noted."""

    def __init__(self, saved: dict[str, int], watch: Watch, careful: bool = False) -> None:
        super().__init__()
        self.saved, self.watch = saved, watch
        #: Whether an expression has failed: then operators are run one by one, without the events on which theirs do.
        self.careful = careful


@dataclass(frozen=True)
class Exchange:
    """An aggregate in its place: its edge number, level and kernel."""

    id: str
    edge: int
    level: int
    keys: tuple[str, ...]
    closing: str | None
    window: Window | None
    kernel: AggregateKernel

    @property
    def by_count(self) -> bool:
        return isinstance(self.window, CountWindow)

    @property
    def landmark(self) -> bool:
        return isinstance(self.window, LandmarkWindow)

    @property
    def spread(self) -> tuple[str, ...]:
        """The keys that decide the bucket: all but the window label, so that a key's windows stay together.

        Landmark windows end for all groups together, so all of them are in one bucket: when the stream is over, the
        last window is that of the latest event of any group.
        """
        if self.landmark:
            return ()
        label = self.window.label if self.window is not None else None
        return tuple(k for k in self.keys if k != label) or (() if self.by_count else self.keys)


@dataclass(frozen=True)
class Keeper:
    """An operator that keeps rows, in its place: an edge per input, its level and kernel."""

    id: str
    edges: tuple[int, ...]
    level: int
    kernel: Stateful
    #: Of an impatient join, the keys of each input.
    impatient: tuple[tuple[str, ...], ...] = ()
    impatient_schemas: tuple[Schema, ...] = ()


def port_name(node_id: str, port: int, ports: int) -> str:
    """Where rows for one input of an operator come to rest, and under which its state is filed."""
    return node_id if ports == 1 else f"{node_id}#{port}"


class Pipeline:
    """Everything a task needs to know of the query; shipped to the workers once and cached there."""

    def __init__(self, plan: Plan) -> None:
        self.plan = without_driver_objects(plan)
        self.nodes: dict[str, Node] = {n.id: n for n in self.plan.nodes}
        self.consumers: dict[str, tuple[Node, ...]] = {n.id: self.plan.consumers(n.id) for n in self.plan.nodes}
        self.exchanges: dict[str, Exchange] = {}
        #: The prepared tables of an epoch, under the names that queries know them by.
        self.tables: dict[str, pa.Table] = {}
        #: What nobody wants in an epoch, by place in the plan (see `engine.guards`).
        self.guards: Mapping[str, tuple[Pattern, ...]] = {}
        #: The least times that operators which pace let pass in an epoch.
        self.floors: Mapping[str, int] = {}
        self.keepers: dict[str, Keeper] = {}
        self.ports: dict[str, tuple[Keeper, int]] = {}
        self.looked_at = looked_at(self.plan)
        self.computed = computed(self.plan)
        level: dict[str, int] = {}
        edges = 0
        for node in self.plan.nodes:
            below = max((level[i] for i in node.inputs), default=0)
            if isinstance(node.operator, Aggregate):
                below += 1
                self.exchanges[node.id] = self._exchange(node, edges, below)
                edges += 1
            elif (kernel := stateful_kernel(node)) is not None:
                below += 1
                numbers = tuple(range(edges, edges + len(node.inputs)))
                edges += len(node.inputs)
                keeper = self.keepers[node.id] = Keeper(node.id, numbers, below, kernel, *_impatience(node))
                for port in range(len(node.inputs)):
                    self.ports[port_name(node.id, port, len(node.inputs))] = (keeper, port)
            level[node.id] = below
        self.levels = max(level.values(), default=0)

    def _exchange(self, node: Node, edge: int, level: int) -> Exchange:
        operator = node.operator
        assert isinstance(operator, Aggregate)
        below = self.nodes[node.inputs[0]]
        window: Window | None = None
        schema = below.operator.schema
        if isinstance(below.operator, Bucket) and below.operator.window.label in operator.keys:
            window = below.operator.window
            schema = below.operator.inputs[0].schema
        keys = operator.keys
        kernel = AggregateKernel(
            schema,
            tuple(k for k in keys if window is None or k != window.label),
            operator.aggregations,
            window,
            operator_id=node.id,
        )
        closing = window.label if window is not None else (keys[0] if keys else None)
        return Exchange(node.id, edge, level, keys, closing, window, kernel)

    def in_epoch(
        self,
        tables: Mapping[str, pa.Table],
        guards: Mapping[str, tuple[Pattern, ...]] | None = None,
        floors: Mapping[str, int] | None = None,
    ) -> Pipeline:
        """The same pipeline with the prepared tables of an epoch, by the tables' names, its guards, by place, and
        the least times that pass, by operator."""
        if not tables and not guards and not floors:
            return self
        other = copy.copy(self)
        other.tables = {registered(name): table for name, table in tables.items()}
        other.guards, other.floors = guards or {}, floors or {}
        return other

    def at_level(self, level: int) -> list[Exchange]:
        return [e for e in self.exchanges.values() if e.level == level]

    def keepers_at(self, level: int) -> list[Keeper]:
        return [k for k in self.keepers.values() if k.level == level]

    @property
    def labours(self) -> bool:
        """Whether an expensive function runs behind a queue: then few rows are worth a task for each bucket too."""
        return any(isinstance(node.operator, Impute) for node in self.plan.nodes)

    def flow(
        self,
        entry: str,
        table: pa.Table,
        saved: dict[str, int] | None = None,
        watch: Watch | None = None,
        origins: Sequence[Origin] = (),
    ) -> dict[str, list[pa.Table]]:
        """Push rows that leave `entry` to where they come to rest: aggregates (as partials) and sinks.

        What guards have dropped on the way is added to `saved`, what operators note of events to `watch`. `origins` say
        where the rows come from.
        """
        out = Flow({} if saved is None else saved, watch or Watch())
        if not table.num_rows:
            return {}
        # The scan itself guards what leaves a source.
        if entry in self.guards and entry in self.exchanges | self.keepers:
            table = self._guarded(entry, table, out)
        before = dict(out.saved), dict(out.watch.seen), out.watch.letters[:]
        try:
            self._push(self.nodes[entry], EVERYTHING, table, out)
        except FailingError:
            out.saved.clear()
            out.saved.update(before[0])
            out.watch.seen, out.watch.letters = before[1:]
            out = Flow(out.saved, out.watch, careful=True)
            table = with_origin(table, origins)
            with to_the_letter():
                self._push(self.nodes[entry], EVERYTHING, table, out)
        return dict(out)

    def _sound(self, node: Node, below: Node, sql: str, base: pa.Table, out: Flow) -> tuple[str, pa.Table]:
        """Where something has failed, the rows of a statement without those on which this operator fails."""
        if not out.careful:
            return sql, base
        rows = base if sql == EVERYTHING else query(sql, **{BASE: base}, **self.tables)
        match node.operator:
            case Select():
                tried = node.operator.predicate.tried
            case Project():
                wanted = self.looked_at[node.id]
                tried = tuple(t for name, e in node.operator.columns if name in wanted for t in e.tried)
            case Bucket():
                tried = tried_by(node.operator.window)
            case Aggregate():
                tried = self.exchanges[node.id].kernel.tried
            case Map() | TableJoin() | Union() | Pace() | Instrument() | Sink():
                tried = ()
            case Distinct() | OrderBy() | Limit() | Top() | Joined() | MultiJoin():
                tried = ()
            case other:
                raise unknown(other, "which of its expressions can fail")
        rows, failed = sound(rows, tried)
        out.watch.failed(node.id, below.operator.schema.select(self.computed[below.id]), failed)
        return EVERYTHING, rows

    def _guarded(self, place: str, table: pa.Table, out: Flow) -> pa.Table:
        kept, dropped = apply_guard(table, self.guards[place])
        if dropped:
            out.saved[f"{place} dropped"] = out.saved.get(f"{place} dropped", 0) + dropped
        return kept

    def _guard(self, place: str, sql: str, base: pa.Table, out: Flow) -> tuple[str, pa.Table]:
        """The rows of a statement without those a guard drops; where there is no guard, nothing is computed."""
        if place not in self.guards:
            return sql, base
        rows = base if sql == EVERYTHING else query(sql, **{BASE: base}, **self.tables)
        return EVERYTHING, self._guarded(place, rows, out)

    def _push(
        self,
        node: Node,
        sql: str,
        base: pa.Table,
        out: Flow,
        consumers: tuple[Node, ...] | None = None,
    ) -> None:
        """Hand rows to the consumers of a node, or to some of them."""
        consumers = self.consumers[node.id] if consumers is None else consumers
        if node.inputs and node.id not in self.exchanges and node.id not in self.keepers:
            sql, base = self._guard(node.id, sql, base, out)
        if len(consumers) > 1 and sql != EVERYTHING:
            # Shared by several consumers: computed once.
            base, sql = query(sql, **{BASE: base}, **self.tables), EVERYTHING
        for consumer in consumers:
            self._step(consumer, node, sql, base, out)

    def _step(self, node: Node, below: Node, sql: str, base: pa.Table, out: Flow) -> None:
        operator: Operator = node.operator
        if node.id not in self.keepers and self.guards:
            sql, base = self._guard(f"{node.id}#{node.inputs.index(below.id)}", sql, base, out)
        sql, base = self._sound(node, below, sql, base, out)
        match operator:
            case Select():
                fence = FENCE if operator.predicate.can_fail else ""
                self._push(node, f"SELECT * FROM ({sql}) WHERE {operator.predicate.sql}{fence}", base, out)
            case Project():
                wanted = [(n, e, n in self.looked_at[node.id]) for n, e in operator.columns]
                made = [f"{e.sql if w else _null(e)} AS {quote(n)}" for n, e, w in wanted]
                made += [FILE] if FILE in base.column_names else []
                fence = FENCE if any(e.can_fail and carried(e) is None for _, e, w in wanted if w) else ""
                self._push(node, f"SELECT {', '.join(made)} FROM ({sql}){fence}", base, out)
            case Bucket():
                # Aggregates right above do the windowing themselves, pane by pane; anything else gets labelled rows.
                consumers = self.consumers[node.id]
                folding = [c for c in consumers if self._folds(c, operator.window)]
                for consumer in folding:
                    # What guards say of windows the aggregate sees to, group by group.
                    rows, of = self._guard(f"{consumer.id}#0", sql, base, out)
                    # An event that is in no window never reaches the aggregate, so it cannot fail there.
                    rows = members_sql(rows, operator.window) if out.careful else rows
                    self._rest_at(consumer, *self._sound(consumer, below, rows, of, out), out)
                if len(folding) < len(consumers):
                    others = tuple(c for c in consumers if c not in folding)
                    labelled = bucket_sql(sql, operator.window)
                    self._push(node, labelled, base, out, others)
            case TableJoin():
                name = registered(operator.table.name)
                self._push(node, LookupKernel(operator).sql(sql, name, deepest(self.tables[name])), base, out)
            case Impute():
                self._rest_at_port(node, 0, below, sql, base, out)
            case Union():
                # As they are: files are read only as far as somebody needs it, so not all attributes need be there, and
                # whoever takes them takes them by name.
                for _ in range(node.inputs.count(below.id)):
                    self._push(node, sql, base, out)
            case Pace():
                rows = base if sql == EVERYTHING else query(sql, **{BASE: base}, **self.tables)
                rows = conform(rows, operator)
                for _ in range(node.inputs.count(below.id)):
                    passed = out.watch.pace(node, rows, self.floors.get(node.id))
                    if passed.num_rows:
                        self._push(node, EVERYTHING, passed, out)
            case Instrument():
                rows = base if sql == EVERYTHING else query(sql, **{BASE: base}, **self.tables)
                out.watch.count(node, rows)
                self._push(node, EVERYTHING, rows, out)
            case Map():
                rows = conform(query(sql, **{BASE: base}, **self.tables), below.operator)
                if rows.num_rows:
                    self._push(node, EVERYTHING, apply_function(operator, node.id, rows), out)
            case Aggregate():
                self._rest_at(node, sql, base, out)
            case Distinct() | OrderBy() | Limit() | Top() | Joined() | MultiJoin():
                for port, name in enumerate(node.inputs):
                    if name == below.id:
                        self._rest_at_port(node, port, below, sql, base, out)
            case Sink():
                rows = conform(query(sql, **{BASE: base}, **self.tables), below.operator)
                if rows.num_rows:
                    out.setdefault(node.id, []).append(rows)
            case _:
                raise unknown(operator, "what a task does to its events")

    def _folds(self, consumer: Node, window: Window) -> bool:
        return consumer.id in self.exchanges and self.exchanges[consumer.id].window is window

    def _rest_at(self, node: Node, sql: str, base: pa.Table, out: Flow) -> None:
        exchange = self.exchanges[node.id]
        if exchange.by_count:
            columns = ", ".join(quote(c) for c in exchange.kernel.needed) or "1 AS __one"
            sql = f"SELECT {columns} FROM ({sql})"
        else:
            sql = exchange.kernel.partial_sql(sql)
        rows = query(sql, **{BASE: base}, **self.tables)
        if exchange.by_count and not out.careful:
            # An event on which an argument fails takes no place in its window. Where windows are counted nobody knows
            # any more where it came from.
            exchange.kernel.try_all(rows)
        if f"{node.id}:groups" in self.guards and not exchange.by_count:
            rows = self._guarded(f"{node.id}:groups", rows, out)
        if rows.num_rows:
            out.setdefault(node.id, []).append(rows)

    def _rest_at_port(self, node: Node, port: int, below: Node, sql: str, base: pa.Table, out: Flow) -> None:
        """Whole rows, or of them what the operator looks at, on their way to a keeper."""
        brought = self.keepers[node.id].kernel.needed[port]
        schema = below.operator.schema if brought is None else below.operator.schema.select(brought)
        sql, base = self._guard(f"{node.id}#{port}", sql, base, out)
        if sql == EVERYTHING:
            rows = base
        else:
            rows = query(
                f"SELECT {', '.join(quote(n) for n in schema.names)} FROM ({sql})", **{BASE: base}, **self.tables
            )
        if rows.num_rows:
            names = list(schema.names)
            rows = rows.select(names)
            rows = rows if rows.schema.equals(schema.arrow) else rows.cast(schema.arrow)
            kernel = self.keepers[node.id].kernel
            rows = kernel.shrink(rows) if isinstance(kernel, Shrinking) else rows
            out.setdefault(port_name(node.id, port, len(node.inputs)), []).append(rows)

    @cached_property
    def blob(self) -> tuple[str, bytes]:
        """This pipeline as bytes, with their digest: the key under which workers cache it."""
        data = cloudpickle.dumps(self)
        return hashlib.sha256(data).hexdigest(), data

    def __getstate__(self) -> dict[str, Any]:
        state = dict(self.__dict__)
        state.pop("blob", None)
        state["tables"], state["guards"], state["floors"] = {}, {}, {}
        return state


def _null(expression: Expression) -> str:
    """In the place of what nobody looks at."""
    return expression.sql if carried(expression) else f"CAST(NULL AS {duckdb_type(expression.type)})"


def _impatience(node: Node) -> tuple[tuple[tuple[str, ...], ...], tuple[Schema, ...]]:
    operator = node.operator
    if not isinstance(operator, Joined) or not operator.impatient:
        return (), ()
    left, right = zip(*operator.keys, strict=True)
    return (left, right), tuple(i.schema for i in operator.inputs)


def stateful_kernel(node: Node) -> Stateful | None:
    """The kernel of an operator that keeps rows, None for the others."""
    match node.operator:
        case Distinct():
            from penstock.operators.distinct.kernel import DistinctKernel

            return DistinctKernel(node.operator, node.id)
        case OrderBy():
            from penstock.operators.order_by.kernel import OrderKernel

            return OrderKernel(node.operator, node.id)
        case Limit():
            from penstock.operators.limit.kernel import LimitKernel

            return LimitKernel(node.operator, node.id)
        case Top():
            from penstock.operators.top.kernel import TopKernel

            return TopKernel(node.operator, node.id)
        case Impute():
            from penstock.operators.impute.kernel import QueueKernel

            return QueueKernel(node.operator, node.id)
        case Join():
            from penstock.operators.join.kernel import JoinKernel

            return JoinKernel(node.operator, node.id)
        case RowsJoin():
            from penstock.operators.rows_join.kernel import RowsJoinKernel

            return RowsJoinKernel(node.operator, node.id)
        case MultiJoin():
            from penstock.operators.multijoin.kernel import MultiJoinKernel

            return MultiJoinKernel(node.operator, node.id)
        case (
            Source() | Select() | Project() | Map() | TableJoin() | Union() | Pace() | Instrument() | Bucket() | Sink()
        ):
            return None
        case Aggregate():
            return None  # It has an exchange of its own.
        case other:
            raise unknown(other, "which kernel keeps its rows")


def conform(rows: pa.Table, operator: Operator) -> pa.Table:
    """Rows in exactly the types that the operator's schema declares (DuckDB may widen a result)."""
    schema = operator.schema.arrow
    return rows if rows.schema.equals(schema) else rows.select(list(operator.schema.names)).cast(schema)


def without_driver_objects(plan: Plan) -> Plan:
    """A plan fit for travel: a Spark DataFrame and the target of a sink stay with the driver."""
    made: dict[str, Operator] = {}
    for node in plan.nodes:
        operator = replace(node.operator, inputs=tuple(made[i] for i in node.inputs))
        if isinstance(operator, Source) and isinstance(operator.reader, Inbox):
            operator = replace(operator, reader=Inbox(None))
        if isinstance(operator, TableJoin):
            operator = replace(operator, table=operator.table.without_reader)
        if isinstance(operator, Sink):
            operator = replace(operator, target=None)
        made[node.id] = operator
    return Plan(tuple(Node(n.id, made[n.id], n.inputs) for n in plan.nodes))
