"""What the check says of a plan against what happens when the plan runs on streams that obey their schemes.

*Bounded* and *complete* must hold: on the reference interpreter and on the engine, an operator never holds more after a
generation than a period before, and owes no more results. For *unbounded* and *held back* there should be streams that
show it; where the streams tried here do not, the check is called careful. Measured over 836 random plans: 30 of 691
such verdicts (4 %), of joins 19 of 250 (8 %), of aggregates 11 of 263 (4 %), of distinct, m-way joins, order_by and top
none of 178. Hypothesis varies plans, so some count several times. Of some it was looked at why; the reasons there:

- a key with declared values joined with one whose values are fresh: they never meet, so rows are not even stored;
- groups and windows over what an outer join may leave null: events with null are in no window, so those that remain are
  punctuated after all, though a duplicate elimination in the same place would keep the nulls for ever;
- landmark windows that never close: the reference counts one group where the engine keeps a part for every period;
- windows over an attribute with declared values, of which there are only so many;
- outer joins of which, in the streams tried, every row finds a partner, such as those of a stream with itself.
"""

from __future__ import annotations

import copy
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from grammar import is_grammatical
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from obeying import PERIOD, Feed, Life, Row, template
from plans import TABLES, Query, queries

from penstock.analysis.check import check
from penstock.checkpoint.checkpoint import Checkpoint
from penstock.checkpoint.storage import Storage
from penstock.contract.obey import obeys
from penstock.contract.report import Finding
from penstock.contract.template import Scheme
from penstock.engine.epoch.driver import Driver
from penstock.engine.settings import Settings
from penstock.engine.sink import memory
from penstock.engine.sink.folder import FileTarget
from penstock.operators.join import reference as joins
from penstock.operators.multijoin import reference as multijoin
from penstock.operators.pace.operator import Pace
from penstock.operators.rows_join.operator import RowsJoin
from penstock.operators.sink.operator import Sink
from penstock.operators.source.operator import Source
from penstock.operators.source.scheme import Unknown, scheme_of
from penstock.operators.union.operator import Union
from penstock.pattern.pattern import Pattern
from penstock.plan.plan import Plan
from penstock.plan.promise import InBand
from penstock.portal.testing import local_session
from penstock.reference.interpret import Interpretation, TraceStep
from penstock.reference.item import Event, Item

#: So many generations pass before anything is compared. Bands and windows reach over three, and operators stand one
#: behind another: what seems to grow after a few is looked at again after many.
FEW, MANY = 3, 12


@dataclass
class Growth:
    """What an operator took, held, emitted, and would still have emitted of what it took: each a period apart."""

    taken: int = 0
    held: list[int] = field(default_factory=list)
    emitted: list[int] = field(default_factory=list)
    owed: list[int] = field(default_factory=list)

    @property
    def of_state(self) -> int:
        return max((late - early for early, late in zip(self.held, self.held[PERIOD:])), default=0)

    @property
    def of_debt(self) -> int:
        return self.owed[1] - self.owed[0]

    def shows(self, what: str) -> bool:
        """Whether state grows, or results are held back: ever more of them, or all there are."""
        if what == "unbounded":
            return self.of_state > 0
        return self.of_debt > 0 or (self.owed[-1] > 0 and not self.emitted[-1])


class Living(Interpretation):
    """A reference run that is fed one generation after the other."""

    def __init__(self, query: Query, life: Life) -> None:
        super().__init__(query.plan, {}, traced=False, tables=TABLES)
        self.life, self.taken = life, Counter[str]()
        self.passing, self.kept = True, Counter[str]()
        self.ids = {n.operator.name: n.id for n in self.plan if isinstance(n.operator, Source)}

    def live(self, generation: int) -> None:
        for name, item in self.life.generation(generation):
            self._drain(self._arrive(self.ids[name], 0, Event(item) if isinstance(item, dict) else item))
            self._drain(self._end_epoch([self.ids[name]]))

    def emitted(self, node_id: str) -> int:
        return sum(isinstance(x, Event) for x in self.streams[node_id])

    def owed(self, of_all: bool = False) -> Counter[str]:
        """How many events each operator would still emit of what it took, or `of_all` that the sources have brought.

        That is not the same. A join whose state grows owes ever more for a window that is still open in one of its
        inputs; but it is the window that is late, and the join is at once.
        """
        streams, self.streams = self.streams, {i: [] for i in self.streams}  # What is past need not be copied.
        ended = copy.deepcopy(self)
        self.streams = streams
        for running in ended.running.values():
            if isinstance(running, joins.JoinReference | multijoin.MultiJoinReference):
                # A method of a list is copied without the list.
                running.outlet.held = running.held.__getitem__
        ended.passing = of_all
        for node_id, source in ended.sources.items():
            self._drain(ended._send(node_id, None, source.end()))
        return Counter({i: ended.emitted(i) for i in ended.streams}) if of_all else ended.kept

    def _send(
        self, node_id: str, taken: Item | None, emitted: Iterable[Item], *how: Any, **more: Any
    ) -> Iterator[TraceStep]:
        """As ever; but when nothing is passing, events go no further, and are counted."""
        out = tuple(emitted)
        if not self.passing:
            self.kept[node_id] += sum(isinstance(x, Event) for x in out)
            out = tuple(x for x in out if not isinstance(x, Event))
        return super()._send(node_id, taken, out, *how, **more)

    def _drain(self, steps: Iterable[TraceStep]) -> None:
        for step in steps:
            self.taken[step.operator] += isinstance(step.taken, Event)


