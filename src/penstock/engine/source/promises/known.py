"""What earlier splits established, as the check of a later split needs it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from penstock.engine.source.promises.counting import Counting
from penstock.engine.source.promises.disorder import Seen
from penstock.engine.source.promises.keys import KeyState
from penstock.engine.source.promises.ledger import Ledger
from penstock.pattern.punctuation import PunctuationSet
from penstock.pattern.schema import Schema
from penstock.plan.promise import (
    Adaptive,
    After,
    Ahead,
    Counted,
    Disorder,
    InBand,
    Monitored,
    Once,
    Promise,
    WhenAll,
    WithinRows,
)

KeyHighs = tuple[tuple[int | None, ...], ...]


@dataclass(frozen=True)
class Known:
    """The state of the promises in front of a split.

    `highs`: greatest tick so far in the source partition, per attribute whose disorder is promised. `floors`: what
    the source had asserted when the partition first appeared. `keys`: greatest tick per listed key, one tuple for
    each `WhenAll`, in the order of its keys; these hold for the whole source. `punctuations`: given in band so far,
    but for those that only name values: `values`. `over`: one for each promise of ending keys, for the whole source.
    `limits`: how far each partition is, None before its first event, per attribute that keys end by. `tops`: the
    greatest ticks, per attribute promised to be in order within some rows. `slacks`: the slack of this epoch,
    where it is not the declared one.
    `seen`: what the measuring of disorder goes on from. `counting`: what has come of counted events, in the source.
    """

    highs: Mapping[str, int] = field(default_factory=dict)
    floors: Mapping[str, int] = field(default_factory=dict)
    keys: KeyHighs = ()
    punctuations: PunctuationSet | None = None
    values: tuple[Ledger, ...] = ()
    over: tuple[KeyState, ...] = ()
    limits: Mapping[str, Mapping[str, int | None]] = field(default_factory=dict)
    tops: Mapping[str, Sequence[int]] = field(default_factory=dict)
    slacks: Mapping[str, int] = field(default_factory=dict)
    seen: Mapping[str, Seen] = field(default_factory=dict)
    counting: Counting | None = None

    def raised(self, attribute: str, high: int) -> Known:
        """The same with a greater maximum."""
        return replace(self, highs={**self.highs, attribute: max(high, self.highs.get(attribute, high))})

    def to_json(self) -> dict[str, Any]:
        return {
            "highs": dict(self.highs),
            "floors": dict(self.floors),
            "keys": [list(k) for k in self.keys],
            "punctuations": self.punctuations.to_json() if self.punctuations is not None else [],
            "values": [v.to_json() for v in self.values],
            "over": [k.to_json() for k in self.over],
            "limits": {a: dict(limits) for a, limits in self.limits.items()},
            "tops": {a: list(top) for a, top in self.tops.items()},
            "slacks": dict(self.slacks),
            "seen": {a: list(s.top) for a, s in self.seen.items()},
            "counting": self.counting.to_json() if self.counting is not None else None,
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any], schema: Schema) -> Known:
        given = PunctuationSet.from_json(stored["punctuations"], schema) if stored["punctuations"] else None
        return cls(
            dict(stored["highs"]),
            dict(stored["floors"]),
            tuple(map(tuple, stored["keys"])),
            given,
            tuple(Ledger.from_json(v, schema) for v in stored["values"]),
            tuple(KeyState.from_json(k, schema) for k in stored["over"]),
            dict(stored["limits"]),
            dict(stored["tops"]),
            dict(stored["slacks"]),
            {a: Seen(tuple(top)) for a, top in stored["seen"].items()},
            Counting.from_json(stored["counting"]) if stored.get("counting") else None,
        )


def chained(promises: Sequence[Promise], exact: bool) -> str:
    """How far the splits of an epoch depend on each other: "source", "partition" or "no".

    `exact` says that statistics give the greatest tick of every split, so that nobody has to read it first.

    >>> chained([Disorder("ts", 5)], exact=True), chained([Disorder("ts", 5)], exact=False)
    ('no', 'partition')
    """
    if any(isinstance(p, WhenAll | After | Once | Counted) for p in promises):
        return "source"
    disorders = sum(isinstance(p, Disorder) for p in promises)
    rising = disorders or any(isinstance(p, Ahead) for p in promises)
    measured = any(isinstance(p, InBand | Adaptive | WithinRows | Monitored) for p in promises)
    if measured or disorders > 1 or (rising and not exact):
        return "partition"
    return "no"
