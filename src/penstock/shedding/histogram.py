"""How often the values of an attribute occur."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from penstock.shedding.value import Span


@dataclass(frozen=True)
class Histogram:
    """Rows by spans of values. Within a span of numbers they are taken to lie evenly.

    >>> speeds = Histogram.of({(0, 50): 40, (51, 100): 60})
    >>> speeds.share(Span(0, 50)), speeds.share(Span(0, 25)), round(speeds.share(Span(90, 200)), 3)
    (0.4, 0.2, 0.122)
    """

    rows: tuple[tuple[Span, float], ...]

    @classmethod
    def of(cls, rows: Mapping[Any, float]) -> Histogram:
        """By (low, high), or by single values."""
        return cls(tuple((Span(*v) if isinstance(v, tuple) else Span(v, v), n) for v, n in rows.items()))

    @cached_property
    def total(self) -> float:
        return sum(n for _, n in self.rows)

    def share(self, span: Span) -> float:
        """The share of all rows whose values lie in a span; 0 if there are none at all."""
        if not self.total:
            return 0.0
        return sum(n * _overlap(known, span) for known, n in self.rows) / self.total

    def to_json(self) -> list[list[Any]]:
        return [[span.low, span.high, n] for span, n in self.rows]

    @classmethod
    def from_json(cls, stored: list[list[Any]]) -> Histogram:
        return cls(tuple((Span(low, high), n) for low, high, n in stored))


def _overlap(known: Span, asked: Span) -> float:
    """The share of the rows of a known span that an asked one has."""
    if known.is_single:
        return float(known.low in asked)
    if isinstance(asked.low, str):
        return 0.0
    return float(max(0.0, min(known.high, asked.high) - max(known.low, asked.low)) / (known.high - known.low))
