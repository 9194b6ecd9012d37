"""The contract of a run, in its checkpoint: for consumers that have the checkpoint and not the query.

    control/contract.json    by operator the templates of the punctuation behind it; where results leave the query; and
                             what becomes of feedback on each attribute of them, in each direction

It is written anew at every start: what is promised may have been declared differently since.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock.analysis.feedback_check import Lasting, fate_of, line, remarks
from penstock.analysis.judge import weigh
from penstock.analysis.probe import probes
from penstock.checkpoint.storage import Storage, seal, unseal
from penstock.contract.flow import Flow, Tags
from penstock.contract.template import class_of
from penstock.errors import CheckpointError
from penstock.pattern.feedback import Feedback, Intent
from penstock.pattern.pattern import Pattern
from penstock.pattern.schema import Schema
from penstock.plan.consistency import Consistency
from penstock.plan.plan import Exit, Plan

CONTRACT = "control/contract.json"
#: The direction of a restriction that no punctuation has, such as `>= 40`.
_OTHER = "other"


@dataclass(frozen=True)
class Recorded:
    """What a run has written down about feedback: flows by operator, and by result, attribute and direction remarks."""

    exits: tuple[Exit, ...] = ()
    flows: Mapping[str, Flow] = field(default_factory=dict)
    known: Mapping[str, Mapping[str, Mapping[str, tuple[str, ...]]]] = field(default_factory=dict)
    #: Where the dial stood when the run was started.
    consistency: Consistency = field(default=Consistency.strong())

    def remarks(self, node: str, feedback: Feedback, way_out: Exit | None = None) -> tuple[str, ...]:
        """What somebody who gives this feedback to an operator, or by a way out of the query, should know of it."""
        if feedback.intent is not Intent.ASSUMED or node not in self.flows:
            return ()
        pattern = feedback.pattern
        known = self.known.get(way_out.name, {}) if way_out is not None else {}
        if known and pattern.restricted:
            told = [known[n].get(_direction(pattern, n), ()) for n in pattern.restricted if n in known]
            if len(told) == 1 or not all(told):
                # One that is let go everywhere stays so if it is made narrower.
                return told[0] if len(told) == 1 else ()
        fate, why, assumes = fate_of(self.flows[node], pattern)
        found = Lasting(node, node, pattern, fate, why, assumes=assumes)
        return (line(found),) if found.endless else ()


def _direction(pattern: Pattern, name: str) -> str:
    how = class_of(pattern[name])
    return {"range": "+", None: _OTHER}.get(how, str(how))


def record_contract(storage: Storage, plan: Plan) -> None:
    """Write the contract of a run that starts."""
    verdicts = weigh(plan)
    results: dict[str, dict[str, dict[str, list[str]]]] = {}
    for out in plan.exits:
        known = results.setdefault(out.name, {})
        for name, feedback in probes(plan, out.root):
            told = remarks(plan, feedback, out.root, edge=out.edge, verdicts=verdicts)
            known.setdefault(name, {})[_direction(feedback.pattern, name)] = told
    body = {
        "exits": [[out.root, out.sink] for out in plan.exits],
        "operators": {n.id: _stored(verdicts[n.id].behind) for n in plan.nodes},
        "results": results,
        "dial": next((dial.text for n in plan.sources if (dial := getattr(n.operator, "dial", None))), "-/-"),
    }
    storage.make("control")
    # Not waited for: if power is lost, it is damaged or not there, and the next start writes it anew.
    storage.write(CONTRACT, seal(body), sync=False)


def _stored(flow: Flow) -> dict[str, Any]:
    templates = [[sorted(tags), sorted(assumed)] for tags, assumed in flow.promised.items()]
    return {"schema": flow.schema.to_json(), "templates": templates, "open": flow.open}


def read_contract(storage: Storage) -> Recorded:
    """The contract of a checkpoint; an empty one if there is none, or it is damaged: it only tells, it decides nothing.

    >>> import tempfile
    >>> import penstock as ps
    >>> storage = Storage.at(tempfile.mkdtemp())
    >>> cars = ps.stream("cars", "ts timestamp, speed double", time="ts").disorder("5 s")
    >>> record_contract(storage, cars.plan)
    >>> contract = read_contract(storage)
    >>> contract.remarks("source:cars", Feedback.parse("not [< '2026-01-01', *]", cars.schema))
    ()
    >>> print(*contract.remarks("source:cars", Feedback.parse("not [*, > 40]", cars.schema), *contract.exits))
    source:cars keeps not [speed >= …] for ever: no punctuation on `speed` will ever say that (at most 64 are kept)
    """
    try:
        body = unseal(storage.read(CONTRACT), CONTRACT)
    except (CheckpointError, FileNotFoundError):
        return Recorded()
    flows = {node: _read(stored) for node, stored in body["operators"].items()}
    known = {
        result: {name: {how: tuple(told) for how, told in ways.items()} for name, ways in named.items()}
        for result, named in body["results"].items()
    }
    exits = tuple(Exit(root, sink) for root, sink in body["exits"])
    return Recorded(exits, flows, known, Consistency.parse(body.get("dial", "-/-")))


def _read(stored: Mapping[str, Any]) -> Flow:
    templates: dict[Tags, frozenset[str]] = {
        frozenset((name, how) for name, how in tags): frozenset(assumed) for tags, assumed in stored["templates"]
    }
    return Flow(Schema.from_json(stored["schema"]), promised=templates, open=stored["open"])
