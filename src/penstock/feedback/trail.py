"""The trail of feedback: who said what, and what each operator on its way upstream has done about it. For people.

It decides nothing. Guards tell what is dropped; the trail tells why, and where a feedback has come to rest. Of each
issuer the last messages are kept, however long ago they came: what they say holds until punctuation covers it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock.pattern.feedback import Feedback

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


@dataclass
class Message:
    """What was said, and its way: which operators, one after the other, did the same about the same pattern."""

    by: str
    said: str
    epoch: int
    #: Operators, the pattern as they heard it, what they did, and why no more.
    legs: list[tuple[list[str], str, str, str]] = field(default_factory=list)
    count: int = 0

    def stop(self, node: str, feedback: str, did: str, why: str) -> None:
        if self.count == STOPS:
            return
        self.count += 1
        if self.legs and self.legs[-1][1:] == (feedback, did, why):
            self.legs[-1][0].append(node)
        else:
            self.legs.append(([node], feedback, did, why))

    def __str__(self) -> str:
        """On a line, from its receiver on.

        >>> legs = [(["source:cars"], "not [3]", "drops results", ""), (["select-1", "select-2"], "", "nothing", "off")]
        >>> str(Message("client", "not [3]", 1, legs))
        'client: not [3] → select-1 … select-2: nothing (off) → source:cars: drops results'
        """
        legs = [
            f"{' … '.join(dict.fromkeys((nodes[0], nodes[-1])))}: {did}{f' ({why})' if why else ''}"
            for nodes, _, did, why in reversed(self.legs)
        ]
        return " → ".join([f"{self.by}: {self.said}", *legs])

    @property
    def stops(self) -> Iterator[Stop]:
        return (Stop(n, text, did, why, self.by, self.said, self.epoch) for ns, text, did, why in self.legs for n in ns)

    def to_json(self) -> dict[str, Any]:
        return {"by": self.by, "said": self.said, "epoch": self.epoch, "legs": self.legs}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Message:
        legs = [(list(nodes), text, did, why) for nodes, text, did, why in stored["legs"]]
        count = sum(len(nodes) for nodes, *_ in legs)
        return cls(stored["by"], stored["said"], stored["epoch"], legs, count)


@dataclass
class Trail:
    """The last messages of each issuer, with their stops.

    >>> from penstock.pattern.schema import Schema
    >>> trail, said = Trail(), Feedback.parse("not [> 40]", Schema.parse("speed int"))
    >>> trail.begin(CLIENT, said, epoch=3)
    >>> trail.stop("source:cars", said, "drops results")
    >>> [(s.node, s.by, s.feedback, s.epoch) for s in trail]
    [('source:cars', 'client', 'not [> 40]', 3)]
    """

    _messages: dict[str, list[Message]] = field(default_factory=dict)
    _now: Message = field(default_factory=lambda: Message("", "", 0))
    #: The last pattern and its text: as a rule the next operator hears the same.
    _last: tuple[Feedback, str] | None = None

    def begin(self, by: str, said: Feedback, epoch: int) -> None:
        """Stops from here on are of this message."""
        self._now = Message(by, self._text(said), epoch)
        told = self._messages.setdefault(by, [])
        # Said again, it is the same message, and only its latest way is of interest.
        told[:] = [m for m in told if m.legs and m.said != self._now.said]
        told.append(self._now)
        del told[: -MESSAGES[by == CLIENT]]

    def stop(self, node: str, feedback: Feedback, did: str, why: str = "") -> None:
        self._now.stop(node, self._text(feedback), did, why)

    def _text(self, feedback: Feedback) -> str:
        if self._last is None or self._last[0] != feedback:
            self._last = feedback, _text(feedback)
        return self._last[1]

    @property
    def latest(self) -> str:
        """The last message and its way, if there was one."""
        return str(self._now) if self._now.said else ""

    def __iter__(self) -> Iterator[Stop]:
        return (stop for told in self._messages.values() for message in told for stop in message.stops)

    def to_json(self) -> list[dict[str, Any]]:
        return [message.to_json() for told in self._messages.values() for message in told]

    @classmethod
    def from_json(cls, stored: Iterable[Mapping[str, Any]]) -> Trail:
        trail = cls()
        for each in stored:
            if "legs" not in each:
                continue  # As it was written once. It is for people alone, so it may be missing.
            message = Message.from_json(each)
            trail._messages.setdefault(message.by, []).append(message)
        return trail


def _text(feedback: Feedback) -> str:
    text = str(feedback)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
