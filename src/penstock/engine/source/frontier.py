"""Which task reads which split, and what it is told is known in front of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from penstock.engine.source.formats.footer import measured_attribute
from penstock.engine.source.promises.check import passed_over
from penstock.engine.source.promises.driver import PromiseState
from penstock.engine.source.promises.known import Known, chained
from penstock.engine.source.split import Split
from penstock.plan.promise import Ahead, Disorder, Promise

__all__ = ["PromiseState", "assign", "count_spared", "plan_known", "plan_tasks", "tell_spared"]


def plan_known(state: PromiseState, splits: Sequence[Split]) -> list[Known | None]:
    """For each split what is known in front of it; None where only its predecessor in the same task can tell."""
    current: dict[str, Known | None] = {}
    out: list[Known | None] = []
    rising = [p.attribute for p in state.promises if isinstance(p, Disorder | Ahead)]
    chain = chained(state.promises, exact=True)
    for split in splits:
        known = current[split.partition] if split.partition in current else state.known(split.partition)
        out.append(known)
        if chain != "no":
            current[split.partition] = None
        elif rising and known is not None:
            attribute = measured_attribute(state.schema, state.promises)
            assert attribute is not None
            current[split.partition] = None if split.high is None else known.raised(attribute, split.high)
        else:
            current[split.partition] = known
    return out


def assign(splits: Sequence[Split], tasks: int, promises: Sequence[Promise]) -> list[list[Split]]:
    """Distribute splits over at most `tasks` tasks, in contiguous ranges of about equal bytes.

    Arrival order is kept inside a task, and splits that need what an earlier one establishes stay with it. A split that
    is spared is among them only where one behind it has to know its greatest tick from there.
    """
    order: dict[str, list[Split]] = {}
    for split in splits:
        order.setdefault(split.partition, []).append(split)
    if chained(promises, exact=True) == "source":
        return [list(splits)] if splits else []
    chains: list[list[Split]] = []
    for group in order.values():
        exact = True
        for i, split in enumerate(group):
            # The maximum in front of a split is known as long as statistics gave that of every split before it.
            exact = exact and (i == 0 or group[i - 1].high is not None)
            if i and chained(promises, exact) != "no":
                chains[-1].append(split)
            else:
                chains.append([split])
    return _balanced([c for chain in chains if (c := _without_end(chain))], max(1, tasks))


def _without_end(chain: Sequence[Split]) -> list[Split]:
    """A chain up to the last split that is read."""
    return list(chain[: max((i + 1 for i, split in enumerate(chain) if not split.spared), default=0)])


def _balanced(chains: Sequence[list[Split]], tasks: int) -> list[list[Split]]:
    weights = [sum(max(1, s.bytes) for s in chain) for chain in chains]
    total, before = sum(weights), 0
    slots: dict[int, list[Split]] = {}
    for chain, weight in zip(chains, weights):
        # By its middle: a chain goes where most of it lies.
        slots.setdefault((2 * before + weight) * tasks // (2 * total), []).extend(chain)
        before += weight
    return [slots[s] for s in sorted(slots)]


def plan_tasks(state: PromiseState, splits: Sequence[Split], tasks: int) -> list[list[tuple[Split, Known | None]]]:
    """`assign` and `plan_known` together: for each task its splits and what is known in front of each."""
    splits = _certain(state, [s for s in splits if not s.unreadable])
    known = {(s.partition, s.ordinal): k for s, k in zip(splits, plan_known(state, splits))}
    return [[(s, known[s.partition, s.ordinal]) for s in task] for task in assign(splits, tasks, state.promises)]


def _certain(state: PromiseState, splits: Sequence[Split]) -> Sequence[Split]:
    """The splits without the statistics of those in which an event may be too far ahead, so that it is no maximum."""
    ahead = next((p for p in state.promises if isinstance(p, Ahead)), None)
    if ahead is None:
        return splits
    sure = measured_attribute(state.schema, state.promises) == ahead.attribute
    reached: dict[str, int | None] = {}
    found = []
    for split in splits:
        if split.partition not in reached:
            reached[split.partition] = state.known(split.partition).highs.get(ahead.attribute) if sure else None
        high = reached[split.partition]
        if high is None or split.high is None or split.high - high > ahead.most:
            reached[split.partition] = None
            found.append(replace(split, low=None, high=None))
        else:
            reached[split.partition] = max(high, split.high)
            found.append(split)
    return found


def tell_spared(promises: Sequence[Promise], splits: Sequence[Split]) -> list[dict[str, Any]]:
    """What the splits that are spared establish, as the reports of tasks tell it of the others."""
    return [passed_over(s, promises) for s in splits if s.spared]


def count_spared(stream: str, splits: Sequence[Split]) -> tuple[dict[str, int], dict[str, int]]:
    """What is saved by the splits that are spared, in words: by those nobody wants, and by those that are shed."""
    spared = [s for s in splits if s.spared]
    return _counts(stream, [s for s in spared if not s.shed]), _counts(stream, [s for s in spared if s.shed])


def _counts(stream: str, spared: Sequence[Split]) -> dict[str, int]:
    counts = {
        "never read": sum(s.rows or 0 for s in spared),
        "row groups skipped": sum(len(s.row_groups) for s in spared),
        "files skipped": sum(s.start == 0 and s.last for s in spared),
    }
    return {f"source:{stream} {what}": n for what, n in counts.items() if n}
