"""Events that were not let in, or dropped on the way, each with the reason."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from penstock.pattern.pattern import Pattern


@dataclass(frozen=True)
class DeadLetter:
    """An event that was not let in: why, and which punctuation it breaks (None if it does not fit the schema)."""

    source: str
    partition: Hashable
    row: Mapping[str, Any]
    reason: str
    breaks: Pattern | None
    kind: Literal["malformed", "forbidden", "late", "ahead", "paced", "failed"] = "late"
