"""What an aggregate over landmark windows may do about an assumed feedback."""

from __future__ import annotations

from penstock.operators.aggregate.feedback import respond_keeping
from penstock.operators.landmark_aggregate.operator import LandmarkAggregate
from penstock.pattern.pattern import Pattern
from penstock.plan.response import Response


def respond_landmarks(operator: LandmarkAggregate, pattern: Pattern) -> Response:
    """Whole groups may go, single windows of a group may not."""
    why = "an event counts for all later landmark windows"
    return respond_keeping(operator, pattern, (operator.window.label,), why)
