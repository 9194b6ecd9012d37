"""The same case on the reference interpreter, in this process on the kernels, on Spark, and as a batch."""

from __future__ import annotations

import math
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from case import WHOLE, Case, Cut

from penstock.algebra.operator import Sink
from penstock.algebra.pattern import Pattern
from penstock.algebra.plan import Plan
from penstock.algebra.propagate import Propagation
from penstock.engine.checkpoint import Checkpoint, EpochPlan
from penstock.engine.epoch import Driver, Settings
from penstock.engine.sink import MemoryTarget, memory
from penstock.engine.sink.target import FileTarget
from penstock.engine.storage import Storage
from penstock.portal.testing import local_session
from penstock.reference.interpret import interpret
from penstock.reference.item import breaches, events

Row = dict[str, Any]

#: Files in memory where there is such a folder: the disk's flushes would take most of the time.
_HOME = "/dev/shm" if Path("/dev/shm").is_dir() else None


@dataclass
class Outcome:
    """What a back end made of a case. Letters are (stream, reason, id)."""

    rows: list[Row]
    letters: list[tuple[str, str, Any]]
    state: int = 0
    epochs: dict[int, list[Row]] = field(default_factory=dict)
    punctuations: dict[int, tuple[Pattern, ...]] = field(default_factory=dict)
    plans: dict[int, EpochPlan] = field(default_factory=dict)


def on_reference(case: Case) -> Outcome:
    result = interpret(
        case.stream().plan, {f.name: f.arrivals() for f in case.feeds}, traced=False
    )
    for node, items in result.streams.items():
        assert not breaches(items), f"{node} breaks its word"
    letters = sorted(((d.source, d.kind, d.row["id"]) for d in result.dead_letters), key=repr)
    return Outcome(events(result.outputs), letters, sum(len(s) for s in result.states.values()))


class _Watched(Driver):
    """A driver that writes down what the sources said."""

    told: dict[int, dict[str, list[Pattern]]]

    def _punctuations(self, begun: Any, *arguments: Any) -> dict[str, list[Pattern]]:
        found = super()._punctuations(begun, *arguments)
        self.told[begun.plan.epoch] = found
        return found


class _Noting(Checkpoint):
    """A checkpoint that keeps the plans of its epochs."""

    plans: dict[int, EpochPlan]

    def write_plan(self, plan: EpochPlan) -> None:
        self.plans[plan.epoch] = plan
        super().write_plan(plan)


def on_kernels(case: Case, cut: Cut = WHOLE) -> Outcome:
    """Everything of the engine but Spark."""
    return _on_engine(case, cut, local_session(cut.parallelism))


def on_spark(case: Case, cut: Cut, spark: Any) -> Outcome:
    return _on_engine(case, cut, spark)


def _on_engine(case: Case, cut: Cut, spark: Any) -> Outcome:
    home = Path(tempfile.mkdtemp(prefix="penstock-semantics-", dir=_HOME))
    try:
        stream = case.on_files(home / "in", cut)
        target = memory()
        plan = Plan.of(Sink((stream.operator,), stream.schema, target=target))
        storage = Storage.at(str(home / "checkpoint"))
        storage.make()
        told: dict[int, dict[str, list[Pattern]]] = {}
        plans: dict[int, EpochPlan] = {}
        working = True
        while working:
            driver = _driver(plan, spark, storage, target, cut, told, plans)
            try:
                driver.recover()
                working = driver.step()
                while working and not cut.restart:
                    working = driver.step()
            finally:
                driver.close()
        return _outcome(case, plan, driver, target, told, plans, home)
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _driver(
    plan: Plan, spark: Any, storage: Storage, target: MemoryTarget, cut: Cut, told: Any, plans: dict[int, EpochPlan]
) -> _Watched:
    (sink,) = plan.sinks
    letters = FileTarget(f"{storage.url}/dead_letters", "parquet").bind("dead", storage)
    checkpoint = _Noting(storage)
    checkpoint.plans = plans
    bound = {sink.id: target.bind(sink.id, storage), "dead": letters}
    driver = _Watched(plan, spark, checkpoint, bound, Settings(**cut.settings), bounded=True)
    driver.told = told
    return driver


def _outcome(
    case: Case, plan: Plan, driver: Driver, target: MemoryTarget, told: Any, plans: dict[int, EpochPlan], home: Path
) -> Outcome:
    (sink,) = plan.sinks
    propagation = Propagation(plan)
    behind = {epoch: propagation.run(told[epoch])[sink.id] for epoch in sorted(told)}
    return Outcome(
        rows=target.rows(),
        letters=_letters(case, home),
        state=len(driver.manifest.units),
        epochs={epoch: table.to_pylist() for epoch, table in target.tables},
        punctuations=behind,
        plans=plans,
    )


def _letters(case: Case, home: Path) -> list[tuple[str, str, Any]]:
    import json

    import pyarrow.parquet as pq

    found = []
    for path in sorted((home / "checkpoint" / "dead_letters").glob("part-*")):
        for letter in pq.read_table(path).to_pylist():
            found.append((letter["stream"], letter["reason"], json.loads(letter["event"])["id"]))
    return sorted(found, key=repr)


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
    for epoch, rows in outcome.epochs.items():
        for before, patterns in outcome.punctuations.items():
            if before < epoch:
                for pattern in patterns:
                    assert not [r for r in rows if pattern.matches_row(r)], f"epoch {epoch} after {pattern} of {before}"
