"""What a checkpoint tells of the talk between a run and its consumers: what holds, how it came about, what it saves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from penstock.feedback.receipt import Guard
from penstock.feedback.trail import Stop
from penstock.plan.consistency import Consistency
from penstock.statistics.measured import RunStatistics


@dataclass(frozen=True)
class WaitingMessage:
    """A message that no epoch has taken up yet."""

    id: str
    feedback: str
    to: str


@dataclass(frozen=True)
class Talk:
    """All of it at one moment, after an epoch (0: before the first)."""

    epoch: int = 0
    guards: tuple[Guard, ...] = ()
    """What is dropped where."""
    wishes: tuple[Guard, ...] = ()
    """What is taken first: by sources, and by queues (then over what waits in them)."""
    trail: tuple[Stop, ...] = ()
    waiting: tuple[WaitingMessage, ...] = ()
    saved: Mapping[str, int] = field(default_factory=dict)
    """What has been spared so far, such as `source:traffic never read` or `join-1 purged`."""

    measured: RunStatistics = field(default_factory=RunStatistics, repr=False)
    """What the run has measured of itself."""

    consistency: Consistency = field(default=Consistency.strong())
    """Where the dial stands, or where it was told to."""

    def way(self, by: str, said: str) -> tuple[Stop, ...]:
        """The latest way of a message."""
        return tuple(s for s in self.trail if (s.by, s.said) == (by, said))
