"""What is final of the results of a sink: what punctuation says behind it, for those who read them.

    out/_penstock/final.json    {"epoch": 42, "final_up_to": {"window_start": "2026-01-01 00:05:00"}, …}

Times only grow, so there is one bound for each attribute. What else was said, such as that a trip is over, would grow
with the stream: of that the newest is kept.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from penstock.kernels.fold import frontier_of, is_tickable, tick
from penstock.kernels.ticks import from_tick
from penstock.pattern.pattern import Pattern
from penstock.pattern.schema import Schema
from penstock.plan.weight import PART, without_weight

#: Where it stands in the folder of a sink.
MARKER = "_penstock/final.json"
#: Patterns that are kept, beside the bounds.
MOST = 16


@dataclass(frozen=True)
class FinalUpTo:
    """What has been said of the results of one sink.

    >>> s = Schema.parse("trip int, at timestamp", "at")
    >>> known = FinalUpTo.of(s).told([Pattern.parse("[*, < '2026-01-01 10:05:00']", s), Pattern.parse("[7, *]", s)])
    >>> known.up_to, known.patterns
    ({'at': '2026-01-01 10:05:00'}, ('[7, *]',))
    """

    schema: Schema
    #: By attribute the first tick that is not final.
    bounds: Mapping[str, int] = field(default_factory=dict)
    patterns: tuple[str, ...] = ()
    ended: bool = False

    @classmethod
    def of(cls, schema: Schema) -> FinalUpTo:
        """Nothing yet, of results as their readers see them."""
        if PART in schema:
            schema = without_weight(schema.select([n for n in schema.names if n != PART]))
        return cls(schema)

    def told(self, patterns: Iterable[Pattern]) -> FinalUpTo:
        """The same with more punctuation."""
        bounds, others, ended = dict(self.bounds), list(self.patterns), self.ended
        for pattern in patterns:
            name = pattern.restricted[0] if pattern.restricted else None
            found = frontier_of(pattern, name)
            if name is None:
                ended = True
            elif found is not None and is_tickable(t := self.schema.type_of(name)):
                at = tick(found[0], t) + found[1]
                bounds[name] = max(at, bounds.get(name, at))
            else:
                others.append(str(pattern.onto(self.schema, {n: n for n in pattern.restricted})))
        return replace(self, bounds=bounds, patterns=tuple(others[-MOST:]), ended=ended)

    @property
    def up_to(self) -> dict[str, str]:
        """By attribute the value below which all results are final; `end` where all of them are."""
        if self.ended:
            return dict.fromkeys({**dict.fromkeys(self.schema.times), **self.bounds}, "end")
        return {name: str(from_tick(at, self.schema.type_of(name))) for name, at in self.bounds.items()}

    def marker(self, epoch: int) -> bytes:
        """The file beside the results."""
        body = {"epoch": epoch, "final_up_to": self.up_to, "patterns": self.patterns, "ended": self.ended}
        return f"{json.dumps(body)}\n".encode()

    def to_json(self) -> dict[str, Any]:
        return {"bounds": dict(self.bounds), "patterns": list(self.patterns), "ended": self.ended}

    def restored(self, stored: Mapping[str, Any]) -> FinalUpTo:
        """As it was after the epoch of a manifest."""
        if not stored:
            return self
        bounds = {n: int(at) for n, at in stored["bounds"].items() if n in self.schema}
        return replace(self, bounds=bounds, patterns=tuple(stored["patterns"]), ended=bool(stored["ended"]))
