"""Random plans over sources with random schemes: every operator of the algebra, two or three with state on each other.

A plan is kept as text, so that one that fails can be read, and pasted into a test.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import strategies as st
from obeying import RECURRING, Feed, template

import penstock as ps
from penstock.builder.multiway import join
from penstock.errors import UserError
from penstock.operators.process.example import passing
from penstock.plan.plan import Plan

TEMPLATES = ("ts:+", "k:#", "g:#", "ts:+, k:#", "g:+", "k:#, g:#", "g:range")
_COMMON = (("ts:+",), ("ts:+", "k:#"), ("k:#",), ("ts:+, k:#",), ("k:#", "g:#"), ("ts:+", "g:+"), ())
_HOW = ("inner", "left", "right", "full", "semi", "anti")
_WINDOWS = ("10", "20", "5", "20, slide=10", "10, slide=5", "5, slide=10")
#: What is known of some keys: of those that come in every generation, and of two that come once.
RATES = [{"k": k, "w": 7 * k} for k in (*RECURRING, 1, 5)]
TABLES = {"rates": RATES}


def same(rows: pa.Table) -> pa.Table:
    """For `map` and `impute`: what a function does is its own affair, what it keeps is declared."""
    return rows


@cache
def rates() -> ps.Table:
    folder = tempfile.mkdtemp(prefix="penstock-rates-")
    pq.write_table(pa.Table.from_pylist(RATES), Path(folder) / "rates.parquet")
    return ps.table("rates", "k bigint, w bigint", key="k").read_parquet(folder)


@dataclass(frozen=True)
class Query:
    """Sources and what is made of them, as Python."""

    feeds: tuple[Feed, ...]
    text: str

    @cached_property
    def stream(self) -> ps.Stream:
        return self.over({f.name: f.stream for f in self.feeds})

    def over(self, sources: Mapping[str, ps.Stream]) -> ps.Stream:
        """The query over sources by name."""
        made: ps.Stream = eval(self.text, {"join": join, "same": same, "passing": passing, "rates": rates(), **sources})
        return made

    @cached_property
    def plan(self) -> Plan:
        return self.stream.plan

    def __str__(self) -> str:
        return "\n".join([*map(str, self.feeds), self.text])


@st.composite
def feeds(draw: st.DrawFn, name: str, common: tuple[str, ...]) -> Feed:
    """A source with some templates, mostly those that all sources have in common."""
    chosen = draw(st.lists(st.sampled_from(TEMPLATES), max_size=3, unique=True)) if draw(st.integers(0, 3)) == 0 else []
    kept = common if draw(st.integers(0, 7)) else ()
    listed = tuple(map(template, dict.fromkeys([*kept, *chosen])))
    ending = Feed(name, listed).ending
    finite = tuple(a for a in ("k", "g") if a not in ending and draw(st.integers(0, 3)) == 0)
    told = draw(st.sampled_from(("in band", "in band", "disorder", "disorder", "every", "rows", "when all")))
    keys = draw(st.sampled_from(("in band", "in band", "after", "once")))
    return Feed(name, listed, finite, told, keys, declared=draw(st.integers(0, 11)) > 0)


@st.composite
def queries(draw: st.DrawFn) -> Query:
    common = draw(st.sampled_from(_COMMON))
    made = tuple(draw(feeds(f"s{i}", common)) for i in range(draw(st.integers(1, 3))))
    growing = _Growing(draw, made)
    parts = [f.name for f in made]
    parts = [growing.steps(p, draw(st.sampled_from((0, 0, 0, 1)))) for p in parts]
    while len(parts) > 1:
        if len(parts) == 3 and draw(st.integers(0, 2)) == 0:
            parts = [growing.multiway(parts)]
        else:
            left, right, *rest = parts
            parts = [growing.binary(left, right), *rest]
            parts[0] = growing.steps(parts[0], draw(st.sampled_from((0, 0, 1))))
    text = parts[0]
    if len(made) == 1 and draw(st.integers(0, 2)) == 0:
        text = growing.binary(text, growing.steps(made[0].name, 1))  # Streams that part and meet again.
    text = growing.steps(text, draw(st.integers(0 if len(made) > 1 else 1, 2)))
    return Query(tuple(f for f in made if f.name in text), text)


class _Growing:
    """Adds one operator after the other to the text of a query; one that does not fit is left out."""

    def __init__(self, draw: st.DrawFn, made: tuple[Feed, ...]) -> None:
        self.draw, self.made, self.count = draw, made, 0
        self.known: dict[str, ps.Stream] = {}

    def of(self, text: str) -> ps.Stream:
        if text not in self.known:
            self.known[text] = Query(self.made, text).stream
        return self.known[text]

    def attempt(self, text: str, otherwise: str) -> str:
        try:
            self.of(text)
        except UserError:
            return otherwise
        return text

    def pick(self, *choices: str) -> str:
        return self.draw(st.sampled_from(choices))

    def attributes(self, text: str) -> list[str]:
        """Those that go on as the stream does: not counts."""
        schema = self.of(text).schema
        return [a.name for a in schema if pa.types.is_integer(a.type) and not a.name.startswith("n")]

    def some(self, names: list[str], least: int = 0, most: int = 2) -> list[str]:
        return self.draw(st.lists(st.sampled_from(names), min_size=least, max_size=most, unique=True))

    def steps(self, text: str, number: int) -> str:
        for _ in range(number):
            text = self.attempt(f"{text}{self.step(text)}", text)
        return text

    def step(self, text: str) -> str:
        names = self.attributes(text)
        times = list(self.of(text).schema.times)
        kind = self.draw(st.integers(0, 15))
        if kind == 0:
            value = next((n for n in names if n.startswith("v")), names[-1])
            return self.pick(f".where('{value} % 5 <> 1')", f".where('{value} is not null')")
        if kind == 1 and len(names) > 1:
            return f".drop({self.pick(*names)!r})"
        if kind in (1, 2):
            name = self.pick(*names)
            return self.pick(f".rename({name}='r_{name}')", f".with_columns({name}='{name} + 10')")
        if kind in (3, 4):
            return ".distinct()"
        if kind == 5:
            order = [n + self.pick("", "", "", " desc") for n in self.some(names, 1)]
            slack = self.pick("", "", "", ", slack=2")
            return f".order_by({', '.join(map(repr, order))}{slack})"
        if kind == 12:
            order = self.pick(*names) + self.pick("", " desc")
            return self.pick(
                f".top(2, {order!r}, {self.some(names)})", f".top(1, {order!r}, {self.some(names)})", ".limit(2)"
            )
        if kind == 13 and self.draw(st.integers(0, 2)) == 0:
            self.count += 1
            return f".process(passing, 'p{self.count} long', by={self.some(names, 1)})"
        if kind == 13:
            kept = self.some(list(self.of(text).schema.names), 0, 4)
            call = self.pick("map(same, ", "map(same, ", "impute(same, budget=1000, ")
            return f".{call}keeps={kept})"
        if kind == 14:
            how = self.pick("inner", "left", "left")
            return f".lookup(rates, {{{self.pick(*names)!r}: 'k'}}, {how!r})"
        if kind == 15:
            # About what never comes: the operator counts, tells, and guards are kept; results stay as they are.
            parts = ["*"] * len(self.of(text).schema)
            parts[self.of(text).schema.index(self.pick(*names))] = "< -1000"
            return f".instrument('not [{', '.join(parts)}]'{self.pick('', ', every=3')})"
        self.count += 1
        keys = ", ".join(map(repr, self.some(names)))
        value = self.pick(*names)
        ending = f".group_by({keys}).agg(n{self.count}='count(*)', m{self.count}='max({value})')"
        if kind in (6, 7):
            return ending
        # On a time, mostly: with several, one has to be named.
        on = self.pick(*(times * 4 or names), *names)
        if kind == 8:
            landmark = f"landmark=10, on={on!r}"
            session = f"session=10, on={on!r}"
            size = self.pick(landmark, landmark, session, session, "rows=2", "rows=3, slide_rows=1")
            return f".window({size}){ending}"
        return f".window({self.pick(*_WINDOWS)}, on={on!r}){ending}"

    def binary(self, left: str, right: str) -> str:
        mine, theirs = self.of(left), self.of(right)
        kind = self.draw(st.integers(0, 9))
        if kind < 3 and set(mine.schema.names) == set(theirs.schema.names):
            paced = f"{left}.pace({right}, bound=40{', on=' + repr(mine.schema.times[0]) if mine.schema.times else ''})"
            call = self.pick("union", "intersect", "difference", "pace")
            whole = paced if call == "pace" else f"{left}.{call}({right})"
            return self.attempt(whole, self.join(left, right))
        return self.join(left, right)

    def join(self, left: str, right: str) -> str:
        mine, theirs = self.attributes(left), self.attributes(right)
        common = [n for n in ("k", "g") if n in mine and n in theirs]
        key = repr(self.pick(*common)) if common else f"{{{mine[0]!r}: {theirs[0]!r}}}"
        if len(common) == 2:
            key = self.pick(key, key, "['k', 'g']", "{'k': 'g'}")
        if self.draw(st.integers(0, 9)) == 0 and "ts" in mine and "ts" in theirs:
            key = self.pick("'ts'", "['ts', 'k']")
        left_times, right_times = self.of(left).schema.times, self.of(right).schema.times
        more = ""
        if left_times and right_times and self.draw(st.integers(0, 2)):
            limits = ("within=5", "within=(15, 5)", "between=(0, 10)", "between=(0, 0)", "between=(5, 25)")
            limit = self.pick(*limits, "between=(None, 10)", "between=(0, None)", "rows=2", "rows=(1, None)")
            more += f", {limit}, times=({left_times[0]!r}, {right_times[0]!r})"
        if self.draw(st.integers(0, 4)) == 0 and "v" in mine and "v" in theirs:
            more += ", where='v <= v_right + 5'"
        plain = f"{left}.join({right}, {key}, {self.pick(*_HOW)!r}"
        return self.attempt(f"{plain}{more})", self.attempt(f"{plain})", left))

    def multiway(self, parts: list[str]) -> str:
        key = self.pick("'k'", "'g'", "['k', 'g']")
        more = self.pick("", ", within=10", ", within=5", ", windows=[5, 15, None]")
        return self.attempt(f"join({', '.join(parts)}, on={key}{more})", self.binary(*parts[:2]))
