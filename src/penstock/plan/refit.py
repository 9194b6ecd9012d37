"""A query that was changed, and a checkpoint that knows it as it was: which operator is which, and does it still fit.

Ids are given by counting when a checkpoint is made, and from then on they are the checkpoint's. At each start operators
are found again by what they are: by their name, if they have one (`named`); by their definition and everything below
them; else by their definition and the streams they come from. So another operator may be put in, before, behind or in a
branch of its own, and no other one loses its id or its state.

State must not change its meaning, though. In front of an operator that holds some, only what lets events pass
unchanged or not at all may be put in, and nothing may be taken out or changed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Hashable, Mapping
from dataclasses import dataclass
from typing import Any

from penstock.plan.plan import Node, Plan

Described = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class Refit:
    """What has changed: why that cannot be, one line for each reason; and what to know of it if it can."""

    refused: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    changed: bool = False


def refitted(plan: Plan, known: Described, sinks: Mapping[str, Mapping[str, Any]], gone: Collection[str] = ()) -> Plan:
    """The plan with the ids under which a checkpoint knows its operators and sinks; new ones get ids of their own.

    `gone` are ids that were in use once: no other operator is ever taken for one of those.
    """
    mine = plan.describe()
    ids = _matched(plan, mine, known)
    taken = {*known, *gone, *ids.values()}
    for node in plan.nodes:
        if node.id in mine and node.id not in ids:
            ids[node.id] = _fresh(node, taken)
            taken.add(ids[node.id])
    taken |= set(sinks)
    for how in (lambda s: (s["input"], s["target"]), lambda s: s["input"]):
        free = {i: how(sinks[i]) for i in sorted(sinks, key=_natural) if i not in ids.values()}
        for node in plan.sinks:
            told = {"input": ids[node.inputs[0]], "target": node.operator.detail}
            match = next((i for i, key in free.items() if key == how(told)), None)
            if node.id not in ids and match is not None:
                ids[node.id] = match
                del free[match]
    for node in plan.sinks:
        if node.id not in ids:
            ids[node.id] = _fresh(node, taken)
            taken.add(ids[node.id])
    return Plan(tuple(Node(ids[n.id], n.operator, tuple(ids[i] for i in n.inputs)) for n in plan.nodes))


def _fresh(node: Node, taken: Collection[str]) -> str:
    if node.id not in taken:
        return node.id
    count = 1
    while (name := f"{node.operator.kind}-{count}") in taken:
        count += 1
    return name


def _matched(plan: Plan, mine: Described, known: Described) -> dict[str, str]:
    """By id in the plan, the id that the checkpoint has for the same operator, surest first."""
    ids = {n.id: n.id for n in plan.nodes if n.id in known and (n.operator.label or n.id.startswith("source:"))}
    rules: list[Callable[[Described], Mapping[str, Hashable]]] = [_wholes, _parts, _kinds]
    theirs: Mapping[str, Hashable] = _wholes(known)
    places: Mapping[str, Hashable] = _wholes(mine)
    # What has not changed at all keeps its place among equals, whatever their number.
    ids |= {i: i for i, whole in places.items() if theirs.get(i) == whole}
    for rule in rules:
        theirs, places = rule(known), rule(mine)
        left: dict[Hashable, list[str]] = {}
        for i in sorted(theirs, key=_natural):
            if i not in ids.values():
                left.setdefault(theirs[i], []).append(i)
        for i, key in places.items():
            if i not in ids and left.get(key):
                ids[i] = left[key].pop(0)
    return ids


def _natural(name: str) -> tuple[str, int]:
    """Names in the order in which they were given: records are kept sorted as texts.

    >>> sorted(["join-10", "join-9"], key=_natural)
    ['join-9', 'join-10']
    """
    kind, _, number = name.rpartition("-")
    return (kind, int(number)) if number.isdecimal() else (name, 0)


def _wholes(described: Described) -> dict[str, Hashable]:
    """Operators by all that they are and all that is below them. Inputs come before consumers, or are found first."""
    found: dict[str, Hashable] = {}
    for i in _in_order(described):
        below = [found[name] for name in described[i]["inputs"]]
        text = json.dumps([_own(described[i]), below if below else i])
        found[i] = hashlib.sha256(text.encode()).hexdigest()
    return {i: found[i] for i in described}


def _parts(described: Described) -> dict[str, Hashable]:
    """Operators by what they are themselves, and by the streams they come from."""
    streams: dict[str, frozenset[str]] = {}
    for i in _in_order(described):
        inputs = described[i]["inputs"]
        streams[i] = frozenset().union(*(streams[name] for name in inputs)) if inputs else frozenset({i})
    return {i: (*_own(d), streams[i]) for i, d in described.items()}


def _kinds(described: Described) -> dict[str, Hashable]:
    """Those of one kind: what is left has been changed."""
    return {i: d["kind"] if d["inputs"] else i for i, d in described.items()}


def _own(described: Mapping[str, Any]) -> tuple[str, str, str]:
    return described["kind"], described["definition"], described["schema"]


def _in_order(described: Described) -> list[str]:
    """Ids with inputs before consumers; records are kept sorted by name."""
    order: dict[str, None] = {}
    stack = [(i, False) for i in reversed(list(described))]
    while stack:
        i, done = stack.pop()
        if done:
            order[i] = None
        elif i not in order:
            stack.append((i, True))
            stack.extend((name, False) for name in described[i]["inputs"])
    return list(order)


# --- does it fit ------------------------------------------------------------------------------------------------------


def fit(plan: Plan, known: Described) -> Refit:
    """Whether a plan that has the checkpoint's ids can go on from where it is."""
    mine = plan.describe()
    if not (lines := plan.differences(known)):
        return Refit()
    new, gone = mine.keys() - known.keys(), known.keys() - mine.keys()
    changed = [i for i in mine.keys() & known.keys() if _own(mine[i]) != _own(known[i])]
    if changed or (new and gone):
        return Refit(tuple(lines))
    if gone:
        return _taken_out(known, gone)
    refused: list[str] = []
    remarks: list[str] = []
    for i in _feeding_state(mine) - new:
        for port, (was, now) in enumerate(zip(known[i]["inputs"], mine[i]["inputs"], strict=True)):
            way, now = _through(mine, new, now)
            holder = _holder(mine, i)
            if now in new:
                said = f"{now} is new in front of {holder}, which holds state"
                refused.append(f"{said}: only where() may be put in there")
            elif now != was:
                refused.append(f"{i}: input {port + 1} was {was}, is {now}, in front of {holder}, which holds state")
            elif way:
                said = f"{' and '.join(way)} {'is' if len(way) == 1 else 'are'} new in front of {holder}"
                remarks.append(f"{said}: what it has taken in before stays as it is")
    return Refit(tuple(sorted(set(refused))), tuple(sorted(set(remarks))), True)


