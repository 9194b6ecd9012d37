"""From a logical plan to what tasks run: flows of steps without state between exchanges.

A *flow* starts at a source or at the output of an operator with state and pushes rows from step to step until they
reach the next operator with state, or a sink. Neighbouring steps in SQL are fused into one statement, down to what is
put together before it travels, so rows are looked at once. An operator with state is on *level* n when n exchanges lie
between it and the sources; all of one level share a stage.

Which operators there are nobody knows here: each has a step (see `penstock.kernels.step`).
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
from penstock.engine.tasks.account import Account
from penstock.engine.tasks.dropping import Dropping
from penstock.engine.tasks.origin import Origin, with_origin
from penstock.engine.tasks.watch import FILE, Watch
from penstock.errors import FailingError
from penstock.kernels.duck import to_the_letter
from penstock.kernels.failing import sound
from penstock.kernels.stateful import Stateful, Word
from penstock.kernels.step import (
    EVERYTHING,
    Asked,
    Keeping,
    Leaving,
    Passing,
    Rows,
    SqlStep,
    Step,
    TableStep,
    conform,
    registered,
)
from penstock.pattern.pattern import Pattern
from penstock.plan.looked_at import computed, looked_at
from penstock.plan.operator import Operator
from penstock.plan.place import Place
from penstock.plan.plan import Node, Plan
from penstock.plan.spec import from_outside, register, spec_of
from penstock.sql.fallible import Fallible

_NOTHING = Word()


class AtRest(dict[str, list[pa.Table]]):
    """Where rows have come to rest, by place; what guards have dropped; and what operators have noted."""

    def __init__(self, saved: dict[str, int], watch: Watch, careful: bool = False) -> None:
        super().__init__()
        self.saved, self.watch = saved, watch
        self.account = Account()
        #: Whether an expression has failed: then operators are run one by one, without the events on which theirs do.
        self.careful = careful

    def rest(self, place: str, rows: pa.Table) -> None:
        if rows.num_rows:
            self.setdefault(place, []).append(rows)


@dataclass(frozen=True)
class Keeper:
    """An operator with state, in its place: an edge per input, its level and kernel."""

    id: str
    edges: tuple[int, ...]
    level: int
    kernel: Stateful
    #: Whether it keeps groups, not rows of its inputs.
    groups: bool = False

    @property
    def places(self) -> tuple[Place, ...]:
        """Per port, where guards speak of what it keeps."""
        if self.groups:
            return (Place.of_groups(self.id),)
        return tuple(Place.at(self.id, port) for port in range(len(self.edges)))


class Pipeline:
    """Everything a task needs to know of the query; shipped to the workers once and cached there."""

    def __init__(self, plan: Plan) -> None:
        self.plan = without_driver_objects(plan)
        self.nodes: dict[str, Node] = {n.id: n for n in self.plan.nodes}
        self.consumers: dict[str, tuple[Node, ...]] = {n.id: self.plan.consumers(n.id) for n in self.plan.nodes}
        self.steps: dict[str, Step] = {n.id: spec_of(n.operator).step(n.operator, n.id) for n in self.plan.nodes}
        #: The prepared tables of an epoch, under the names that queries know them by.
        self.tables: dict[str, pa.Table] = {}
        #: What nobody wants in an epoch, by place in the plan (see `feedback.guards`).
        self.guards: Mapping[Place, tuple[Pattern, ...]] = {}
        #: What is shed; None where nothing ever is.
        self.dropping: Dropping | None = None
        #: What operators are told in an epoch.
        self.told: Mapping[str, Word] = {}
        self.keepers: dict[str, Keeper] = {}
        self.ports: dict[str, tuple[Keeper, int]] = {}
        self.looked_at = looked_at(self.plan)
        self.computed = computed(self.plan)
        level: dict[str, int] = {}
        edges = 0
        for node in self.plan.nodes:
            below = max((level[i] for i in node.inputs), default=0)
            step = self.steps[node.id]
            if isinstance(step, Keeping):
                below += 1
                numbers = tuple(range(edges, edges + len(node.inputs)))
                edges += len(node.inputs)
                keeper = self.keepers[node.id] = Keeper(node.id, numbers, below, step.kernel, step.groups)
                for port in range(len(node.inputs)):
                    self.ports[Place.stored(node.id, port, len(node.inputs))] = (keeper, port)
            level[node.id] = below
        self.levels = max(level.values(), default=0)

    def in_epoch(
        self,
        tables: Mapping[str, pa.Table],
        guards: Mapping[Place, tuple[Pattern, ...]] | None = None,
        told: Mapping[str, Word] | None = None,
        dropping: Dropping | None = None,
    ) -> Pipeline:
        """The same pipeline with the prepared tables of an epoch, by the tables' names, its guards and what it sheds,
        by place, and what operators are told."""
        if not tables and not guards and not told and dropping is None:
            return self
        other = copy.copy(self)
        other.tables = {registered(name): table for name, table in tables.items()}
        other.guards, other.told, other.dropping = guards or {}, told or {}, dropping
        return other

    def keepers_at(self, level: int) -> list[Keeper]:
        return [k for k in self.keepers.values() if k.level == level]

    def keeping(self, node_id: str) -> Keeping:
        """The step of an operator with state."""
        step = self.steps[node_id]
        assert isinstance(step, Keeping)
        return step

    @property
    def labours(self) -> bool:
        """Whether an expensive function runs behind a queue: then few rows are worth a task for each bucket too."""
        return any(isinstance(step, Keeping) and step.labours for step in self.steps.values())

    def flow(
        self,
        entry: str,
        table: pa.Table,
        saved: dict[str, int] | None = None,
        watch: Watch | None = None,
        origins: Sequence[Origin] = (),
        account: Account | None = None,
    ) -> dict[str, list[pa.Table]]:
        """Push rows that leave `entry` to where they come to rest: operators with state, and sinks.

        What guards have dropped on the way is added to `saved`, what operators note of events to `watch`, what they did
        to `account`. `origins` say where the rows come from.
        """
        out = AtRest({} if saved is None else saved, watch or Watch())
        if not table.num_rows:
            return {}
        # The scan itself guards what leaves a source.
        if entry in self.keepers and self._is_guarded(place := Place(entry)):
            table = self._guarded(place, table, out)
        before = dict(out.saved), dict(out.watch.seen), out.watch.letters[:]
        try:
            self._push(self.nodes[entry], Rows(table, self.tables), out)
        except FailingError:
            out.saved.clear()
            out.saved.update(before[0])
            out.watch.seen, out.watch.letters = before[1:]
            out = AtRest(out.saved, out.watch, careful=True)
            table = with_origin(table, origins)
            with to_the_letter():
                self._push(self.nodes[entry], Rows(table, self.tables), out)
        if account is not None:
            account.add(out.account)
        return dict(out)

    def _push(self, node: Node, rows: Rows, out: AtRest, consumers: tuple[Node, ...] | None = None) -> None:
        """Hand rows to the consumers of a node, or to some of them."""
        consumers = self.consumers[node.id] if consumers is None else consumers
        if node.inputs and node.id not in self.keepers:
            rows = self._guard(Place(node.id), rows, out)
        if len(consumers) > 1:
            rows = self._computed(node.id, rows, out)  # Shared by several consumers: computed once.
        for consumer in consumers:
            for port, name in enumerate(consumer.inputs):
                if name == node.id:
                    self._arrive(consumer, port, node, rows, out)

    def _arrive(self, node: Node, port: int, below: Node, rows: Rows, out: AtRest) -> None:
        """Rows come to an input of an operator."""
        step = self.steps[node.id]
        rows = self._guard(Place.at(node.id, port), rows, out)
        if isinstance(step, Keeping):
            rows = self._sound(node.id, step.tried, below, rows, out)
            self._rest(node, step, port, rows, out)
        elif isinstance(step, SqlStep):
            wanted = self.looked_at[node.id]
            rows = self._sound(node.id, step.tried(wanted), below, rows, out)
            others = self._taken_over(node, below, rows, out)
            if others:
                aside = (FILE,) if FILE in rows.base.column_names else ()
                sql = step.sql(rows.sql, Asked(wanted, aside, self.tables))
                self._push(node, rows.under(sql), out, others)
        elif isinstance(step, TableStep):
            table = rows.table()
            table = table if step.takes is None else conform(table, step.takes)
            if came := table.num_rows:
                began = out.account.now()
                table = step.run(table, out.watch.beside(node.id, self.told.get(node.id, _NOTHING).said))
                out.account.took(node.id, came, table.num_rows, began)
            if table.num_rows:
                self._push(node, Rows(table, self.tables), out)
        elif isinstance(step, Passing):
            self._push(node, rows, out)
        elif isinstance(step, Leaving):
            began = out.account.now()
            results = conform(rows.table(), step.schema)
            out.account.took(Place.at(node.id, port), rows.base.num_rows, results.num_rows, began)
            if self.dropping is not None and node.id in self.dropping.valued:
                out.account.valued(node.id, self.dropping.values(node.id, results))
            out.rest(node.id, results)
        else:
            raise AssertionError(f"{node.id} has an input and {step}")

    def _taken_over(self, node: Node, below: Node, rows: Rows, out: AtRest) -> tuple[Node, ...]:
        """Give rows to those consumers that do the work of this operator as well; the others."""
        others = []
        for consumer in self.consumers[node.id]:
            step = self.steps[consumer.id]
            if isinstance(step, Keeping) and step.takes_over:
                # What guards say of groups it sees to, group by group.
                given = self._guard(Place.at(consumer.id, 0), rows, out)
                given = given.under(step.reaching(given.sql)) if out.careful else given
                given = self._sound(consumer.id, step.tried, below, given, out)
                self._rest(consumer, step, 0, given, out)
            else:
                others.append(consumer)
        return tuple(others)

    def _rest(self, node: Node, step: Keeping, port: int, rows: Rows, out: AtRest) -> None:
        """What is sent of rows, on its way to an operator with state."""
        began = out.account.now()
        sent = step.sent(port, rows, out.careful)
        out.account.took(Place.at(node.id, port), rows.base.num_rows, sent.num_rows, began)
        if step.groups and self._is_guarded(groups := Place.of_groups(node.id)):
            sent = self._guarded(groups, sent, out)
        out.rest(Place.stored(node.id, port, len(node.inputs)), sent)

    def _sound(self, node_id: str, tried: Sequence[Fallible], below: Node, rows: Rows, out: AtRest) -> Rows:
        """Where something has failed, the rows of a statement without those on which this operator fails."""
        if not out.careful:
            return rows
        kept, failed = sound(rows.table(), tried)
        out.watch.failed(node_id, below.operator.schema.select(self.computed[below.id]), failed)
        return Rows(kept, self.tables)

    def _computed(self, node_id: str, rows: Rows, out: AtRest) -> Rows:
        """The rows of a statement, computed; what that costs is due to the operator where it ends."""
        if rows.sql == EVERYTHING:
            return rows
        began = out.account.now()
        found = rows.computed()
        out.account.took(node_id, rows.base.num_rows, found.base.num_rows, began)
        return found

    def _guarded(self, place: Place, table: pa.Table, out: AtRest) -> pa.Table:
        kept, dropped = apply_guard(table, self.guards.get(place, ()))
        if dropped:
            out.saved[f"{place} dropped"] = out.saved.get(f"{place} dropped", 0) + dropped
        kept, dropped = apply_guard(kept, self.shed.get(place, ()))
        out.account.sheds(f"{place} dropped", dropped)
        return kept

    @property
    def shed(self) -> Mapping[Place, tuple[Pattern, ...]]:
        """What is given up, by place."""
        return {} if self.dropping is None else self.dropping.places

    def _is_guarded(self, place: Place) -> bool:
        return place in self.guards or place in self.shed

    def _guard(self, place: Place, rows: Rows, out: AtRest) -> Rows:
        """The rows of a statement without those a guard drops; where there is no guard, nothing is computed."""
        return Rows(self._guarded(place, rows.table(), out), self.tables) if self._is_guarded(place) else rows

    @cached_property
    def blob(self) -> tuple[str, bytes]:
        """This pipeline as bytes, with their digest: the key under which workers cache it."""
        data = cloudpickle.dumps(self)
        return hashlib.sha256(data).hexdigest(), data

    def __getstate__(self) -> dict[str, Any]:
        state = dict(self.__dict__)
        state.pop("blob", None)
        state["tables"], state["guards"], state["told"], state["dropping"] = {}, {}, {}, None
        # Behaviours are asked for in tasks too, where nobody may have imported the packages of such operators.
        state["from_outside"] = from_outside(n.operator for n in self.plan.nodes)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        for spec in state.pop("from_outside"):
            register(spec)
        self.__dict__.update(state)


def without_driver_objects(plan: Plan) -> Plan:
    """A plan fit for travel: what only the driver can do anything with stays with it."""
    made: dict[str, Operator] = {}
    for node in plan.nodes:
        operator = replace(node.operator, inputs=tuple(made[i] for i in node.inputs))
        made[node.id] = operator.for_tasks()
    return Plan(tuple(Node(n.id, made[n.id], n.inputs) for n in plan.nodes))
