"""What a row is worth by the value of one attribute."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from penstock.errors import UserError, shortly
from penstock.shedding.graph import number, plain

_EXAMPLE = 'write value={"speed": [((0, 50), .2), ((51, 100), 1)]}, or single values: {"airport": [("JFK", 1)]}'


@dataclass(frozen=True)
class Span:
    """Numbers from `low` to `high`, both of them included; or one value, which may be a text.

    >>> 50 in Span(0, 50), "EWR" in Span("JFK", "JFK")
    (True, False)
    """

    low: Any
    high: Any

    def __contains__(self, value: object) -> bool:
        if self.is_single:
            return bool(value == self.low)
        return isinstance(value, int | float) and bool(self.low <= value <= self.high)

    @property
    def is_single(self) -> bool:
        return bool(self.low == self.high)

    def __repr__(self) -> str:
        if not self.is_single:
            return f"({plain(self.low)}, {plain(self.high)})"
        return plain(self.low) if isinstance(self.low, float) else repr(self.low)


@dataclass(frozen=True)
class Worth:
    """The utility of the values of a span: the same for all, or rising or falling evenly to `until` at its high end."""

    span: Span
    utility: float
    until: float

    @property
    def mean(self) -> float:
        return (self.utility + self.until) / 2

    def at(self, value: Any) -> float:
        """The utility of one value of the span."""
        if self.utility == self.until:
            return self.utility
        share = (value - self.span.low) / (self.span.high - self.span.low)
        return float(self.utility + share * (self.until - self.utility))

    def chunks(self, count: int) -> Iterator[Worth]:
        """So many pieces, each of them worth its mean; itself, if all of it is worth the same."""
        if self.utility == self.until:
            yield self
            return
        low, high = self.span.low, self.span.high
        ends = [low + (high - low) * i / count for i in range(count)] + [high]
        for start, stop in pairwise(ends):
            mean = (self.at(start) + self.at(stop)) / 2
            yield Worth(Span(start, stop), mean, mean)

    def __repr__(self) -> str:
        even = self.utility == self.until
        return f"({self.span!r}, {plain(self.utility) if even else f'({plain(self.utility)}, {plain(self.until)})'})"


@dataclass(frozen=True)
class ValueGraph:
    """What the values of an attribute are worth. A value that it does not speak of is worth 1: it is never dropped.

    >>> speeds = ValueGraph.of({"speed": [((0, 50), 0.2), ((51, 100), (0.8, 1))]})
    >>> speeds.at(30), speeds.at(51), speeds.at(200)
    (0.2, 0.8, 1.0)
    >>> ValueGraph.of({"speed": [((0, 50), 0.2), ((40, 100), 1)]})
    Traceback (most recent call last):
    penstock.errors.UserError: QoS: value of 'speed': (0, 50) and (40, 100) overlap. Hint: each value has one utility
    """

    attribute: str
    pieces: tuple[Worth, ...]

    @classmethod
    def of(cls, given: object) -> ValueGraph:
        """As a user writes it: `{attribute: [(values, utility), …]}`."""
        if isinstance(given, ValueGraph):
            return given
        if not isinstance(given, Mapping) or not given:
            raise UserError(f"QoS: value={shortly(given)} is no value graph", hint=_EXAMPLE)
        if len(given) > 1:
            named = ", ".join(map(str, given))
            raise UserError(f"QoS: value graphs on {len(given)} attributes: {named}", hint="value an output by one")
        ((attribute, pieces),) = given.items()
        what = f"QoS: value of '{attribute}'"
        if not isinstance(attribute, str) or isinstance(pieces, str) or not isinstance(pieces, Sequence) or not pieces:
            raise UserError(f"{what}: {shortly(pieces)} is no list of pieces", hint=_EXAMPLE)
        graph = cls(attribute, tuple(_worth(piece, what) for piece in pieces))
        graph._check_apart(what)
        return graph

    def at(self, value: Any) -> float:
        """The utility of a row with this value."""
        return next((piece.at(value) for piece in self.pieces if value in piece.span), 1.0)

    def _check_apart(self, what: str) -> None:
        numbers = sorted(
            (p.span for p in self.pieces if not isinstance(p.span.low, str)), key=lambda s: (s.low, s.high)
        )
        texts = sorted((p.span for p in self.pieces if isinstance(p.span.low, str)), key=lambda s: str(s.low))
        for spans in (numbers, texts):
            for one, next_one in pairwise(spans):
                if next_one.low < one.high or next_one == one:
                    raise UserError(f"{what}: {one} and {next_one} overlap", hint="each value has one utility")

    def __repr__(self) -> str:
        return f"{{{self.attribute!r}: [{', '.join(map(repr, self.pieces))}]}}"


def _worth(given: object, what: str) -> Worth:
    if isinstance(given, str) or not isinstance(given, Sequence) or len(given) != 2:
        raise UserError(f"{what}: {shortly(given)} is no piece", hint=_EXAMPLE)
    values, utility = given
    if isinstance(values, tuple | list):
        if len(values) != 2:
            raise UserError(f"{what}: {shortly(values)} is no range", hint=_EXAMPLE)
        span = Span(*(number(end, what, _EXAMPLE) for end in values))
        if span.low > span.high:
            raise UserError(f"{what}: {span} is empty", hint=f"write ({plain(span.high)}, {plain(span.low)})")
    elif isinstance(values, str | bool):
        span = Span(values, values)
    else:
        span = Span(*[number(values, what, _EXAMPLE)] * 2)
    ends = utility if isinstance(utility, tuple | list) else (utility, utility)
    if len(ends) != 2 or (span.is_single and ends[0] != ends[1]):
        raise UserError(f"{what}: {shortly(utility)} is no utility of {span}", hint="a number, or one for each end")
    low, high = (number(u, f"{what}: {span}", "utility is from 0 to 1") for u in ends)
    for u in (low, high):
        if not 0 <= u <= 1:
            raise UserError(f"{what}: utility {plain(u)} of {span}", hint="utility is from 0 to 1")
    return Worth(span, low, high)
