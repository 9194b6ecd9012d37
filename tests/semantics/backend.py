"""The same case on the reference interpreter, in this process on the kernels, on Spark, and as a batch."""

from __future__ import annotations

import json
import math
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from case import WHOLE, Case, Cut

import penstock as ps
from penstock.checkpoint.checkpoint import Checkpoint, EpochPlan
from penstock.checkpoint.storage import Storage
from penstock.engine.epoch import submitting as epoch
from penstock.engine.epoch.driver import Driver
from penstock.engine.settings import Settings
from penstock.engine.sink import MemoryTarget, memory
from penstock.engine.sink.folder import FileTarget
from penstock.engine.source.letter import FAILED
from penstock.feedback.answers import AS_OF, PARTIAL, answers
from penstock.feedback.log import ControlLog
from penstock.operators.sink.operator import Sink
from penstock.pattern.pattern import Pattern
from penstock.pattern.types import value_to_json
from penstock.plan.plan import Plan
from penstock.portal.testing import local_session
from penstock.reference.interpret import Interpretation, TraceStep, interpret
from penstock.reference.item import breaches, events

Row = dict[str, Any]
Change = Callable[[ps.Stream], ps.Stream]

#: Files in memory where there is such a folder: the disk's flushes would take most of the time.
_HOME = "/dev/shm" if Path("/dev/shm").is_dir() else None


@dataclass
class Outcome:
    """What a back end made of a case. Letters are (stream, reason, id); of those that failed, what they show."""

    rows: list[Row]
    letters: list[tuple[str, str, Any]]
    shown: list[str] = field(default_factory=list)
    state: int = 0
    epochs: dict[int, list[Row]] = field(default_factory=dict)
    punctuations: dict[int, tuple[Pattern, ...]] = field(default_factory=dict)
    plans: dict[int, EpochPlan] = field(default_factory=dict)
    guards: int = 0
    saved: dict[str, int] = field(default_factory=dict)
    preferred: dict[str, tuple[Pattern, ...]] = field(default_factory=dict)
    #: Partial results that were demanded, and as of which epoch.
    answers: list[tuple[int, list[Row]]] = field(default_factory=list)


def on_reference(case: Case) -> Outcome:
    result = interpret(case.stream().plan, {f.name: f.arrivals() for f in case.feeds}, traced=False)
    for node, items in result.streams.items():
        assert not breaches(items), f"{node} breaks its word"
    letters = sorted(((d.source, d.kind, d.row.get("id")) for d in result.dead_letters), key=repr)
    shown = sorted(_event(d.source, d.row) for d in result.dead_letters if d.kind == FAILED)
    return Outcome(events(result.outputs), letters, shown, sum(len(s) for s in result.states.values()))


def _event(stream: str, row: Mapping[str, Any]) -> str:
    return f"{stream} {json.dumps({name: value_to_json(row[name]) for name in sorted(row)})}"


class _Marked(Interpretation):
    """A reference run that remembers how long the output was whenever the sources had spoken."""

    marks: list[int]

    def _assert(self, node_id: str) -> Iterator[TraceStep]:
        yield from super()._assert(node_id)
        self.marks.append(len(self.streams[self.plan.nodes[-1].id]))


def by_epoch(case: Case, plans: Mapping[int, EpochPlan]) -> list[list[Row]]:
    """What the reference emits, epoch by epoch, when its one source speaks at the ends of these epochs."""
    (feed,) = case.feeds
    read = [sum(s["rows"] for splits in plans[e].splits.values() for s in splits) for e in sorted(plans)]
    ends = list(accumulate(read))
    run = _Marked(case.stream().plan, {feed.name: feed.arrivals()}, punctuate_at=set(ends), traced=False)
    run.marks = []
    for _ in run.steps():
        pass
    stream = run.streams[run.plan.nodes[-1].id]
    # Marks: before the first arrival, at each end, and after the last arrival; then the source is over.
    until = dict(zip(sorted(set(ends) - {0}), run.marks[1:]))
    reached = [until.get(e, run.marks[0]) for e in ends]
    reached[-1] = len(stream)
    return [events(stream[a:b]) for a, b in zip([0, *reached], reached)]


class _Noting(Checkpoint):
    """A checkpoint that keeps the plans of its epochs."""

    plans: dict[int, EpochPlan]

    def write_plan(self, plan: EpochPlan) -> None:
        self.plans[plan.epoch] = plan
        super().write_plan(plan)


#: What a consumer says, by the number of epochs there have been.
Said = Mapping[int, Sequence[str]]


def on_kernels(case: Case, cut: Cut = WHOLE, said: Said | None = None, change: Change = lambda s: s) -> Outcome:
    """Everything of the engine but Spark."""
    return _on_engine(case, cut, local_session(cut.parallelism), said or {}, change)


def on_spark(case: Case, cut: Cut, spark: Any, said: Said | None = None, change: Change = lambda s: s) -> Outcome:
    return _on_engine(case, cut, spark, said or {}, change)


