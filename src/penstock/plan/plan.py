"""A plan: the operators of one query as a graph with stable ids, and its drawings.

An id is the name that an operator was given (`named`), or else its kind and a number in topological order, so the same
program gives the same ids in every run: state, settings and metrics are filed under them. A checkpoint remembers them:
operators of a query that was changed keep theirs (see `refit`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from penstock.analysis.forecast import forecast, releases
from penstock.errors import UserError
from penstock.operators.aggregate.operator import Aggregate
from penstock.operators.distinct.operator import Distinct
from penstock.operators.instrument.operator import Instrument
from penstock.operators.join.operator import Join, Taken
from penstock.operators.limit.operator import Limit
from penstock.operators.lookup.operator import TableJoin
from penstock.operators.map.operator import Map
from penstock.operators.multijoin.operator import MultiJoin
from penstock.operators.order_by.operator import OrderBy
from penstock.operators.pace.operator import Pace
from penstock.operators.project.operator import Project
from penstock.operators.select.operator import Select
from penstock.operators.sink.operator import Sink
from penstock.operators.source.operator import Source
from penstock.operators.top.operator import Top
from penstock.operators.union.operator import Union
from penstock.operators.window.operator import Bucket
from penstock.plan.drawing import Box, draw
from penstock.plan.held import held_for
from penstock.plan.operator import Operator, unknown
from penstock.plan.promise import Ahead, Declared, Expected, Files, Generated, Reader


@dataclass(frozen=True)
class Node:
    """An operator in its place: its id and the ids of its inputs."""

    id: str
    operator: Operator
    inputs: tuple[str, ...]


@dataclass(frozen=True)
class Exit:
    """Where results leave a plan: the operator whose output they are, and the sink that takes them, if there is one."""

    root: str
    sink: str = ""

    @property
    def name(self) -> str:
        return self.sink or self.root

    @property
    def edge(self) -> str:
        """The input of the sink."""
        return f"{self.sink}#0" if self.sink else ""


@dataclass(frozen=True)
class Plan:
    """Operators in topological order (inputs before consumers)."""

    nodes: tuple[Node, ...]

    @classmethod
    def of(cls, *roots: Operator) -> Plan:
        """The plan of everything that `roots` need."""
        order: list[Operator] = []
        seen: set[int] = set()
        # Iterative, so that a chain of a thousand operators does not meet Python's recursion limit.
        stack: list[tuple[Operator, bool]] = [(r, False) for r in reversed(roots)]
        while stack:
            operator, done = stack.pop()
            if done:
                order.append(operator)
            elif id(operator) not in seen:
                seen.add(id(operator))
                stack.append((operator, True))
                stack.extend((i, False) for i in reversed(operator.inputs))
        ids: dict[int, str] = {}
        counts: dict[str, int] = {}
        names: set[str] = set()
        labels = _labels(order)
        for operator in order:
            if operator.label:
                ids[id(operator)] = operator.label
                continue
            if isinstance(operator, Source):
                if operator.name in names:
                    raise UserError(
                        f"two sources are named '{operator.name}'",
                        hint="give each stream its own name, or use one stream twice",
                    )
                names.add(operator.name)
                ids[id(operator)] = f"source:{operator.name}"
            else:
                counts[operator.kind] = counts.get(operator.kind, 0) + 1
                while (counted := f"{operator.kind}-{counts[operator.kind]}") in labels:
                    counts[operator.kind] += 1
                ids[id(operator)] = counted
        return cls(tuple(Node(ids[id(o)], o, tuple(ids[id(i)] for i in o.inputs)) for o in order))

    def __iter__(self) -> Iterator[Node]:
        return iter(self.nodes)

    def __getitem__(self, node_id: str) -> Node:
        for node in self.nodes:
            if node.id == node_id:
                return node
        raise KeyError(node_id)

    def consumers(self, node_id: str) -> tuple[Node, ...]:
        return tuple(n for n in self.nodes if node_id in n.inputs)

    @property
    def sources(self) -> tuple[Node, ...]:
        return tuple(n for n in self.nodes if isinstance(n.operator, Source))

    @property
    def sinks(self) -> tuple[Node, ...]:
        return tuple(n for n in self.nodes if isinstance(n.operator, Sink))

    @property
    def exits(self) -> tuple[Exit, ...]:
        """Where results leave: at sinks, and behind operators that nobody reads."""
        fed = {i for n in self.nodes for i in n.inputs}
        sinks = {n.id: n.inputs[0] for n in self.sinks}
        return tuple(Exit(sinks.get(n.id, n.id), n.id if n.id in sinks else "") for n in self.nodes if n.id not in fed)

    def describe(self) -> dict[str, dict[str, Any]]:
        """What must be the same for a checkpoint to fit: per operator, its inputs, schema and definition.

        And what its state is held for, so that a checkpoint can be explained without the query.
        """
        return {
            n.id: {
                "inputs": list(n.inputs),
                "kind": n.operator.kind,
                "schema": str(n.operator.schema),
                "definition": definition(n.operator),
                **({"keeps": keeps} if (keeps := held_for(n.operator)) is not None else {}),
            }
            for n in self.nodes
            if not isinstance(n.operator, Sink)
        }

    @property
    def fingerprint(self) -> str:
        text = json.dumps(self.describe(), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def differences(self, described: Mapping[str, Mapping[str, Any]]) -> list[str]:
        """How this plan differs from one described earlier, one line per difference."""
        mine = self.describe()
        lines = [f"{i} is new" for i in mine if i not in described]
        lines += [f"{i} is gone" for i in described if i not in mine]
        for node_id in mine.keys() & described.keys():
            for part in ("inputs", "schema", "definition"):
                old, new = described[node_id].get(part), mine[node_id][part]
                if old != new:
                    lines.append(f"{node_id}: {part} was {old!r}, is {new!r}")
        return sorted(lines)


def _labels(operators: Sequence[Operator]) -> set[str]:
    """The names that operators were given."""
    found: set[str] = set()
    for operator in operators:
        if operator.label in found:
            raise UserError(
                f"two operators are named '{operator.label}'", hint="give each its own name, or use one stream twice"
            )
        found |= {operator.label} if operator.label else set()
    return found


def definition(operator: Operator) -> str:
    """The part of an operator that decides its results; a path may move, so it is not part of it."""
    match operator:
        case Source():
            # What is only said for the check decides no result. How far ahead an event may be has to be corrected
            # where it turns out too little: no state depends on it.
            told = [repr(p) for p in operator.promises if not isinstance(p, Declared | Expected | Ahead)]
            return "; ".join([_reading(operator.reader), *told])
        case Select():
            return operator.predicate.sql
        case Project():
            return ", ".join(f"{e.sql} AS {n}" for n, e in operator.columns)
        case Map():
            return f"{getattr(operator.function, '__qualname__', '?')} keeps {list(operator.keeps)}"
        case Bucket():
            return repr(operator.window)
        case Aggregate():
            return operator.detail
        case Union():
            return f"union of {len(operator.inputs)}"
        case Join():
            nulls = "; nulls are alike" if operator.null_safe else ""
            return f"{operator.meaning}; {_origins(operator.columns, ('left', 'right'))}{nulls}"
        case MultiJoin():
            inputs = [f"input {k + 1}" for k in range(len(operator.inputs))]
            return f"{operator.meaning}; {_origins(operator.columns, inputs)}"
        case TableJoin() | Pace() | Instrument() | Distinct() | OrderBy() | Limit() | Top() | Sink():
            return operator.detail
        case _:
            raise unknown(operator, "which part of it decides its results")


def _origins(columns: Sequence[Taken], inputs: Sequence[str]) -> str:
    """Where the attributes of a join come from, the first that is not null: `trip ← left.trip, right.trip`."""
    return "; ".join(f"{c.name} ← {', '.join(f'{inputs[k]}.{name}' for k, name in c.origins)}" for c in columns)


def _reading(reader: Reader | None) -> str:
    """What of a reader decides which events come in what order. A generator may be asked for more rows, though."""
    if isinstance(reader, Generated):
        return repr(replace(reader, rows=None))
    parts = ", partitions by directory" if isinstance(reader, Files) and reader.partitions == "directory" else ""
    return f"{type(reader).__name__}{parts}"


def explain_text(plan: Plan, punctuation: bool = False) -> str:
    """The plan as a tree, consumers above their inputs; a shared operator is drawn once and named after that.

    With `punctuation`, also what will flow behind each operator, and what each releases on it.
    """
    return draw(boxes(plan, punctuation))


def boxes(plan: Plan, punctuation: bool = False) -> dict[str, Box]:
    """What `explain_text` draws, by operator."""
    flows, released = _punctuated(plan) if punctuation else ({}, {})
    found = {}
    for node in plan.nodes:
        flowing = [f"⇢ {flows[node.id]}"] if node.id in flows else []
        releasing = (f"releases {line}" for line in released.get(node.id, ()))
        lines = (f"→ ({node.operator.schema})", *flowing, *releasing)
        found[node.id] = Box(node.id, node.operator.detail, node.inputs, lines)
    return found


def explain_mermaid(plan: Plan, punctuation: bool = False) -> str:
    """The plan as a Mermaid flow chart, events flowing downwards; with `punctuation`, what flows on each edge."""
    lines = ["flowchart TD"]
    flows, released = _punctuated(plan) if punctuation else ({}, {})
    for n, node in enumerate(plan.nodes):
        text = f"<b>{node.id}</b>" + (f"<br/>{_escape(node.operator.detail)}" if node.operator.detail else "")
        text += "".join(f"<br/><i>releases {_escape(line)}</i>" for line in released.get(node.id, ()))
        lines.append(f'    n{n}["{text}"]')
    place = {node.id: n for n, node in enumerate(plan.nodes)}
    for node in plan.nodes:
        for child in node.inputs:
            label = f'|"{_escape(flows[child])}"|' if child in flows else ""
            lines.append(f"    n{place[child]} -->{label} n{place[node.id]}")
    return "\n".join(lines)


def _punctuated(plan: Plan) -> tuple[dict[str, str], dict[str, tuple[str, ...]]]:
    """By operator: the punctuations behind it, as far as somebody is there to hear them, and what it releases."""
    heard = {i for n in plan.nodes for i in n.inputs}
    flows = {i: "; ".join(map(str, f)) or "no punctuation" for i, f in forecast(plan).items() if i in heard}
    return flows, releases(plan)


def _escape(text: str) -> str:
    return text.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;").replace(">", "&gt;")
