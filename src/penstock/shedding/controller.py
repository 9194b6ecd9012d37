"""The controller: between two epochs, from what was measured to how much each output still gets.

It looks at the load, moves a cursor down a table of plans made ahead while it is too much, and up again when it falls.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from penstock.plan.plan import Plan
from penstock.shedding.capacity import Capacity, Demand
from penstock.shedding.costs import network_of
from penstock.shedding.network import Network
from penstock.shedding.overload import Advice, LoadSample, OverloadMonitor, Pressure
from penstock.shedding.policy import Shedding
from penstock.shedding.road_map import STEP, RoadMap, drift
from penstock.shedding.shed_plan import ShedPlan
from penstock.shedding.terms import DropLocations, Terms
from penstock.statistics.measured import WHOLE, RunStatistics

#: Costs that have changed by more than this make another table.
DRIFT = 0.25
#: CPU seconds that a drop takes for a row that it looks at.
DROP_COST = 2e-8
#: As much of the capacity at most is planned for working off what has piled up.
MELTING = 0.5
#: An epoch that takes so many times as long as it has says at once that it is too much.
HURRY = 2
#: So often load and capacity are worked out though nothing speaks for too much.
LOOK = 16
#: What must be spare before something is given back, as a share of capacity: or it would be taken again at once.
SLACK = 0.1


@dataclass(frozen=True)
class RoadStanding:
    """Where the controller stands: plain data, in the plan of every epoch.

    `load` and `capacity` are CPU seconds a second, `lost` is the utility given up and `full` that of all outputs.
    """

    cursor: int = 0
    rows: int = 1
    lost: float = 0.0
    full: float = 1.0
    load: float = 0.0
    capacity: float = 0.0
    pressure: Pressure = field(default_factory=Pressure)

    def to_json(self) -> dict[str, Any]:
        return {**vars(self), "pressure": self.pressure.to_json()}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> RoadStanding:
        return cls(**{**stored, "pressure": Pressure.from_json(stored["pressure"])}) if stored else cls()


@dataclass
class Controller:
    """Keeps the table of plans up to date, and moves the cursor.

    >>> import penstock as ps
    >>> from penstock.shedding.qos import QoS
    >>> plan = ps.stream("cars", "ts int", time="ts").window(10).agg(n="count(*)").plan
    >>> controller = Controller(plan, {"aggregate-1": Terms.of(QoS())})
    >>> row, at = controller.decide(Shedding.auto(load=1.25), RoadStanding(), RunStatistics(), cores=2)
    >>> row.delivered, at.cursor  # A fifth has to go, and what it takes to drop it.
    ({'aggregate-1': 0.75}, 5)
    >>> row, at = controller.decide(Shedding.auto(load=0.5), at, RunStatistics(), cores=2)
    >>> row.delivered
    {'aggregate-1': 1.0}
    """

    plan: Plan
    terms: Mapping[str, Terms]
    off: tuple[str, ...] = ()
    _network: Network | None = None
    _roads: RoadMap | None = None

    def decide(
        self, policy: Shedding, before: RoadStanding, measured: RunStatistics, cores: int
    ) -> tuple[ShedPlan, RoadStanding]:
        """The row of the table for the next epoch, and where the controller stands then."""
        if policy.load is None and not before.cursor and self._is_idle(measured):
            return ShedPlan(dict.fromkeys(self._names, 1.0), {}, {}, 0.0), before
        network, arriving = self.network(measured), self._arriving(measured)
        roads = self.roads(network, arriving)
        cursor = min(before.cursor, len(roads.rows) - 1)
        if before.rows != len(roads.rows) and before.lost:
            # Another table: the row that gives up as much as was given up.
            cursor = next((i for i, r in enumerate(roads.rows) if r.lost >= before.lost - 1e-9), len(roads.rows) - 1)
        if policy.load is not None:
            full = network.load(arriving)
            excess = full * (1 - 1 / policy.load) if policy.load > 1 else 0.0
            cursor = roads.first(excess, arriving)
            load, capacity, pressure = policy.load, 1.0, before.pressure
        else:
            room = self._capacity(policy, measured, cores)
            demand = Demand(network, arriving, self._waiting(measured))
            # However much has piled up: if all of it were to go at once, nothing would be left for what comes.
            melting = min(demand.melting, MELTING * room.free)
            load, capacity = demand.load + melting, room.free
            pressure = self._pressure(before.pressure, measured, roads, cursor, load - capacity, room, arriving)
            excess = load - capacity
            if pressure.advice is Advice.SHED:
                # If the costs as they are known say that it should fit, they are wrong: a step further.
                cursor = min(max(roads.first(excess, arriving), cursor + 1), len(roads.rows) - 1)
            elif pressure.advice is Advice.GIVE_BACK:
                cursor = min(cursor, max(0, min(cursor - 1, roads.first(excess + SLACK * capacity, arriving))))
        row = roads.rows[cursor]
        full_utility = sum(t.weight for t in self.terms.values())
        at = RoadStanding(cursor, len(roads.rows), row.lost, full_utility, load, capacity, pressure)
        return row, at

    @cached_property
    def _names(self) -> tuple[str, ...]:
        return tuple(e.name for e in self.plan.exits)

    def _is_idle(self, measured: RunStatistics) -> bool:
        """Whether there is plainly no need to give anything up; now and then one looks all the same."""
        if not measured.every:
            return measured.epochs > 1  # A run that ends takes the time that it takes.
        late = measured.last / measured.every
        return max(late, measured.busy) < OverloadMonitor.limit / 2 and measured.epochs % LOOK != 1

    def network(self, measured: RunStatistics) -> Network:
        return network_of(self.plan, measured)

    def roads(self, network: Network, arriving: Mapping[str, float]) -> RoadMap:
        """The table of plans; made anew when costs have changed by more than a quarter."""
        if self._roads is None or self._network is None or drift(self._network, network) > DRIFT:
            least = DropLocations(network).least_step(DROP_COST)
            step = max(STEP, 1.1 * least)
            if step > 1:
                # Dropping would cost more than the work: nothing to gain anywhere.
                row = ShedPlan({o.name: 1.0 for o in network.outputs}, {}, {}, 0.0)
                self._network, self._roads = network, RoadMap((row,))
            else:
                self._network = network
                self._roads = RoadMap.build(network, arriving, self.terms, step=step, drop_cost=DROP_COST, off=self.off)
        return self._roads

    def forget(self) -> None:
        """Terms have changed: the table is made anew."""
        self._roads = None

    @property
    def table(self) -> RoadMap | None:
        """The table of plans, once there is one."""
        return self._roads

    def _arriving(self, measured: RunStatistics) -> dict[str, float]:
        """Rows a second by source; alike, as long as nothing is known."""
        return {n.id: measured.rates.get(n.id, 1.0) for n in self.plan.sources}

    def _waiting(self, measured: RunStatistics) -> dict[str, float]:
        """Rows by source beyond those that come between two epochs anyway."""
        usual = {n: rate * measured.every for n, rate in measured.rates.items()}
        return {n: rows - usual.get(n, 0.0) for n, rows in measured.queued.items() if rows > usual.get(n, 0.0)}

    def _capacity(self, policy: Shedding, measured: RunStatistics, cores: int) -> Capacity:
        """What the machine can take: its cores as far as epochs use them, less what epochs cost anyway."""
        whole = measured.fits.get(WHOLE)
        # Seconds per second of CPU time on one core: more than one if tasks wait for each other.
        drag = min(4.0, max(1.0, whole.costs.get("cpu", 1.0))) if whole is not None and measured.fixed else 1.0
        period = max(measured.every, measured.seconds, 1e-3)
        return Capacity(cores / drag, policy.headroom, measured.fixed * cores / drag, 1 / period)

    def _pressure(
        self,
        before: Pressure,
        measured: RunStatistics,
        roads: RoadMap,
        cursor: int,
        excess: float,
        room: Capacity,
        arriving: Mapping[str, float],
    ) -> Pressure:
        if not measured.epochs or not measured.every:
            return before  # A run that ends takes the time that it takes.
        late = min(1.0, measured.last / measured.every)
        # Whoever takes much longer than he has need not be asked again and again.
        patience = 1 if measured.last > HURRY * measured.every else OverloadMonitor.patience
        less = roads.rows[max(0, cursor - 1)].saves(arriving)
        load = (room.free + excess - less) / room.free if room.free else 1.0
        waiting = {n: float(rows) for n, rows in measured.queued.items()}
        sample = LoadSample(max(measured.busy, late), waiting, {}, load)
        return OverloadMonitor(patience=patience).after(before, sample)
