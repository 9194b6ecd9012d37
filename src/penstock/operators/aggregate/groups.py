"""What all kinds of aggregates answer alike, whatever windows they are over: a result is the keys of its group, and
what was computed of its events."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from penstock.operators.aggregate.operator import Aggregate
from penstock.plan.spec import Fact, Lineage, Spec, Told, same

if TYPE_CHECKING:
    from penstock.contract.flow import Flow
    from penstock.pattern.pattern import Pattern

A = TypeVar("A", bound=Aggregate)


class GroupsSpec(Spec[A]):
    """The part of a spec that the kinds of aggregates share; how groups end, and so all the rest, each says itself."""

    def lineage(self, operator: A) -> Lineage:
        return same(operator, operator.keys)

    def facts(self, operator: A) -> Mapping[str, Fact]:
        from penstock.operators.aggregate.monotone import is_count

        return {a.name: Fact(never_negative=True) for a in operator.aggregations if is_count(a)}

    def reads(self, operator: A, port: int, wanted: frozenset[str]) -> Collection[str]:
        """All that is computed of a group is stored, wanted or not."""
        return {*operator.keys, *(c for a in operator.aggregations for c in a.columns)}

    def computed(self, operator: A, below: Sequence[frozenset[str]], wanted: frozenset[str]) -> frozenset[str]:
        return frozenset(operator.schema.names)

    def definition(self, operator: A) -> str:
        return operator.detail

    def held(self, operator: A) -> dict[str, Any] | None:
        found: dict[str, Any] = {"kind": operator.kind, "keys": list(operator.keys)}
        if (window := operator.window) is not None:
            found |= {"label": window.label, "on": window.on, "size": getattr(window, "size", None)}
        return found

    def passes_all(self, operator: A, pattern: Pattern) -> bool:
        """What was stored before a feedback came is still to be dropped."""
        return False

    def issues(self, operator: A, below: Sequence[Flow]) -> Iterable[Told]:
        return ()
