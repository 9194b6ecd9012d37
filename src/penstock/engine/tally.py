"""What is counted: sums over the epochs of a run, and what is told of one epoch."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from penstock.checkpoint.checkpoint import Manifest, Output
from penstock.engine.progress import Progress
from penstock.engine.source.frontier import PromiseState
from penstock.engine.tasks.report import TaskReport
from penstock.kernels.ticks import from_tick
from penstock.operators.source.operator import Source
from penstock.plan.consistency import Setting
from penstock.plan.plan import Plan
from penstock.plan.weight import is_weighted

Counts = dict[str, int]


def added(counts: Iterable[Mapping[str, int]]) -> Counts:
    """Counts by name, added up.

    >>> added([{"a": 1}, {"a": 2, "b": 3}])
    {'a': 3, 'b': 3}
    """
    total: Counts = {}
    for found in counts:
        for name, count in found.items():
            total[name] = total.get(name, 0) + count
    return total


def since(before: Mapping[str, int], now: Mapping[str, int]) -> Counts:
    """What has been added to counts.

    >>> since({"a": 1, "b": 3}, {"a": 3, "b": 3})
    {'a': 2}
    """
    return {name: more for name, count in now.items() if (more := count - before.get(name, 0))}


def sent(outputs: Iterable[Output]) -> int:
    """Results, without dead letters."""
    return sum(o.rows for o in outputs if o.sink != "dead")


def totals(
    before: Mapping[str, Any], reports: Sequence[TaskReport], outputs: Sequence[Output], saved: Counts
) -> dict[str, Any]:
    """The sums over all epochs, from those before and the reports of one more."""
    return {
        "rows_in": before.get("rows_in", 0) + sum(r.rows for r in reports),
        "rows_out": before.get("rows_out", 0) + sent(outputs),
        "retracted": before.get("retracted", 0) + sum(r.retracted for r in reports),
        "dead": added([before.get("dead", {}), *(r.dead for r in reports)]),
        "saved": added([before.get("saved", {}), saved]),
        **({"shed": shed} if (shed := added([before.get("shed", {}), *(r.account.shed for r in reports)])) else {}),
    }


def reached(state: PromiseState) -> tuple[str | None, float | None]:
    """How far a source has got in its time, and how many seconds that is behind the clock."""
    name = next((t for t in state.schema.times if t in state.frontier), None)
    if name is None:
        return ("end" if state.ended else None), None
    tick = state.frontier[name]
    value = from_tick(tick, state.schema.type_of(name))
    lag = time.time() - tick / 1e6 if hasattr(value, "timestamp") else None
    return ("end" if state.ended else str(value)), lag


def progress(
    manifest: Manifest,
    reports: Sequence[TaskReport],
    promises: Mapping[str, PromiseState],
    names: Mapping[str, str],
    **more: Any,
) -> Progress:
    """What is told of an epoch that has just been committed; `names` are those of the sources."""
    runs = [r for runs in manifest.units.values() for r in runs]
    where = {names[i]: reached(state) for i, state in promises.items()}
    return Progress(
        epoch=manifest.epoch,
        rows_in=sum(r.rows for r in reports),
        rows_out=sent(manifest.outputs),
        retracted=sum(r.retracted for r in reports),
        total_retracted=manifest.totals["retracted"],
        state_rows=sum(r.live for r in runs),
        state_bytes=sum(r.bytes for r in runs),
        state_runs=len(runs),
        dead=added(r.dead for r in reports),
        frontier={name: frontier for name, (frontier, _) in where.items()},
        lag_seconds={name: lag for name, (_, lag) in where.items()},
        total_rows_in=manifest.totals["rows_in"],
        total_rows_out=manifest.totals["rows_out"],
        total_dead=manifest.totals["dead"],
        total_saved=manifest.totals["saved"],
        shed=added(r.account.shed for r in reports),
        total_shed=manifest.totals.get("shed", {}),
        disorder={names[i]: d for i, s in promises.items() if (d := _disorder(s))},
        work=added(r.work for r in reports),
        read=added({names[i]: t["rows"] - t["rejected"]} for r in reports for i, t in r.promises),
        **more,
    )


def speculation(plan: Plan, manifest: Manifest, setting: Setting) -> dict[str, dict[str, Any]]:
    """Of a plan that corrects its results, by stream: how long is remembered, and what is held back."""
    found: dict[str, dict[str, Any]] = {}
    if not any(is_weighted(n.operator) for n in plan.nodes):
        return found
    behind = {below: n.id for n in plan.nodes if n.operator.kind == "align" for below in n.inputs}
    held = {key.operator: 0 for key in manifest.units}
    for key, runs in manifest.units.items():
        held[key.operator] += sum(r.live for r in runs)
    for node in plan.sources:
        if isinstance(node.operator, Source) and node.id in setting:
            remembered, blocked = (node.operator.extent(ticks) for ticks in setting[node.id])
            waits = held.get(behind.get(node.id, ""), 0)
            found[node.operator.name] = {"remembered": remembered, "blocked": blocked, "held_back": waits}
    return found


def _disorder(state: PromiseState) -> dict[str, Counts]:
    return {attribute: asdict(seen) for attribute, seen in state.disorder_seen.items()}
