"""Feedback on columns of a table, passed on as keys: for one epoch at a time.

What nobody wants behind a lookup is kept there, and stays. Which keys that means depends on the table, so it is asked
again for each epoch, of the snapshot that its plan names, and goes upstream as far as every operator hands its events
on within the epoch. Nothing is purged for it and nothing of it stays: where an event could wait and meet another state
of the table, it stops. So an event goes just if all its results would be dropped behind the lookup in the same epoch,
and an epoch that is run again drops the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from penstock.analysis.cascade import Cascade, Listener, Part, Step
from penstock.checkpoint.checkpoint import Checkpoint
from penstock.engine.tables import TableKeeper, load
from penstock.errors import PenstockError
from penstock.feedback.guards import Guards, Places
from penstock.feedback.unwanted import Record, with_record
from penstock.operators.lookup.feedback import obstacle
from penstock.operators.lookup.inverse import keys_that_match
from penstock.operators.lookup.operator import TableJoin
from penstock.pattern.feedback import Feedback, Intent
from penstock.pattern.pattern import Pattern
from penstock.plan.place import Place
from penstock.plan.plan import Node, Plan
from penstock.plan.upwards import passes_at_once

#: Answers that are kept: what a pattern means in a snapshot does not change.
KEPT = 256


class Inverted:
    """What the guards of a run mean epoch by epoch."""

    def __init__(self, plan: Plan, checkpoint: Checkpoint, keeper: TableKeeper) -> None:
        self.checkpoint, self.keeper = checkpoint, keeper
        #: From the results to the sources.
        self.lookups = [
            (node, node.operator)
            for node in reversed(plan.nodes)
            if isinstance(node.operator, TableJoin) and node.operator.switches.propagate and not obstacle(node.operator)
        ]
        self._cascade = _WithinEpoch(plan)
        self._keys: dict[tuple[str, str, Pattern], list[Pattern]] = {}
        self._last: tuple[Guards, Mapping[str, str], dict[Place, tuple[Pattern, ...]]] | None = None

    def concerns(self, guards: Guards) -> bool:
        """Whether something is kept behind a lookup of which keys could be told."""
        return any(node.id in guards.places for node, _ in self.lookups)

    def tables(self, guards: Guards, settled: bool) -> dict[str, str] | None:
        """The snapshots of the tables as they are now, if it depends on them what need not be read."""
        if not self.concerns(guards):
            return None
        storage, known = self.checkpoint.storage, self.keeper.live(())
        try:
            found = self.keeper.refresh(storage, settled)
        except PenstockError:
            return {}  # If there is anything to do, whoever plans it meets this error too.
        if known and self.keeper.live(()) != known:
            # There may be no epoch for a long time, and a table that changes all the time.
            self.keeper.sweep(storage, self.checkpoint.tables_named(), self.checkpoint.guard)
        return found

    def patterns(self, guards: Guards, tables: Mapping[str, str]) -> dict[Place, tuple[Pattern, ...]]:
        """By place, what to drop in an epoch with these snapshots of tables."""
        lasting = guards.patterns
        if not self.concerns(guards):
            return lasting
        if self._last is None or self._last[0] is not guards or self._last[1] != tables:
            self._last = guards, dict(tables), self._today(guards, lasting, tables)
        today = self._last[2]
        return {**lasting, **{place: (*lasting.get(place, ()), *patterns) for place, patterns in today.items()}}

    def _today(
        self, guards: Guards, lasting: Mapping[Place, tuple[Pattern, ...]], tables: Mapping[str, str]
    ) -> dict[Place, tuple[Pattern, ...]]:
        today = _Today(guards)
        for node, operator in self.lookups:
            if operator.table.name not in tables:
                continue
            # One lookup may be behind another: what it says of a column of that table goes on in the same way.
            for pattern in (*lasting.get(Place(node.id), ()), *today.patterns(Place(node.id))):
                for sent in self._keys_of(node.id, operator, tables[operator.table.name], pattern):
                    self._cascade.tell(today, node.inputs[0], Feedback(Intent.ASSUMED, sent), Place.at(node.id, 0))
        return {place: today.patterns(place) for place in today.places}

    def _keys_of(self, node_id: str, operator: TableJoin, snapshot: str, pattern: Pattern) -> list[Pattern]:
        asked = (node_id, snapshot, pattern)
        if asked not in self._keys:
            while len(self._keys) >= KEPT:
                del self._keys[next(iter(self._keys))]
            self._keys[asked] = keys_that_match(operator, load(self.checkpoint.storage, snapshot), pattern)
        return self._keys[asked]


class _WithinEpoch(Cascade):
    """The ways on which events come to an operator in the epoch in which they are read."""

    def _answer(self, keeper: Listener, node: Node, pattern: Pattern) -> Step:
        if not passes_at_once(node.operator):
            return False
        return (yield from super()._answer(keeper, node, pattern))


class _Today:
    """Keeps what holds for one epoch, beside what consumers have said for good."""

    def __init__(self, guards: Guards) -> None:
        self._guards = guards
        self.places: Places = {}
        self._heard: dict[tuple[str, Place], list[Pattern]] = {}

    def patterns(self, place: Place) -> tuple[Pattern, ...]:
        return tuple(r.pattern for r in self.places.get(place, ()))

    def mount(self, parts: Sequence[Part]) -> bool:
        for part in parts:
            known = self.places.get(part.place, ())
            self.places[part.place] = with_record(known, Record(part.pattern, self._guards.epoch)) or known
        return bool(parts)

    def hear(self, node_id: str, edge: Place, pattern: Pattern) -> None:
        self._heard.setdefault((node_id, edge), []).append(pattern)

    def said(self, node_id: str, edge: Place) -> Sequence[Pattern]:
        return [*self._guards.said(node_id, edge), *self._heard.get((node_id, edge), ())]

    def wish(self, node_id: str, patterns: Sequence[Pattern]) -> None:
        """Nobody wishes."""

    def note(self, node_id: str, feedback: Feedback, did: str, why: str) -> None:
        """The lookup has said already that keys go on."""


def read_after_all(splits: Mapping[str, list[dict[str, Any]]]) -> dict[str, list[dict[str, Any]]]:
    """Splits of a plan of which none is passed over: it was for a state of the table that is not that of the epoch."""
    read = {"spared": False, "low": None, "high": None}
    return {i: [{**s, **read} if s["spared"] else s for s in planned] for i, planned in splits.items()}
