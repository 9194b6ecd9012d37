"""What all kinds of aggregates answer alike, whatever windows they are over: a result is the keys of its group, and
what was computed of its events."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from penstock.operators.aggregate.operator import Aggregate
from penstock.operators.shared.families import KeepingSpec
from penstock.plan.spec import Fact, Lineage, Spec, same

if TYPE_CHECKING:
    from penstock.plan.behaviour import Behaviour

A = TypeVar("A", bound=Aggregate)


class GroupsSpec(KeepingSpec[A]):
    """The part of a spec that the kinds of aggregates share; how groups end, and so all the rest, each says itself."""

    def lineage(self, operator: A) -> Lineage:
        return same(operator, operator.keys)

    def facts(self, operator: A) -> Mapping[str, Fact]:
        from penstock.operators.aggregate.monotone import is_count

        return {a.name: Fact(never_negative=True) for a in operator.aggregations if is_count(a)}

    def reads(self, operator: A, port: int, wanted: frozenset[str]) -> Collection[str]:
        """All that is computed of a group is stored, wanted or not."""
        return {*operator.keys, *(c for a in operator.aggregations for c in a.columns)}

    def behaviour(self, operator: A, heard: bool) -> Behaviour:
        """Positions, which label windows by count, say nothing of values: only other keys close groups then."""
        from penstock.operators.shared.describing import ClosingBehaviour

        return ClosingBehaviour(operator, operator.keys)

    def held(self, operator: A) -> dict[str, Any] | None:
        found: dict[str, Any] = {"kind": operator.kind, "keys": list(operator.keys)}
        if (window := operator.window) is not None:
            found |= {"label": window.label, "on": window.on, "size": getattr(window, "size", None)}
        return found


def by_whole_groups(why: str) -> Any:
    """Feedback: whole groups may go, single windows of one may not; `why` says what would become of the others."""

    def respond(self: Spec[Any], operator: Any, pattern: Any) -> Any:
        from penstock.operators.aggregate.feedback import respond_keeping

        return respond_keeping(operator, pattern, (operator.window.label,), why)

    return respond
