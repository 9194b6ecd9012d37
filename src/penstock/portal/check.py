"""The command `penstock check`: reports for people, in colour where there is a terminal, and for machines."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from penstock.contract.report import Finding, Report, shortened
from penstock.engine.terminal import say
from penstock.errors import UserError
from penstock.pattern.feedback import RECORDS
from penstock.plan.plan import Plan
from penstock.portal.options import at_dial
from penstock.portal.outcome import queries_of
from penstock.portal.script import load
from penstock.portal.watch import say_json
from penstock.shedding.qos import QoS
from penstock.shedding.sheddable import sheddable

#: What is fine, what only the data knows, and what is not.
_COLOURS = {"✓": "green", "?": "yellow", "✗": "red"}
_BAD = ("unbounded", "held back")
Form = Literal["report", "fix", "json"]


@dataclass(frozen=True)
class CheckedQuery:
    """A query and the verdict on it. What a Spark query needs are lines to add, all of them, not alternatives."""

    title: str
    report: Report
    spark: bool = False
    output_mode: str | None = None
    sheds: tuple[str, ...] = ()
    """How each output can be shed, line by line."""
    asked: bool = False
    """Whether the query says what its results are worth, so that people are told too."""

    @property
    def verdict(self) -> str:
        """The answer on one line; that for Spark has words of its own."""
        return str(self.report).partition("\n")[0]

    @property
    def feedback(self) -> str:
        """Which feedback from outside nothing would ever end, on one line; the JSON says where and why.

        Not for a query that cannot be started as it is.
        """
        endless = self.report.endless_feedback if self.report.safe else ()
        kept = f"an operator keeps at most {RECORDS} such patterns"
        said = " or ".join(endless)
        return f"if consumers say {said}, that is kept for ever, as no punctuation ends it; {kept}" if endless else ""

    def to_json(self) -> dict[str, Any]:
        mode = {} if self.output_mode is None else {"output_mode": self.output_mode}
        sheds = {"shedding": list(self.sheds)} if self.sheds else {}
        return {"query": self.title, **mode, **self.report.to_json(), **sheds}


def check_file(spec: str, dial: str | None = None, *, bounded: bool = False) -> CheckedQuery:
    """The verdict on the query of a query file."""
    script = at_dial(load(spec), dial)
    plan = queries_of(script, as_json=True, quiet=True).plan
    worth = {n.id: q for n in plan.sinks if isinstance(q := getattr(n.operator, "qos", None), QoS)}
    lines = tuple(shedding_lines(plan, worth))
    asked = bool(worth) or "shedding" in script.settings
    return CheckedQuery(script.title, script.query.check(bounded=bounded), sheds=lines, asked=asked)


def shedding_lines(plan: Plan, worth: Mapping[str, QoS]) -> Iterator[str]:
    """Of each output whether it can be shed, with which drops, and what the gap bound allows.

    >>> import penstock as ps
    >>> cars = ps.stream("cars", "ts int, lane int", time="ts").read_json("in").disorder(0)
    >>> for line in shedding_lines(cars.window(10).agg(n="count(*)").plan, {"aggregate-1": QoS(gap=4)}):
    ...     print(line)
    aggregate-1: no random drops: results of aggregate-1 are not of single events
    aggregate-1: window drops by window_start, before cars is processed (as much as the gap allows leaves 20% of it)
    aggregate-1: no semantic drops: nobody has said what values are worth
    aggregate-1: gap=4 lets at most 80% of the windows go, 4 in a row
    """
    for name, each in sheddable(plan, worth).items():
        yield from (f"{name}: {way.line}" for way in each.ways)
        if name in worth and (gap := worth[name].gap) is not None and each.best is not None:
            windows = each.best.kind == "window"
            what = (
                f"windows go, {gap} in a row" if windows else "results go; how many in a row, only windows can promise"
            )
            yield f"{name}: gap={gap} lets at most {worth[name].most:.0%} of the {what}"


def check_spark_script(spec: str, arguments: Sequence[str] = (), output_mode: str = "append") -> list[CheckedQuery]:
    """The verdicts on the streaming queries of a PySpark script, which are not started."""
    try:
        from penstock.spark_check.query import check_spark
    except ImportError as error:
        if error.name != "penstock.spark_check.query":
            raise
        raise UserError("this Penstock cannot check Spark queries", hint="install it again") from None
    from penstock.portal.spark_script import find

    file = spec.rpartition("/")[2].partition(":")[0]
    return [
        CheckedQuery(f"{file}: {found.place}", check_spark(found.frame, found.output_mode), True, found.output_mode)
        for found in find(spec, arguments, output_mode)
    ]


def show(checked: Sequence[CheckedQuery], console: Console, form: Form) -> None:
    """Print the verdicts: as a table on a terminal, else as plain text; one JSON object per query and line."""
    for i, one in enumerate(checked):
        if form == "json":
            say_json(one.to_json())
        elif form == "fix":
            _print_fixes(one)
        elif console.is_terminal:
            console.print(drawn(one), highlight=False)
        else:
            told = [f"feedback: {said}"] if (said := one.feedback) else []
            told += [f"shedding: {line}" for line in one.sheds if one.asked]
            say(*([""] if i else []), f"{one.title}: {one.report}", *told)


def _print_fixes(one: CheckedQuery) -> None:
    lines = list(fix_lines(one))
    if lines:
        say(*lines)
    elif not one.report.safe:
        first = one.report.culprit
        assert first is not None
        needs = "; ".join(first.needs) or first.verdict
        say(f"{one.title}: no declaration helps {first.operator}: {needs}", file=sys.stderr)


def fix_lines(one: CheckedQuery) -> Iterator[str]:
    """What to add, ready to be pasted: for a Penstock query the best fix, with the others as comments."""
    report = one.report
    if one.spark:
        # Not the fixes, which are declarations at sources: Spark needs changes at operators too, told in words.
        for found in report.findings:
            if not found.safe and found.needs:
                yield f"# {one.title}: {found.operator}"
                yield from (f"#   {line}" for need in found.needs for line in need.splitlines())
        return
    for i, fix in enumerate(report.fixes):
        yield from (f"# or: {line}" if i else line for line in fix.declaration.splitlines())


def drawn(one: CheckedQuery) -> RenderableType:
    """The verdict for a terminal."""
    report = one.report
    mark = "✗" if not report.safe else "?" if any(f.mark == "?" for f in report.findings) else "✓"
    heading = Text.assemble((f"{mark} {one.title}", f"bold {_COLOURS[mark]}"), ": ", one.verdict)
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False)
    table.add_column("operator", overflow="fold", min_width=16)
    table.add_column("state")
    table.add_column("output")
    table.add_column("why, and what it needs", overflow="fold", ratio=1)
    for found in report.findings:
        colour = _COLOURS[found.mark]
        name = Text.assemble((f"{found.mark} {found.operator}", colour if found.mark != "✓" else ""))
        if found.detail and found.notes:
            name.append(f"\n  {found.detail}", style="dim")
        table.add_row(name, _cell(found.state), _cell(found.output), _notes(found, report, one.spark))
    parts: list[RenderableType] = [heading, Padding(table, (1, 0, 0, 2))]
    if report.fixes and not one.spark:
        parts.append(Padding(Text(report.remedy, style="bold"), (1, 0, 0, 0)))
        for i, fix in enumerate(report.fixes):
            parts += [Text("  or", style="dim")] if i else []
            parts += [_code(line) for line in fix.declaration.splitlines()]
    if said := one.feedback:
        parts.append(Padding(Text.assemble(("feedback: ", "dim"), said), (1, 0, 0, 0)))
    parts += [Text.assemble(("shedding: ", "dim"), line) for line in one.sheds if one.asked]
    return Group(*parts, "")


def _cell(text: str) -> Text:
    colour = "red" if text in _BAD else "yellow" if text == "as the data says" else ""
    return Text(text, style=colour)


def _notes(found: Finding, report: Report, spark: bool) -> Text:
    lines = []
    for label, text in found.notes:
        said = "add" if spark and label == "needs" else label
        style = "bold" if label == "needs" else "yellow" if label == "assumes" else ""
        lines.append(Text.assemble((f"{said}: ", "dim"), (text, style)))
    if not found.notes and (passed := report.edges.get(found.operator)):
        lines.append(Text(f"promises on: {shortened(passed)}", style="dim"))
    return Text("\n").join(lines)


def _code(line: str) -> Text:
    code, hash, rest = line.partition("  #")
    return Text.assemble("  ", (code, "green"), (hash + rest, "dim"), overflow="fold")