def grown(query: Query, life: Life, warm_up: int) -> dict[str, Growth]:
    """Live for some generations, then measure two periods."""
    run = Living(query, life)
    found = {node.id: Growth() for node in run.plan}
    for generation in range(warm_up + 2 * PERIOD):
        if generation == warm_up + PERIOD:
            run.taken.clear()
        run.live(generation)
        if generation >= warm_up:
            for i, running in run.running.items():
                found[i].held.append(len(running.state()))
        if generation in (warm_up + PERIOD - 1, warm_up + 2 * PERIOD - 1):
            for i, growth in found.items():
                growth.taken = run.taken[i]
            owed = run.owed()
            for i, growth in found.items():
                growth.owed.append(owed[i])
                growth.emitted.append(run.emitted(i))
    assert not [d for s in run.sources.values() for d in s.dead_letters]
    return found


def totals(query: Query, life: Life, ends: Iterable[int]) -> list[int]:
    """How many results there are in all, if the streams end after so many generations."""
    run, found = Living(query, life), []
    root = run.plan.nodes[-1].id
    for generation in range(max(ends)):
        run.live(generation)
        if generation + 1 in ends:
            found.append(run.emitted(root) + run.owed(of_all=True)[root])
    return found


@dataclass(frozen=True)
class Claim:
    """What the check says of one operator.

    `starved`: an operator below holds its results back, so little arrives. `generous`: here or below is a join of rows.
    That of the reference lets go of a key when it ends, and says so; that of the engine, and of the check, does not.
    """

    kind: str
    finding: Finding
    starved: bool
    generous: bool

    @property
    def bounded(self) -> bool:
        return self.finding.state != "unbounded"

    @property
    def complete(self) -> bool:
        return self.finding.output != "held back"


def claims(query: Query) -> Iterator[Claim]:
    """What is said of the operators that hold events.

    But not of those behind one that grows for ever: a join of ever more rows brings ever more a period, and what is
    said of an operator is said for a steady input.
    """
    held_back: set[str] = set()
    generous: set[str] = set()
    growing: set[str] = set()
    for node, finding in zip(query.plan.nodes, check(query.plan).findings, strict=True):
        of_rows = isinstance(node.operator, RowsJoin)
        starved = not held_back.isdisjoint(node.inputs)
        if starved or finding.output == "held back" or finding.unsure:
            held_back.add(node.id)
        if of_rows or not generous.isdisjoint(node.inputs):
            generous.add(node.id)
        flooded = not growing.isdisjoint(node.inputs)
        if flooded or finding.state == "unbounded" or finding.unsure:
            growing.add(node.id)
        # Of what only the data knows nothing is said. A union of the reference counts the punctuations that wait for
        # those of others.
        if not flooded and not finding.unsure and not isinstance(node.operator, Source | Union | Pace):
            kind = "join of rows" if of_rows else node.operator.kind
            yield Claim(kind, finding, starved, node.id in generous)


def life_of(query: Query, said: Iterable[Claim], seed: int, recurs: bool) -> Life:
    """Streams that obey their schemes, and of which what the check assumes besides is true."""
    assumed = [re.fullmatch("`(.*)` of (.*) is never null", a) for claim in said for a in claim.finding.assumes]
    never = frozenset((name, a[1]) for a in assumed if a is not None for name in a[2].split(" and "))
    return Life(query.feeds, seed, recurs, never)


