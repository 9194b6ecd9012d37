"""Turning the dial while a query runs, and from one start to the next: nothing is lost and nothing doubled.

Who is late is computed here once more, from what each epoch has read and where its dial stood. What holds in the end
must be what waiting would have given for the others.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from backend import Outcome, assert_grammatical, on_kernels, on_reference, on_spark
from case import Case, Cut, Feed
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from random_cases import cuts
from test_speculation import assert_converges, at_once, chains, holding, joins

import penstock as ps
from penstock.analysis.turning import setting_of
from penstock.checkpoint.checkpoint import Checkpoint, EpochPlan
from penstock.checkpoint.fault import Crash, hooked
from penstock.errors import CheckpointError, UserError
from penstock.portal.testing import local_session
from penstock.reference.interpret import interpret
from penstock.reference.item import events

Row = Mapping[str, Any]
Dial = ps.Consistency


@st.composite
def dials(draw: st.DrawFn, blocks: bool = True) -> ps.Consistency:
    remember = draw(st.sampled_from((1, 3, 8, 20)))
    return Dial.at(block=draw(st.integers(0, remember - 1)) if blocks else 0, remember=remember)


@st.composite
def schedules(draw: st.DrawFn, blocks: bool) -> dict[int, list[str]]:
    """What is said after how many epochs."""
    steps = draw(st.lists(st.integers(0, 8), min_size=1, max_size=4))
    return {step: [f"consistency {draw(dials(blocks)).text}"] for step in steps}


def plainly(case: Case) -> Case:
    """One partition for each stream, which promises nothing but its end; what is late is up to the dial."""
    feeds = []
    for feed in case.feeds:
        rows = [i for _, i in feed.items if not isinstance(i, str)]
        feeds.append(Feed(feed.name, tuple(("", r) for r in rows), ".ends()"))
    return Case(case.query, tuple(feeds))


class Lateness:
    """Who is late in one stream, by the definition of it."""

    def __init__(self) -> None:
        self.newest: int | None = None
        self.floor: int | None = None
        self.slack = 0

    def turn(self, slack: int) -> None:
        if self.newest is not None and slack != self.slack:
            limit = self.newest - self.slack
            self.floor = limit if self.floor is None else max(self.floor, limit)
        self.slack = slack

    def admits(self, row: Row) -> bool:
        at = row["ts"]
        if at is None:
            return False
        limits = [self.floor, None if self.newest is None else self.newest - self.slack]
        late = any(limit is not None and at < limit for limit in limits)
        self.newest = at if self.newest is None else max(self.newest, at)
        return not late


def admitted(case: Case, plans: Mapping[int, EpochPlan]) -> Case:
    """The case without the events that were late where the dial stood when they came."""
    feeds = []
    for feed in case.feeds:
        rows, source, judge, kept = feed.rows(), f"source:{feed.name}", Lateness(), []
        for number in sorted(plans):
            judge.turn(plans[number].dial[source][0])
            count = sum(s["rows"] for s in plans[number].splits.get(source, ()))
            kept += [r for r in rows[:count] if judge.admits(r)]
            rows = rows[count:]
        assert not rows
        feeds.append(replace(feed, items=tuple(("", r) for r in kept)))
    return Case(case.query, tuple(feeds))


def check(case: Case, first: ps.Consistency, said: Mapping[int, Sequence[str]], found: Outcome) -> None:
    left = admitted(case, found.plans)
    assert_converges(on_reference(left).rows, found.rows, "engine")
    ids = {(f.name, r["id"]) for f in left.feeds for r in f.rows()}
    late = sorted((f.name, "late", r["id"]) for f in case.feeds for r in f.rows() if (f.name, r["id"]) not in ids)
    letters = [(s, "late" if r == "malformed" else r, i) for s, r, i in found.letters if r != "failed"]
    assert sorted(letters) == late
    assert found.state == 0
    assert_grammatical(found)
    stands = [next(iter(found.plans[n].dial.values())) for n in sorted(found.plans)]
    wanted = [first, *(Dial.parse(text.split(" ", 1)[1]) for step in sorted(said) for text in said[step])]
    known = [[c.remember, c.block] for c in wanted]
    for was, now in pairwise([known[0], *stands]):
        assert now == was or now in known[known.index(was) :]
    assert len(stands) <= max(said, default=0) + 2 or stands[-1] == known[-1]


@given(st.one_of(chains(), joins()), cuts(), dials(blocks=False), schedules(blocks=False))
@settings(max_examples=25)
def test_remembering_more_or_less_loses_and_doubles_nothing(
    case: Case, cut: Cut, first: ps.Consistency, said: dict[int, list[str]]
) -> None:
    case = plainly(case)
    check(case, first, said, on_kernels(case, cut, said, change=lambda s: at_once(s, first)))


@given(chains(), cuts(), dials(), schedules(blocks=True))
@settings(max_examples=40)
def test_nor_does_blocking_longer_or_shorter(
    case: Case, cut: Cut, first: ps.Consistency, said: dict[int, list[str]]
) -> None:
    case = plainly(case)
    first = Dial.at(block=max(1, first.block or 0), remember=max(3, first.remember or 0))
    check(case, first, said, on_kernels(case, cut, said, change=lambda s: at_once(s, first)))


@given(chains(), cuts(), dials(), schedules(blocks=True))
@settings(max_examples=20)
def test_the_reference_turns_its_dial_too(
    case: Case, cut: Cut, first: ps.Consistency, said: dict[int, list[str]]
) -> None:
    """Where the engine turned it, it admits the same events; and what holds is the same."""
    case = plainly(Case(case.query.replace(".union(t)", ""), case.feeds[:1]))
    first = Dial.at(block=max(1, first.block or 0), remember=max(3, first.remember or 0))
    found = on_kernels(case, cut, said, change=lambda s: at_once(s, first))
    counts = [sum(s["rows"] for splits in found.plans[n].splits.values() for s in splits) for n in sorted(found.plans)]
    dial = {sum(counts[:k]): found.plans[n].setting for k, n in enumerate(sorted(found.plans))}
    plan, (feed,) = at_once(case.stream(), first).plan, case.feeds
    result = interpret(plan, {feed.name: feed.arrivals()}, traced=False, dial=dial)
    assert_converges(holding(found.rows), events(result.outputs), "reference")
    letters = sorted((d.source, d.kind, d.row["id"]) for d in result.dead_letters)
    assert letters == sorted(found.letters)


@pytest.mark.spark
def test_on_spark(spark: Any) -> None:
    @given(chains(), cuts(), dials(), schedules(blocks=True))
    @settings(max_examples=3, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
    def run(case: Case, cut: Cut, first: ps.Consistency, said: dict[int, list[str]]) -> None:
        case = plainly(case)
        first = Dial.at(block=max(1, first.block or 0), remember=max(3, first.remember or 0))
        check(case, first, said, on_spark(case, cut, spark, said, change=lambda s: at_once(s, first)))

    run()


# --- from one start to the next ---------------------------------------------------------------------------------------

STAMPS = pa.schema([("ts", pa.int32()), ("k", pa.string()), ("id", pa.int32())])


def feed(home: Path, number: int, rows: Iterable[tuple[int, str, int]]) -> None:
    (home / "in").mkdir(exist_ok=True)
    table = pa.Table.from_pylist([dict(zip(STAMPS.names, r, strict=True)) for r in rows], schema=STAMPS)
    pq.write_table(table, home / "in" / f"{number:03d}.parquet")


def events_of(home: Path) -> ps.Stream:
    return ps.stream("s", "ts int, k string, id int", time="ts").read_parquet(str(home / "in"), order="name")


def query(home: Path) -> ps.Stream:
    return events_of(home).window(10).group_by("k").agg(n="count(*)", last="max(id)")


def start(home: Path, dial: ps.Consistency, **options: Any) -> ps.Run:
    return started(query(home), ps.parquet(str(home / "out")), home, consistency=dial, **options)


def started(stream: ps.Stream, sink: Any, home: Path, **options: Any) -> ps.Run:
    checkpoint = str(home / "ck")
    return stream.start(sink, trigger="available_now", checkpoint=checkpoint, spark=local_session(), **options)


def told(home: Path) -> list[Row]:
    return [r for p in sorted((home / "out").glob("part-*")) for r in pq.read_table(p).to_pylist()]


def expected(batches: Sequence[tuple[int, Sequence[tuple[int, str, int]]]]) -> list[Row]:
    judge, groups = Lateness(), dict[tuple[int, str], list[int]]()
    for slack, rows in batches:
        judge.turn(slack)
        for at, k, number in rows:
            if judge.admits({"ts": at}):
                groups.setdefault((at // 10 * 10, k), []).append(number)
    return [{"window_start": w, "k": k, "n": len(ids), "last": max(ids)} for (w, k), ids in groups.items()]


@given(data=st.data())
@settings(max_examples=15, suppress_health_check=list(HealthCheck))
def test_every_start_may_stand_elsewhere(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    home = tmp_path_factory.mktemp("starts")
    batches, newest = [], 0
    for number in range(data.draw(st.integers(1, 5))):
        ages = data.draw(st.lists(st.tuples(st.integers(-30, 10), st.sampled_from("ab")), min_size=1, max_size=6))
        rows = [(newest + age, k, 10 * number + i) for i, (age, k) in enumerate(ages)]
        newest = max(newest, *(at for at, _, _ in rows))
        dial = data.draw(dials())
        feed(home, number, rows)
        start(home, dial, max_rows=data.draw(st.sampled_from((1, 3, 100)))).wait()
        batches.append((dial.remember or 0, rows))
    feed(home, 99, [])
    done = start(home, Dial.middle(remember=5)).wait()
    for _ in range(2):  # What was held back leaves with the first epoch that there is.
        if done.driver.manifest.epoch == done.resumed.epoch:
            feed(home, 100, last := [(newest, "b", 1000)])
            batches.append((5, last))
            done = start(home, Dial.middle(remember=5)).wait()
    assert_converges(expected(batches), told(home), "starts")


# --- a plug that is pulled, and what cannot be ------------------------------------------------------------------------


def attempt(home: Path, seed: int, plans: dict[int, EpochPlan]) -> int:
    """Random dials and crashes at any step; how often the dial stood elsewhere than in the epoch before."""
    rng = random.Random(seed)
    rows = [(3 * i - rng.choice((0, 0, 4, 11)), rng.choice("ab"), i) for i in range(60)]
    home.mkdir()
    for number in range(6):
        feed(home, number, rows[10 * number : 10 * number + 10])
    settings_ = {"max_rows": rng.choice((3, 10)), "overlap": rng.random() < 0.7, "fuse_below": rng.choice((0, 1 << 20))}
    left, busy = 6, False

    def hook(point: str) -> None:
        nonlocal left, busy
        if busy:
            return
        if rng.random() < 0.1 and (home / "ck" / "control" / "contract.json").exists():
            busy = True
            remember = rng.choice((1, 6, 20))
            ps.consumer(str(home / "ck")).consistency(Dial.at(block=rng.randrange(remember), remember=remember))
            busy = False
        if left and rng.random() < 0.05:
            left -= 1
            raise Crash(point)

    first = Dial.at(block=2, remember=6)
    for _ in range(10):
        try:
            with hooked(hook):
                start(home, first, **settings_).wait()
            break
        except Crash:
            continue
    feed(home, 9, last := [(200, "b", 1000)])
    ps.consumer(str(home / "ck")).consistency(Dial.middle(remember=6))  # After all that waits to be taken up.
    start(home, Dial.middle(remember=6)).wait()
    batches, rest = [], [*rows, *last]
    for number in sorted(plans):
        plan = plans[number]
        count = sum(s["rows"] for s in plan.splits.get("source:s", ()))
        batches.append((plan.dial["source:s"][0], rest[:count]))
        rest = rest[count:]
    assert not rest
    assert_converges(expected(batches), told(home), f"seed {seed}")
    return sum(a.dial != b.dial for a, b in pairwise(plans[n] for n in sorted(plans)))


def test_it_stands_where_it_stood_after_a_crash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plans: dict[int, EpochPlan] = {}
    write = Checkpoint.write_plan
    monkeypatch.setattr(Checkpoint, "write_plan", lambda self, p: (plans.update({p.epoch: p}), write(self, p))[1])
    turns = 0
    for seed in range(3):
        plans.clear()
        turns += attempt(tmp_path / str(seed), seed, plans)
    assert turns > 3


def test_what_was_said_while_it_ran_holds_until_it_is_started_elsewhere(tmp_path: Path) -> None:
    """Who starts it as before goes on where it was turned to; who starts it at another point means that one."""

    def stands(dial: ps.Consistency, number: int) -> list[int]:
        feed(tmp_path, number, [(10 * number, "a", number)])
        run = start(tmp_path, dial).wait()
        plan = run.driver.checkpoint.plan_of(run.driver.manifest.epoch)
        assert plan is not None
        return plan.dial["source:s"]

    assert stands(Dial.middle(remember=6), 0) == [6, 0]
    ps.consumer(str(tmp_path / "ck")).consistency(Dial.middle(remember=20))
    assert stands(Dial.middle(remember=6), 1) == [20, 0]
    assert ps.consumer(str(tmp_path / "ck")).talk().consistency == Dial.middle(remember=20)
    assert stands(Dial.middle(remember=6), 2) == [20, 0]
    assert stands(Dial.middle(remember=9), 3) == [9, 0]
    assert stands(Dial.middle(remember=6), 4) == [6, 0]
    assert ps.consumer(str(tmp_path / "ck")).talk().consistency == Dial.middle(remember=6)


def test_progress_says_what_is_corrected_and_held_back(tmp_path: Path) -> None:
    feed(tmp_path, 0, [(5, "a", 0), (6, "a", 1), (19, "a", 2)])
    feed(tmp_path, 1, [(14, "a", 3), (24, "a", 4)])
    run = start(tmp_path, Dial.at(block=4, remember=10), max_rows=3).wait()
    first, last = run.history
    assert first.speculation == {"s": {"remembered": "10 ticks", "blocked": "4 ticks", "held_back": 1}}
    assert (first.rows_out, first.retracted, last.retracted, last.total_retracted) == (1, 0, 0, 0)
    assert last.speculation["s"]["held_back"] == 1
    feed(tmp_path, 2, [(15, "a", 5), (40, "a", 6)])
    last = start(tmp_path, Dial.at(block=4, remember=10)).wait().progress
    assert last is not None
    weights = [r["_weight"] for r in told(tmp_path)]
    assert last.total_retracted == weights.count(-1) > 0
    assert last.retraction_ratio == weights.count(-1) / len(weights)


@pytest.mark.parametrize(
    ("kind", "dial", "stands"),
    [
        ("timestamp", Dial.middle(remember="1 min"), [60_000_000, 0]),
        ("timestamp", Dial.middle(remember=20), "'ts' is a timestamp. Hint: a length of time"),
        ("int", Dial.parse("5/20"), [20, 5]),
        ("int", Dial.middle(remember="20 s"), "'ts' is a number. Hint: one too: remember=20"),
        ("date", Dial.weak(block=1, remember=2), [2, 1]),
        ("date", Dial.parse("1 day/2 days"), [2, 1]),
        ("date", Dial.middle(remember="5 min"), "'ts' is a date. Hint: whole days"),
    ],
)
def test_lengths_are_of_the_kind_of_the_time(kind: str, dial: ps.Consistency, stands: list[int] | str) -> None:
    """Else a minute would be sixty million numbers, and twenty a few microseconds."""
    s = ps.stream("s", f"ts {kind}, k string", time="ts").read_parquet("in")
    if isinstance(stands, str):
        with pytest.raises(UserError, match=stands):
            s.group_by("k").agg(n="count(*)").at(dial)
    else:
        assert setting_of(s.group_by("k").agg(n="count(*)").at(dial).plan) == {"source:s": tuple(stands)}
        assert repr(Dial.parse(dial.text)) == repr(dial)
    with pytest.raises(UserError, match="block='5 s' and remember=20 do not go together"):
        Dial.at(block="5 s", remember=20)


def test_a_query_without_groups_may_hold_back_now_and_then(tmp_path: Path) -> None:
    """Nothing of it is ever taken back, so it may be started at any point; what was held back leaves."""
    for number, dial in enumerate((Dial.at(block=5, remember=8), Dial.middle(remember=3), Dial.strong(remember=3))):
        feed(tmp_path, number, [(10 * number, "a", 2 * number), (10 * number + 7, "a", 2 * number + 1)])
        sink = ps.parquet(str(tmp_path / "out"))
        started(events_of(tmp_path).where("id >= 0"), sink, tmp_path, consistency=dial).wait()
    assert sorted(r["id"] for r in told(tmp_path)) == [0, 1, 2, 3, 4, 5]


def test_what_cannot_be_is_refused(tmp_path: Path) -> None:
    feed(tmp_path, 0, [(5, "a", 0)])
    with start(tmp_path, Dial.middle(remember=6)) as run:
        with pytest.raises(UserError, match=r"'s' was started without block=.*start it with this consistency"):
            run.consistency(Dial.at(block=2, remember=6))
        with pytest.raises(UserError, match="has told results that it may take back"):
            run.consistency(Dial.strong(remember=9))
        with pytest.raises(UserError, match="does not say by its disorder"):
            run.consistency(Dial.middle())
        with pytest.raises(UserError, match=r"consistency\('middle'\) is not possible"):
            run.consistency("middle")  # type: ignore[arg-type]
    # From another process: whoever has said it finds out why.
    talk = ps.consumer(str(tmp_path / "ck"))
    receipt = talk.consistency(Dial.strong(remember=9))
    feed(tmp_path, 1, [(15, "a", 1)])
    done = start(tmp_path, Dial.middle(remember=6)).wait()
    assert [w for w in done.warnings if "it may take back" in w]
    with pytest.raises(UserError, match="it may take back"):
        talk.way(receipt)
    with pytest.raises(CheckpointError, match="results that it may take back"):
        start(tmp_path, Dial.strong(remember=6))


def test_a_run_that_waits_may_wait_longer(tmp_path: Path) -> None:
    """Strong to strong: only what is late and when results are final changes. The same with a sink of final rows."""
    for name, sink in (("strong", ps.parquet(str(tmp_path / "strong-out"))), ("final", None)):
        home = tmp_path / name
        home.mkdir()
        out = sink or ps.parquet(str(home / "out"), changes="final")

        def run(dial: ps.Consistency, number: int, rows: list[tuple[int, str, int]]) -> ps.Run:
            feed(home, number, rows)  # noqa: B023
            return started(query(home), out, home, consistency=dial).wait()  # noqa: B023

        strong = Dial.strong(remember=3)
        run(strong if sink else Dial.middle(remember=3), 0, [(5, "a", 0), (12, "a", 1)])
        done = run(Dial.strong(remember=30) if sink else Dial.middle(remember=30), 1, [(14, "a", 2), (9, "a", 3)])
        assert done.driver.manifest.totals["dead"] == {}
        with pytest.raises(UserError, match="no place for corrections") if sink else nullcontext():
            done.consistency(Dial.middle(remember=3))  # It waits for the next start.
        done = run(Dial.strong(remember=3) if sink else Dial.middle(remember=3), 2, [(40, "a", 4), (20, "a", 5)])
        assert done.driver.manifest.totals["dead"] == {"late": 1}
        folder = Path(str(tmp_path / "strong-out") if sink else str(home / "out"))
        rows = [r for p in sorted(folder.glob("part-*")) for r in pq.read_table(p).to_pylist()]
        assert [(r["window_start"], r["n"]) for r in rows] == [(0, 2), (10, 2)]
