"""Runs a whole plan, one item at a time, and writes down every step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from penstock.errors import UserError, did_you_mean
from penstock.pattern.pattern import Pattern
from penstock.plan.consistency import Setting
from penstock.plan.count import Count
from penstock.plan.looked_at import computed, looked_at
from penstock.plan.operator import Operator
from penstock.plan.plan import Node, Plan
from penstock.plan.promise import EndOfSource, InBand
from penstock.plan.spec import Surroundings, spec_of, traits_of
from penstock.plan.upwards import passes_at_once
from penstock.plan.window import TimeWindow
from penstock.reference.failure import FAILURES
from penstock.reference.item import Assertion, DeadLetter, Event, Item
from penstock.reference.running import Arriving, ByEpoch, NotesFailures, Rejecting, Running, Turning

#: What a source brings: a row or a punctuation, alone (partition 0; a punctuation of all partitions) or with the
#: partition it comes from.
Arrival = Mapping[str, Any] | Pattern | Assertion | tuple[Hashable, Mapping[str, Any] | Pattern | Assertion]


@dataclass(frozen=True)
class TraceStep:
    """One operator took one item: what came out, and what it holds afterwards."""

    operator: str
    kind: str
    taken: Item | None
    emitted: tuple[Item, ...]
    state: tuple[Any, ...]
    input: int = 0
    dead_letter: DeadLetter | None = None
    note: str = ""


@dataclass(frozen=True)
class Result:
    """What a run left behind: the root's stream, every operator's stream by id, dead letters, steps, states."""

    outputs: list[Item]
    streams: dict[str, list[Item]]
    dead_letters: list[DeadLetter]
    trace: list[TraceStep]
    states: dict[str, list[Any]]


def interpret(plan: Plan | Operator, inputs: Mapping[str, Sequence[Arrival]], **how: Any) -> Result:
    """Run a plan over everything the sources bring; `how` is told as to an `Interpretation`.

    >>> import penstock as ps
    >>> numbers = ps.stream("numbers", "n int")
    >>> [str(item) for item in interpret(numbers.plan, {"numbers": [{"n": 1}]}, ends=True).outputs]
    ['n 1', 'punctuation [*]']
    """
    run = Interpretation(plan, inputs, **how)
    trace = list(run.steps())
    return Result(
        outputs=run.streams[run.plan.nodes[-1].id],
        streams=run.streams,
        dead_letters=[letter for some in run.rejecting for letter in some.dead_letters] + run.failed,
        trace=trace if run.traced else [],
        states={node_id: running.state() for node_id, running in run.running.items()},
    )


class Interpretation:
    """A plan at work. `steps` drives it and tells what happens.

    Sources take turns unless `order` names, arrival by arrival, whose turn it is. They assert what they know after
    every arrival, or only after the arrivals numbered in `punctuate_at` (from 1) and at the end of the input: there an
    epoch ends, and an empty one too if it is named twice. With `ends` (or when the source promises it) each source
    finally says that nothing more comes. `tables` are the rows of tables by name; they do not change. `dial` says after
    how many arrivals the dial is turned, and to what.
    """

    def __init__(
        self,
        plan: Plan | Operator,
        inputs: Mapping[str, Sequence[Arrival]],
        *,
        ends: bool = False,
        punctuate_at: Collection[int] | None = None,
        order: Sequence[str] | None = None,
        traced: bool = True,
        tables: Mapping[str, Sequence[Mapping[str, Any]]] | None = None,
        dial: Mapping[int, Setting] | None = None,
    ) -> None:
        self.plan = Plan.of(plan) if isinstance(plan, Operator) else plan
        self.ends, self.traced = ends, traced
        self.punctuate_at = None if punctuate_at is None else Counter(punctuate_at)
        self.tables = dict(tables or {})
        self.looked_at = looked_at(self.plan)
        self.computed = computed(self.plan)
        self.running: dict[str, Running] = {}
        self.sources: dict[str, Arriving] = {}
        self.streams: dict[str, list[Item]] = {node.id: [] for node in self.plan}
        self.arrivals: dict[str, list[tuple[Hashable | None, Event | Pattern | Count]]] = {}
        names = [_name(node) for node in self.plan.sources]
        for name in inputs:
            if name not in names:
                raise UserError(f"the plan has no source '{name}'", hint=did_you_mean(name, names))
        for node in self.plan:
            around = Surroundings(node.id, self.looked_at[node.id], self.tables)
            if not node.inputs:
                arrivals = [_arrival(a, node.operator) for a in inputs.get(_name(node), ())]
                partitions = list(dict.fromkeys(p for p, _ in arrivals if p is not None)) or [0]
                self.arrivals[_name(node)] = arrivals
                arriving: Any = spec_of(node.operator).reference(node.operator, replace(around, partitions=partitions))
                self.sources[node.id] = arriving
            elif not self._is_fused_away(node):
                self.running[node.id] = spec_of(node.operator).reference(node.operator, around)
        #: After so many arrivals the dial is turned.
        self.dial = dict(dial or {})
        #: Events, pairs and groups on which an expression has failed.
        self.failed: list[DeadLetter] = []
        for node_id, running in self.running.items():
            if isinstance(running, NotesFailures):
                running.on_failure = partial(self._note, node_id)
        self.by_epoch = {i: r for i, r in self.running.items() if isinstance(r, ByEpoch)}
        self.rejecting: list[Arriving | Rejecting] = [*self.sources.values()]
        self.rejecting += [r for r in self.running.values() if isinstance(r, Rejecting)]
        self.order = list(order) if order is not None else _in_turns(self.arrivals)

    def steps(self) -> Iterator[TraceStep]:
        """Everything that happens, in order."""
        by_name = {_name(node): node.id for node in self.plan.sources}
        waiting = {name: iter(arrivals) for name, arrivals in self.arrivals.items()}
        for node_id in self.sources:
            yield from self._assert(node_id)  # What is known before the first event.
        self._turn(0)
        for position, name in enumerate(self.order, start=1):
            partition, item = next(waiting[name])
            yield from self._arrive(by_name[name], partition, item)
            if self.punctuate_at is None:
                yield from self._end_epoch([by_name[name]])
            else:
                for _ in range(self.punctuate_at[position]):
                    yield from self._end_epoch(self.sources)
            self._turn(position)
        yield from self._end_epoch(self.sources, last=True)

    def _turn(self, position: int) -> None:
        for source, (slack, block) in self.dial.get(position, {}).items():
            self.sources[source].turn(slack)
            for consumer, _ in self._consumers(source):
                if isinstance(turning := self.running[consumer], Turning):
                    turning.turn(slack, block)

    def _end_epoch(self, speaking: Iterable[str], last: bool = False) -> Iterator[TraceStep]:
        """Sources assert what they know. Operators that go by epochs learn before that one ends, and then the next."""
        for timed in self.by_epoch.values():
            timed.epoch_ends()
        for node_id in speaking:
            yield from self._assert(node_id)
            source = self.sources[node_id]
            if last and (self.ends or any(isinstance(p, EndOfSource) for p in source.declared.promises)):
                yield from self._send(node_id, None, source.end())
        for node_id, timed in self.by_epoch.items():
            if said := tuple(timed.epoch_over()):
                yield from self._send(node_id, None, said)

    def _arrive(self, node_id: str, partition: Hashable | None, item: Event | Pattern | Count) -> Iterator[TraceStep]:
        source = self.sources[node_id]
        rejected = len(source.dead_letters)
        if isinstance(item, Pattern):
            yield from self._send(node_id, Assertion(item), source.on_punctuation(item, partition))
            return
        if isinstance(item, Count):
            source.on_count(item, partition)
            return
        emitted = source.on_event(item, source.partitions[0] if partition is None else partition)
        letter = source.dead_letters[-1] if len(source.dead_letters) > rejected else None
        yield from self._send(node_id, item, emitted, letter=letter)

    def _assert(self, node_id: str) -> Iterator[TraceStep]:
        if known := self.sources[node_id].punctuate():
            yield from self._send(node_id, None, known)

    def _send(
        self,
        node_id: str,
        taken: Item | None,
        emitted: Iterable[Item],
        input: int = 0,
        letter: DeadLetter | None = None,
        held: bool = False,
    ) -> Iterator[TraceStep]:
        """Write down a step and hand what came out of it to all consumers, item by item."""
        out = tuple(emitted)
        self.streams[node_id] += out
        node = self.plan[node_id]
        state = tuple(self.running[node_id].state()) if self.traced and node_id in self.running else ()
        note = getattr(self.running.get(node_id), "note", "")
        yield TraceStep(node_id, node.operator.kind, taken, out, state, input, letter, note)
        held = held or not passes_at_once(node.operator)
        told: set[str] = set()
        for item in out:
            for consumer, port in self._consumers(node_id):
                running = self.running[consumer]
                letters: list[DeadLetter] = []
                if isinstance(running, Rejecting):
                    running.held, letters = held, running.dead_letters
                known = len(letters)
                failed = len(self.failed)
                answer: Iterable[Item] = ()
                try:
                    if isinstance(item, Assertion):
                        answer = running.on_punctuation(item.pattern, port)
                    else:
                        answer = tuple(running.on_event(item, port))
                except FAILURES as error:
                    if isinstance(item, Assertion):
                        raise
                    # An event in several windows of an aggregate is one event all the same.
                    folded = self._folds(node, self.plan[consumer])
                    if consumer not in told or not folded:
                        shown = self.computed[node.inputs[0] if folded else node_id]
                        self._note(consumer, {name: item.row[name] for name in shown}, str(error))
                    told.add(consumer)
                letter = next(iter([*letters[known:], *self.failed[failed:]]), None)
                yield from self._send(consumer, item, answer, port, letter, held)

    def _folds(self, node: Node, consumer: Node) -> bool:
        """Whether an operator puts events into windows for an aggregate over them."""
        return traits_of(node.operator).makes == "windows" and _window(consumer.operator) is _window(node.operator)

    def _note(self, operator_id: str, row: Mapping[str, Any], why: str) -> None:
        self.failed.append(DeadLetter(operator_id, 0, row, why, None, "failed"))

    def _consumers(self, node_id: str) -> list[tuple[str, int]]:
        """Who reads an operator's output; a fused Bucket's input is read by its aggregates."""
        found: list[tuple[str, int]] = []
        for node in self.plan.consumers(node_id):
            if self._is_fused_away(node):
                found += self._consumers(node.id)
            else:
                found += [(node.id, port) for port, name in enumerate(node.inputs) if name == node_id]
        return found

    def _is_fused_away(self, node: Node) -> bool:
        """Whether this is a Bucket whose windows only its aggregates can tell: landmark and count windows."""
        if traits_of(node.operator).makes != "windows" or isinstance(_window(node.operator), TimeWindow):
            return False
        consumers = self.plan.consumers(node.id)
        return bool(consumers) and all(self._folds(node, consumer) for consumer in consumers)


def _window(operator: Operator) -> Any:
    return getattr(operator, "window", None)


def _name(node: Node) -> str:
    return str(getattr(node.operator, "name", node.id))


def _in_turns(arrivals: Mapping[str, Sequence[object]]) -> list[str]:
    longest = max((len(a) for a in arrivals.values()), default=0)
    return [name for turn in range(longest) for name, listed in arrivals.items() if turn < len(listed)]


def _arrival(given: Arrival, source: Any) -> tuple[Hashable | None, Event | Pattern | Count]:
    """An arrival with its partition; a record with a text in the column for punctuation is one."""
    partition: Hashable | None = None
    item: Any = given
    if isinstance(given, tuple):
        partition, item = given
    if isinstance(item, Assertion):
        return partition, item.pattern
    if isinstance(item, Pattern | Count):
        return partition, item
    for promise in source.promises:
        if isinstance(promise, InBand) and promise.column in item and promise.column not in source.schema:
            if item[promise.column] is not None:
                return 0 if partition is None else partition, Pattern.parse(item[promise.column], source.schema)
            item = {name: value for name, value in item.items() if name != promise.column}
    return 0 if partition is None else partition, Event(item)
