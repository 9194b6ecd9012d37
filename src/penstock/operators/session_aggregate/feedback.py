"""What an aggregate over sessions may do about an assumed feedback."""

from __future__ import annotations

from penstock.operators.aggregate.feedback import respond_keeping
from penstock.operators.session_aggregate.operator import SessionAggregate
from penstock.pattern.pattern import Pattern
from penstock.plan.response import Response
from penstock.plan.responses import behind_only


def respond_sessions(operator: SessionAggregate, pattern: Pattern) -> Response:
    """Whole groups may go, single sessions may not: any event may be what keeps two of them together."""
    if operator.corrected:
        return behind_only(operator, "results that are corrected later are told apart behind it")
    return respond_keeping(operator, pattern, (operator.window.label,), "an event less would cut a session in two")
