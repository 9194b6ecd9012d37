"""What the check says: operator by operator, whether state stays bounded and all results appear."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from penstock.errors import counted

#: "as the data says": punctuation comes in band, and nobody declared which.
State = Literal["none", "constant", "bounded", "as the data says", "unbounded"]
Output = Literal["at once", "complete", "as the data says", "held back"]


#: What becomes of a guard: it goes as the stream goes on; when its values end, if they do; as the data says; at the
#: end of a run that ends; or never.
Fate = Literal["goes", "if values end", "as the data says", "at the end", "stays"]
#: Who gives feedback that no operator of the plan does.
OUTSIDE = "outside"


@dataclass(frozen=True)
class Guarding:
    """A feedback that may reach an operator and be kept there: from whom, without its values, and what becomes of it.

    `doomed`: not the feedback itself, but what an aggregate then finds out about some of its groups.

    >>> print(Guarding("pace-1", "not [ts < …]", "goes", "`ts up to` will cover it"))
    not [ts < …] of pace-1 goes: `ts up to` will cover it
    """

    issuer: str
    feedback: str
    fate: Fate
    why: str
    doomed: bool = False

    @property
    def endless(self) -> bool:
        """Whether it could live for ever."""
        return self.fate in ("stays", "if values end", "as the data says")

    def __str__(self) -> str:
        ending = "could live for ever" if self.endless else "goes"
        each = " for each group that is doomed" if self.doomed else ""
        return f"{self.feedback}{each} of {self.issuer} {ending}: {self.why}"


@dataclass(frozen=True)
class Finding:
    """The verdict on one operator.

    `why` says on which punctuation state is released and results appear, or that nothing does. `needs` are the schemes
    that would help, per input (`probe: ts up to`, `probe: segment: each value`). `assumes` is what must hold of the
    data beyond the declared schemes, such as "every `trip` of starts also ends in ends". Where rates are declared,
    `rows` and `bytes` bound the state, `delay` how late results are, and `bound` says how that comes about. `feedback`
    is what may be kept there of feedback: never much, so it makes no operator unsafe.
    """

    operator: str
    detail: str
    state: State
    output: Output
    why: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    assumes: tuple[str, ...] = ()
    rows: int | None = None
    bytes: int | None = None
    delay: str | None = None
    bound: str | None = None
    feedback: tuple[Guarding, ...] = ()

    @property
    def safe(self) -> bool:
        return self.state != "unbounded" and self.output != "held back"

    @property
    def mark(self) -> str:
        """✓ safe, ✗ not, ? for what only the data knows."""
        return "✗" if not self.safe else "?" if self.unsure else "✓"

    @property
    def unsure(self) -> bool:
        """Whether it depends on what punctuation the data brings, of which nothing is declared."""
        return "as the data says" in (self.state, self.output)

    @property
    def verdict(self) -> str:
        """What is to be expected, in a few words."""
        if self.state == "unbounded":
            return "state grows for ever" + (", results are held back" if self.output == "held back" else "")
        if self.output == "held back":
            return "results are held back for ever"
        return "safe if the data says enough" if self.unsure else "safe"

    @property
    def notes(self) -> list[tuple[str, str]]:
        """What there is to say about it, each with its label; of feedback, what operators of the plan give."""
        bound = () if self.bound is None else (self.bound,)
        told = tuple(str(g) for g in self.feedback if g.issuer != OUTSIDE)
        labelled = (
            ("why", self.why),
            ("needs", self.needs),
            ("assumes", self.assumes),
            ("bound", bound),
            ("feedback", told),
        )
        return [(label, text) for label, texts in labelled for text in texts]


@dataclass(frozen=True)
class Fix:
    """A declaration to add at a source, as Python text, and what it would make safe."""

    stream: str
    declaration: str
    helps: tuple[str, ...] = ()

    @property
    def short(self) -> str:
        """On one line, without the alternatives that are named behind a `#`."""
        return "; ".join(line.partition("  #")[0].rstrip() for line in self.declaration.splitlines())


@dataclass(frozen=True)
class Report:
    """The whole verdict. `edges` gives the scheme behind every operator, in words.

    >>> found = Finding("aggregate-1", "count(*) AS n by trip", "unbounded", "held back", ("groups never leave",))
    >>> print(Report((found,), {"aggregate-1": "no punctuation"}, (Fix("rides", "rides = rides.ends()"),)))
    unsafe: aggregate-1: state grows for ever, results are held back
    <BLANKLINE>
      operator     state      output     promises on
    ✗ aggregate-1  unbounded  held back  no punctuation
        count(*) AS n by trip
        why: groups never leave
    <BLANKLINE>
    To make it safe, declare:
      rides = rides.ends()
    """

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

    @property
    def verdict(self) -> str:
        """The answer, on one line."""
        if (first := self.culprit) is not None:
            others = sum(not f.safe for f in self.findings) - 1
            return f"unsafe: {first.operator}: {first.verdict}" + (
                f"; unsafe too: {counted(others, 'other operator')}" if others else ""
            )
        unsure = [f.operator for f in self.findings if f.unsure]
        if unsure:
            return f"safe if the data says enough: {', '.join(unsure)} must be told in band, and no scheme is declared"
        given = ", if what is assumed of the data holds" if any(f.assumes for f in self.findings) else ""
        return f"safe: state stays bounded, and every result appears{given}"

    @property
    def endless_feedback(self) -> tuple[str, ...]:
        """Which feedback from outside could live for ever somewhere; the findings say where and why."""
        told = (g for finding in self.findings for g in finding.feedback)
        return tuple(dict.fromkeys(g.feedback for g in told if g.issuer == OUTSIDE and g.endless and not g.doomed))

    @property
    def remedy(self) -> str:
        """The words before the fixes. There may be operators that no declaration helps."""
        helped = self.fixes[0].helps if self.fixes else ()
        whole = not helped or all(f.safe or f.operator in helped for f in self.findings)
        what = "To make it safe" if whole else f"To make {', '.join(helped)} safe"
        return f"{what}, declare" + (" one of:" if len(self.fixes) > 1 else ":")

    def __bool__(self) -> bool:
        return self.safe

    def __str__(self) -> str:
        rows = [("operator", "state", "output", "promises on")]
        rows += [(f.operator, f.state, f.output, shortened(self.edges.get(f.operator, ""))) for f in self.findings]
        widths = [max(len(row[i]) for row in rows) for i in range(3)]
        lines = [self.verdict, ""]
        for i, row in enumerate(rows):
            mark = self.findings[i - 1].mark if i else " "
            cells = [text.ljust(width) for text, width in zip(row[:3], widths, strict=True)]
            lines.append("  ".join([f"{mark} {cells[0]}", *cells[1:], row[3]]).rstrip())
            if i and (notes := self.findings[i - 1].notes):
                lines.append(f"    {self.findings[i - 1].detail}")
                lines += [f"    {label}: {text}" for label, text in notes]
        if self.fixes:
            lines += ["", self.remedy]
            for i, fix in enumerate(self.fixes):
                lines += ["  or"] if i else []
                lines += [f"  {line}" for line in fix.declaration.splitlines()]
        return "\n".join(lines)

    def to_json(self) -> dict[str, Any]:
        first = self.culprit
        return {"safe": self.safe, "culprit": None if first is None else first.operator, **asdict(self)}


def shortened(text: str, width: int = 60) -> str:
    """
    >>> shortened("ts up to; trip: each value", 10)
    'ts up to …'
    """
    return text if len(text) <= width else text[: width - 1].rstrip(" ;") + " …"
