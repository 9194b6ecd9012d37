"""From a plan and what a run has measured of it to a network: what each operator costs, and how much it lets by."""

from __future__ import annotations

from penstock.plan.place import Place
from penstock.plan.plan import Plan
from penstock.plan.promise import Files
from penstock.shedding.network import Intake, Network, Station, Terminus
from penstock.statistics.measured import RunStatistics

#: What a row costs as long as nobody knows.
SOMETHING = 1e-6
#: Behind the name of a sink: the work of writing there.
_WRITING = ":writing"
#: Behind the name of a source: the work of reading, where what is dropped is not even read.
_READING = ":reading"


def network_of(plan: Plan, measured: RunStatistics) -> Network:
    """The network of a plan. Operators of one statement are charged where it ends; those before it let all rows by.

    As long as nothing is measured, a row costs the same at every operator.

    >>> import penstock as ps
    >>> from penstock.statistics.figures import EpochFigures
    >>> plan = ps.stream("cars", "ts int, lane int", time="ts").where("lane > 2").window(10).agg(n="count(*)").plan
    >>> rows = {"source:cars": 1000, "aggregate-1#0": 1000, "aggregate-1": 50}
    >>> out = {"source:cars": 1000, "aggregate-1#0": 50, "aggregate-1": 10}
    >>> cpu = {"source:cars": 0.1, "aggregate-1#0": 0.4, "aggregate-1": 0.1}
    >>> network = network_of(plan, RunStatistics().after(EpochFigures(rows, out, cpu, 1.0)))
    >>> round(network.coefficients[Place.at("select-1", 0)], 6)
    0.0005
    >>> round(network.load({"source:cars": 100}), 6)  # 0.1 ms to read a row, 0.5 ms behind it.
    0.06
    """
    sinks = {n.id for n in plan.sinks}
    stations: list[Station] = []
    behind: dict[str, str] = {}
    for node in plan.nodes:
        if not node.inputs:
            skips = isinstance(reader := getattr(node.operator, "reader", None), Files) and reader.format == "parquet"
            stations.append(Station(node.id, (), 0.0 if skips else measured.cost(node.id)))
            if skips:
                # What is dropped there need not be read.
                behind[node.id] = node.id + _READING
                stations.append(Station.of(behind[node.id], node.id, measured.cost(node.id)))
        elif node.id not in sinks:
            inputs = enumerate(behind.get(i, i) for i in node.inputs)
            stations.append(Station(node.id, tuple(_intake(measured, node.id, port, i) for port, i in inputs)))
    outputs = []
    for exit_ in plan.exits:
        last = behind.get(exit_.root, exit_.root)
        if exit_.sink:
            last = exit_.sink + _WRITING
            before = behind.get(exit_.root, exit_.root)
            stations.append(Station.of(last, before, measured.cost(Place.at(exit_.sink, 0))))
        outputs.append(Terminus(exit_.name, last))
    return Network(tuple(stations), tuple(outputs))


def _intake(measured: RunStatistics, node_id: str, port: int, below: str) -> Intake:
    known, way = measured.operators, Place.at(node_id, port)
    if way in known:
        # To a bucket, and what is done there.
        passed, kept = known[way].selectivity, known.get(node_id)
        share = 1.0 if passed is None else passed
        left = 1.0 if kept is None or kept.selectivity is None else kept.selectivity
        return Intake(below, measured.cost(way) + share * measured.cost(node_id), share * left)
    if node_id in known:
        let_by = known[node_id].selectivity
        return Intake(below, measured.cost(node_id), 1.0 if let_by is None else let_by)
    return Intake(below, 0.0 if known else SOMETHING)
