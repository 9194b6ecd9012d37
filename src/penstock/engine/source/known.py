"""What earlier splits established, as the check of a later split needs it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from penstock.algebra.punctuation import PunctuationSet
from penstock.algebra.schema import Schema
from penstock.algebra.source import Disorder, InBand, Promise, WhenAll

KeyHighs = tuple[tuple[int | None, ...], ...]


@dataclass(frozen=True)
class Known:
    """The state of the promises in front of a split.

    `highs`: greatest tick so far in the source partition, per attribute whose disorder is promised. `floors`: what
    the source had asserted when the partition first appeared. `keys`: greatest tick per listed key, one tuple for
    each `WhenAll`, in the order of its keys; these hold for the whole source. `punctuations`: given in band so far.
    """

    highs: Mapping[str, int] = field(default_factory=dict)
    floors: Mapping[str, int] = field(default_factory=dict)
    keys: KeyHighs = ()
    punctuations: PunctuationSet | None = None

    def raised(self, attribute: str, high: int) -> Known:
        """The same with a greater maximum."""
        return replace(self, highs={**self.highs, attribute: max(high, self.highs.get(attribute, high))})

    def to_json(self) -> dict[str, Any]:
        return {
            "highs": dict(self.highs),
            "floors": dict(self.floors),
            "keys": [list(k) for k in self.keys],
            "punctuations": self.punctuations.to_json() if self.punctuations is not None else [],
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any], schema: Schema) -> Known:
        given = PunctuationSet.from_json(stored["punctuations"], schema) if stored["punctuations"] else None
        return cls(dict(stored["highs"]), dict(stored["floors"]), tuple(map(tuple, stored["keys"])), given)


def chained(promises: Sequence[Promise], exact: bool) -> str:
    """How far the splits of an epoch depend on each other: "source", "partition" or "no".

    `exact` says that statistics give the greatest tick of every split, so that nobody has to read it first.

    >>> chained([Disorder("ts", 5)], exact=True), chained([Disorder("ts", 5)], exact=False)
    ('no', 'partition')
    """
    if any(isinstance(p, WhenAll) for p in promises):
        return "source"
    disorders = sum(isinstance(p, Disorder) for p in promises)
    if any(isinstance(p, InBand) for p in promises) or disorders > 1 or (disorders and not exact):
        return "partition"
    return "no"
