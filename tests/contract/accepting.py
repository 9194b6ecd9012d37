"""Which feedback may travel against a stream.

An operator accepts feedback from those behind it over the schema of its output (*feedback in*), and sends feedback to
those before it over the schema of its input (*feedback out*). Either is a scheme, anything (⟲), or nothing (∅).
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from penstock.contract.template import Scheme


class Blanket(Enum):
    """Feedback without a scheme."""

    ANY = "⟲"
    NONE = "∅"

    def __str__(self) -> str:
        return self.value

    def __repr__(self) -> str:
        return f"{self.name}_FEEDBACK" if self is Blanket.ANY else "NO_FEEDBACK"


#: Accepts whatever comes, without keeping it; or sends whatever it likes.
ANY_FEEDBACK: Final = Blanket.ANY
#: Accepts nothing; or sends nothing.
NO_FEEDBACK: Final = Blanket.NONE

Feedback = Blanket | Scheme


def accommodates(antecedent: Feedback, subsequent: Feedback) -> bool:
    """⪯: whether what the operator before an edge accepts goes together with what the one behind it sends.

    >>> s = Scheme.parse("[[a:+, b:-]]")
    >>> [accommodates(ANY_FEEDBACK, f) for f in (NO_FEEDBACK, ANY_FEEDBACK, s)]
    [True, True, True]
    >>> [accommodates(s, f) for f in (NO_FEEDBACK, ANY_FEEDBACK, s)]
    [True, False, True]
    """
    return antecedent is ANY_FEEDBACK or subsequent is NO_FEEDBACK or antecedent == subsequent
