"""What punctuation tells an operator with state, and what it asks back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from penstock.pattern.pattern import Pattern
from penstock.pattern.punctuation import PunctuationSet


@dataclass(frozen=True)
class Orders:
    """What punctuation tells a stateful operator, to be done after the events of the epoch; one entry per port.

    `release` are patterns that are new in this epoch: rows of that port that match them are of no further use (or, for
    an operator that sorts, ready to leave). `settled` is everything of this kind so far, the new included: a row
    that arrives and matches need not be stored. `ask` are patterns whose stored rows are to be counted.
    """

    release: tuple[tuple[Pattern, ...], ...]
    settled: tuple[PunctuationSet, ...]
    ask: tuple[tuple[Pattern, ...], ...] = ()


@dataclass(frozen=True)
class Answer:
    """Of the rows that are stored after the epoch and match an asked pattern: how many, and the latest tick of time.

    If the pattern is "everything up to a value" of one attribute with ticks, `least` is the least tick of it. If it
    lists values of one attribute, a queue says of which of them it holds rows: `left`.
    """

    rows: int
    latest: int | None = None
    least: int | None = None
    left: frozenset[Any] | None = None
