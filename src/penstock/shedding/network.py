"""What a query costs: a network of stations, each with what a row costs there and how many come out of it.

It is a plan reduced to numbers. Between stations are arcs, known by the place where they end: `join-1#0` is the first
input of `join-1`; an output that no sink takes is known by the station alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from penstock.errors import UserError
from penstock.plan.place import Place


@dataclass(frozen=True)
class Intake:
    """One input of a station: whose rows come in there, the CPU seconds of one, and how many rows come out for it."""

    of: str
    cost: float
    selectivity: float = 1.0


@dataclass(frozen=True)
class Station:
    """An operator and what comes in at each of its inputs. A source has none; `reading` is what a row costs it."""

    id: str
    intakes: tuple[Intake, ...] = ()
    reading: float = 0.0

    @classmethod
    def of(cls, name: str, below: str, cost: float, selectivity: float = 1.0) -> Station:
        """A station with one input."""
        return cls(name, (Intake(below, cost, selectivity),))


@dataclass(frozen=True)
class Terminus:
    """Where results leave: the station whose rows they are, and the name of the output."""

    name: str
    of: str

    @property
    def arc(self) -> Place:
        return Place(self.of) if self.name == self.of else Place.at(self.name, 0)


@dataclass(frozen=True)
class Network:
    """Stations, each behind those it reads, and where results leave.

    A shared station is charged once: the coefficient of an arc is what one more row on it costs, from there on.

    >>> network = Network(
    ...     (Station("s"), Station.of("parse", "s", 4, 0.5), Station.of("a", "parse", 2), Station.of("b", "parse", 6)),
    ...     (Terminus("a", "a"), Terminus("b", "b")),
    ... )
    >>> network.coefficients[Place.at("parse", 0)], network.load({"s": 10})
    (8.0, 80.0)
    >>> network.reached[Place.at("parse", 0)]
    ('a', 'b')
    """

    stations: tuple[Station, ...]
    outputs: tuple[Terminus, ...]

    def __post_init__(self) -> None:
        known: set[str] = set()
        for station in self.stations:
            if station.id in known:
                raise UserError(f"network: two stations are called '{station.id}'", hint="name each once")
            for intake in station.intakes:
                if intake.of not in known:
                    raise UserError(
                        f"network: '{station.id}' reads '{intake.of}', which is not before it",
                        hint="list stations from the sources to the outputs",
                    )
                if not (intake.cost >= 0 and intake.selectivity >= 0):
                    raise UserError(
                        f"network: '{station.id}' has cost {intake.cost}, selectivity {intake.selectivity}",
                        hint="neither can be negative",
                    )
            known.add(station.id)
        for output in self.outputs:
            if output.of not in known:
                raise UserError(f"network: output '{output.name}' is of '{output.of}', which is not there")

    @cached_property
    def by_id(self) -> Mapping[str, Station]:
        return {s.id: s for s in self.stations}

    @cached_property
    def sources(self) -> tuple[str, ...]:
        return tuple(s.id for s in self.stations if not s.intakes)

    @cached_property
    def tails(self) -> Mapping[Place, str]:
        """Every arc, with the station that it comes from; those nearer to sources come first."""
        inner = {Place.at(s.id, port): i.of for s in self.stations for port, i in enumerate(s.intakes)}
        return inner | {o.arc: o.of for o in self.outputs}

    @cached_property
    def out(self) -> Mapping[str, tuple[Place, ...]]:
        """The arcs out of each station."""
        found: dict[str, tuple[Place, ...]] = {s.id: () for s in self.stations}
        for arc, tail in self.tails.items():
            found[tail] += (arc,)
        return found

    @cached_property
    def exits(self) -> Mapping[Place, str]:
        """The arcs at which results leave, and the names of their outputs."""
        return {o.arc: o.name for o in self.outputs}

    def intake(self, arc: Place) -> Intake | None:
        """What comes in at the end of an arc; None where results leave."""
        if arc in self.exits or arc.port is None:
            return None
        return self.by_id[arc.node].intakes[arc.port]

    @cached_property
    def coefficients(self) -> Mapping[Place, float]:
        """What one row on an arc costs from there on, its share of all that comes of it."""
        found: dict[Place, float] = {}
        for arc in reversed(tuple(self.tails)):
            intake = self.intake(arc)
            below = 0.0 if intake is None else sum(found[a] for a in self.out[arc.node])
            found[arc] = 0.0 if intake is None else intake.cost + intake.selectivity * below
        return found

    @cached_property
    def reached(self) -> Mapping[Place, tuple[str, ...]]:
        """The outputs that rows on an arc may get to."""
        found: dict[Place, tuple[str, ...]] = {}
        for arc in reversed(tuple(self.tails)):
            names = [self.exits[arc]] if arc in self.exits else [o for a in self.out[arc.node] for o in found[a]]
            found[arc] = tuple(dict.fromkeys(names))
        return found

    def rates(self, arriving: Mapping[str, float], drops: Mapping[Place, float] | None = None) -> dict[Place, float]:
        """Rows per second at the end of each arc, given those of each source; `drops` are shares given up on an arc."""
        drops = drops or {}
        if unknown := set(arriving) - set(self.sources):
            raise UserError(f"network: no source '{min(unknown)}'", hint=f"there are: {', '.join(self.sources)}")
        found: dict[Place, float] = {}
        for station in self.stations:
            if station.intakes:
                ports = ((Place.at(station.id, k), i) for k, i in enumerate(station.intakes))
                gone = sum(found[arc] * intake.selectivity for arc, intake in ports)
            else:
                gone = arriving.get(station.id, 0.0)
            for arc in self.out[station.id]:
                found[arc] = gone * (1 - drops.get(arc, 0.0))
        return found

    def load(
        self, arriving: Mapping[str, float], drops: Mapping[Place, float] | None = None, *, drop_cost: float = 0.0
    ) -> float:
        """CPU seconds per second, with these drops; each row that a drop looks at costs `drop_cost`."""
        rates, drops = self.rates(arriving, drops), drops or {}
        work = sum(arriving.get(s, 0.0) * self.by_id[s].reading for s in self.sources)
        work += sum(rate * i.cost for arc, rate in rates.items() if (i := self.intake(arc)) is not None)
        looked_at = sum(
            rates[arc] / (1 - p) if p < 1 else self._offered(arc, rates, arriving) for arc, p in drops.items() if p
        )
        return work + drop_cost * looked_at

    def _offered(self, arc: Place, rates: Mapping[Place, float], arriving: Mapping[str, float]) -> float:
        """Rows per second in front of the drop on an arc."""
        station = self.by_id[self.tails[arc]]
        if not station.intakes:
            return arriving.get(station.id, 0.0)
        return sum(rates[Place.at(station.id, k)] * i.selectivity for k, i in enumerate(station.intakes))
