"""What the check says: operator by operator, whether state stays bounded and all results appear."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

#: "as the data says": punctuation comes in band, and nobody declared which.
State = Literal["none", "constant", "bounded", "as the data says", "unbounded"]
Output = Literal["at once", "complete", "held back"]


@dataclass(frozen=True)
class Finding:
    """The verdict on one operator.

    `why` says on which punctuation state is released and results appear, or that nothing does. `needs` are the schemes
    that would help, per input (`probe: ts up to`, `probe: segment: each value`). `assumes` is what must hold of the
    data beyond the declared schemes, such as "every `trip` of starts also ends in ends".
    """

    operator: str
    detail: str
    state: State
    output: Output
    why: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    assumes: tuple[str, ...] = ()

    @property
    def safe(self) -> bool:
        return self.state != "unbounded" and self.output != "held back"


@dataclass(frozen=True)
class Fix:
    """A declaration to add at a source, as Python text, and what it would make safe."""

    stream: str
    declaration: str
    helps: tuple[str, ...] = ()


@dataclass(frozen=True)
class Report:
    """The whole verdict. `edges` gives the scheme behind every operator, in words."""

    findings: tuple[Finding, ...]
    edges: dict[str, str] = field(default_factory=dict)
    fixes: tuple[Fix, ...] = ()

    @property
    def safe(self) -> bool:
        return all(f.safe for f in self.findings)

    @property
    def culprit(self) -> Finding | None:
        """The first operator, in the direction of the stream, that breaks it."""
        return next((f for f in self.findings if not f.safe), None)

    def __bool__(self) -> bool:
        return self.safe

    def to_json(self) -> dict[str, Any]:
        return {"safe": self.safe, **asdict(self)}
