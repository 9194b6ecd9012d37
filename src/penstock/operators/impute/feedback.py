"""What a queue does about feedback."""

from __future__ import annotations

from dataclasses import replace

from penstock.operators.impute.operator import Impute
from penstock.operators.map.feedback import respond_map
from penstock.pattern.pattern import Pattern
from penstock.plan.response import Response


def respond_impute(operator: Impute, pattern: Pattern) -> Response:
    """What waits in the queue may go as what arrives may. Nothing of it has come out, so no guard need stay."""
    found = respond_map(operator, pattern)
    return replace(found, purge=any(p is not None for p in found.inputs))
