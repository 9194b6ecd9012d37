"""What a projection does about feedback."""

from __future__ import annotations

from penstock.operators.project.operator import Project
from penstock.pattern.pattern import Pattern
from penstock.plan.response import Response
from penstock.plan.responses import before


def respond_project(operator: Project, pattern: Pattern) -> Response:
    """A result matches just if its event does, as long as every restricted attribute is carried unchanged."""
    carried = {name: old for old, names in operator.renames.items() for name in names}
    return before(operator, pattern, carried, "computed here")
