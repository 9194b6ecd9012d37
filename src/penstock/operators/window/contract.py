"""What windows offer: they keep nothing, and say when a window is over where something says when time is."""

from __future__ import annotations

import math
from dataclasses import replace

from penstock.contract.flow import Flow, Tags, Verdict, behind, goes_on, least
from penstock.contract.rates import DAY, Delay, Rates
from penstock.operators.window.operator import Bucket
from penstock.plan.domain import domains_behind
from penstock.plan.window import CountWindow, LandmarkWindow, SessionWindow, TimeWindow, Window

#: From so many windows for each event on, a check says how many there are.
_MANY = 100


def judge_window(operator: Bucket, below: Flow) -> Verdict:
    """In: {[[W:+, X]]}, Out: the same and {[[label:+, X]]}. Windows by count have labels that no template speaks of."""
    window = operator.window
    promised = list(below.promised.items())
    origins = dict(below.origins)
    if window.on is not None and not isinstance(window, CountWindow):
        for tags, assumed in below.promised.items():
            if (window.on, "+") in tags:
                labelled: Tags = tags - {(window.on, "+")} | {(window.label, "+")}
                promised.append((labelled, assumed | goes_on(below, window.on, tags)))
        origins[window.label] = tuple(replace(o, label=True) for o in below.origins.get(window.on, ()))
    return Verdict("none", "at once", behind(operator, below, least(promised), origins), _overlapping(window))


def _overlapping(window: Window) -> tuple[str, ...]:
    """How many windows an event is in, where that is so many that one should know: what is behind has to hold them."""
    if not isinstance(window, TimeWindow | CountWindow):
        return ()
    many = -(-window.size // window.slide)
    return (f"every event is in {many:,} windows, and counts in each",) if many >= _MANY else ()


def labelled_rates(operator: Bucket, below: Rates) -> Rates:
    """Each event once for each of its windows; a window is over when time is, up to its end.

    Windows by count and from a landmark are put together by their aggregate: here an event stays one.
    """
    window = operator.window
    finite = domains_behind(operator, [below.finite])
    if not isinstance(window, TimeWindow):
        length = {LandmarkWindow: "every", SessionWindow: "gap"}.get(type(window))
        terms = below.terms if length is None else _labelled(below, window, getattr(window, length))
        return replace(below, schema=operator.schema, terms=terms, finite=finite, unique=frozenset())
    fan = math.ceil(window.size / window.slide)
    return replace(
        below,
        schema=operator.schema,
        rate=None if below.rate is None else below.rate.times(fan),
        terms=_labelled(below, window, window.size),
        finite=finite,
        unique=frozenset(u | {window.label} for u in below.unique),
        fan=below.fan * fan,
    )


def _labelled(pace: Rates, window: Window, length: int) -> dict[Tags, Delay]:
    """The terms, and those of labels: the length of a window after time itself."""
    ticks = length * clock_ticks(window)
    terms = dict(pace.terms)
    for tags, term in pace.terms.items():
        rest: Tags = frozenset((n, c) for n, c in tags if (n, c) != (window.on, "+"))
        if len(rest) < len(tags):
            terms[rest | {(window.label, "+")}] = term.later(ticks)
    return terms


def clock_ticks(window: Window) -> int:
    """Ticks of the clock in a tick of the window: on a date it counts days."""
    return DAY if getattr(window, "unit", None) == "day" else 1


def total_in_windows(operator: Bucket, below: int | None) -> int | None:
    """Each event once for each of its windows; from a landmark on there is no end of windows."""
    if isinstance(operator.window, SessionWindow):
        return below
    window = operator.window
    if below is None or not isinstance(window, TimeWindow):
        return None
    return below * math.ceil(window.size / window.slide)
