"""Which outputs can be shed, and how: asked of a plan before it runs.

A drop is sound if what is still delivered is what would have been. Random drops are where every result is of one event,
whatever its neighbours: behind joins, aggregates and whatever else remembers or heeds an order, results would change.
Whole windows, and values, go as feedback goes: each operator says what it can do about it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from penstock.analysis.cascade import Cascade, Part
from penstock.errors import UserError, did_you_mean
from penstock.pattern.feedback import Feedback, Intent
from penstock.pattern.pattern import Pattern
from penstock.pattern.restriction import between
from penstock.pattern.types import coerce_value
from penstock.plan.operator import Operator
from penstock.plan.place import Place
from penstock.plan.plan import Exit, Plan
from penstock.plan.spec import spec_of, traits_of
from penstock.plan.upwards import below_and_itself
from penstock.plan.window import GatheredWindow, TimeWindow, from_tick
from penstock.shedding.drop_grid import DropGrid
from penstock.shedding.qos import QoS
from penstock.shedding.value import Span

Kind = Literal["random", "window", "semantic"]
#: As many windows in a row are tried where no gap bounds them.
MANY = 1_000


@dataclass(frozen=True)
class DropWay:
    """One way to shed an output: whether it can be, by which attribute, the sources that read less, and why no more."""

    kind: Kind
    possible: bool
    why: str = ""
    attribute: str = ""
    reaches: tuple[str, ...] = ()

    @property
    def line(self) -> str:
        """For people."""
        if not self.possible:
            return f"no {self.kind} drops: {self.why}"
        by = f" by {self.attribute}" if self.attribute else ""
        where = (
            f"before {', '.join(self.reaches)} is processed" if self.reaches else "behind the work, so little is saved"
        )
        return f"{self.kind} drops{by}, {where}{f' ({self.why})' if self.why else ''}"


@dataclass(frozen=True)
class Sheddable:
    """What can be done about one output."""

    output: str
    ways: tuple[DropWay, ...]

    def __getitem__(self, kind: Kind) -> DropWay:
        return next(way for way in self.ways if way.kind == kind)

    @property
    def best(self) -> DropWay | None:
        """The way to take: by value, if the user has said what values are worth; then windows, then chance."""
        possible = {way.kind: way for way in self.ways if way.possible}
        early = {kind: way for kind, way in possible.items() if way.reaches}
        kinds: tuple[Kind, ...] = ("semantic", "window", "random")
        return next((found[k] for found in (early, possible) for k in kinds if k in found), None)


def sheddable(plan: Plan, qos: Mapping[str, QoS] | None = None) -> dict[str, Sheddable]:
    """Each output of a plan, by name, and how it can be shed on these terms.

    >>> import penstock as ps
    >>> cars = ps.stream("cars", "ts int, segment int, speed int", time="ts").read_json("in").disorder(0)
    >>> means = cars.window(10).group_by("segment").agg(mean="avg(speed)")
    >>> for way in sheddable(means.plan)["aggregate-1"].ways:
    ...     print(way.line)
    no random drops: results of aggregate-1 are not of single events
    window drops by window_start, before cars is processed
    no semantic drops: nobody has said what values are worth
    """
    qos = qos or {}
    exits = {e.name: e for e in plan.exits}
    if unknown := set(qos) - set(exits):
        name = min(unknown)
        raise UserError(f"QoS of '{name}': there is no such output", hint=did_you_mean(name, exits))
    return {name: _one(plan, e, qos.get(name, QoS())) for name, e in exits.items()}


def require(plan: Plan, qos: Mapping[str, QoS]) -> dict[str, Sheddable]:
    """The same for outputs that are to be shed; an error if one of them cannot be."""
    found = {name: each for name, each in sheddable(plan, qos).items() if name in qos}
    for name, each in found.items():
        if each.best is None:
            why = "; ".join(way.line for way in each.ways)
            raise UserError(
                f"output '{name}' cannot be shed: {why}", hint="leave it out of the QoS, or window it by time"
            )
    return found


def _one(plan: Plan, exit_: Exit, qos: QoS) -> Sheddable:
    return Sheddable(exit_.name, (_random(plan, exit_), _window(plan, exit_, qos), _semantic(plan, exit_, qos)))


def _random(plan: Plan, exit_: Exit) -> DropWay:
    root = plan[exit_.root].operator
    below = {id(o): o for o in below_and_itself(root)}
    ids = [n.id for n in plan.nodes if id(n.operator) in below]
    for node_id in ids:
        operator = plan[node_id].operator
        traits = traits_of(operator)
        if operator.role != "source" and (traits.keeps_state or traits.heeds_order):
            return DropWay("random", False, f"results of {node_id} are not of single events")
    sources = [n for n in plan.sources if n.id in ids]
    alone = tuple(str(getattr(n.operator, "name", n.id)) for n in sources if _only(plan, n.id, exit_))
    why = "" if len(alone) == len(sources) else "other outputs read the same events"
    return DropWay("random", True, why, reaches=alone)


def _only(plan: Plan, node_id: str, exit_: Exit) -> bool:
    """Whether all that comes of an operator comes to this output."""
    leaving = {e.root for e in plan.exits if e.name != exit_.name}
    return all(id(plan[node_id].operator) not in map(id, below_and_itself(plan[r].operator)) for r in leaving)


def _window(plan: Plan, exit_: Exit, qos: QoS) -> DropWay:
    root = plan[exit_.root].operator
    labels = {name: window for name in root.schema.names if (window := label_of(root, name)) is not None}
    if not labels:
        counted = [o for o in below_and_itself(root) if isinstance(getattr(o, "window", None), GatheredWindow)]
        if counted:
            window = getattr(counted[0], "window", None)
            return DropWay("window", False, f"{window!r} shifts or grows with its events, so none can go unread")
        return DropWay("window", False, "no attribute of the results is the start of a window of time")
    ways = []
    for label, window in labels.items():
        # A run of as many windows as may be missing at once, somewhere.
        run = (MANY, MANY + (MANY if qos.gap is None else qos.gap) - 1)
        low, high = (from_tick(window.start(number), window.unit) for number in run)
        reach = _told(plan, exit_, Pattern.by_name(root.schema, {label: between(low, high, True, True)}))
        why, grid = reach.why, DropGrid(max(window.size, window.slide), window.slide, qos.gap)
        if qos.gap is not None and not grid.drops_early:
            least = window.size // window.slide
            why = f"each event is in more windows than gap={qos.gap} lets go: at least {least} would be needed"
        elif qos.gap is not None:
            why = f"as much as the gap allows leaves {grid.read_still(qos.most):.0%} of it"
        ways.append(DropWay("window", True, why, label, reach.sources))
    return max(ways, key=lambda way: len(way.reaches))


def _semantic(plan: Plan, exit_: Exit, qos: QoS) -> DropWay:
    if qos.value is None:
        return DropWay("semantic", False, "nobody has said what values are worth")
    root, attribute = plan[exit_.root].operator, qos.value.attribute
    schema = root.schema
    if attribute not in schema:
        raise UserError(
            f"QoS of '{exit_.name}': value of '{attribute}', which its results do not have",
            hint=did_you_mean(attribute, schema.names),
        )
    times = [n for n in schema.names if n in schema.times or label_of(root, n) is not None]
    span: Span = qos.value.pieces[0].span
    try:
        low, high = (coerce_value(end, schema.type_of(attribute)) for end in (span.low, span.high))
    except UserError as error:
        raise UserError(
            f"QoS of '{exit_.name}': value of '{attribute}': {error.message}",
            hint=f"name values of that type: {schema}",
        ) from None
    if not times:
        why = "its results carry no time, so what is dropped could never be had again"
        return DropWay("semantic", False, why, attribute)
    reach = _told(plan, exit_, Pattern.by_name(schema, {attribute: between(low, high, True, True)}))
    return DropWay("semantic", True, reach.why, attribute, reach.sources)


def label_of(operator: Operator, name: str) -> TimeWindow | None:
    """The window of time that an attribute labels, wherever its values come from; None if it is another's, too.

    >>> import penstock as ps
    >>> a, b = (ps.stream(n, "ts int, k int", time="ts").window(10).group_by("k").agg(n="count(*)") for n in "ab")
    >>> label_of(a.join(b, on=["window_start", "k"]).operator, "window_start")
    Window.tumbling(10, on='ts')
    """
    waiting, found = [(operator, name)], None
    while waiting:
        operator, name = waiting.pop()
        spec = spec_of(operator)
        if (fact := spec.facts(operator).get(name)) is not None:
            if fact.label_of is None or (found is not None and found != fact.label_of):
                return None
            found = fact.label_of
            continue
        carried = spec.lineage(operator).get(name)
        if carried is None or not operator.inputs:
            return None
        waiting += [(operator.inputs[port], origin) for port, origin in carried.origins]
    return found


class _Told:
    """Listens to where feedback is kept and why it goes no further."""

    def __init__(self) -> None:
        self.places: list[Place] = []
        self.whys: list[str] = []
        self._said: dict[tuple[str, Place], list[Pattern]] = {}

    def mount(self, parts: Sequence[Part]) -> bool:
        self.places += [p.place for p in parts]
        return bool(parts)

    def hear(self, node_id: str, edge: Place, pattern: Pattern) -> None:
        self._said.setdefault((node_id, edge), []).append(pattern)

    def said(self, node_id: str, edge: Place) -> Sequence[Pattern]:
        return self._said.get((node_id, edge), ())

    def wish(self, node_id: str, patterns: Sequence[Pattern]) -> None:
        """No wishes are told."""

    def note(self, node_id: str, feedback: Feedback, did: str, why: str) -> None:
        if why:
            self.whys.append(f"{node_id}: {why}")


@dataclass(frozen=True)
class _Reach:
    sources: tuple[str, ...]
    why: str


def _told(plan: Plan, exit_: Exit, pattern: Pattern) -> _Reach:
    listener = _Told()
    Cascade(plan).tell(listener, exit_.root, Feedback(Intent.ASSUMED, pattern), exit_.edge)
    sources = [n for n in plan.sources if any(place.node == n.id for place in listener.places)]
    return _Reach(tuple(str(getattr(n.operator, "name", n.id)) for n in sources), "; ".join(listener.whys))
