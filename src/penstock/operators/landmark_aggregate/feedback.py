"""What an aggregate over landmark windows may do about an assumed feedback."""

from __future__ import annotations

from penstock.operators.aggregate.feedback import respond_keeping
from penstock.operators.landmark_aggregate.operator import LandmarkAggregate
from penstock.pattern.pattern import Pattern
from penstock.plan.response import Response


def respond_landmarks(operator: LandmarkAggregate, pattern: Pattern) -> Response:
    """At the end, every group has results up to the latest event of all: an event of another group, or one after the
    windows in question, may be that one."""
    return respond_keeping(operator, pattern, operator.keys, "an event counts for all later landmark windows")
