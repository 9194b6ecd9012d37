"""Dropped windows as feedback: what the operators of a real plan would leave unread, without running it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from markers import Events, Results, Stage

import penstock as ps
from penstock.analysis.cascade import Cascade, Part
from penstock.pattern.feedback import Feedback, Intent
from penstock.pattern.pattern import Pattern
from penstock.pattern.restriction import between
from penstock.plan.place import Place
from penstock.plan.plan import Plan
from penstock.plan.window import TimeWindow
from penstock.reference.interpret import interpret
from penstock.reference.item import Event
from penstock.shedding.drop_grid import DropGrid
from penstock.shedding.sheddable import label_of

SOURCE = ps.stream("numbers", "ts bigint, v bigint", time="ts").disorder(0)


class TreeQuery:
    """A tree of stages as a query with an output for each leaf."""

    def __init__(self, root: Stage) -> None:
        self.leaves: dict[tuple[int, ...], ps.Stream] = {}
        self._grow(root, SOURCE, ())
        self.plan = Plan.of(*(leaf.operator for leaf in self.leaves.values()))
        self.ids = {
            path: next(n.id for n in self.plan.nodes if n.operator is leaf.operator)
            for path, leaf in self.leaves.items()
        }

    def _grow(self, stage: Stage, stream: ps.Stream, path: tuple[int, ...]) -> None:
        if stage.passes:
            stream = stream.where(f"v % {stage.passes} != 0")
        made = stream.window(stage.size, slide=stage.slide, on="ts").agg(v="sum(v)").rename(window_start="ts")
        if not stage.behind:
            self.leaves[path] = made
        for k, branch in enumerate(stage.behind):
            self._grow(branch, made, (*path, k))

    def results(self, events: Events) -> Results:
        rows = [{"ts": t, "v": v} for t, v in events]
        streams = interpret(self.plan, {"numbers": rows}, ends=True, traced=False).streams
        return {
            path: sorted((i.row["ts"], i.row["v"]) for i in streams[node] if isinstance(i, Event))
            for path, node in self.ids.items()
        }

    def unread(self, runs: Sequence[tuple[int, int]], grid: DropGrid) -> Sequence[Pattern]:
        """What the source leaves unread when every output has been told of these stretches."""
        heard, cascade = Heard(), Cascade(self.plan)
        for path, leaf in self.leaves.items():
            window = label_of(leaf.operator, "ts")
            assert isinstance(window, TimeWindow)
            for low, high in runs:
                last = (high + 1) * grid.slide - window.slide
                pattern = Pattern.where(leaf.schema, ts=between(low * grid.slide, last, True, True))
                cascade.tell(heard, self.ids[path], Feedback(Intent.ASSUMED, pattern))
        return [p for place, patterns in heard.places.items() if place == "source:numbers" for p in patterns]


class Heard:
    """Keeps everything that operators are told."""

    def __init__(self) -> None:
        self.places: dict[str, list[Pattern]] = {}
        self._said: dict[tuple[str, Place], list[Pattern]] = {}

    def mount(self, parts: Sequence[Part]) -> bool:
        for part in parts:
            self.places.setdefault(part.place, []).append(part.pattern)
        return bool(parts)

    def hear(self, node_id: str, edge: Place, pattern: Pattern) -> None:
        self._said.setdefault((node_id, edge), []).append(pattern)

    def said(self, node_id: str, edge: Place) -> Sequence[Pattern]:
        return self._said.get((node_id, edge), ())

    def wish(self, node_id: str, patterns: Sequence[Pattern]) -> None:
        """Nobody wishes anything."""

    def note(self, node_id: str, feedback: Feedback, did: str, why: str) -> None:
        """Nobody asks."""


def is_unread(patterns: Sequence[Pattern], event: Mapping[str, int]) -> bool:
    return any(p.matches_row(event) for p in patterns)
