"""When feedback that is kept can be forgotten: as soon as punctuation says that nothing more matches it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from penstock.contract.template import Class, Template, class_of
from penstock.pattern.pattern import Pattern

#: What one punctuation class contains, once the stream has gone far enough: `a <= 7` contains `a = 5`, not the reverse.
CONTAINS: Final[Mapping[Class, frozenset[Class]]] = {
    "+": frozenset[Class]({"+", "#", "range"}),
    "#": frozenset[Class]({"#"}),
    "range": frozenset[Class]({"range", "#"}),
}


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
