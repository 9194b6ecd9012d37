"""The outputs of a run as its controller sees them: their windows, and the times of the streams that these come of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from penstock.kernels.fold import is_tickable
from penstock.plan.plan import Exit, Plan
from penstock.plan.spec import spec_of
from penstock.plan.window import TimeWindow
from penstock.shedding.drop_grid import DropGrid, shared_batches
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


def coins(outputs: Sequence[Outgoing], gaps: Mapping[str, int | None]) -> dict[str, tuple[str, int]]:
    """By output who tosses the coins about its windows, and about how many of them at once.

    Outputs that come of the same streams toss together, about the same stretches of time, whatever their windows are.
    So what one of them drops others drop too, and its events need not be read for their sake.

    >>> import penstock as ps
    >>> from penstock.plan.plan import Plan
    >>> from penstock.shedding.sheddable import sheddable
    >>> cars = ps.stream("cars", "ts int", time="ts")
    >>> plan = Plan.of(*(cars.window(size).agg(n="count(*)").operator for size in (10, 15)))
    >>> coins(outgoing(plan, sheddable(plan)), {"aggregate-1": 6, "aggregate-2": None})
    {'aggregate-1': ('60/0', 6), 'aggregate-2': ('60/0', 4)}
    """
    families: list[tuple[set[str], list[Outgoing]]] = []
    for output in outputs:
        sources, members = {source for source, _ in output.times}, [output]
        near = [f for f in families if f[0] & sources and _alike(f[1][0], output)]
        for other in near:
            families.remove(other)
            sources, members = sources | other[0], [*other[1], *members]
        if output.window is not None:
            families.append((sources, members))
    found = {}
    for _, members in families:
        windows = {o.name: o.window for o in members if o.window is not None}
        grids = {name: DropGrid(max(w.size, w.slide), w.slide, gaps[name]) for name, w in windows.items()}
        batches = shared_batches(grids)
        for name, window in windows.items():
            batch = batches.get(name) or shared_batches({name: grids[name]}).get(name) or gaps[name] or 1
            together = batch * window.slide if len(windows) > 1 else window.slide
            found[name] = (f"{together}/{window.origin}", batch)
    return found


def _alike(one: Outgoing, other: Outgoing) -> bool:
    """Whether numbers of their windows are about the same time."""
    if one.window is None or other.window is None:
        return False
    return (one.window.unit, one.window.origin) == (other.window.unit, other.window.origin)


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
