"""What a function with state offers, and how much it keeps: one row for each key that is not over."""

from __future__ import annotations

from dataclasses import replace

from penstock.contract.bounding import PARTS, least, owner, renamed, sized
from penstock.contract.flow import Flow, Verdict, behind
from penstock.contract.rates import Rates, soonest
from penstock.contract.size import HASH, Bound, widths
from penstock.errors import counted
from penstock.operators.aggregate.contract import judge_leaving, on_attributes
from penstock.operators.process.operator import Process
from penstock.plan.spec import Measurements


def judge_process(operator: Process, below: Flow) -> Verdict:
    """In: {[[K:c, …]]} with a non-empty part K of the key tagged, whatever c; Out: those on what results have of it.

    What results there are the function decides, so none waits for punctuation; state does.
    """
    by, kept = operator.by, operator.kept
    closing = below.described(by)
    passed = {t: a for t, a in closing.items() if all(n in kept for n, _ in t)}
    flow = behind(operator, below, passed, {n: below.origins[n] for n in kept if n in below.origins})
    if all(n in below.finite for n in by):
        said = f"one row for each declared value of {' and '.join(f'`{n}`' for n in by)}"
        return Verdict("constant", "at once", flow, (said,), useful=on_attributes(by))
    return replace(judge_leaving("keys", by, below, closing, flow), output="at once")


def bound_process(operator: Process, below: Rates, measured: Measurements) -> tuple[Bound, Rates]:
    """As many rows as keys occur together, or at most one for each event since the first key that is not over.

    >>> import penstock as ps
    >>> from penstock.analysis.bounds import bounds
    >>> cars = ps.stream("cars", "t int, k int", time="t").disorder(5).expect(keys={"k": 10})
    >>> sessions = cars.punctuate(ps.Punctuate.after("k", 20))
    >>> bounds(sessions.process(lambda events, state, over: (events, state), "n int", by="k").plan)["process-1"].rows
    10
    """
    by = operator.by
    together = below.together(by)
    term = soonest(below.on(by))
    width = widths(operator.held.arrow, HASH)
    many = counted(together, "key") if together is not None else "? keys"
    known = renamed(below, operator, {n: (n,) for n in operator.kept})
    results = replace(known, rate=None, lacks="", unique=frozenset(), moment=frozenset())
    if term is None:
        if together is None or not all(n in below.finite for n in by):
            return Bound(None, None, None, 0), results
        return replace(sized(together, width, 0, (), many), stored=together * PARTS), results
    missing = tuple(f"{owner(below)}.expect(keys={{'{n}': …}})" for n in by if below.together([n]) is None)
    by_rate = None if term.ticks is None else below.held(term.ticks, measured.epoch)
    return least(below, term, by_rate, together, many, missing, width, 0), results