def _on_engine(case: Case, cut: Cut, spark: Any, said: Said, change: Change) -> Outcome:
    home = Path(tempfile.mkdtemp(prefix="penstock-semantics-", dir=_HOME))
    try:
        stream = change(case.on_files(home / "in", cut))
        target = memory()
        plan = Plan.of(Sink((stream.operator,), stream.schema, target=target))
        storage = Storage.at(str(home / "checkpoint"))
        storage.make()
        (sink,) = plan.sinks
        found = Outcome([], [])
        working = True
        log, steps = ControlLog(storage), 0
        with _as_if_large(cut):
            while working:
                driver = _driver(plan, spark, storage, target, cut, found.plans)
                try:
                    driver.recover()
                    while working := _step(driver, log, said.get(steps, ())):
                        steps += 1
                        found.preferred.update(driver.feedback.guards.preferred)
                        _take_answers(driver, found)
                        found.punctuations[driver.manifest.epoch] = driver.behind[sink.id]
                        if cut.restart:
                            break
                finally:
                    driver.close()
        found.rows = target.rows()
        found.letters, found.shown = _letters(home)
        found.state = len(driver.manifest.units)
        found.guards = driver.feedback.guards.size
        found.saved = dict(driver.manifest.totals.get("saved", {}))
        found.epochs = {number: table.to_pylist() for number, table in target.tables}
        return found
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _step(driver: Driver, log: ControlLog, said: Sequence[str]) -> bool:
    for text in said:
        log.submit({"text": text})
    return driver.step()


def _take_answers(driver: Driver, found: Outcome) -> None:
    for table in answers(driver.checkpoint.storage)[len(found.answers) :]:
        rows = table.drop_columns([PARTIAL, AS_OF]).to_pylist()
        found.answers.append((driver.manifest.epoch, rows))


@contextmanager
def _as_if_large(cut: Cut) -> Iterator[None]:
    """Few rows are as many as deserve tasks and buckets of their own, when a cut asks for it."""
    before = epoch.SMALLEST_TASK, epoch.SMALL_STATE
    if cut.as_if_large:
        epoch.SMALLEST_TASK, epoch.SMALL_STATE = 1, 0
    try:
        yield
    finally:
        epoch.SMALLEST_TASK, epoch.SMALL_STATE = before


def _driver(
    plan: Plan, spark: Any, storage: Storage, target: MemoryTarget, cut: Cut, plans: dict[int, EpochPlan]
) -> Driver:
    (sink,) = plan.sinks
    letters = FileTarget(f"{storage.url}/dead_letters", "parquet").bind("dead", storage)
    checkpoint = _Noting(storage)
    checkpoint.plans = plans
    bound = {sink.id: target.bind(sink.id, storage), "dead": letters}
    return Driver(plan, spark, checkpoint, bound, Settings(**cut.settings), bounded=True)


def _letters(home: Path) -> tuple[list[tuple[str, str, Any]], list[str]]:
    found = [r for p in (home / "checkpoint" / "dead_letters").glob("part-*") for r in pq.read_table(p).to_pylist()]
    letters = [(r["stream"], r["reason"], json.loads(r["event"]).get("id")) for r in found]
    shown = [_event(r["stream"], json.loads(r["event"])) for r in found if r["reason"] == FAILED]
    return sorted(letters, key=repr), sorted(shown)


def same(left: Any, right: Any, tolerance: float = 1e-12, absolute: float = 0.0) -> bool:
    """Equal; floats to a relative difference."""
    if isinstance(left, float) and isinstance(right, float):
        if math.isnan(left) or math.isnan(right):
            return math.isnan(left) and math.isnan(right)
        return math.isclose(left, right, rel_tol=tolerance, abs_tol=absolute)
    return type(left) is type(right) and bool(left == right)


def _alike(left: Mapping[str, Any], right: Mapping[str, Any]) -> bool:
    # Moments are merged stably, not exactly.
    loose = ("var", "dev", "cov", "corr")
    return left.keys() == right.keys() and all(
        same(left[c], right[c], 1e-8, 1e-8) if c.startswith(loose) else same(left[c], right[c]) for c in left
    )


def difference(left: Sequence[Row], right: Sequence[Row]) -> tuple[list[Row], list[Row]]:
    """What only one of two bags of rows holds."""
    rest = list(right)
    only = []
    for row in left:
        found = next((i for i, other in enumerate(rest) if _alike(row, other)), None)
        if found is None:
            only.append(row)
        else:
            del rest[found]
    return only, rest


def assert_same(left: Outcome, right: Outcome, what: str = "") -> None:
    only_left, only_right = difference(left.rows, right.rows)
    assert not only_left and not only_right, f"{what}: only left {only_left}, only right {only_right}"
    assert left.letters == right.letters, what


def assert_grammatical(outcome: Outcome) -> None:
    """No result matches a punctuation of an earlier epoch."""
    assert outcome.punctuations or not outcome.epochs
    for now, rows in outcome.epochs.items():
        for before, patterns in outcome.punctuations.items():
            for pattern in patterns if before < now else ():
                assert not [r for r in rows if pattern.matches_row(r)], f"epoch {now} after {pattern} of {before}"
