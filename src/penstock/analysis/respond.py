"""What each operator may do about an assumed feedback: drop results, drop what arrives, purge, pass it on.

`not p` says that nobody wants results that match p. An operator is right if it loses no others, alters none, and
invents none: with SR its results without the feedback and S those with it, `SR − matching ⊆ S ⊆ SR`. What it passes on
must leave that true whichever of the events that match it are withheld: all, some or none. So a pattern goes upstream
only if *every* result that an event takes part in matches p: a conjunct left out would widen it. Where an operator can
say p over its input, it drops before the work; otherwise behind it.

Each operator answers for itself (`Spec.respond`). All rules together, with their reasons, are in
docs/feedback-responses.md.
"""

from __future__ import annotations

from penstock.pattern.pattern import Pattern
from penstock.plan.operator import Operator
from penstock.plan.response import Response
from penstock.plan.spec import spec_of


def respond(operator: Operator, pattern: Pattern) -> Response:
    """The most that an operator may do about `not pattern`, a pattern over its output.

    >>> import penstock as ps
    >>> project = ps.stream("s", "ts int, v int").select(time="ts", twice="2 * v").operator
    >>> out = project.schema
    >>> [str(p) for p in respond(project, Pattern.parse("[< 7, *]", out)).send[0]]
    ['[< 7, *]']
    >>> respond(project, Pattern.parse("[< 7, 8]", out)).why
    "'twice' is computed here"
    """
    if pattern.is_empty:
        return Response()
    found: Response = spec_of(operator).respond(operator, pattern)
    if not pattern.restricted and not all(found.send):
        # Nothing at all is wanted: then it does not matter what becomes of the results, as long as none comes out.
        everything = tuple(Pattern.all(i.schema) for i in operator.inputs)
        return Response(output=True, inputs=everything, send=tuple((p,) for p in everything), pinned=True)
    return found
