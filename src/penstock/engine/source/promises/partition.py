"""What is known of one source partition after the epochs absorbed so far."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from penstock.engine.source.promises.disorder import Seen
from penstock.engine.source.promises.ledger import Ledger
from penstock.pattern.punctuation import PunctuationSet
from penstock.pattern.schema import Schema


@dataclass
class PartitionState:
    """How far one source partition is, and what it has promised."""

    highs: dict[str, int] = field(default_factory=dict)
    floors: dict[str, int] = field(default_factory=dict)
    punctuations: PunctuationSet | None = None
    values: dict[tuple[str, ...], Ledger] = field(default_factory=dict)
    tops: dict[str, list[int]] = field(default_factory=dict)
    seen: dict[str, Seen] = field(default_factory=dict)

    def stay_behind(self, attribute: str, slack: int) -> None:
        """Nothing comes that was late by this slack already."""
        if (high := self.highs.get(attribute)) is not None:
            self.floors[attribute] = max(high - slack, self.floors.get(attribute, high - slack))

    def to_json(self) -> dict[str, Any]:
        return {
            "highs": self.highs,
            "floors": self.floors,
            "punctuations": self.punctuations.to_json() if self.punctuations is not None else [],
            "values": [v.to_json() for v in self.values.values()],
            "tops": self.tops,
            "seen": {a: list(s.top) for a, s in self.seen.items()},
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any], schema: Schema) -> PartitionState:
        given = PunctuationSet.from_json(stored["punctuations"], schema) if stored["punctuations"] else None
        values = [Ledger.from_json(v, schema) for v in stored.get("values", ())]
        return cls(
            dict(stored["highs"]),
            dict(stored["floors"]),
            given,
            {v.attributes: v for v in values},
            {a: list(top) for a, top in stored.get("tops", {}).items()},
            {a: Seen(tuple(top)) for a, top in stored.get("seen", {}).items()},
        )


def agreed(partitions: Sequence[PartitionState]) -> dict[tuple[str, ...], Ledger]:
    """The named values that every partition has promised away."""
    parts = [p.values for p in partitions]
    found = dict(parts[0]) if parts else {}
    for part in parts[1:]:
        found = {n: ledger.common(part[n]) for n, ledger in found.items() if n in part}
    return found