def broken(query: Query, life: Life, said: Iterable[Claim]) -> list[str]:
    """Where a plan does what the check said it would not."""
    for warm_up in (FEW, MANY):
        growth = grown(query, life, warm_up)
        found = []
        for claim in said:
            of = growth[claim.finding.operator]
            if claim.bounded and of.of_state > 0:
                found.append(f"{claim.finding.operator} is {claim.finding.state}, but holds {of.held}")
            if claim.complete and of.of_debt > 0:
                found.append(f"{claim.finding.operator} is {claim.finding.output}, but owes {of.owed}")
        if not found:
            return []
    return found


UNSAFE = ("unbounded", "held back")
#: Kind, what was said, and whether it is so, or the check was too careful.
Tally = Counter[tuple[str, str, str]]


def weigh(query: Query, seed: int, said: Iterable[Claim], tally: Tally) -> None:
    """Count for which operators that are said to grow, or to hold back results, some streams make that so."""
    left = [(c, what) for c in said if not (c.starved or c.generous) for what in UNSAFE]
    left = [(c, what) for c, what in left if what in (c.finding.state, c.finding.output)]
    reached: set[str] = set()
    for recurs in (False, True):
        if not left:
            break
        growth = grown(query, Life(query.feeds, seed, recurs), FEW)
        reached |= {i for i, g in growth.items() if g.taken}
        seen = [(c, what) for c, what in left if growth[c.finding.operator].shows(what)]
        tally.update((c.kind, what, "so") for c, what in seen)
        left = [each for each in left if each not in seen]
    tally.update((c.kind, what, "careful") for c, what in left if c.finding.operator in reached)


# --- the same on the engine -------------------------------------------------------------------------------------------

#: In memory where there is such a folder: the disk's flushes would take most of the time.
HOME = "/dev/shm" if Path("/dev/shm").is_dir() else None


def on_engine(query: Query, life: Life, generations: int) -> tuple[dict[str, list[int]], list[int]]:
    """How many rows of state the engine's operators hold after each generation, and how many results have come."""
    with tempfile.TemporaryDirectory(prefix="penstock-soundness-", dir=HOME) as folder:
        home = Path(folder)
        for feed in query.feeds:
            (home / feed.name).mkdir()
        sources = {f.name: f.stream.read_parquet(str(home / f.name), order="name") for f in query.feeds}
        stream = query.over(sources)
        target = memory()
        plan = Plan.of(Sink((stream.operator,), stream.schema, target=target))
        storage = Storage.at(str(home / "checkpoint"))
        storage.make()
        (sink,) = plan.sinks
        letters = FileTarget(f"{storage.url}/dead_letters", "parquet").bind("dead", storage)
        bound = {sink.id: target.bind(sink.id, storage), "dead": letters}
        how = Settings(buckets=1, merge_above=2)
        driver = Driver(plan, local_session(), Checkpoint(storage), bound, how, bounded=False)
        held: dict[str, list[int]] = {node.id: [] for node in plan}
        told: list[int] = []
        try:
            driver.recover()
            for number in range(generations):
                arrived = life.generation(number)
                for feed in query.feeds:
                    items = [item for name, item in arrived if name == feed.name]
                    pq.write_table(_recorded(feed, items), home / feed.name / f"{number:04}.parquet")
                while driver.step():
                    pass
                now = Counter[str]()
                for key, runs in driver.manifest.units.items():
                    now[key.operator.partition("#")[0]] += sum(r.live for r in runs)
                for i, counts in held.items():
                    counts.append(now[i])
                told.append(len(target.rows()))
        finally:
            driver.close()
        assert not list((home / "checkpoint" / "dead_letters").glob("part-*"))
        return held, told


def _recorded(feed: Feed, items: Iterable[Row | Pattern]) -> pa.Table:
    rows = [{**i, "punctuation": None} if isinstance(i, dict) else {"punctuation": str(i)} for i in items]
    schema = pa.schema([*feed.schema.arrow, pa.field("punctuation", pa.string())])
    table = pa.Table.from_pylist(rows, schema)
    return table if any(isinstance(p, InBand) for p in feed.source.promises) else table.drop(["punctuation"])


