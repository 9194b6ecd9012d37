"""What a run tells the world about itself: once per epoch how it went, and at any time what it need not do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from functools import cached_property, partial
from typing import Any

from penstock.pattern.feedback import Feedback, Intent
from penstock.pattern.pattern import Pattern


@dataclass(frozen=True)
class Progress:
    """One epoch, and where the run stands after it."""

    epoch: int
    rows_in: int
    rows_out: int
    seconds: float
    scan_seconds: float
    merge_seconds: float
    state_rows: int
    state_bytes: int
    state_runs: int
    dead: dict[str, int] = field(default_factory=dict)
    frontier: dict[str, str | None] = field(default_factory=dict)
    lag_seconds: dict[str, float | None] = field(default_factory=dict)
    total_rows_in: int = 0
    total_rows_out: int = 0
    total_dead: dict[str, int] = field(default_factory=dict)
    waiting: tuple[str, ...] = ()
    disorder: dict[str, dict[str, dict[str, int]]] = field(default_factory=dict)
    """By stream and attribute the disorder seen so far, where it is monitored (lateness in ticks)."""
    work: dict[str, int] = field(default_factory=dict)
    """What operators that keep rows did in this epoch, such as `join-1 released`."""
    read: dict[str, int] = field(default_factory=dict)
    """By stream the events of this epoch that were let in."""

    saved: dict[str, int] = field(default_factory=dict)
    """What feedback spared in this epoch, such as `source:traffic never read`, `join-1 purged`, `select-1 dropped`."""
    total_saved: dict[str, int] = field(default_factory=dict)
    guards: int = 0
    """Records of feedback in force."""
    told: str = ""
    """The last message, who said it, and what operators on its way upstream have made of it."""

    @property
    def rows_per_second(self) -> float:
        return self.rows_in / self.seconds if self.seconds > 0 else 0.0

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "rows_per_second": self.rows_per_second}


@dataclass(frozen=True)
class Guard:
    """A pattern of events that are dropped in one place, from one epoch on; `pinned` until punctuation covers it."""

    place: str
    pattern: Pattern
    since: int
    pinned: bool

    def __str__(self) -> str:
        return f"{self.place}: not {self.pattern}, since epoch {self.since}"

    @property
    def operator(self) -> str:
        """The operator that drops them: `join-1` of the place `join-1#0`, its first input.

        >>> from penstock.pattern.schema import Schema
        >>> Guard("join-1#0", Pattern.all(Schema.parse("n int")), 1, False).operator
        'join-1'
        """
        return self.place.partition("#")[0].removesuffix(":groups")


@dataclass(frozen=True)
class Receipt:
    """A message that waits for its run.

    >>> print(Receipt("1", "not [> 40]", "source:cars"))
    not [> 40] to source:cars
    """

    id: str
    text: str
    to: str
    # Asked for when somebody looks: who talks to a run in every epoch does not pay for it each time.
    contract: Callable[[], tuple[str, ...]] = field(default=tuple, repr=False, compare=False)

    @cached_property
    def remarks(self) -> tuple[str, ...]:
        """What the contract says about it: which guards nothing will ever cover."""
        return self.contract()

    def __reduce__(self) -> tuple[Any, ...]:
        return Receipt, (self.id, self.text, self.to, partial(tuple[str, ...], self.remarks))

    def __str__(self) -> str:
        return "\n  ".join((f"{self.text} to {self.to}", *self.remarks))


def inside(node: str, feedback: Feedback) -> tuple[str, ...]:
    """What to know before telling an operator inside a query something: those behind it did not say so."""
    if feedback.intent is not Intent.ASSUMED:
        return ()
    return (f"operators behind {node} may need what is dropped there: results may change, not only be missing",)
