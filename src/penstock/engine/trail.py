"""The trail of feedback: who said what, and what each operator on its way upstream has done about it. For people.

It decides nothing. Guards tell what is dropped; the trail tells why, and where a feedback has come to rest. Of each
issuer the last messages are kept, however long ago they came: what they say holds until punctuation covers it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from penstock.algebra.feedback import Feedback

#: Who speaks from outside.
CLIENT = "client"
#: Messages kept of somebody outside, and of each operator: those speak often, and say much the same each time.
MESSAGES = {True: 16, False: 4}
#: Stops kept of one message, and characters of a pattern.
STOPS = 64
LONGEST = 200


@dataclass(frozen=True)
class Stop:
    """What one operator did about a feedback, and why no more. `by` said it as `said`, taken up in an epoch."""

    node: str
    feedback: str
    did: str
    why: str = ""
    by: str = ""
    said: str = ""
    epoch: int = 0

    @property
    def message(self) -> tuple[str, str, int]:
        return self.by, self.said, self.epoch


@dataclass
class Trail:
    """The last messages of each issuer, with their stops.

    >>> from penstock.algebra.schema import Schema
    >>> trail, said = Trail(), Feedback.parse("not [> 40]", Schema.parse("speed int"))
    >>> trail.begin(CLIENT, said, epoch=3)
    >>> trail.stop("source:cars", said, "drops results")
    >>> [(s.node, s.by, s.feedback, s.epoch) for s in trail]
    [('source:cars', 'client', 'not [> 40]', 3)]
    """

    _messages: dict[str, list[list[Stop]]] = field(default_factory=dict)
    _now: tuple[str, str, int] = ("", "", 0)

    def begin(self, by: str, said: Feedback, epoch: int) -> None:
        """Stops from here on are of this message."""
        self._now = (by, _text(said), epoch)
        self._open(by)

    def _open(self, by: str) -> None:
        told = self._messages.setdefault(by, [])
        # Said again, it is the same message, and only its latest way is of interest.
        told[:] = [stops for stops in told if stops and stops[0].message[:2] != self._now[:2]]
        told.append([])
        del told[: -MESSAGES[by == CLIENT]]

    def stop(self, node: str, feedback: Feedback, did: str, why: str = "") -> None:
        by, said, epoch = self._now
        if by not in self._messages:
            self._open(by)
        stops = self._messages[by][-1]
        if len(stops) < STOPS:
            stops.append(Stop(node, _text(feedback), did, why, by, said, epoch))

    def __iter__(self) -> Iterator[Stop]:
        return (stop for told in self._messages.values() for stops in told for stop in stops)

    def to_json(self) -> list[dict[str, Any]]:
        return [vars(stop) for stop in self]

    @classmethod
    def from_json(cls, stored: Iterable[dict[str, Any]]) -> Trail:
        trail = cls()
        for message, stops in groupby((Stop(**s) for s in stored), key=lambda s: s.message):
            trail._messages.setdefault(message[0], []).append(list(stops))
        return trail


def _text(feedback: Feedback) -> str:
    text = str(feedback)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
