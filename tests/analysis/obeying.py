"""Endless streams that obey their schemes, of which any number of generations can be made.

Every generation brings events with later times and fresh keys to every source. Some time after, punctuations of each
template follow that match them all: `+` up to the end of the generation, `#` for every value that occurs in *any*
source, which is what a check assumes and says. Generations repeat each other, moved by as much as times and keys have
gone on. So if what an operator holds is bounded, it holds as much after a generation as a period before, exactly;
and if it is not, it holds more and more.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any, Literal

import penstock as ps
from penstock.operators.source.operator import Source
from penstock.pattern.pattern import Pattern
from penstock.pattern.restriction import Restriction, at_most, between, one_of
from penstock.pattern.schema import Schema

SCHEMA = "ts bigint, k bigint, g bigint, v bigint"
NAMES = ("ts", "k", "g", "v")
#: So many ticks, and so many new values of each attribute, make a generation.
STEP = 10
#: Of so many numbers the last never occurs.
GAP = 5
#: So many generations repeat.
PERIOD = 2
#: Values that come in every generation, in attributes that no template ends.
RECURRING = (-1, -2)

Row = dict[str, Any]
Template = tuple[tuple[str, str], ...]
TIME: Template = (("ts", "+"),)
KEY: Template = (("k", "#"),)
Telling = Literal["in band", "disorder", "every", "rows", "when all"]
Ending = Literal["in band", "after", "once"]
_ENDINGS = {"after": "after('k', 20)", "once": "once('k')"}
_TIMES = {
    "disorder": ".disorder(10)",
    "every": ".disorder(10).punctuate(ps.Punctuate.every(20))",
    "rows": ".punctuate(ps.Punctuate.within_rows(20))",
    "when all": f".punctuate(ps.Punctuate.when_all({list(RECURRING)}, on='k', past='ts', slack=10))",
}
#: What one source brings next.
Arrival = tuple[str, Row | Pattern]


@dataclass(frozen=True)
class Feed:
    """A source: its name, the templates that it declares, attributes of finite domain, and how it tells its time."""

    name: str
    templates: tuple[Template, ...] = ()
    finite: tuple[str, ...] = ()
    time: Telling = "in band"
    """How `ts up to` is told, if it is: in band, or from what the source knows of its order."""
    keys: Ending = "in band"
    """How `k: each value` is told, if it is: in band, some time after the last event of a key, or by each event."""
    declared: bool = True
    """Whether it is declared which punctuations are in band."""
    later: int = 4
    """For so many generations the time of a key that has no more events is still told, where it is told for each."""

    @property
    def in_band(self) -> tuple[Template, ...]:
        """The templates of the punctuations that are in the stream itself."""
        known = [*([TIME] if self.time != "in band" else []), *([KEY] if self.knows_keys else [])]
        return tuple(t for t in self.templates if t not in known)

    @property
    def knows_keys(self) -> bool:
        """Whether keys end by themselves: some time after their last event only if time is known so too."""
        timed = TIME in self.templates and self.time in ("disorder", "every")
        return KEY in self.templates and (self.keys == "once" or (self.keys == "after" and timed))

    @property
    def promises(self) -> str:
        text = ""
        if TIME in self.templates and self.time != "in band":
            # Where time is told for each key, every key must be among those that are told of.
            all_keys = self.time == "when all" and "k" in self.finite
            text += _TIMES["when all" if all_keys else "disorder" if self.time == "when all" else self.time]
        if self.knows_keys:
            text += f".punctuate(ps.Punctuate.{_ENDINGS[self.keys]})"
        if self.in_band:
            listed = ", ".join(repr(f"[[{', '.join(f'{n}:{c}' for n, c in t)}]]") for t in self.in_band)
            text += ".punctuated()" + (f".scheme({listed})" if self.declared else "")
        return text + "".join(f".punctuate(ps.Punctuate.values({a!r}, {list(RECURRING)}))" for a in self.finite)

    def __str__(self) -> str:
        return f"{self.name} = ps.stream({self.name!r}, {SCHEMA!r}, time='ts'){self.promises}"

    @cached_property
    def stream(self) -> ps.Stream:
        made: ps.Stream = eval(str(self).partition(" = ")[2], {"ps": ps})
        return made

    @property
    def schema(self) -> Schema:
        return self.stream.schema

    @property
    def source(self) -> Source:
        assert isinstance(self.stream.operator, Source)
        return self.stream.operator

    @property
    def ending(self) -> frozenset[str]:
        """The attributes whose values come for a while only: some template ends them alone, or as time goes on."""
        return frozenset(
            n
            for t in self.templates
            for n, c in t
            if c != "-" and (c == "+" or not any(m == "ts" and d == "+" for m, d in t))
        )

    def punctuations(self, generation: int) -> list[Pattern]:
        """What ends a generation, one or a few for each template that is told in band."""
        found = []
        for template in self.in_band:
            since = generation - self.later if ("ts", "+") in template else generation
            # Values that recur in other sources come there with ever later times and ever new values of the others.
            parts = [
                _ended(how, max(since, 0), generation, n not in self.ending or len(template) > 1) for n, how in template
            ]
            names = [n for n, _ in template]
            found += [Pattern.by_name(self.schema, dict(zip(names, chosen))) for chosen in product(*parts)]
        return found


def _ended(how: str, since: int, generation: int, recurs: bool) -> list[Restriction]:
    """The values of one attribute that are over after a generation, those of some earlier ones included.

    No more than that: of values that do not occur nothing is said, or windows over keys would be complete as well.
    """
    first, behind = since * STEP, (generation + 1) * STEP
    if how == "+":
        return [at_most(behind - 1)]
    again = (
        recurs or generation == 0
    )  # What recurs here is over for the time told; elsewhere it need be said only once.
    if how == "range":
        some = [between(low, low + GAP - 2, True, True) for low in range(first, behind, GAP)]
        return [*some, *([between(min(RECURRING), max(RECURRING), True, True)] if again else ())]
    return [one_of([*filter(_occurs, range(first, behind)), *(RECURRING if again else ())])]


def _occurs(value: int) -> bool:
    return value % GAP != GAP - 1


@dataclass(frozen=True)
class Life:
    """What a number of sources bring, generation by generation, as a seed decides.

    With `recurs`, attributes that no template ends also take values that come again and again, and nulls, but for those
    (of a source) that are `never_null`.
    """

    feeds: tuple[Feed, ...]
    seed: int = 0
    recurs: bool = False
    never_null: frozenset[tuple[str, str]] = frozenset()
    events: int = 2
    """Of each source in a generation at most, besides the two that each has."""

    @cached_property
    def base(self) -> Mapping[str, tuple[tuple[Row, ...], ...]]:
        """The events of each source in the generations of a period, from zero."""
        found: dict[str, tuple[tuple[Row, ...], ...]] = {}
        for number, feed in enumerate(self.feeds):
            rng = random.Random(f"{self.seed} {number}")
            found[feed.name] = tuple(tuple(self._generation(rng, number)) for _ in range(PERIOD))
        return found

    def _generation(self, rng: random.Random, number: int) -> list[Row]:
        # One event that all sources have, and one that no other has.
        mine: Row = {"ts": 5 + number, "k": 5 + number, "g": 5 + number, "v": 5}
        rows: list[Row] = [{"ts": 3, "k": 1, "g": 1, "v": 3}, mine]
        for _ in range(rng.randint(0, self.events)):
            if rng.random() < 0.2:
                rows.append(dict(rng.choice(rows)))
            else:
                some = [v for v in range(STEP) if _occurs(v)]
                rows.append(
                    {"ts": rng.choice(some), "k": rng.randint(0, 2), "g": rng.randint(0, 2), "v": rng.choice(some)}
                )
        return rows

    def rows(self, feed: Feed, generation: int) -> list[Row]:
        rng = random.Random(f"{self.seed} {feed.name} {generation % PERIOD}")
        found: list[Row] = []
        base = self.base[feed.name][generation % PERIOD]
        if feed.knows_keys:
            base = self._with_all_keys(feed, base)
        for number, row in enumerate(base):
            moved: Row = {n: row[n] + STEP * generation for n in NAMES}
            for name in NAMES[1:]:
                if name in feed.finite:
                    # In turns, so that each comes in every generation: time may go on with the slowest.
                    moved[name] = RECURRING[number % len(RECURRING)]
                elif self.recurs and name not in feed.ending and rng.random() < 0.5:
                    # Null is matched by `*` alone: what is tagged anywhere is never null.
                    tagged = (
                        any(name == n for t in feed.templates for n, _ in t) or (feed.name, name) in self.never_null
                    )
                    moved[name] = rng.choice(RECURRING if tagged else (*RECURRING, None))
            found.append(moved)
        if feed.knows_keys and not generation:
            found += [{**found[0], "k": k} for k in RECURRING]
        return found

    def _with_all_keys(self, feed: Feed, base: tuple[Row, ...]) -> tuple[Row, ...]:
        """A source that ends the keys it has seen must see those of all sources; a check assumes it, and says so."""
        if feed.keys == "once":
            base = tuple({row["k"]: row for row in reversed(base)}.values())[::-1]
        missing = {*range(3), *range(5, 5 + len(self.feeds))} - {row["k"] for row in base}
        return (*base, *({"ts": 3, "k": k, "g": 1, "v": 3} for k in sorted(missing)))

    def generation(self, number: int) -> list[Arrival]:
        """The events of a generation and the punctuations of the one before, in some order."""
        rng = random.Random(f"{self.seed} order {number}")
        found: list[Arrival] = []
        for feed in self.feeds:
            found += [(feed.name, row) for row in self.rows(feed, number)]
            if number:
                found += [(feed.name, p) for p in feed.punctuations(number - 1)]
        rng.shuffle(found)
        return found

    def recorded(self, generations: int) -> dict[str, list[Row | Pattern]]:
        """What each source has brought when that many generations are over, the last of them punctuated."""
        found: dict[str, list[Row | Pattern]] = {f.name: [] for f in self.feeds}
        for number in range(generations):
            for name, item in self.generation(number):
                found[name].append(item)
        for feed in self.feeds:
            found[feed.name] += feed.punctuations(generations - 1)
        return found


def template(text: str) -> Template:
    """`ts:+, k:#` as pairs."""
    return tuple((n.strip(), c.strip()) for n, c in (part.split(":") for part in text.split(",")))
