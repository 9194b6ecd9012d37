"""A join that spares the other side work: what is closed and empty on one side need not come from the other.

When one input says that keys are over, and no row of them is stored, no later row of the other input can find a
partner among them. Where such a row would leave no trace in the result either (it is not the preserved side of an
outer join), the join tells that other input not to bother: `not [wid = 4]`.

Up to which value a side has got is asked about in steps: what is new since the last question, window by window or
number by number. Where time alone tells, the event behind a hole is what moves it on: the step then holds the last
window with rows and the empty ones after it, and one with rows must not hide those without.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from penstock.operators.join.meeting import Meeting
from penstock.operators.join.operator import Join, JoinKind
from penstock.pattern.feedback import Feedback, Intent
from penstock.pattern.pattern import Pattern
from penstock.pattern.punctuation import PunctuationSet
from penstock.pattern.restriction import OneOf, Range, Restriction, between, equal, restriction_from_json
from penstock.plan.orders import Answer
from penstock.plan.window_behind import window_behind

#: The inputs whose rows leave no trace when they find no partner.
SPARED: Mapping[JoinKind, tuple[int, ...]] = {
    "inner": (0, 1),
    "left": (1,),
    "right": (0,),
    "full": (),
    "semi": (0, 1),
    "anti": (1,),
}


#: Questions per side and epoch.
QUESTIONS = 64


class Thrift:
    """Which questions to ask, and what the answers tell the other side."""

    def __init__(self, operator: Join, meeting: Meeting) -> None:
        self.meeting = meeting
        self.windows = [
            {name: window for name in side.keys if (window := window_behind(below, name)) is not None}
            for side, below in zip(meeting.sides, operator.inputs, strict=True)
        ]
        self.spares = [1 - k in SPARED[operator.how] for k in (0, 1)]
        self.questions: list[list[Pattern]] = [[], []]
        #: By side and key attribute, up to where it has been asked about.
        self.upto: list[dict[str, Range]] = [{}, {}]
        self.found: list[tuple[int, Feedback]] = []

    def hear(self, k: int, patterns: Iterable[Pattern]) -> None:
        """New promises of one side."""
        side = self.meeting.sides[k]
        for pattern in patterns:
            if not self.spares[k] or not pattern.restricted or not side.speaks_of_keys_alone(pattern):
                continue
            self.questions[k] += [q for q in self._steps(k, pattern) if not q.is_empty]

    def _steps(self, k: int, pattern: Pattern) -> list[Pattern]:
        (name, *others) = pattern.restricted
        restriction = pattern[name]
        if others:
            return [pattern]
        if isinstance(restriction, OneOf):
            return [Pattern.by_name(pattern.schema, {name: equal(v)}) for v in restriction.values[:QUESTIONS]]
        if isinstance(restriction, Range) and restriction.low is None and restriction.high is not None:
            before = self.upto[k].get(name)
            self.upto[k][name] = restriction
            if before is not None:
                step = between(before.high, restriction.high, not before.high_closed, restriction.high_closed)
                values = self._single(k, name, step)
                return [Pattern.by_name(pattern.schema, {name: r}) for r in (map(equal, values) if values else [step])]
        return [pattern]

    def _single(self, k: int, name: str, step: Restriction) -> Sequence[Any]:
        """The values in a step one by one, if they are few: labels of windows, or whole numbers."""
        if name in self.windows[k]:
            return self.windows[k][name].labels_in(step, QUESTIONS) or ()
        if isinstance(step, Range) and isinstance(step.low, int) and isinstance(step.high, int):
            values = range(step.low + (not step.low_closed), step.high + step.high_closed)
            return values if len(values) <= QUESTIONS else ()
        return ()

    def ask(self, k: int) -> list[Pattern]:
        """The questions about the stored rows of a side."""
        return self.questions[k][:QUESTIONS]

    def answered(self, k: int, said: Sequence[Answer]) -> None:
        """What is empty, the other side need not send."""
        empty = [p for p, answer in zip(self.ask(k), said, strict=True) if answer.rows == 0]
        needless = [p for e in empty if (p := self.meeting.translate(e, k, 1 - k)) is not None]
        for pattern in PunctuationSet(self.meeting.sides[1 - k].schema).add(*needless):
            self.found.append((1 - k, Feedback(Intent.ASSUMED, pattern)))
        self.questions[k] = []

    def issued(self) -> list[tuple[int, Feedback]]:
        found, self.found = self.found, []
        return found

    def to_json(self) -> dict[str, Any]:
        return {"upto": [{name: r.to_json() for name, r in upto.items()} for upto in self.upto]}

    def restore(self, stored: Mapping[str, Any]) -> None:
        for k, upto in enumerate(stored["upto"]):
            schema = self.meeting.sides[k].schema
            for name, record in upto.items():
                restriction = restriction_from_json(record, schema.type_of(name))
                assert isinstance(restriction, Range)
                self.upto[k][name] = restriction
