"""The dial: how long a query waits before it tells a result, and for how long it can still correct one.

Two numbers, both in the time of the events. *Block*: how long an event is held back, so that others can overtake it,
before results count it. *Remember*: how far behind the newest event one may come and still be counted; what comes
later is a dead letter, and results that old are final. Who blocks as long as he remembers never corrects anything;
who does not block tells every result at once.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta

from penstock.errors import UserError
from penstock.pattern.duration import format_duration, parse_duration

Extent = str | int | timedelta
#: By source, how late its events may come and for how long they are held back, in ticks.
Setting = dict[str, tuple[int, int]]


@dataclass(frozen=True)
class Consistency:
    """A point of the triangle. None is "as long as it takes": until punctuation says that nothing more comes.

    >>> Consistency.strong(), Consistency.middle(remember="1 h"), Consistency.weak(block="5 s", remember="1 min")
    (Consistency.strong(), Consistency.middle(remember='1 h'), Consistency.weak(block='5 s', remember='1 min'))
    >>> Consistency.at(block="2 h", remember="1 h")
    Traceback (most recent call last):
    penstock.errors.UserError: Consistency: block='2 h' is longer than remember='1 h'. Hint: wait at most 1 h: what is \
forgotten cannot be waited for
    """

    block: int | None
    remember: int | None
    #: Whether these are numbers, for streams whose time is one, or counts of days; not lengths of time.
    counted: bool = field(default=False, compare=False)

    @classmethod
    def strong(cls, *, remember: Extent | None = None) -> Consistency:
        """Tell nothing that could change: the way of queries that say nothing about consistency."""
        known, counted = _measured(remember, "remember")
        return cls(known, known, bool(counted))

    @classmethod
    def middle(cls, *, remember: Extent | None = None) -> Consistency:
        """Tell at once, and correct as long as one remembers; without a length, until punctuation makes it final."""
        known, counted = _measured(remember, "remember")
        return cls(0, known, bool(counted))

    @classmethod
    def weak(cls, *, remember: Extent, block: Extent = 0) -> Consistency:
        """Tell soon and forget soon: little is kept, and what comes late is not counted."""
        return cls.at(block=block, remember=remember)

    @classmethod
    def at(cls, *, block: Extent | None, remember: Extent | None) -> Consistency:
        """Any point: None stands for as long as it takes."""
        knows, there = _measured(remember, "remember")
        waits, here = _measured(block, "block")
        if here is not None and there is not None and here != there:
            raise UserError(
                f"Consistency: block={block!r} and remember={remember!r} do not go together",
                hint="numbers for a stream whose time is one, or two lengths such as '5 s' and '1 h'",
            )
        made = cls(waits, knows, bool(here or there))
        if knows is not None and (waits is None or waits > knows):
            said = "for ever" if waits is None else f"block={made._shown(waits)}"
            raise UserError(
                f"Consistency: {said} is longer than remember={made._shown(knows)}",
                hint=f"wait at most {made._text(knows)}: what is forgotten cannot be waited for",
            )
        return made

    @classmethod
    def parse(cls, text: str) -> Consistency:
        """As the command line has it: a corner, a corner with a length of time, or two lengths of time.

        >>> Consistency.parse("middle/1 h"), Consistency.parse("5 s/1 min"), Consistency.parse("middle/20")
        (Consistency.middle(remember='1 h'), Consistency.weak(block='5 s', remember='1 min'), \
Consistency.middle(remember=20))
        """
        first, _, second = (part.strip() for part in text.partition("/"))
        remember = second or None
        match first:
            case "strong":
                return cls.strong(remember=remember)
            case "middle":
                return cls.middle(remember=remember)
            case "weak" if remember is not None:
                return cls.weak(remember=remember)
            case _ if remember is not None:
                waits, knows = (None if part == "-" else part for part in (first, remember))
                return cls.at(block=waits, remember=knows)
            case _:
                raise UserError(
                    f"consistency '{text}' is not possible",
                    hint="strong, middle, 'middle/1 h', or how long to block and to remember: '5 s/1 h'",
                )

    @property
    def text(self) -> str:
        """Short, as `parse` reads it; a length that nobody has named is a dash.

        >>> Consistency.middle(remember="1 h").text, Consistency.strong().text
        ('0 s/1 h', '-/-')
        """
        return "/".join("-" if n is None else self._text(n) for n in (self.block, self.remember))

    @property
    def speculates(self) -> bool:
        """Whether results may be told that are corrected later."""
        return self.block is not None and (self.remember is None or self.block < self.remember)

    def waiting(self) -> Consistency:
        """As much is remembered, and nothing is told before it is final.

        >>> Consistency.weak(block="5 s", remember="1 min").waiting()
        Consistency.strong(remember='1 min')
        """
        return Consistency(self.remember, self.remember, self.counted)

    def __repr__(self) -> str:
        known = "" if self.remember is None else f"remember={self._shown(self.remember)}"
        if not self.speculates:
            return f"Consistency.strong({known})"
        if not self.block:
            return f"Consistency.middle({known})"
        waits = f"block={self._shown(self.block)}"
        return f"Consistency.at({waits}, remember=None)" if not known else f"Consistency.weak({waits}, {known})"

    def _text(self, extent: int) -> str:
        return str(extent) if self.counted else format_duration(extent)

    def _shown(self, extent: int) -> str:
        return str(extent) if self.counted else f"'{format_duration(extent)}'"


def _measured(extent: Extent | None, name: str) -> tuple[int | None, bool | None]:
    """A length, and whether it is a number; that is not known of nothing at all."""
    if extent is None:
        return None, None
    if isinstance(extent, str) and extent.strip().isascii() and extent.strip().isdigit():
        extent = int(extent)
    found = parse_duration(extent, where=f"Consistency: {name}", allow_zero=True)
    return found, isinstance(extent, int) if found else None
