"""The feedback part of contracts: which feedback may travel against the stream, and when it can be forgotten.

An operator accepts feedback from those behind it over the schema of its output (*feedback in*), and sends feedback to
those before it over the schema of its input (*feedback out*). Either is a scheme, anything (⟲), or nothing (∅).
Feedback that is kept is state too: it can be dropped as soon as punctuation says that nothing more matches it.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final

from penstock.contract.template import Class, Scheme, Template, class_of
from penstock.pattern.pattern import Pattern


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

#: What one punctuation class contains, once the stream has gone far enough: `a <= 7` contains `a = 5`, not the reverse.
CONTAINS: Final[Mapping[Class, frozenset[Class]]] = {
    "+": frozenset[Class]({"+", "#", "range"}),
    "#": frozenset[Class]({"#"}),
    "range": frozenset[Class]({"range", "#"}),
}


def accommodates(antecedent: Feedback, subsequent: Feedback) -> bool:
    """⪯: whether what the operator before an edge accepts goes together with what the one behind it sends.

    >>> s = Scheme.parse("[[a:+, b:-]]")
    >>> [accommodates(ANY_FEEDBACK, f) for f in (NO_FEEDBACK, ANY_FEEDBACK, s)]
    [True, True, True]
    >>> [accommodates(s, f) for f in (NO_FEEDBACK, ANY_FEEDBACK, s)]
    [True, False, True]
    """
    return antecedent is ANY_FEEDBACK or subsequent is NO_FEEDBACK or antecedent == subsequent


def covers(template: Template, feedback: Template | Pattern) -> bool:
    """Whether some punctuation of a template will contain the feedback, so that it can be forgotten.

    Every attribute that the template tags must be tagged compatibly in the feedback: a punctuation that says less about
    an attribute contains more. Attributes that only the feedback restricts make it narrower, which never hurts, even
    where no class has the restriction (`>= 50`).

    >>> p = Template.parse("[[a:+, b:-]]")
    >>> covers(p, Template.parse("[[a:+, b:#]]")), covers(Template.parse("[[a:+, b:#]]"), p)
    (True, False)
    """
    tags: dict[str, Class | None] = (
        dict(feedback.tagged)
        if isinstance(feedback, Template)
        else {n: class_of(feedback[n]) for n in feedback.restricted}
    )
    return tags_covered(template, tags)


def tags_covered(template: Template, tags: Mapping[str, Class | None]) -> bool:
    """`covers`, for the classes of the attributes that feedback restricts, under the template's names."""
    return all(tags.get(name) in CONTAINS[mine] for name, mine in template.tagged.items())
