"""What a function with state does about feedback."""

from __future__ import annotations

from penstock.operators.process.operator import Process
from penstock.pattern.pattern import Pattern
from penstock.plan.response import Response
from penstock.plan.responses import behind_only


def respond_process(operator: Process, pattern: Pattern) -> Response:
    """Results are dropped, and no more: what is not wanted now may be what the function has to know later."""
    return behind_only(operator, "the function may need an event for its state, whatever it results in")
