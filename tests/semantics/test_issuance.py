"""Feedback keeps to its word, for any operator, any input and any pattern.

With SR the results without feedback: an operator that does what its response says gives SR without what matches, value
for value, however many of the events that it has passed on are withheld (correct issuance). Where nothing is pinned,
it may also do it by halves, and gives something between the two (correct exploitation). So does a whole plan.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from random import Random
from typing import Any

import pyarrow as pa
from backend import difference
from case import FUNCTIONS, Feed
from hypothesis import HealthCheck, assume, event, given, settings
from hypothesis import strategies as st
from withheld import Row, TalkingRun

import penstock as ps
from penstock.algebra.operator import Aggregate
from penstock.algebra.pattern import Pattern
from penstock.algebra.plan import Plan
from penstock.algebra.respond import respond
from penstock.algebra.restriction import (
    Range,
    Restriction,
    at_least,
    at_most,
    between,
    equal,
    greater,
    less,
    one_of,
)
from penstock.algebra.schema import Schema
from penstock.reference.grouping import result_row
from penstock.reference.interpret import interpret
from penstock.reference.item import events

SCHEMA = "ts int, k string, n bigint, v double, id int"
TABLES = {"rates": [{"k": "a", "rate": 1}, {"k": "b", "rate": 2}]}
RATES = ps.table("rates", "k string, rate int", key="k").read_parquet("rates")
SCOPE = {**FUNCTIONS, "rates": RATES}
PROMISES = ".ends()", ".disorder(2).ends()", ".disorder(4).ends()"

_ROW = st.tuples(
    st.sampled_from((0, 0, -2, -1, 1, 2, None)),
    st.sampled_from(("a", "b", None)),
    st.sampled_from((0, 1, 2, None)),
    st.sampled_from((0.5, 1.5, -1.0, math.nan, None)),
)


def made(name: str, rows: list[Any], promises: str) -> Feed:
    """A stream with times more or less in order."""
    items = [
        ("", {"ts": None if off is None else i + off, "k": k, "n": n, "v": v, "id": i})
        for i, (off, k, n, v) in enumerate(rows)
    ]
    return Feed(name, tuple(items), f".bounds('n', 0){promises}", schema=SCHEMA)


def feeds() -> st.SearchStrategy[tuple[Feed, ...]]:
    rows, promises = st.lists(_ROW, min_size=1, max_size=7), st.sampled_from(PROMISES)
    return st.tuples(*(st.builds(made, st.just(name), rows, promises) for name in ("s", "t")))


# --- queries ---------------------------------------------------------------------------------------------------------

AGGREGATES = ("count(*)", "count(v)", "max(n)", "min(n)", "max(v)", "min(v)", "sum(n)", "avg(n)", "count(distinct n)")
LIMITS = ("", "", ", within=2", ", within=(0, 3)", ", between=(-1, 2)", ", between=(1, None)", ", between=(None, 0)")


@st.composite
def stateless(draw: st.DrawFn) -> str:
    few = (".where('n > 0')", ".select('id', 'k', 'n', when='ts', again='ts', m='n + 1')", ".with_columns(n='-n')")
    others = (".map(twice, keeps=['ts', 'k'])", ".union(t)", ".union(t.select('id', 'v', 'n', 'k', 'ts'))")
    tables = (".lookup(rates, 'k')", ".lookup(rates, 'k', 'left')", ".lookup(rates, 'k', columns=['k', 'rate'])")
    return "s" + draw(st.sampled_from((*few, *others, *tables, ".lookup(rates, 'k', 'left', columns=['k', 'rate'])")))


@st.composite
def windows(draw: st.DrawFn) -> str:
    size, slide, origin = draw(st.integers(1, 5)), draw(st.integers(1, 5)), draw(st.integers(-2, 2))
    return f".window({size}, slide={slide}, origin={origin})"


@st.composite
def aggregates(draw: st.DrawFn, below: str = "s") -> str:
    kinds = ("", draw(windows()), draw(windows()), ".window(rows=2)", ".window(rows=3, slide_rows=2)")
    window = draw(st.sampled_from((*kinds, ".window(landmark=3)")))
    keys = draw(st.sampled_from(("'k'", "'k', 'n'", "'n'", "")))
    x, y = draw(st.sampled_from(AGGREGATES)), draw(st.sampled_from(AGGREGATES))
    return f"{below}{window}{f'.group_by({keys})' if keys else ''}.agg(x={x!r}, y={y!r})"


@st.composite
def keeping(draw: st.DrawFn) -> str:
    few = draw(st.sampled_from((".select('k', 'n')", ".select('k')", ".select('n', 'v')")))
    ordered = "s.order_by('ts', 'n desc')", "s.order_by('v')", "s.order_by('ts', slack=2)"
    sets = f"s{few}.distinct()", f"s{few}.intersect(t{few})", f"s{few}.difference(t{few})"
    return draw(st.sampled_from((*ordered, *sets)))


@st.composite
def joins(draw: st.DrawFn, left: str = "s") -> str:
    how = draw(st.sampled_from(("inner", "left", "right", "full", "semi", "anti")))
    on = draw(st.sampled_from(("'k'", "'k'", "['k', 'n']", "{'n': 'id'}", "{'n': 'n', 'id': 'n'}", "'ts'")))
    rows = ", rows=1", ", rows=(2, 1)", ", rows=(1, None)"
    limit = "" if on == "'ts'" else draw(st.sampled_from((*LIMITS, *LIMITS, *rows)))
    where = draw(st.sampled_from(("", "", ", where='n <= n_right or v > 0'")))
    return f"{left}.join(t, {on}, {how!r}{limit}{where})"


@st.composite
def multijoins(draw: st.DrawFn) -> str:
    on = draw(st.sampled_from(("'k'", "['k', 'n']", "[('n', 'n', 'id')]")))
    limit = draw(st.sampled_from(("", ", within=2", ", windows=[1, 3, None]", ", windows=[None, None, 2]")))
    return f"ps.join(s, t, s.where('id % 2 = 0'), on={on}{limit}, strategy='mjoin')"


QUERIES = st.one_of(stateless(), windows().map("s{}".format), aggregates(), keeping(), joins(), joins(), multijoins())


@st.composite
def plans(draw: st.DrawFn) -> str:
    """Several operators on top of each other."""
    text = draw(st.one_of(joins(), joins("s.where('n >= 0')"), st.just("s.select('ts', 'k', 'n', 'v', 'id', m='n')")))
    middle = draw(st.sampled_from(("", ".where('id > 0')", ".order_by('id')", ".distinct()")))
    if draw(st.booleans()):
        return (
            draw(aggregates(f"{text}{middle}"))
            if "how" not in text and "join" not in text
            else (f"{text}{middle}.group_by('k').agg(x='count(*)', y='max(n)')")
        )
    return f"{text}{middle}"


# --- patterns --------------------------------------------------------------------------------------------------------


@st.composite
def patterns(draw: st.DrawFn, schema: Schema, rows: list[Row], keys: tuple[str, ...]) -> Pattern:
    """Restrictions that have to do with the results, on keys alone, on others, or on some of both."""
    some = [n for n in schema.names if n in keys]
    names = draw(st.sampled_from((schema.names, some or schema.names)))
    chosen = draw(st.lists(st.sampled_from(names), max_size=3, unique=True))
    return Pattern.by_name(schema, {n: draw(restrictions(schema, n, rows)) for n in chosen})


@st.composite
def restrictions(draw: st.DrawFn, schema: Schema, name: str, rows: list[Row]) -> Restriction:
    t = schema.type_of(name)
    spare: list[Any] = ["a", "b"] if t == pa.string() else [0.5, 1.5] if pa.types.is_floating(t) else [0, 1, 2, 3, 5]
    known = [r[name] for r in rows if r[name] is not None and r[name] == r[name]]
    values = sorted({*(known or spare)})
    one, other = draw(st.sampled_from(values)), draw(st.sampled_from(values))
    make: Callable[[Any], Restriction] = draw(st.sampled_from((equal, less, at_most, greater, at_least)))
    listed = one_of([one, other]), between(min(one, other), max(one, other), draw(st.booleans()), draw(st.booleans()))
    return draw(st.sampled_from((make(one), make(one), *listed, Range(None, None))))


def keys_of(operator: Any) -> tuple[str, ...]:
    """The attributes that an operator groups or joins by, in its output."""
    found = getattr(operator, "keys", ())
    return tuple(name for key in found for name in (key if isinstance(key, tuple) else (key,)))


class Talk:
    """A query, its input, its results without feedback, and what is said about them when."""

    def __init__(self, data: st.DataObject, text: str, given: tuple[Feed, ...], keys: tuple[str, ...] = ()) -> None:
        self.text = text
        stream = eval(text, {**SCOPE, **{f.name: f.declared for f in given}})
        self.plan = Plan.of(stream.operator)
        names = {n.operator.name for n in self.plan.sources}  # type: ignore[attr-defined]
        self.inputs = {f.name: f.arrivals() for f in given if f.name in names}
        self.all = events(interpret(self.plan, self.inputs, traced=False, tables=TABLES).outputs)
        some = keys or keys_of(stream.operator)
        self.pattern = data.draw(patterns(stream.schema, self.all, some), label="pattern")
        self.at = data.draw(st.integers(1, sum(map(len, self.inputs.values()))), label="told before arrival")
        self.seed = data.draw(st.integers(0, 1000), label="coins")
        self.response = respond(stream.operator, self.pattern)

    def run(self) -> TalkingRun:
        return TalkingRun(self.plan, self.inputs, self.at, self.seed, tables=TABLES)

    def wanted(self, row: Row) -> bool:
        return not self.pattern.matches_row(row)

    def check_exact(self, before: list[Row], behind: list[Row]) -> None:
        """All that is wanted, unaltered, and nothing else."""
        rest = self.all[len(before) :]
        found = difference(behind, [r for r in rest if self.wanted(r)])
        assert difference(before, self.all[: len(before)]) == ([], [])
        assert found == ([], []), f"{self.text} told not {self.pattern}: {self.response}"

    def check_range(self, rows: list[Row]) -> None:
        """Nothing that is not there without feedback, and all that is wanted."""
        invented, lost = difference(rows, self.all)
        assert invented == [], f"{self.text} told not {self.pattern}: {self.response}"
        assert not [r for r in lost if self.wanted(r)], f"{self.text} told not {self.pattern}: {self.response}"


@given(st.data(), QUERIES, feeds())
@settings(max_examples=300, suppress_health_check=list(HealthCheck))
def test_what_is_passed_on_may_be_withheld_at_will(data: st.DataObject, text: str, given: tuple[Feed, ...]) -> None:
    talk = Talk(data, text, given)
    run = talk.run()
    ear = run.ears[run.root]
    ear.tell(talk.pattern, "all")
    ear.withheld = True
    talk.check_exact(*run.finish())
    event(f"{talk.plan.nodes[-1].operator.kind}: {'passed on' if any(talk.response.send) else 'not passed on'}")


@given(st.data(), QUERIES, feeds())
@settings(max_examples=150, suppress_health_check=list(HealthCheck))
def test_what_is_not_pinned_may_be_done_by_halves(data: st.DataObject, text: str, given: tuple[Feed, ...]) -> None:
    talk = Talk(data, text, given)
    assume(not talk.response.pinned)
    run = talk.run()
    ear = run.ears[run.root]
    ear.tell(talk.pattern, "some")
    ear.withheld = True
    before, behind = run.finish()
    talk.check_range([*before, *behind])


@given(st.data(), plans(), feeds())
@settings(max_examples=150, suppress_health_check=list(HealthCheck))
def test_a_whole_plan_keeps_to_it_too(data: st.DataObject, text: str, given: tuple[Feed, ...]) -> None:
    talk = Talk(data, text, given)
    everyone = talk.run()
    everyone.tell(talk.pattern)
    talk.check_exact(*everyone.finish())
    some = talk.run()
    some.tell(talk.pattern, choose=Random(talk.seed))
    before, behind = some.finish()
    talk.check_range([*before, *behind])


@given(st.data(), aggregates(), feeds())
@settings(max_examples=150, suppress_health_check=list(HealthCheck))
def test_doomed_groups_stay_doomed(data: st.DataObject, text: str, given: tuple[Feed, ...]) -> None:
    talk = Talk(data, text, given, keys=("x", "y"))
    operator = talk.plan.nodes[-1].operator
    assert isinstance(operator, Aggregate)
    assume(talk.response.sweep)
    run = talk.run()
    doomed: list[Row] = []
    inner = run.ears[run.root].inner

    def look() -> None:
        for group in inner.groups.values():
            now = result_row(operator, dict(zip(operator.keys, group.key)), group.rows, operator.inputs[0].schema)
            doomed.extend([now] if talk.pattern.matches_row(now) else [])

    run.ears[run.root].hear = look  # type: ignore[method-assign]
    _, behind = run.finish()
    for now in doomed:
        (final,) = (r for r in behind if all(repr(r[k]) == repr(now[k]) for k in operator.keys))
        assert talk.pattern.matches_row(final), f"{text} told not {talk.pattern}: {now} became {final}"