def broken_on_engine(query: Query, life: Life, said: Sequence[Claim]) -> list[str]:
    """Where the engine does what the check said it would not.

    What it holds of a group are parts, which are put together now and then: so the least of a few generations counts.
    """
    found: list[str] = []
    for warm_up in (FEW, MANY):
        generations = warm_up + 6 * PERIOD
        held, told = on_engine(query, life, generations)
        found = [
            f"{claim.finding.operator} is {claim.finding.state}, but holds {counts}"
            for claim in said
            if claim.bounded and rises(counts := held[claim.finding.operator], warm_up)
        ]
        # Where state grows, so does what is owed for events that are late in time.
        if all(f.safe and not f.unsure for f in check(query.plan).findings):
            ends = [warm_up + PERIOD, warm_up + 2 * PERIOD]
            owed = [total - told[end - 1] for total, end in zip(totals(query, life, ends), ends)]
            if owed[1] > owed[0]:
                found.append(f"all results are complete, but the engine owes {owed}")
        if not found:
            break
    return found


def rises(counts: list[int], warm_up: int) -> bool:
    return min(counts[-2 * PERIOD :]) > max(counts[warm_up : warm_up + 2 * PERIOD])


# --- tests ------------------------------------------------------------------------------------------------------------

#: Everything is a function of these.
CASES = (queries(), st.integers(0, 999), st.booleans())
#: A plan is read as it is: making a failing one smaller takes minutes.
RANDOM = {
    "phases": (Phase.explicit, Phase.reuse, Phase.generate),
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
}


@given(*CASES)
def test_the_streams_obey(query: Query, seed: int, recurs: bool) -> None:
    for feed in query.feeds:
        items = Life(query.feeds, seed, recurs).recorded(4)[feed.name]
        if any(isinstance(i, Pattern) for i in items):
            known = scheme_of(replace(feed, declared=True).source)
            assert not isinstance(known, Unknown)
            told = Scheme(frozenset(t for t in known if t.tagged in map(dict, feed.in_band)))
            assert obeys(items, told), obeys(items, told)
            assert is_grammatical(items, feed.schema)


@pytest.mark.parametrize(
    "text",
    [
        "s0.window(20).group_by('k').agg(n='count(*)')",
        "s0.join(s1, 'k', within=5)",
        "s0.join(s0.drop('v'), 'k', within=5)",
    ],
)
def test_time_that_is_told_for_each_key_must_go_on_after_its_last_event(text: str) -> None:
    """A scheme speaks only of events that occur, so the check has to assume more, and says so."""
    for later, holds in ((4, True), (0, False)):
        feeds = tuple(Feed(n, (template("ts:+, k:#"),), later=later) for n in ("s0", "s1") if n in text)
        query, life = Query(feeds, text), Life(feeds)
        assert all(obeys(life.recorded(4)[f.name], scheme_of(f.source)) for f in feeds)
        said = list(claims(query))
        assert said[-1].bounded
        assert "`ts` of each `k` of s0 goes on after its last event" in said[-1].finding.assumes
        assert bool(broken(query, life, said)) is not holds


@pytest.mark.parametrize("text", ["s0.union(s1).distinct()", "s0.intersect(s1)"])
def test_what_is_told_up_to_a_value_is_not_told_of_nulls(text: str) -> None:
    """Of the other stream, too, nothing says that there are none: the check assumes it, and says so."""
    feeds = Feed("s0", (template("v:+"),)), Feed("s1", (template("g:+"),))
    query = Query(feeds, text)
    said = list(claims(query))
    assert said[0].bounded and "`g` of s0 is never null" in said[0].finding.assumes
    assert broken(query, Life(feeds, 1, recurs=True), said)
    assert not broken(query, life_of(query, said, 1, recurs=True), said)


#: Of the joins of rows, by how, rows and the sources whose keys end: these run always, the others with `make fuzz`.
QUICK = {
    ("inner", "2", ""),
    ("inner", "(1, None)", "s0 s1"),
    ("left", "2", "s0"),
    ("left", "2", "s0 s1"),
    ("full", "(1, None)", "s0"),
    ("semi", "2", "s0 s1"),
    ("anti", "(1, None)", ""),
    ("anti", "2", "s0 s1"),
}


