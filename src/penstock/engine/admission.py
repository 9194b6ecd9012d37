"""Whether a query may start: one that would run for ever must be able to.

A run that goes on until it is stopped is refused if an operator of its plan would keep state for ever or hold results
back for ever, unless someone says why that is fine here. A bounded run reads what is there, so it ends in any case; it
is told what stays open behind it. The rules are those of `penstock.analysis.judge`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from penstock.analysis.check import check
from penstock.analysis.judge import weigh
from penstock.checkpoint.storage import Storage, seal, unseal
from penstock.contract.flow import Verdict
from penstock.contract.report import Finding, Report
from penstock.errors import UserError, counted
from penstock.operators.source.operator import Source
from penstock.plan.plan import Plan
from penstock.plan.promise import EndOfSource

#: Where a checkpoint keeps that someone insisted, and why.
INSISTED = "unbounded.json"


@dataclass(frozen=True)
class Admission:
    """A query that may start: what its user should know, and what was insisted on."""

    warnings: tuple[str, ...] = ()
    reason: str | None = None
    unsafe: tuple[str, ...] = ()

    def record(self, checkpoint: Storage) -> None:
        """Keep with the state why it may grow, for those who wonder later."""
        if self.reason is not None:
            checkpoint.write(INSISTED, seal({"reason": self.reason, "operators": list(self.unsafe)}))


def insisted(checkpoint: Storage) -> dict[str, Any] | None:
    """The reason for which this checkpoint's query runs though it is unsafe, and its unsafe operators."""
    if not checkpoint.exists(INSISTED):
        return None
    return unseal(checkpoint.read(INSISTED), f"{checkpoint.url}/{INSISTED}")


def admit(plan: Plan, *, bounded: bool, allow_unbounded: str | None = None) -> Admission:
    """Let a query start, or refuse it with the culprit, what it needs, and what to write.

    >>> import penstock as ps
    >>> rides = ps.stream("rides", "ts timestamp, trip int", time="ts").disorder("5 s")
    >>> admit(rides.window("1 min").agg(n="count(*)").plan, bounded=False)
    Admission(warnings=(), reason=None, unsafe=())
    >>> admit(rides.group_by("trip").agg(n="count(*)").plan, bounded=False)
    Traceback (most recent call last):
    penstock.errors.UserError: aggregate-1 (count(*) AS n by trip): state grows for ever, results are held back...
    """
    if allow_unbounded is not None and (not isinstance(allow_unbounded, str) or not allow_unbounded.strip()):
        raise UserError(
            f"allow_unbounded={allow_unbounded!r} is not a reason",
            hint='say why it is fine here: allow_unbounded="a test of ten minutes"',
        )
    verdicts = weigh(plan)
    unsafe = tuple(i for i, v in verdicts.items() if not v.safe and not (bounded and v.behind.ends))
    if not unsafe:
        return Admission(_in_band(plan, verdicts, bounded))
    if bounded:
        return Admission((_left_open(plan, unsafe, verdicts),), unsafe=unsafe)
    if allow_unbounded is None:
        raise _refusal(plan, check(plan))
    first = verdicts[unsafe[0]]
    said = f"{_named(plan, unsafe[0])}: {_finding(plan, unsafe[0], first).verdict}{_more(unsafe)}"
    return Admission((f"{said}; allowed: {allow_unbounded}",), allow_unbounded, unsafe)


def _refusal(plan: Plan, report: Report) -> UserError:
    first = report.culprit
    assert first is not None
    others = tuple(f.operator for f in report.findings if not f.safe)
    arriving = "; ".join(f"what arrives from {i}: {report.edges[i]}" for i in plan[first.operator].inputs)
    needs = "; ".join(first.needs)
    said = [f"{_named(plan, first.operator)}: {first.verdict}{_more(others)}", arriving]
    said += [f"needs: {needs}"] if needs else []
    fixed = f"declare {report.fixes[0].short}, or " if report.fixes else ""
    insist = 'insist with allow_unbounded="why it is fine here" (penstock run --allow-unbounded)'
    return UserError(";\n  ".join(said), hint=f"{fixed}{insist}; query.check() or penstock check shows all of it")


def _left_open(plan: Plan, unsafe: tuple[str, ...], verdicts: dict[str, Verdict]) -> str:
    """What a bounded run leaves behind. The next one goes on from there; only if there is none is it a loss."""
    first = verdicts[unsafe[0]]
    what = "results wait for a later run" if first.output == "held back" else "state stays for a later run"
    silent = [s.name for n in plan.sources if isinstance(s := n.operator, Source) and not _ends(s)]
    whose = " and ".join(s for s in silent if s in first.behind.streams)
    return f"{_named(plan, unsafe[0])}{_more(unsafe)}: {what}; if there is no more to come, let {whose} say .ends()"


def _in_band(plan: Plan, verdicts: dict[str, Verdict], bounded: bool) -> tuple[str, ...]:
    unsure = {i: v for i, v in verdicts.items() if v.state == "as the data says" and not (bounded and v.behind.ends)}
    told = [i for i, v in unsure.items() if v.behind.open]
    said = (
        f"{', '.join(told)}: state is released as the data says; declare what it will say, such as "
        f'.punctuated().scheme(key="value"), to have that checked',
    )
    # Where no stream says anything, nothing is to be declared of it: the operator itself knows why it keeps so much.
    kept = tuple(f"{i}: {'; '.join(v.why)}" for i, v in unsure.items() if not v.behind.open)
    return (said if told else ()) + kept


def _named(plan: Plan, operator: str) -> str:
    detail = plan[operator].operator.detail
    return f"{operator} ({detail})" if detail else operator


def _more(unsafe: tuple[str, ...]) -> str:
    return f" (and {counted(len(unsafe) - 1, 'other operator')})" if len(unsafe) > 1 else ""


def _finding(plan: Plan, operator: str, verdict: Verdict) -> Finding:
    return Finding(operator, plan[operator].operator.detail, verdict.state, verdict.output)


def _ends(source: Source) -> bool:
    return any(isinstance(p, EndOfSource) for p in source.promises)
