"""The part of the builder for operators that choose: what is worth doing, how much of it, and what to tell upstream."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Self

from penstock.builder.built import Built, whole
from penstock.errors import UserError
from penstock.operators.aggregate.operator import Aggregate
from penstock.operators.instrument.operator import Instrument
from penstock.operators.instrument.punctuation import said
from penstock.operators.limit.operator import Limit
from penstock.operators.pace.operator import Pace
from penstock.operators.project.operator import Project
from penstock.operators.select.operator import Select
from penstock.operators.top.operator import Top
from penstock.operators.window.operator import Bucket
from penstock.pattern.arguments import worded
from penstock.pattern.feedback import Intent, Switches
from penstock.plan.operator import Operator
from penstock.plan.policy import Extent


@worded
class Sparing(Built):
    """What a stream can leave out, put off or pass on; `Stream` inherits it."""

    def pace(self, *others: Built, bound: Extent, on: str | None = None) -> Self:
        """All events of several streams, but none that is more than `bound` behind the latest of any of them.

        `a.pace(b, on="ts", bound="1 min")`: how far time has got is the greatest `ts` that any of the streams has
        brought in the epochs before. Events older than that by more than the bound are set aside as dead letters, and
        those before are told not to bother: `not [< …]`. So a slow branch does not go on working for nothing.
        """
        attribute = self._measurable(on, "pace")
        schema = self._united(others, "pace")
        ticks = self._ticks(bound, attribute, "pace")
        operators = (self.operator, *(o.operator for o in others))
        return self._with(Pace(operators, schema, on=attribute, bound=ticks))

    def limit(self, n: int) -> Self:
        """The first n events in order of arrival, and then the end.

        Nothing more is read for it: from then on it tells those before it that no event is wanted.
        """
        return self._with(Limit((self.operator,), self.schema, count=_positive(n, "limit")))

    def top(self, n: int, by: str | Sequence[str], per: str | Sequence[str] = ()) -> Self:
        """The n best events of each group: `top(10, by="speed desc, ts", per=["segment"])`.

        They are given out when punctuation says that the group is complete; without `per` there is one group, which
        is complete at the end. Behind `window(…)` each window is a group, or divided into groups by `per`. Events that
        are equal in `by` are told apart by their other attributes, ascending. Null comes last, NaN before it. Events
        that are too bad for a group that is full are no longer wanted, and those before it are told so.
        """
        count = _positive(n, "top")
        texts = ([by] if by in self.schema else by.split(",")) if isinstance(by, str) else by
        if not texts:
            raise UserError("top() without an order", hint="for example top(10, by='speed desc')")
        order = self._ordering(texts, "top", "a text: top(10, by='speed desc, ts')")
        groups = self._known([per] if isinstance(per, str) else per, "top")
        if (bucket := bucket_under(self.operator)) is not None:
            groups = (bucket.window.label, *groups)
        return self._with(Top((self.operator,), self.schema, count=count, by=order, per=tuple(dict.fromkeys(groups))))

    def instrument(self, says: str | Callable[[int], str], *, every: int | None = None) -> Self:
        """Let everything pass and tell those before something: a driver for tests of feedback.

        `instrument("not [*, > 40]")` says so once, after the first epoch with events; `every=1000` after every 1,000
        events, at most once in an epoch. A function is given the number of events so far and returns the text.
        """
        if every is not None:
            whole(every, f"instrument: every={every!r} is not possible", "a whole number of events, 1 or more")
        if not isinstance(says, str) and not callable(says):
            raise UserError(f"instrument: {says!r} is not feedback", hint="a text such as 'not [*, > 40]'")
        made = Instrument((self.operator,), self.schema, says=says, every=every)
        try:
            told = said(made, every or 1)  # What cannot be read is told now, not in the middle of a run.
        except UserError:
            raise
        except Exception as error:
            raise UserError(
                f"instrument: the function failed on {every or 1}: {type(error).__name__}: {error}",
                hint="it is given a number of events and returns a text such as 'not [*, > 40]'",
            ) from error
        if told.intent is Intent.DEMANDED:
            raise UserError(f"instrument: '{told}' is for consumers", hint='run.demand("[ … ]") gives partial results')
        return self._with(made)

    def feedback(self, *, exploit: bool = True, propagate: bool = True, log: bool = True) -> Self:
        """What the last operator does about feedback: exploit it, pass it on upstream, count what that saved.

        Doing nothing is always right. An operator that issues feedback itself, such as `pace`, does so only if it may
        pass it on.
        """
        for name, value in (("exploit", exploit), ("propagate", propagate), ("log", log)):
            if not isinstance(value, bool):
                raise UserError(f"feedback({name}={value!r}) is not possible", hint="True or False")
        if isinstance(self.operator, Aggregate) and propagate and not exploit:
            raise UserError(
                f"feedback: an aggregate ({self.operator.detail}) cannot pass feedback on without exploiting it: "
                "those before would drop part of a group, and what is left would come out as its result",
                hint="feedback(exploit=False, propagate=False), or leave exploit on",
            )
        switches = Switches(exploit, propagate, log)
        return replace(self, operator=replace(self.operator, switches=switches))


def _positive(n: int, call: str) -> int:
    return whole(n, f"{call}({n!r}) is not a number of events", "a whole number, 1 or more")


def bucket_under(operator: Operator) -> Bucket | None:
    """The window that events are in: `where` and `select` behind it change nothing while they pass its label on."""
    passed: list[Project] = []
    while isinstance(operator, Select | Project):
        passed += [operator] if isinstance(operator, Project) else []
        (operator,) = operator.inputs
    if not isinstance(operator, Bucket):
        return None
    label = operator.window.label
    return operator if all(label in p.renames.get(label, ()) for p in passed) else None
