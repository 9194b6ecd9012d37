"""Networks of costs, made at random."""

from __future__ import annotations

import random

from penstock.shedding.network import Intake, Network, Station, Terminus


def random_network(rng: random.Random) -> Network:
    """Stations that read one or two of those before them; every station that nobody reads is an output."""
    stations = [Station(f"in{i}", reading=rng.random()) for i in range(rng.randint(1, 3))]
    for n in range(rng.randint(1, 8)):
        below = [rng.choice(stations).id for _ in range(rng.randint(1, 2))]
        stations.append(Station(f"s{n}", tuple(Intake(b, rng.random() * 9, rng.random()) for b in below)))
    read = {i.of for s in stations for i in s.intakes}
    ends = [s.id for s in stations if s.id not in read]
    named = (Terminus(f"o{i}", e) if rng.random() < 0.5 else Terminus(e, e) for i, e in enumerate(ends))
    return Network(tuple(stations), tuple(named))
