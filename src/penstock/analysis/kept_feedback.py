"""Where a feedback would be kept: its way through a plan, before anything runs.

It takes the way that it takes in a run (`algebra.cascade`), without limits on how much is kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from penstock.analysis.cascade import Cascade, Part, root_of
from penstock.pattern.feedback import Feedback
from penstock.pattern.pattern import Pattern
from penstock.plan.place import Place
from penstock.plan.plan import Plan


@dataclass(frozen=True)
class Kept:
    """A pattern that would be kept. `place` is where, `speaker` the operator whose punctuation can cover it.

    `pinned`: something was purged for it, so it stays until it is covered. `waits`: other consumers have not said it.
    `sweep`: an aggregate looks for groups that are doomed by it.
    """

    place: Place
    speaker: str
    pattern: Pattern
    pinned: bool = False
    sweep: bool = False
    waits: bool = False

    @property
    def operator(self) -> str:
        """The operator that keeps it."""
        return self.speaker if self.waits else self.place.node

    def says(self, other: Kept) -> bool:
        """Whether the other one adds nothing to it."""
        return self.pattern.contains(other.pattern) and self.pinned >= other.pinned and self.sweep >= other.sweep


def kept(plan: Plan, feedback: Feedback, at: str | None = None, edge: Place | None = None) -> list[Kept]:
    """What would be kept of a feedback to an operator; `edge` is the consumer's input it comes from.

    >>> from penstock.builder.stream import StreamBuilder
    >>> from penstock.operators.source.operator import Source
    >>> from penstock.pattern.schema import Schema
    >>> cars = StreamBuilder(Source((), Schema.parse("ts timestamp, speed double", "ts"), name="cars"))
    >>> plan = cars.where("speed > 3").plan
    >>> [(k.place, str(k.pattern)) for k in kept(plan, Feedback.parse("not [*, > 40]", cars.schema))]
    [('source:cars', '[*, > 40.0]')]
    """
    collected = _Collected(plan)
    Cascade(plan).tell(collected, root_of(plan) if at is None else at, feedback, edge)
    return list(collected)


class _Collected:
    """Keeps everything."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._places: dict[str, list[Kept]] = {}
        self._by_edge: dict[tuple[str, Place], list[Kept]] = {}

    def mount(self, parts: Sequence[Part]) -> bool:
        for p in parts:
            _add(self._places.setdefault(p.place, []), Kept(p.place, p.speaker, p.pattern, p.pinned, p.sweep))
        return bool(parts)

    def hear(self, node_id: str, edge: Place, pattern: Pattern) -> None:
        _add(self._by_edge.setdefault((node_id, edge), []), Kept(edge, node_id, pattern, waits=True))

    def said(self, node_id: str, edge: Place) -> Sequence[Pattern]:
        return [k.pattern for k in self._by_edge.get((node_id, edge), ())]

    def wish(self, node_id: str, patterns: Sequence[Pattern]) -> None:
        speaker = next(iter(self._plan[node_id].inputs), node_id)
        for pattern in patterns:
            _add(self._places.setdefault(node_id, []), Kept(Place(node_id), speaker, pattern))

    def note(self, node_id: str, feedback: Feedback, did: str, why: str) -> None:
        """Nobody asks."""

    def __iter__(self) -> Iterator[Kept]:
        return (k for records in (*self._places.values(), *self._by_edge.values()) for k in records)


def _add(records: list[Kept], new: Kept) -> None:
    """As few records as say the same."""
    if not any(r.says(new) for r in records):
        records[:] = [*(r for r in records if not new.says(r)), new]
