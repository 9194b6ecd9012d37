"""What the operators must come to, by definition: from whole tables to whole tables, and at no care for cost.

It shares nothing with the operators but the notation. Whoever writes another implementation compares with this.

>>> table = fold(events("I(1,5,100) I(4,9,200)"))
>>> sorted(snapshot(table, COMBINE["sum"]))
[(1, 4, 100), (4, 5, 300), (5, 9, 200)]
>>> sorted(snapshot(table, COMBINE["sum"], zero=True))[0]
(0, 1, 0)
>>> sorted(join(table, table, lambda left, right: left < right))
[(4, 5, (100, 200))]
>>> sorted(alter_lifetime(table, start=lambda vs: vs, length=lambda vs, ve: 10)), sorted(deletes(table))
([(1, 11, 100), (4, 14, 200)], [(5, inf, 100), (9, inf, 200)])
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise, product

from penstock.reference.lifetimes.event import INFINITY, Payload, Time, events
from penstock.reference.lifetimes.history import Table, fold
from penstock.reference.summary import mean, total

__all__ = ["COMBINE", "alter_lifetime", "deletes", "events", "fold", "join", "select", "snapshot"]

#: From all payloads of a snapshot to its results.
Combine = Callable[[Sequence[Payload]], Iterable[Payload]]

COMBINE: dict[str, Combine] = {
    "count": lambda payloads: [len(payloads)],
    "sum": lambda payloads: [total(payloads) or 0],
    "avg": lambda payloads: [mean(payloads)] if payloads else [],
    "min": lambda payloads: sorted(payloads)[:1],
    "max": lambda payloads: sorted(payloads)[-1:],
    "rank": lambda payloads: [(1 + sum(other > payload for other in payloads), payload) for payload in payloads],
    "count_distinct": lambda payloads: [len(set(payloads))],
    "top2": lambda payloads: sorted(payloads, reverse=True)[:2],
}


def endpoints(table: Table, *, zero: bool = False) -> list[Time]:
    return sorted({time for vs, ve, _ in table for time in (vs, ve)} | ({0} if zero else set()))


def snapshot(table: Table, combine: Combine, *, zero: bool = False) -> Table:
    """The results of what holds between each two endpoints; with `zero` also where nothing does, from time 0 on."""
    found: Table = Counter()
    for begin, end in pairwise(endpoints(table, zero=zero)):
        holding = [p for (vs, ve, p) in table.elements() if vs <= begin and end <= ve]
        if holding or zero:
            found.update((begin, end, result) for result in combine(holding))
    return found


def select(table: Table, keep: Callable[[Payload], bool]) -> Table:
    return Counter({row: n for row, n in table.items() if keep(row[2])})


def join(left: Table, right: Table, matches: Callable[[Payload, Payload], bool]) -> Table:
    """Each two that match, for as long as both hold."""
    found: Table = Counter()
    for ((vs1, ve1, p1), n1), ((vs2, ve2, p2), n2) in product(left.items(), right.items()):
        if matches(p1, p2) and max(vs1, vs2) < min(ve1, ve2):
            found[max(vs1, vs2), min(ve1, ve2), (p1, p2)] += n1 * n2
    return found


def alter_lifetime(table: Table, start: Callable[[Time], Time], length: Callable[[Time, Time], Time]) -> Table:
    found: Table = Counter()
    for (vs, ve, payload), n in table.items():
        begin, duration = abs(start(vs)), abs(length(vs, ve))
        if duration:
            found[begin, begin + duration, payload] += n
    return found


def deletes(table: Table) -> Table:
    """From each end on, for ever: that it has ended."""
    found: Table = Counter()
    for (_, ve, payload), n in table.items():
        if ve < INFINITY:
            found[ve, INFINITY, payload] += n
    return found
