"""Feedback: what a consumer tells those upstream about events that are still to come.

A feedback is an intent and a pattern over the output of the operator that receives it. `not […]` (assumed) says that
its issuer ignores matching events from now on: whoever receives it may drop them, some of them, or none. `prefer […]`
(desired) asks for matching events first; it changes the order of work, never the results. `now […]` (demanded) asks
for the best results there are at this moment, marked as partial; the final ones follow.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from typing import Any

from penstock.errors import UserError
from penstock.pattern.pattern import Pattern
from penstock.pattern.schema import Schema

#: How much of it is kept: guards in one place, and values in the list of one guard.
RECORDS = 64
VALUES = 10_000


class Intent(Enum):
    """What the issuer of a feedback wants done about matching events."""

    ASSUMED = "not"
    DESIRED = "prefer"
    DEMANDED = "now"

    def __str__(self) -> str:
        return self.value


_WORDS = {
    **{i.value: i for i in Intent},
    **{i.name.lower(): i for i in Intent},
    "¬": Intent.ASSUMED,
    "?": Intent.DESIRED,
    "!": Intent.DEMANDED,
}
_HEAD = re.compile(r"\s*(¬|\?|!|[A-Za-z]+)\s*(?=\[)")


@dataclass(frozen=True)
class Feedback:
    """An intent and a pattern over the output schema of whoever receives it.

    >>> f = Feedback.parse("not [*, > 40]", Schema.parse("segment int, speed double"))
    >>> print(f, f.intent)
    not [*, > 40.0] not
    """

    intent: Intent
    pattern: Pattern

    @classmethod
    def parse(cls, text: str, schema: Schema) -> Feedback:
        """Read `not [ … ]`, `prefer [ … ]` or `now [ … ]`.

        >>> print(Feedback.parse("¬[<= 4]", Schema.parse("wid int")))
        not [<= 4]
        >>> Feedback.parse("never [1]", Schema.parse("wid int"))
        Traceback (most recent call last):
        penstock.errors.UserError: feedback 'never [1]' starts with 'never'. Hint: not […], prefer […] or now […]

        One that can match nothing is a mistake: `not [(3, 4)]` of whole numbers, `not [{}]`, `not [[5, 1]]`.
        """
        if not isinstance(text, str):
            raise UserError(f"feedback {text!r} is not a text", hint="'not […]', 'prefer […]' or 'now […]'")
        found = _HEAD.match(text)
        intent = _WORDS.get(found[1].lower()) if found else None
        if found is None or intent is None:
            word = text.split()[0] if text.split() else ""
            if word.lower() in _WORDS:
                raise UserError(
                    f"feedback '{text}': '{word}' is not followed by a pattern in brackets",
                    hint=f"{word} [{', '.join('*' for _ in schema.names)}], with a restriction for each of: {schema}",
                )
            start = repr(found[1]) if found else "no intent"
            raise UserError(f"feedback '{text}' starts with {start}", hint="not […], prefer […] or now […]")
        pattern = Pattern.parse(text[found.end() :].strip(), schema)
        if pattern.is_empty:
            empty = next(n for n in pattern.restricted if pattern[n].is_empty(schema.type_of(n)))
            raise UserError(
                f"feedback '{text}': no value of '{empty}' matches, so it speaks of nothing",
                hint="the lower end of a range comes first: [1, 5)",
            )
        return cls(intent, pattern)

    def __str__(self) -> str:
        return f"{self.intent} {self.pattern}"

    def to_json(self) -> dict[str, Any]:
        return {"intent": self.intent.value, "pattern": self.pattern.to_json()}

    @classmethod
    def from_json(cls, stored: dict[str, Any], schema: Schema) -> Feedback:
        return cls(Intent(stored["intent"]), Pattern.from_json(stored["pattern"], schema))


@dataclass(frozen=True)
class Switches:
    """What an operator does with feedback it receives: exploit it, pass it on upstream, count what that saved."""

    exploit: bool = True
    propagate: bool = True
    log: bool = True