def _taken_out(known: Described, gone: Collection[str]) -> Refit:
    """Nothing is new, and some operators are not there any more."""
    feeding = _feeding_state(known)
    refused = [f"{i} is gone{_why_not(known, i)}" for i in gone if i in feeding or not known[i]["inputs"]]
    return Refit(tuple(sorted(refused)), changed=True)


def _why_not(known: Described, i: str) -> str:
    if "keeps" in known[i]:
        return ", with its state"
    return f", and {_holder(known, i)} holds state that has come through it" if known[i]["inputs"] else ""


def _feeding_state(described: Described) -> set[str]:
    """The operators that hold state, and those in front of them."""
    found: set[str] = set()
    waiting = [i for i, d in described.items() if "keeps" in d]
    while waiting:
        i = waiting.pop()
        if i not in found:
            found.add(i)
            waiting.extend(described[i]["inputs"])
    return found


def _holder(described: Described, i: str) -> str:
    """The nearest operator that holds state, from here on."""
    level = [i]
    while level:
        if holding := sorted(x for x in level if "keeps" in described[x]):
            return holding[0]
        level = [x for x, d in described.items() if not set(level).isdisjoint(d["inputs"])]
    return i


def _through(described: Described, new: Collection[str], i: str) -> tuple[list[str], str]:
    """From an operator towards the sources over filters that are new: those, and what is below them."""
    way = []
    while i in new and described[i]["thins"]:
        way.append(i)
        (i,) = described[i]["inputs"]
    return way, i


def known_sinks(plan: Plan, before: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The sinks of a plan, for a record, with those that were known before: one may come back."""
    return {**before, **{n.id: {"input": n.inputs[0], "target": n.operator.detail} for n in plan.sinks}}
