"""Feedback keeps to its word, for any operator, any input and any pattern.

With SR the results without feedback: an operator that does what its response says gives SR without what matches, value
for value, however many of the events that it has passed on are withheld (correct issuance). Where nothing is pinned,
it may also do it by halves, and gives something between the two (correct exploitation). So does a whole plan.
"""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

import pytest
from backend import difference
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from talk_cases import BY_VALUE, QUERIES, TABLES, Row, bounds, counting, feed, pattern, plan, stream_of
from withheld import TalkingRun

from penstock.analysis.cascade import respond
from penstock.operators.aggregate.operator import Aggregate
from penstock.operators.source.operator import Source
from penstock.pattern.pattern import Pattern
from penstock.plan.plan import Plan
from penstock.reference.grouping import result_row
from penstock.reference.interpret import interpret
from penstock.reference.item import Event, Item, events

SEEDS = st.integers(0, 2**32)
#: A smaller seed is no simpler case: there is nothing to shrink.
PHASES = (Phase.explicit, Phase.reuse, Phase.generate)


class Talk:
    """A query, its input, its results without feedback, and what is said about them when."""

    def __init__(self, r: Random, text: str, said: Pattern | None = None, most: int = 8) -> None:
        self.text = text
        for _ in range(5):  # Without several results there is little to say.
            feeds = [feed(r, name, most) for name in "st"]
            stream = stream_of(text, *(f.promises for f in feeds))
            self.plan = Plan.of(stream.operator)
            names = {n.operator.name for n in self.plan.sources if isinstance(n.operator, Source)}
            self.inputs = {f.name: f.arrivals() for f in feeds if f.name in names}
            self.all = events(interpret(self.plan, self.inputs, traced=False, tables=TABLES).outputs)
            if len(self.all) > 1:
                break
        self.pattern = said or pattern(
            r, stream.schema, self.all, lambda p: any(respond(stream.operator, p).send) or r.random() < 0.2
        )
        self.response = respond(stream.operator, self.pattern)
        self.at = r.choice((1, r.randint(1, sum(map(len, self.inputs.values())))))
        self.seed = r.random()

    def run(self) -> TalkingRun:
        return TalkingRun(self.plan, self.inputs, self.at, self.seed, tables=TABLES)

    def wanted(self, row: Row) -> bool:
        return not self.pattern.matches_row(row)

    def check_exact(self, before: list[Row], behind: list[Row]) -> None:
        """All that is wanted, unaltered, and nothing else."""
        rest = self.all[len(before) :]
        assert difference(before, self.all[: len(before)]) == ([], [])
        assert difference(behind, [r for r in rest if self.wanted(r)]) == ([], []), str(self)

    def check_range(self, rows: list[Row]) -> None:
        """Nothing that is not there without feedback, and all that is wanted."""
        invented, lost = difference(rows, self.all)
        assert invented == [], str(self)
        assert [r for r in lost if self.wanted(r)] == [], str(self)

    def __str__(self) -> str:
        return f"{self.text} over {self.inputs} told not {self.pattern} before arrival {self.at}: {self.response}"


def check_issuance(talk: Talk) -> None:
    run = talk.run()
    ear = run.ears[run.root]
    ear.tell(talk.pattern, "all")
    ear.withheld = True
    talk.check_exact(*run.finish())


def check_halves(talk: Talk) -> None:
    if talk.response.pinned:
        return
    run = talk.run()
    ear = run.ears[run.root]
    ear.tell(talk.pattern, "some")
    ear.withheld = True
    before, behind = run.finish()
    talk.check_range([*before, *behind])


@pytest.mark.parametrize("operator", QUERIES)
@given(seed=SEEDS)
@settings(max_examples=10, phases=PHASES)
def test_what_is_passed_on_may_be_withheld_at_will(operator: str, seed: int) -> None:
    r = Random(seed)
    text = QUERIES[operator](r)
    by_value = operator in BY_VALUE and r.random() < 0.7
    talk = Talk(r, text, bounds(r, stream_of(text, "", "").schema) if by_value else None)
    check_issuance(talk)
    check_halves(talk)


@pytest.mark.fuzz
@given(seed=SEEDS)
@settings(phases=PHASES)
def test_fuzz(seed: int) -> None:
    r = Random(seed)
    talk = Talk(r, QUERIES[r.choice(list(QUERIES))](r), most=14)
    check_issuance(talk)
    check_halves(talk)


@given(seed=SEEDS)
@settings(max_examples=10, phases=PHASES)
def test_a_whole_plan_keeps_to_it_too(seed: int) -> None:
    r = Random(seed)
    talk = Talk(r, plan(r))
    everyone = talk.run()
    everyone.tell(talk.pattern)
    talk.check_exact(*everyone.finish())
    some = talk.run()
    some.tell(talk.pattern, choose=r)
    before, behind = some.finish()
    talk.check_range([*before, *behind])


@given(seed=SEEDS)
@settings(max_examples=40, phases=PHASES)
def test_doomed_groups_stay_doomed(seed: int) -> None:
    r = Random(seed)
    text = counting(r)
    stream = stream_of(text, "", "")
    said = bounds(r, stream.schema)
    operator = stream.operator
    assert isinstance(operator, Aggregate)
    if not respond(operator, said).sweep:
        return
    run = Talk(r, text, said).run()
    inner = run.ears[run.root].inner
    take = inner.on_event
    doomed: list[Row] = []

    def watched(event: Event, input: int = 0) -> Iterable[Item]:
        yield from take(event, input)
        for group in inner.groups.values():
            now = result_row(operator, dict(zip(operator.keys, group.key)), group.rows, operator.inputs[0].schema)
            doomed.extend([now] if said.matches_row(now) else [])

    inner.on_event = watched
    before, behind = run.finish()
    for now in doomed:
        (final,) = (row for row in (*before, *behind) if all(repr(row[k]) == repr(now[k]) for k in operator.keys))
        assert said.matches_row(final), f"{text} told not {said}: {now} became {final}"
