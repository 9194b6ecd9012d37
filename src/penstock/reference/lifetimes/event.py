"""Events of a speculative stream, and the notation in which tests and traces write them.

| written | means |
|---|---|
| `I(1,10,5)` | insert: payload 5 holds in [1, 10) |
| `R(1,10,4,5)` | retraction: payload 5 held in [1, 10) and holds in [1, 4) only; `R(1,10,1,5)` takes it all back |
| `C(6)` | CTI: no later event has a sync time below 6 |
| `X(0,8,4)` | external CTI: exactly 4 events have a sync time in [0, 8), and may come before or after this one |

Intervals are half open, times are whole numbers from 0, ∞ is an end that is still open. The sync time of an event is
when it begins to matter: the start of an insert, the *new end* of a retraction. `#a` after an event is its id, if its
source has one; two events that differ in nothing else are equal.

>>> parse("I(1,∞,P1) C(1) R(1,∞,10,P1)#e0 I(3,5,(A1,A1)) X(0,8,4)")
[I(1,∞,P1), C(1), R(1,∞,10,P1)#e0, I(3,5,(A1,A1)), X(0,8,4)]
>>> [e.sync for e in parse("I(4,9,1) R(4,9,6,1) C(5)")]
[4, 6, 5]
"""

from __future__ import annotations

import math
import re
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from typing import Any

from penstock.errors import UserError

#: A whole number from 0, or ∞.
Time = float
INFINITY = math.inf
#: What holds. Operators need it to be equal to itself; what states ask of it beyond that, they say.
Payload = Any


class InvalidStreamError(UserError):
    """A stream that breaks its own word, or one whose events cannot be: it names the event and its position."""


@dataclass(frozen=True, repr=False)
class Insert:
    """`payload` holds in [vs, ve)."""

    vs: Time
    ve: Time
    payload: Payload
    id: Hashable = field(default=None, compare=False)

    @property
    def sync(self) -> Time:
        return self.vs

    def __repr__(self) -> str:
        return f"I({_time(self.vs)},{_time(self.ve)},{_payload(self.payload)}){_id(self.id)}"


@dataclass(frozen=True, repr=False)
class Retract:
    """`payload` held in [vs, ve) and holds in [vs, vn) only; with vn = vs nowhere."""

    vs: Time
    ve: Time
    vn: Time
    payload: Payload
    id: Hashable = field(default=None, compare=False)

    @property
    def sync(self) -> Time:
        return self.vn

    @property
    def full(self) -> bool:
        return self.vn == self.vs

    def __repr__(self) -> str:
        return f"R({_time(self.vs)},{_time(self.ve)},{_time(self.vn)},{_payload(self.payload)}){_id(self.id)}"


@dataclass(frozen=True, repr=False)
class Cti:
    """No later event has a sync time below `t`: what holds before `t` is final."""

    t: Time

    @property
    def sync(self) -> Time:
        return self.t

    def __repr__(self) -> str:
        return f"C({_time(self.t)})"


@dataclass(frozen=True, repr=False)
class ExternalCti:
    """Exactly `count` events of the stream have a sync time in [vs, ve), wherever in the stream they are."""

    vs: Time
    ve: Time
    count: int

    def __repr__(self) -> str:
        return f"X({_time(self.vs)},{_time(self.ve)},{self.count})"


#: What flows between operators.
StreamEvent = Insert | Retract | Cti
#: What a source may send, too; only `Finalize` knows what to do with an external CTI.
SourceEvent = StreamEvent | ExternalCti

_EVENT = re.compile(r"\s*;?\s*([IRCX])\(")
_FORMS = {"I": "I(start,end,payload)", "R": "R(start,end,new end,payload)", "C": "C(time)", "X": "X(start,end,count)"}


def parse(text: str) -> list[SourceEvent]:
    """Events from their notation.

    >>> parse("I(1,3)")
    Traceback (most recent call last):
    penstock.errors.UserError: 'I(1,3)': I takes 3 arguments, not 2. Hint: write I(start,end,payload)
    """
    return list(_parsed(text))


def events(text: str) -> list[StreamEvent]:
    """As `parse`, for streams without external CTIs.

    >>> events("I(1,3,5) X(0,4,1)")
    Traceback (most recent call last):
    penstock.errors.UserError: X(0,4,1): an external CTI is for Finalize only. Hint: send the stream through Finalize
    """
    found: list[StreamEvent] = []
    for event in _parsed(text):
        if isinstance(event, ExternalCti):
            raise UserError(f"{event}: an external CTI is for Finalize only", hint="send the stream through Finalize")
        found.append(event)
    return found


def _parsed(text: str) -> Iterator[SourceEvent]:
    position = 0
    while text[position:].strip():
        begun = _EVENT.match(text, position)
        if begun is None:
            raise UserError(f"'{text[position:].strip()}' is no event", hint="write I(…), R(…), C(…) or X(…)")
        end = _closing(text, begun.end())
        kind, arguments = begun[1], _split(text[begun.end() : end])
        taken = _FORMS[kind].count(",") + 1
        if len(arguments) != taken:
            raise UserError(
                f"'{text[begun.start(1) : end + 1]}': {kind} takes {taken} arguments, not {len(arguments)}",
                hint=f"write {_FORMS[kind]}",
            )
        name = re.compile(r"#(\w+)").match(text, end + 1)
        position = name.end() if name else end + 1
        yield _event(kind, arguments, name[1] if name else None)


def _event(kind: str, arguments: list[str], id: str | None) -> SourceEvent:
    if kind == "I":
        return Insert(_read_time(arguments[0]), _read_time(arguments[1]), _read_payload(arguments[2]), id)
    if kind == "R":
        vs, ve, vn = map(_read_time, arguments[:3])
        return Retract(vs, ve, vn, _read_payload(arguments[3]), id)
    if kind == "C":
        return Cti(_read_time(arguments[0]))
    return ExternalCti(_read_time(arguments[0]), _read_time(arguments[1]), int(arguments[2]))


def _closing(text: str, start: int) -> int:
    depth = 1
    for position in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[position], 0)
        if not depth:
            return position
    raise UserError(f"'{text}': a parenthesis is not closed", hint="close it")


def _split(text: str) -> list[str]:
    """At the commas that are in no parentheses."""
    parts, depth = [""], 0
    for letter in text:
        depth += {"(": 1, ")": -1}.get(letter, 0)
        if letter == "," and not depth:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]


def _read_time(text: str) -> Time:
    return INFINITY if text in ("∞", "inf") else int(text)


def _read_payload(text: str) -> Payload:
    if text.startswith("("):
        return tuple(_read_payload(part) for part in _split(text[1:-1]))
    if text.startswith("'"):
        return text[1:-1]
    if re.fullmatch(r"-?\d+", text):
        return int(text)
    return float(text) if re.fullmatch(r"-?\d+\.\d+", text) else text


def _time(time: Time) -> str:
    return "∞" if time == INFINITY else str(time)


def _payload(payload: Payload) -> str:
    if isinstance(payload, tuple):
        return f"({','.join(map(_payload, payload))})"
    if isinstance(payload, str):
        return payload if re.fullmatch(r"[^\W\d]\w*", payload) else f"'{payload}'"
    return str(payload)


def _id(id: Hashable) -> str:
    return "" if id is None else f"#{id}"
