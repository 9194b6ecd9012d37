"""What an aggregate over windows of a number of events may do about an assumed feedback."""

from __future__ import annotations

from penstock.operators.aggregate.feedback import respond_keeping
from penstock.operators.count_aggregate.operator import CountAggregate
from penstock.pattern.pattern import Pattern
from penstock.plan.response import Response


def respond_counts(operator: CountAggregate, pattern: Pattern) -> Response:
    """Whole groups may go, single windows of a group may not."""
    why = "an event less would shift all later windows of its group"
    return respond_keeping(operator, pattern, (operator.window.label,), why)
