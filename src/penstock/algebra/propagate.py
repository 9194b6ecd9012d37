"""How punctuation travels: which promises an operator may make, given those of its inputs.

Everything follows from one rule: an operator may promise "no more events that match p" once every event that could
still produce one is itself promised away. `Propagation` does it for a whole plan; the only thing to remember between
epochs is what each input of a union has promised so far.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from typing import Any

from penstock.algebra.operator import Aggregate, Bucket, Map, Operator, Project, Select, Sink, Union
from penstock.algebra.pattern import Pattern
from penstock.algebra.plan import Plan
from penstock.algebra.punctuation import PunctuationSet
from penstock.algebra.schema import Schema
from penstock.algebra.window import LandmarkWindow

Punctuations = dict[str, tuple[Pattern, ...]]


def through(operator: Operator, pattern: Pattern) -> Iterator[Pattern]:
    """The punctuations that one punctuation becomes behind a stateless operator or an aggregate."""
    match operator:
        case Select() | Sink():
            yield Pattern(operator.schema, pattern.restrictions)
        case Project():
            yield from _through_project(operator, pattern)
        case Map():
            if set(pattern.restricted) <= set(operator.keeps):
                yield pattern.onto(operator.schema, {n: n for n in pattern.restricted})
        case Bucket():
            yield from _through_bucket(operator, pattern)
        case Aggregate():
            # A punctuation that also restricts something else than the groups says nothing about whole groups.
            if pattern.describes(operator.keys) and _ends_groups(operator, pattern):
                yield pattern.onto(operator.schema, {n: n for n in pattern.restricted})
        case _:
            raise AssertionError(f"no rule for {operator.kind}")


def _ends_groups(operator: Aggregate, pattern: Pattern) -> bool:
    """Whether no further result can match: a landmark window goes on for a key even when no event of it can come."""
    below = operator.inputs[0]
    if isinstance(below, Bucket) and isinstance(below.window, LandmarkWindow):
        return set(pattern.restricted) <= {below.window.label}
    return True


def _through_project(operator: Project, pattern: Pattern) -> Iterator[Pattern]:
    renames = operator.renames
    if not all(n in renames for n in pattern.restricted):
        return  # Dropped or computed: what is left would promise more than the input did.
    for names in product(*(renames[n] for n in pattern.restricted)):
        yield pattern.onto(operator.schema, dict(zip(pattern.restricted, names, strict=True)))


def _through_bucket(operator: Bucket, pattern: Pattern) -> Iterator[Pattern]:
    same = {n: n for n in pattern.restricted}
    yield pattern.onto(operator.schema, same)
    on, window = operator.window.on, operator.window
    if on is None or on not in pattern.restricted:
        return
    labels = window.closed_by(pattern[on])
    if labels is None:
        return
    kept = {n: pattern[n] for n in pattern.restricted if n != on}
    yield Pattern.by_name(operator.schema, {**kept, window.label: labels})


def maximal(patterns: Iterable[Pattern]) -> tuple[Pattern, ...]:
    """Those not contained in another, in their order."""
    kept: list[Pattern] = []
    for p in patterns:
        if not p.is_empty and not any(k.contains(p) for k in kept):
            kept = [k for k in kept if not p.contains(k)]
            kept.append(p)
    return tuple(kept)


class Propagation:
    """Carries the punctuations of one epoch through a plan."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self._given: dict[str, list[PunctuationSet]] = {}
        self._said: dict[str, PunctuationSet] = {}
        for node in plan.nodes:
            if isinstance(node.operator, Union):
                self._given[node.id] = [PunctuationSet(node.operator.schema) for _ in node.inputs]
                self._said[node.id] = PunctuationSet(node.operator.schema)

    def run(self, sources: Mapping[str, Iterable[Pattern]]) -> Punctuations:
        """New punctuations of the sources by operator id → new punctuations behind every operator."""
        out: Punctuations = {}
        for node in self.plan.nodes:
            if not node.inputs:
                out[node.id] = maximal(sources.get(node.id, ()))
            elif isinstance(node.operator, Union):
                out[node.id] = self._union(node.id, node.operator.schema, [out[i] for i in node.inputs])
            else:
                (below,) = node.inputs
                out[node.id] = maximal(q for p in out[below] for q in through(node.operator, p))
        return out

    def _union(self, node_id: str, schema: Schema, arrived: list[tuple[Pattern, ...]]) -> tuple[Pattern, ...]:
        """What all inputs have promised: the intersections of one promise of each."""
        given = self._given[node_id]
        moved = [p.onto(schema, {n: n for n in p.restricted}) for patterns in arrived for p in patterns]
        if not moved:
            return ()
        for k, patterns in enumerate(arrived):
            given[k] = given[k].add(*(p.onto(schema, {n: n for n in p.restricted}) for p in patterns))
        common: list[Pattern] = list(given[0])
        for promised in given[1:]:
            common = list(maximal(a.intersect(b) for a in common for b in promised))
        said = self._said[node_id]
        fresh = tuple(p for p in maximal(common) if not said.covers(p))
        self._said[node_id] = said.add(*fresh)
        return fresh

    def to_json(self) -> dict[str, Any]:
        return {
            node_id: {"given": [g.to_json() for g in given], "said": self._said[node_id].to_json()}
            for node_id, given in self._given.items()
        }

    def restore(self, stored: Mapping[str, Any]) -> None:
        for node_id, record in stored.items():
            schema = self.plan[node_id].operator.schema
            self._given[node_id] = [PunctuationSet.from_json(g, schema) for g in record["given"]]
            self._said[node_id] = PunctuationSet.from_json(record["said"], schema)
