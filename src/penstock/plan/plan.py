"""A plan: the operators of one query as a graph with stable ids, and its drawings.

An id is the name that an operator was given (`named`), or else its kind and a number in topological order, so the same
program gives the same ids in every run: state, settings and metrics are filed under them. A checkpoint remembers them:
operators of a query that was changed keep theirs (see `refit`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from penstock.errors import UserError
from penstock.plan.operator import Operator
from penstock.plan.place import Place
from penstock.plan.spec import spec_of, traits_of


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
    def edge(self) -> Place | None:
        """The input of the sink."""
        return Place.at(self.sink, 0) if self.sink else None


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
            if operator.role == "source":
                name = str(getattr(operator, "name", ""))
                if name in names:
                    raise UserError(
                        f"two sources are named '{name}'",
                        hint="give each stream its own name, or use one stream twice",
                    )
                names.add(name)
                ids[id(operator)] = f"source:{name}"
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
        return tuple(n for n in self.nodes if n.operator.role == "source")

    @property
    def sinks(self) -> tuple[Node, ...]:
        return tuple(n for n in self.nodes if n.operator.role == "sink")

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
                "thins": _thins(n.operator),
                "schema": str(n.operator.schema),
                "definition": spec_of(n.operator).definition(n.operator),
                **({"keeps": keeps} if (keeps := spec_of(n.operator).held(n.operator)) is not None else {}),
            }
            for n in self.nodes
            if n.operator.role != "sink"
        }

    @cached_property
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


def _thins(operator: Operator) -> bool:
    """Whether it lets events pass unchanged, or not at all, or later."""
    spec, traits = spec_of(operator), traits_of(operator)
    plain = len(operator.inputs) == 1 and traits.makes == "one" and traits.at_once and not traits.keeps_state
    plain |= operator.kind == "align"
    same = plain and operator.schema.names == operator.inputs[0].schema.names
    return same and set(spec.lineage(operator)) == set(operator.schema.names)


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
