"""Policies: from what knowledge a source punctuates, in the words of its user.

A policy is written without looking at the schema; `stream.punctuate(…)` checks it and makes it a promise of the source.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from penstock.errors import UserError
from penstock.pattern.arguments import worded
from penstock.plan.promise import REMEMBERED

if TYPE_CHECKING:
    from penstock.builder.declare import Declaring

Extent = str | int | timedelta


@dataclass(frozen=True)
class Policy:
    """One way to know that something is complete, waiting for the stream that it speaks of."""

    text: str
    declare: Callable[[Any], Any] = field(repr=False, compare=False)

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Measured:
    """A disorder that is measured instead of declared: `stream.disorder(ps.Measured(at_most="5 min"))`.

    The slack is the lateness that a `quantile` of all events kept to, between `at_least` and `at_most`; before
    `warm_up` events it is `at_most`. It changes between epochs only and never takes back what was asserted; but which
    events are late then depends on how the stream is cut into epochs (a replay cuts and decides as the first run did).
    """

    at_most: Extent
    quantile: float = 0.999
    at_least: Extent = 0
    warm_up: int = 10_000

    def __post_init__(self) -> None:
        if not isinstance(self.quantile, int | float) or not 0 < self.quantile <= 1:
            raise UserError(
                f"Measured(quantile={self.quantile!r}) is not possible", hint="a number above 0, up to 1, such as 0.999"
            )
        if not isinstance(self.warm_up, int) or self.warm_up < 0:
            raise UserError(f"Measured(warm_up={self.warm_up!r}) is not possible", hint="a number of events")


@worded
class Punctuate:
    """The policies: `stream.punctuate(ps.Punctuate.after("trip", "10 min"), ps.Punctuate.every("1 min"))`.

    >>> from penstock.builder.stream import StreamBuilder
    >>> from penstock.operators.source.operator import Source
    >>> from penstock.pattern.schema import Schema
    >>> trips = StreamBuilder(Source((), Schema.parse("ts timestamp, trip int", "ts"), name="trips"))
    >>> known = trips.disorder("5 s").punctuate(Punctuate.after("trip", "10 min"), Punctuate.every("1 min"))
    >>> print(*known.operator.promises, sep="; ")
    disorder(ts within 5000000 ticks); trip over after 600000000 ticks of ts; every 60000000 ticks of ts
    """

    @staticmethod
    def every(period: Extent, on: str | None = None) -> Policy:
        """Assert how far time is complete at multiples of the period only: fewer punctuations, more state."""
        return Policy(f"every({period!r})", lambda stream: stream._every(period, on))

    @staticmethod
    def after(key: str, gap: Extent, on: str | None = None, *, remember: int = REMEMBERED) -> Policy:
        """A key is over when time is complete beyond `gap` after its newest event; needs a declared disorder.

        Only open keys are remembered, and of those that are over the last `remember`, to catch events that come all the
        same: whole numbers in a row count as one, and what is forgotten may come again unnoticed.
        """
        return Policy(f"after('{key}', {gap!r})", lambda stream: stream._after(key, gap, on, remember))

    @staticmethod
    def ahead(most: Extent, on: str | None = None) -> Policy:
        """An event is at most so much newer than the newest before it: what is further ahead is set aside.

        Choose more than the longest silence of the stream: after a longer one every event is too far ahead.
        """
        return Policy(f"ahead({most!r})", lambda stream: stream._ahead(most, on, "Punctuate.ahead"))

    @staticmethod
    def once(key: str, *, remember: int = REMEMBERED) -> Policy:
        """Every value of the key comes once: each event ends its own key. To catch a second one, see `after`."""
        return Policy(f"once('{key}')", lambda stream: stream._once(key, remember))

    @staticmethod
    def when_all(keys: Iterable[Any], *, on: str, past: str | None = None, slack: Extent = 0) -> Policy:
        """Time is complete up to where every one of the listed keys (values of attribute `on`) has got."""
        listed = _listed(keys, f"Punctuate.when_all(…, on='{on}')")
        return Policy(f"when_all({on})", lambda stream: stream.complete_when(listed, on=on, past=past, slack=slack))

    @staticmethod
    def counted(on: str | None = None, *, since: Any = None) -> Policy:
        """Records in band say how many events there are in an interval of time, from whomever has counted them.

        `{"punctuation": {"from": 0, "to": 60, "count": 17}}`: when these 17 have come, and everything before is
        complete, the time up to 60 is. Events and counts may come in any order. `since` is where time begins.
        """
        return Policy(f"counted({on or 'time'})", lambda stream: stream._counted(on, since))

    @staticmethod
    def bounds(attribute: str, low: Any = None, high: Any = None) -> Policy:
        """Values below `low` or above `high` never occur."""
        return Policy(f"bounds('{attribute}')", lambda stream: stream.bounds(attribute, low, high))

    @staticmethod
    def sorted_by(attribute: str) -> Policy:
        """Events come in ascending order of an integer, date or timestamp, in each source partition."""
        return Policy(f"sorted_by('{attribute}')", lambda stream: stream._sorted_by(attribute))

    @staticmethod
    def values(attribute: str, values: Iterable[Any]) -> Policy:
        """The attribute takes these values only, and is never null."""
        listed = _listed(values, f"Punctuate.values('{attribute}')")
        return Policy(f"values('{attribute}')", lambda stream: stream._values(attribute, listed))

    @staticmethod
    def within_rows(rows: int, on: str | None = None) -> Policy:
        """An event is at most `rows` places behind where it belongs: that many earlier events may be greater."""
        return Policy(f"within_rows({rows})", lambda stream: stream._within_rows(rows, on))


def _listed(values: Iterable[Any], call: str) -> tuple[Any, ...]:
    # A text is a list of letters to Python, and never what is meant here.
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise UserError(f"{call}: {values!r} is not a list", hint=f"write [{values!r}]")
    return tuple(values)


def declared(stream: Declaring, policies: Iterable[Policy]) -> Any:
    """The stream with all policies declared."""
    for policy in policies:
        if not isinstance(policy, Policy):
            raise UserError(f"punctuate({policy!r}) is not a policy", hint="for example ps.Punctuate.every('1 min')")
        stream = policy.declare(stream)
    return stream
