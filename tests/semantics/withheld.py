"""A reference run in which operators are told, at some moment, what nobody wants, and do something about it.

An operator does all that its response allows, or some of it, event by event as a coin falls. What it passes on is done
by the operators before it, or, for one operator alone, by withholding any of its matching input events.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, Literal

from penstock.analysis.cascade import respond
from penstock.pattern.pattern import Pattern
from penstock.plan.operator import Operator
from penstock.plan.plan import Plan
from penstock.plan.response import Response
from penstock.reference.interpret import Interpretation
from penstock.reference.item import Event, Item, events

Row = Mapping[str, Any]
Mode = Literal["all", "some"]


@dataclass
class Ear:
    """An operator of a reference run that hears feedback. Before `hear` it is the operator alone."""

    inner: Any
    operator: Operator
    random: Random
    #: Whether events that match what is passed on are withheld before they arrive, as the coin falls.
    withheld: bool = False
    answers: list[tuple[Pattern, Response, Mode]] = field(default_factory=list)
    heard: bool = False

    def tell(self, pattern: Pattern, mode: Mode) -> Response:
        response = respond(self.operator, pattern)
        if response != Response():  # Nothing can match.
            self.answers.append((pattern, response, mode))
        return response

    def hear(self) -> None:
        self.heard = True
        for _, response, mode in self.answers:
            if response.purge:
                self._purge(response, mode)

    def on_event(self, event: Event, input: int = 0) -> Iterable[Item]:
        for _, response, mode in self.answers if self.heard else ():
            if self.withheld and self._coin() and any(p.matches_row(event.row) for p in response.send[input]):
                return []
            if _is_unwanted(event.row, response, input) and (mode == "all" or self._coin()):
                return []
        return self._kept(self.inner.on_event(event, input))

    def on_punctuation(self, pattern: Pattern, input: int = 0) -> Iterable[Item]:
        return self._kept(self.inner.on_punctuation(pattern, input))

    def state(self) -> list[Any]:
        held: list[Any] = self.inner.state()
        return held

    def _kept(self, items: Iterable[Item]) -> list[Item]:
        return [item for item in items if not (self.heard and isinstance(item, Event) and self._is_dropped(item.row))]

    def _is_dropped(self, row: Row) -> bool:
        guards = (p for p, r, mode in self.answers if r.output and (mode == "all" or self._coin()))
        return any(p.matches_row(row) for p in guards)

    def _coin(self) -> bool:
        return self.random.random() < 0.5

    def _purge(self, response: Response, mode: Mode) -> None:
        def goes(row: Row, input: int = 0) -> bool:
            return _is_unwanted(row, response, input) and (mode == "all" or self._coin())

        inner, kind = self.inner, type(self.inner).__name__.removesuffix("Reference")
        if kind == "Aggregate":
            keys = inner.declared.keys
            inner.groups = {i: g for i, g in inner.groups.items() if not goes(dict(zip(keys, g.key)))}
        elif kind == "Distinct":
            inner.seen = {i: e for i, e in inner.seen.items() if not goes(e.row)}
        elif kind == "Top":
            inner.groups = {i: g for i, g in inner.groups.items() if not goes(g[0].row)}
        elif kind == "Map":  # Of a queue.
            pass  # Without epochs nothing waits.
        elif kind == "OrderBy":
            inner.held = [e for e in inner.held if not goes(e.row)]
        elif kind in ("Join", "MultiJoin"):
            for held in inner.held:
                held[:] = [h for h in held if not goes(h.row, h.input)]
        elif kind == "RowsJoin":
            inner.waiting = [h for h in inner.waiting if not goes(h.row, h.input)]
            for side in inner.recent:
                for key in list(side):
                    side[key] = [h for h in side[key] if not goes(h.row, h.input)]
                    if not side[key]:
                        del side[key]
        else:
            raise AssertionError(f"{kind} has nothing to purge")


def _is_unwanted(row: Row, response: Response, input: int) -> bool:
    guard = response.inputs[input]
    if guard is not None and guard.matches_row(row):
        return True
    # A group may be meant: the names of its keys are those of the events.
    groups = response.groups
    return groups is not None and all(groups[n].matches(row[n]) for n in groups.restricted)


class TalkingRun(Interpretation):
    """A run whose operators hear what they were told before the arrival of that number (from 1)."""

    def __init__(self, plan: Plan, inputs: Mapping[str, Sequence[Any]], at: int, seed: float, **more: Any) -> None:
        super().__init__(plan, inputs, traced=False, **more)
        self.at, self.arrived, self.already = at, 0, 0
        self.ears: dict[str, Ear] = {}
        for node_id, inner in self.running.items():
            self.ears[node_id] = Ear(inner, self.plan[node_id].operator, Random(f"{seed} {node_id}"))
        self.running = {**self.ears}

    @property
    def root(self) -> str:
        return self.plan.nodes[-1].id

    def tell(self, pattern: Pattern, choose: Random | None = None) -> None:
        """Tell the root and, as far as each passes it on, those before it; `choose` decides who does what."""
        todo = [(self.root, pattern)]
        while todo:
            node_id, said = todo.pop()
            ear = self.ears.get(node_id)
            if ear is None or len(self.plan.consumers(node_id)) > 1:
                continue  # A source, or a window that is one with its aggregate; or others read it too.
            said = Pattern(ear.operator.schema, said.restrictions)
            pinned = respond(ear.operator, said).pinned
            does = "all" if choose is None else choose.choice(("all", "all", "some", "none"))
            if pinned and does != "all":
                continue  # What may be formed again otherwise must not be passed on either.
            response = respond(ear.operator, said)
            if does != "none":
                ear.tell(said, "some" if does == "some" else "all")
            if choose is None or choose.random() < 0.8:
                inputs = self.plan[node_id].inputs
                todo += [(inputs[port], p) for port, sent in enumerate(response.send) for p in sent]

    def finish(self) -> tuple[list[Row], list[Row]]:
        """What came out before the operators were told, and behind it."""
        for _ in self.steps():
            pass
        rows = events(self.streams[self.root])
        if self.arrived < self.at:
            self.already = len(rows)
        return rows[: self.already], rows[self.already :]

    def _arrive(self, *arrival: Any) -> Any:
        self.arrived += 1
        if self.arrived == self.at:
            self.already = len(events(self.streams[self.root]))
            for ear in self.ears.values():
                ear.hear()
        return super()._arrive(*arrival)