@pytest.mark.parametrize(
    ("how", "rows", "ending"),
    [
        pytest.param(*case, marks=() if case in QUICK else pytest.mark.fuzz)
        for case in product(("inner", "left", "full", "semi", "anti"), ("2", "(1, None)"), ("", "s0", "s0 s1"))
    ],
)
def test_the_last_rows_of_each_key_stay_until_it_has_ended_in_both(how: str, rows: str, ending: str) -> None:
    feeds = tuple(Feed(n, (template("ts:+"), *((template("k:#"),) if n in ending else ()))) for n in ("s0", "s1"))
    query, life = Query(feeds, f"s0.join(s1, 'k', {how!r}, rows={rows})"), Life(feeds, 3)
    (claim,) = claims(query)
    held, _ = on_engine(query, life, FEW + 6 * PERIOD)
    assert claim.bounded is (ending == "s0 s1") is not rises(held["join-1"], FEW)
    # Unmatched rows of a key that has no more events wait for its end; others come in time.
    assert claim.complete is (claim.bounded or how in ("inner", "semi"))
    assert claim.complete is (grown(query, life, FEW)["join-1"].of_debt <= 0)


@pytest.mark.parametrize(
    ("feeds", "text", "seed"),
    [
        (
            (Feed("s0", (template("ts:+"),), time="disorder"), Feed("s1", (template("ts:+"),), ("k", "g"))),
            "s0.join(s1.window(5, on='ts').group_by('k', 'g').agg(n1='count(*)', m1='max(g)'), 'k', 'inner')"
            ".group_by('window_start').agg(n2='count(*)', m2='max(ts)')",
            515,
        ),
        (
            (Feed("s0", finite=("k",)), Feed("s1")),
            "s0.window(rows=3, slide_rows=1).group_by('k').agg(n1='count(*)', m1='max(k)').join(s1, 'k', 'inner')",
            210,
        ),
    ],
    ids=["windows of time", "windows of rows"],
)
def test_a_join_that_grows_owes_nothing_for_what_is_late_below_it(
    feeds: tuple[Feed, ...], text: str, seed: int
) -> None:
    """An open window will meet ever more rows. But the join has not seen it yet: it is at once, as the check says."""
    query = Query(feeds, text)
    said = list(claims(query))
    life = life_of(query, said, seed, recurs=True)
    (join,) = [c for c in said if c.kind == "join"]
    assert join.finding.output == "at once" and not join.bounded
    assert not broken(query, life, said)
    assert not broken_on_engine(query, life, said)
    # What is owed in all does grow, by the rows that the join keeps.
    run, owed = Living(query, life), []
    for generation in range(FEW + 2 * PERIOD):
        run.live(generation)
        owed.append(run.owed(of_all=True)["join-1"])
        assert run.owed()["join-1"] == 0
    assert owed[-1] > owed[-1 - PERIOD] > owed[-1 - 2 * PERIOD]


def test_landmark_windows_end_when_time_is_told_for_every_declared_key() -> None:
    """Each key alone closes nothing, for landmark windows end for all keys together; all of them together do."""
    feeds = (Feed("s0", (template("ts:+, k:#"),), ("k",)),)
    query, life = Query(feeds, "s0.window(landmark=10).group_by('k').agg(n='count(*)')"), Life(feeds, 3)
    said = list(claims(query))
    assert said[-1].bounded and said[-1].complete
    assert said[-1].finding.assumes == ("punctuation comes for every declared value of `k`",)
    assert not broken(query, life, said)
    assert not broken_on_engine(query, life, said)
    _, told = on_engine(query, life, FEW)
    assert told[-1] > 0


#: Landmark windows over groups that an outer join and an aggregate have made.
DEEP = (
    "s0.drop('v').join(s0.group_by('g').agg(n1='count(*)', m1='max(v)'), 'g', 'left')"
    ".window(20, on='ts').group_by('ts', 'g').agg(n2='count(*)', m2='max(m1)')"
    ".window(landmark=10, on='ts').group_by('m2').agg(n3='count(*)', m3='max(window_start)')"
)


def test_landmark_windows_over_ever_more_keys_all_come_though_each_key_stays() -> None:
    feeds = (Feed("s0", (template("ts:+"), template("g:+"))),)
    text = "s0.window(landmark=10, on='ts').group_by('v').agg(n='count(*)')"
    query, life = Query(feeds, text), Life(feeds, 0)
    (claim,) = [c for c in claims(query) if c.kind == "aggregate"]
    assert not claim.bounded and claim.complete
    assert any("never lets go of a key" in why for why in claim.finding.why)
    assert not broken(query, life, [claim])
    deep = Query(feeds, DEEP)
    said = list(claims(deep))
    assert not said[-1].bounded and said[-1].complete
    assert not broken(deep, life, said)
    # Windows come one after the other, each with a result for the values of its period alone.
    _, told = on_engine(query, life, FEW + 4 * PERIOD)
    grown_by = [after - before for before, after in pairwise(told[2:])]
    assert min(grown_by) > 0 and max(grown_by) == grown_by[0]


