"""What a task tells the driver."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from penstock.checkpoint.checkpoint import Output
from penstock.checkpoint.runs import Change, UnitKey
from penstock.engine.tasks.account import Account
from penstock.errors import PenstockError
from penstock.plan.orders import Answer


@dataclass
class TaskReport:
    """What a task tells the driver."""

    task: str
    rows: int = 0
    seconds: float = 0.0
    #: Results that take back others.
    retracted: int = 0
    promises: list[Any] = field(default_factory=list)
    outputs: list[Output] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)
    dead: dict[str, int] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    work: dict[str, int] = field(default_factory=dict)
    answers: dict[str, list[tuple[tuple[Answer, ...], ...]]] = field(default_factory=dict)
    #: Rows that guards have spared, by place and how: "source:traffic never read", "source:traffic dropped".
    saved: dict[str, int] = field(default_factory=dict)
    #: By aggregate, groups whose value is bound to match a feedback, as patterns over its output.
    doomed: dict[str, list[Any]] = field(default_factory=dict)
    #: By operator that watches events: the greatest time it saw, or how many there were.
    seen: dict[str, int] = field(default_factory=dict)
    #: The units of state that were used, with the results that came of them.
    uses: dict[UnitKey, int] = field(default_factory=dict)
    #: By operator, feedback for its inputs: (input, feedback as JSON).
    issued: dict[str, list[tuple[int, Any]]] = field(default_factory=dict)
    #: Rows in and out of operators, and CPU seconds.
    account: Account = field(default_factory=Account)
    error: PenstockError | None = None

    def count(self, what: dict[str, int], name: str, more: int) -> None:
        """Add to a number of this report, if it is more than nothing."""
        if more:
            what[name] = what.get(name, 0) + more

    @property
    def scanned(self) -> bool:
        """Whether this is the report of a scan, not of a merge."""
        return self.task.startswith("s")
