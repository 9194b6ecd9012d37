"""The outputs of a run as its controller sees them: their windows, and the times of the streams that these come of."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.kernels.fold import is_tickable
from penstock.plan.plan import Exit, Plan
from penstock.plan.spec import spec_of
from penstock.plan.window import TimeWindow
from penstock.shedding.sheddable import Sheddable, label_of

#: Where times come from: streams with their attributes.
Times = frozenset[tuple[str, str]]


@dataclass(frozen=True)
class Outgoing:
    """An output. With a `label` whole windows can be dropped: it comes of `times` of the streams, and is never later.

    Where `chance` is not empty, events of these sources may go by chance.
    """

    exit: Exit
    label: str = ""
    window: TimeWindow | None = None
    times: Times = frozenset()
    chance: frozenset[str] = frozenset()

    @property
    def name(self) -> str:
        return self.exit.name

    @property
    def overlap(self) -> int:
        """How many windows an event is in, at most."""
        return 1 if self.window is None else -(-self.window.size // self.window.slide)

    @property
    def clocks(self) -> tuple[str, ...]:
        """The times by one name each."""
        return tuple(sorted(map(".".join, self.times)))

    def number(self, tick: int) -> int:
        """The number of the last window that has begun at a tick."""
        assert self.window is not None
        return (tick - self.window.origin) // self.window.slide


def outgoing(plan: Plan, known: dict[str, Sheddable]) -> tuple[Outgoing, ...]:
    """The outputs of a plan, given how each can be shed.

    >>> import penstock as ps
    >>> from penstock.shedding.sheddable import sheddable
    >>> cars = ps.stream("cars", "ts int, lane int", time="ts")
    >>> plan = cars.where("lane > 2").window(10).agg(n="count(*)").plan
    >>> (counts,) = outgoing(plan, sheddable(plan))
    >>> counts.label, counts.window, counts.clocks, counts.number(25)
    ('window_start', Window.tumbling(10, on='ts'), ('source:cars.ts',), 2)
    """
    return tuple(_of_exit(plan, e, known[e.name]) for e in plan.exits)


def _of_exit(plan: Plan, exit_: Exit, known: Sheddable) -> Outgoing:
    operator, way = plan[exit_.root].operator, known["window"]
    by_name = {str(getattr(n.operator, "name", n.id)): n.id for n in plan.sources}
    chance = frozenset(by_name[name] for name in known["random"].reaches) if known["random"].possible else frozenset()
    if way.possible and is_tickable(operator.schema.type_of(way.attribute)):
        window, times = label_of(operator, way.attribute), times_of(plan, exit_.root, way.attribute)
        if window is not None and times is not None:
            return Outgoing(exit_, way.attribute, window, times, chance)
    return Outgoing(exit_, chance=chance)


def times_of(plan: Plan, node_id: str, name: str) -> Times | None:
    """The attributes of streams that a time comes of, and is never behind; None if it is computed."""
    node = plan[node_id]
    if not node.inputs:
        return frozenset({(node_id, name)})
    spec = spec_of(node.operator)
    if (fact := spec.facts(node.operator).get(name)) is not None:
        if fact.label_of is None or fact.label_of.on is None:
            return None
        return times_of(plan, node.inputs[0], fact.label_of.on)
    carried = spec.lineage(node.operator).get(name)
    if carried is None:
        return None
    found: set[tuple[str, str]] = set()
    for port, attribute in carried.origins:
        origins = times_of(plan, node.inputs[port], attribute)
        if origins is None:
            return None
        found |= origins
    return frozenset(found)
