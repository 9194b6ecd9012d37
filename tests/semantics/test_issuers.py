"""Operators that say of themselves what they do not need are believed: correct issuance, Definition 2.

A run is watched: what an operator has said, and which events came later. Then it is run again, and of the events that
match what was said any are withheld, as a coin falls: not only those that the engine would drop. The operator must not
notice. They are withheld behind the source, by a filter: time goes on by them, and epochs are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import pytest
from backend import Outcome, assert_grammatical, difference, on_kernels, on_reference
from case import Case, Cut, Feed
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from talk_cases import HOW, KEYS, feed

from penstock.analysis.cascade import respond
from penstock.operators.source.operator import Source
from penstock.pattern.feedback import Feedback, Intent
from penstock.pattern.pattern import Pattern
from penstock.plan.plan import Node, Plan

DEAF = ".feedback(exploit=False)"
#: A smaller seed is no simpler case: there is nothing to shrink.
PHASES = (Phase.explicit, Phase.reuse, Phase.generate)


@dataclass(frozen=True)
class Issuer:
    """A query over `{s}` and `{t}` whose operator talks; perhaps only if a consumer says something about its `x`."""

    query: Callable[[Random], str]
    said: Callable[[Random], str] | None = None
    promises: str = ".disorder(2).ends()"


def thrifty(r: Random) -> str:
    how = r.choice(("inner", "left", "right", "semi", "anti"))
    return f"{{s}}.join({{t}}, {r.choice(('ts', 'ts', ['ts', 'k']))!r}, {how!r}, thrifty=True)"


def top(r: Random) -> str:
    by, per = r.choice(("'n desc'", "'v'", "'n, v desc'", "'ts'")), r.choice(("", ", per='k'", ", per=['k', 'n']"))
    return f"{{s}}.top({r.randint(1, 2)}, by={by}{per})"


def counting(r: Random) -> str:
    x = r.choice(("count(*)", "max(n)", "min(n)", "sum(n)", "count(distinct n)"))
    return f"{{s}}{r.choice(('', '.window(12)'))}.group_by('k').agg(x={x!r})"


ISSUERS = {
    "pace": Issuer(lambda r: f"{{s}}.pace({{t}}, on='ts', bound={r.randint(0, 3)})", promises=".ends()"),
    "thrifty join": Issuer(thrifty, promises=".disorder(1).ends()"),
    "limit": Issuer(lambda r: f"{{s}}.limit({r.randint(1, 6)})"),
    "top": Issuer(top, promises=".ends()"),
    "doomed groups": Issuer(counting, lambda r: r.choice((">= 1", "> 1", ">= 2", "< 2", "<= 1", "< 1"))),
    # It says what it is told to say: its own results may go.
    "instrument": Issuer(lambda r: f"{{s}}.instrument('not [> 5, *, *, *, *]', every={r.randint(1, 4)})"),
}


def behind(feed: Feed, by: int) -> Feed:
    """The same events, with earlier times."""
    rows = ((p, {**item, "ts": item["ts"] - by} if "ts" in item else item) for p, item in feed.items)
    return replace(feed, items=tuple(rows))


def made(issuer: Issuer, r: Random) -> Case:
    """The case, with `{s}` and `{t}` still to be filled in."""
    text = issuer.query(r)
    feeds = [replace(feed(r, name, 14), promises=".bounds('n', 0)" + issuer.promises) for name in "st"]
    if "{t}" in text:  # One is behind the other, which has holes.
        which = r.randrange(2)
        feeds[which] = behind(feeds[which], r.randint(3, 6))
        feeds[1 - which] = replace(feeds[1 - which], items=tuple(i for i in feeds[1 - which].items if r.random() < 0.7))
    return Case(text, tuple(f for f in feeds if f"{{{f.name}}}" in text))


def filtered(case: Case, without: dict[str, list[int]]) -> Case:
    """Sources and filters do nothing about feedback; the filters withhold what they are given."""
    texts = {}
    for name in "st":
        ids = ", ".join(map(str, [-1, *without.get(name, ())]))
        texts[name] = f"{name}{DEAF}.where('id not in ({ids})'){DEAF}"
    return replace(case, query=case.query.format(**texts))


def read_later(feed: Feed, found: Outcome, epoch: int) -> list[dict[str, Any]]:
    """The rows of a source that were read in this epoch or later."""
    before = sum(
        split["rows"]
        for number, plan in found.plans.items()
        for split in plan.splits.get(f"source:{feed.name}", ())
        if number < epoch
    )
    return feed.rows()[before:]


def told(case: Case, found: Outcome) -> Iterator[tuple[str, Feedback, int]]:
    """What operators have said, as it reaches sources: to which, and from which epoch on."""
    plan = case.stream().plan
    for epoch, planned in found.plans.items():
        for record in planned.heard.get("told", ()):
            if record["by"] == "client":
                continue
            node, port = plan[record["node"]], record["port"]
            # What an aggregate says about doomed groups is over its own results.
            receiver = node if port < 0 else plan[node.inputs[port]]
            feedback = Feedback.from_json(record["feedback"], receiver.operator.schema)
            for source, pattern in to_sources(plan, receiver, feedback.pattern):
                yield source, replace(feedback, pattern=pattern), epoch


def to_sources(plan: Plan, node: Node, pattern: Pattern) -> Iterator[tuple[str, Pattern]]:
    if isinstance(node.operator, Source):
        yield node.operator.name, pattern
        return
    for port, sent in enumerate(respond(node.operator, pattern).send):
        for p in sent:
            yield from to_sources(plan, plan[node.inputs[port]], p)


def spoken(issuer: Issuer, r: Random) -> tuple[Case, Cut, dict[int, list[str]], Outcome, dict[str, list[int]]]:
    """A case in which something is said before events that match it, if one is found soon; with all of these."""
    for _ in range(4):
        case = made(issuer, r)
        cut = Cut(file_rows=r.randint(1, 3), max_rows=r.randint(1, 3), buckets=r.randint(1, 3), overlap=False)
        whole = filtered(case, {})
        names = whole.stream().schema.names
        said = {0: [f"not [{', '.join(issuer.said(r) if n == 'x' else '*' for n in names)}]"]} if issuer.said else {}
        found = on_kernels(whole, cut, said)
        needless: dict[str, set[int]] = {}
        for source, feedback, epoch in told(whole, found):
            (brought,) = (f for f in case.feeds if f.name == source)
            matching = {row["id"] for row in read_later(brought, found, epoch) if feedback.pattern.matches_row(row)}
            needless[source] = needless.get(source, set()) | matching
        if any(needless.values()):
            break
    return case, cut, said, found, {source: sorted(ids) for source, ids in needless.items()}


@pytest.mark.parametrize("name", ISSUERS)
@given(seed=st.integers(0, 2**32))
@settings(max_examples=8, phases=PHASES)
def test_what_an_operator_does_not_need_may_be_withheld(name: str, seed: int) -> None:
    r = Random(seed)
    case, cut, said, whole, needless = spoken(ISSUERS[name], r)
    assert not any(place.startswith("s") for place in whole.saved), "nothing but the operator itself does anything"
    share = r.choice((1.0, 0.5, 0.5))
    without = {source: [i for i in ids if r.random() < share] for source, ids in needless.items()}
    found = on_kernels(filtered(case, without), cut, said)
    lost, invented = difference(whole.rows, found.rows)
    assert invented == [], f"{case} without {without}"
    assert [row for row in lost if name != "instrument" or row["ts"] <= 5] == [], f"{case} without {without}"
    assert_grammatical(found)


@given(seed=st.integers(0, 2**32))
@settings(max_examples=8, phases=PHASES)
def test_what_an_impatient_join_asks_for_may_come_first(seed: int) -> None:
    """Any of the events it asks for, before any others that come later: it is a matter of order alone."""
    r = Random(seed)
    text = f"s.join(t, {r.choice(KEYS)}, {r.choice(HOW)!r}, impatient=True)"
    case = Case(text, tuple(replace(feed(r, name, 10), promises=".ends()") for name in "st"))
    cut = Cut(file_rows=2, max_rows=2, overlap=False)
    whole = on_kernels(case, cut)
    wishes = list(told(case, whole))
    assert wishes and all(feedback.intent is Intent.DESIRED for _, feedback, _ in wishes)
    feeds = []
    for brought in case.feeds:
        items = list(brought.items)
        for source, feedback, epoch in wishes:
            if source == brought.name:
                later = len(items) - len(read_later(brought, whole, epoch))
                first = [feedback.pattern.matches_row(brought.row(item)) and r.random() < 0.8 for _, item in items]
                order = sorted(range(later, len(items)), key=lambda i: not first[i])
                items = items[:later] + [items[i] for i in order]
        feeds.append(replace(brought, items=tuple(items)))
    found = on_kernels(replace(case, feeds=tuple(feeds)), cut)
    expected = on_reference(case).rows
    assert difference(expected, whole.rows) == ([], [])
    assert difference(expected, found.rows) == ([], [])
