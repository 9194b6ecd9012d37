"""Events far ahead of the wall clock: one of them makes late whatever comes behind it, so its user is told.

It is told only. What is set aside is declared (`disorder(…, ahead=…)`) and judged without a clock.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from penstock.engine.source.frontier import PromiseState
from penstock.engine.source.split import Split
from penstock.kernels.ticks import from_tick
from penstock.operators.source.operator import Source
from penstock.plan.promise import Generated

#: So many seconds ahead no clock is by mistake of a time zone.
FAR = 86_400


class Clock:
    """Says of each stream and attribute once that it is far ahead."""

    def __init__(self, sources: Mapping[str, Source]) -> None:
        # What is generated goes by no clock.
        self._sources = {i: s for i, s in sources.items() if not isinstance(s.reader, Generated)}
        self._told: set[tuple[str, str]] = set()

    def look(
        self,
        reports: Sequence[tuple[str, Mapping[str, Any]]],
        before: Mapping[str, PromiseState],
        splits: Mapping[str, Sequence[Mapping[str, Any]]],
    ) -> list[str]:
        """What is to be said of an epoch: `reports` of its splits, by source, and what was known `before`."""
        found = []
        for node_id, told in reports:
            if (source := self._sources.get(node_id)) is None:
                continue
            for attribute, high in told["highs"].items():
                t = source.schema.type_of(attribute)
                if (node_id, attribute) in self._told or pa.types.is_integer(t) or high <= _far(t):
                    continue
                earlier = before[node_id].known(told["partition"]).highs.get(attribute)
                if earlier is not None and earlier >= high:
                    continue
                self._told.add((node_id, attribute))
                file = _file(splits.get(node_id, ()), told["partition"], told["ordinal"])
                found.append(
                    f"stream '{source.name}': '{attribute}' is {from_tick(high, t)} in '{file}', far ahead of the "
                    "clock: events that are older by more than the disorder are late now. To set aside what is too "
                    'far ahead of the events before it, declare disorder(…, ahead="1 h")'
                )
        return found


def _far(t: pa.DataType) -> int:
    seconds = int(time.time()) + FAR
    return seconds * 1_000_000 if pa.types.is_timestamp(t) else seconds // 86_400


def _file(splits: Sequence[Mapping[str, Any]], partition: str, ordinal: int) -> str:
    found = (s for s in map(Split.from_json, splits) if (s.partition, s.ordinal) == (partition, ordinal))
    return next((s.path for s in found), "")