def hold_against_reference(examples: int) -> Tally:
    """Run random plans one item at a time. No promise may be broken; too careful verdicts are counted."""
    tally: Tally = Counter()

    @settings(max_examples=examples, **RANDOM)
    @given(*CASES)
    def hold(query: Query, seed: int, recurs: bool) -> None:
        tally["plan", "tried", ""] += 1
        said = list(claims(query))
        if any(c.bounded and c.finding.state != "none" for c in said):
            assert not broken(query, life_of(query, said, seed, recurs), said), query
            tally.update((c.kind, c.finding.state, "so") for c in said if c.bounded)
        if not all(c.bounded and c.complete for c in said):
            weigh(query, seed, said, tally)

    hold()
    return tally


def shares(tally: Tally) -> dict[str, float]:
    """Of the operators that are said to grow or to hold back, by kind and in all: for which share it is not so."""
    told: Counter[str] = Counter()
    careful: Counter[str] = Counter()
    for (kind, said, fact), count in tally.items():
        if said in UNSAFE:
            for name in (kind, "all"):
                told[name] += count
                careful[name] += count * (fact == "careful")
    return {name: careful[name] / told[name] for name in told}


def hold_against_engine(examples: int) -> Tally:
    """The same plans on the engine: what is bounded there too, and that joins of rows do keep the keys that ended."""
    tally: Tally = Counter()

    @settings(max_examples=examples, **RANDOM)
    @given(*CASES)
    def hold(query: Query, seed: int, recurs: bool) -> None:
        tally["plan", "tried", ""] += 1
        said = list(claims(query))
        life = life_of(query, said, seed, recurs)
        if any(c.bounded and c.finding.state != "none" for c in said):
            assert not broken_on_engine(query, life, said), query
            tally.update((c.kind, c.finding.state, "so") for c in said if c.bounded)
        if rows := [c for c in said if c.kind == "join of rows" and not c.bounded and not c.starved]:
            held, _ = on_engine(query, Life(query.feeds, seed), FEW + 6 * PERIOD)
            for claim in rows:
                fact = "so" if rises(held[claim.finding.operator], FEW) else "careful"
                tally[claim.kind, "unbounded", fact] += 1

    hold()
    return tally


@pytest.mark.timeout(900)  # Some seconds of computing, which may take their time on a busy machine.
def test_state_is_let_go_and_results_appear_as_the_check_says() -> None:
    tally = hold_against_reference(40)
    # How often the check is too careful is a matter of many plans, see below. But what it says is so of some.
    assert sum(c for (_, said, _), c in tally.items() if said == "bounded") > 5, tally
    assert sum(c for (_, said, fact), c in tally.items() if said in UNSAFE and fact == "so") > 5, tally


@pytest.mark.timeout(900)
def test_the_engine_lets_go_of_state_as_the_check_says() -> None:
    tally = hold_against_engine(10)
    assert sum(c for (_, said, _), c in tally.items() if said == "bounded") > 2, tally


@pytest.mark.fuzz
@pytest.mark.timeout(3600)
def test_state_is_let_go_and_results_appear_over_many_plans(tried: Callable[[str], None]) -> None:
    tally = hold_against_reference(1500)
    print(*sorted(tally.items()), *sorted(shares(tally).items()), sep="\n")
    tried(f"{summary(tally)}, {shares(tally)['all']:.1%} of the unsafe verdicts too careful")
    assert shares(tally)["all"] < 0.15, tally


@pytest.mark.fuzz
@pytest.mark.timeout(3600)
def test_the_engine_lets_go_of_state_over_many_plans(tried: Callable[[str], None]) -> None:
    tally = hold_against_engine(400)
    print(*sorted(tally.items()), sep="\n")
    tried(summary(tally))


def summary(tally: Tally) -> str:
    """How many plans were tried, and how many operators were held to what was said of them."""
    plans = sum(c for (kind, *_), c in tally.items() if kind == "plan")
    held = sum(c for (*_, fact), c in tally.items() if fact == "so")
    return f"{plans:,} plans, {held:,} verdicts that are so"
