"""The steps of a run for people: what each operator does, and what has changed by it, not all that it holds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from penstock.reference.interpret import TraceStep
from penstock.reference.item import Event, Item
from penstock.reference.trace import outcome_text, shown, taken_text

#: More things than this are not listed one by one.
LISTED = 6


def brief(steps: Iterable[TraceStep], width: int = 0) -> Iterator[str]:
    """Lines to read, an empty one before each arrival; operators' names padded to `width`.

    >>> from penstock.operators.source.operator import Source
    >>> from penstock.pattern.schema import Schema
    >>> from penstock.reference.trace import trace
    >>> numbers = Source((), Schema.parse("n int"), name="numbers")
    >>> print(*brief(trace(numbers, {"numbers": [{"n": 1}]}, ends=True)), sep="\\n")
    source:numbers  n 1 → passes it on
    source:numbers  end of input → emits punctuation [*]
    """
    held: dict[str, tuple[str, ...]] = {}
    said: tuple[Item, ...] = ()
    for group in _together(steps):
        step = group[-1]
        if step.operator.startswith("source:") and step.taken is not None and held:
            yield ""
        now = tuple(shown(item, step.kind) for item in step.state)
        changed = _changed(held.get(step.operator, ()), now)
        held[step.operator] = now
        yield f"{step.operator:{width}}  {_taken(group, said)} → {_did(group, changed)}"
        said = step.emitted


def _together(steps: Iterable[TraceStep]) -> Iterator[list[TraceStep]]:
    """Events that an operator takes in one after the other, and keeps, are one thing to tell."""
    group: list[TraceStep] = []
    for step in steps:
        if group and not (_only_kept(step) and _only_kept(group[-1]) and step.operator == group[-1].operator):
            yield group
            group = []
        group.append(step)
    if group:
        yield group


def _only_kept(step: TraceStep) -> bool:
    return isinstance(step.taken, Event) and not (step.emitted or step.dead_letter or step.note)


def _taken(group: Sequence[TraceStep], said: tuple[Item, ...]) -> str:
    taken = tuple(step.taken for step in group)
    if len(group) == 1:
        return "the same" if taken == said else taken_text(group[0])
    return f"all {len(taken)}" if taken == said else _listed([str(t) for t in taken])


def _did(group: Sequence[TraceStep], changed: str) -> str:
    step = group[-1]
    if step.emitted and step.emitted == (step.taken,):
        did = "passes it on" + (f", {step.note}" if step.note else "")
    elif (more := _added(step)) is not None:
        did = more
    elif step.dead_letter is not None or step.note:
        did = outcome_text(step)
    elif step.emitted:
        did = f"emits {_listed([str(item) for item in step.emitted])}"
    elif step.kind == "select" and isinstance(step.taken, Event):
        did = "drops it" if len(group) == 1 else "drops them"
    else:
        return changed or "nothing changes"
    return f"{did}; {changed}" if changed else did


def _added(step: TraceStep) -> str | None:
    """How an event comes out several times, or with more attributes: only these are told."""
    if not isinstance(step.taken, Event) or not step.emitted:
        return None
    told = []
    for item in step.emitted:
        if not isinstance(item, Event) or any(item.row.get(n, step) != v for n, v in step.taken.row.items()):
            return None
        told.append(str(Event({n: v for n, v in item.row.items() if n not in step.taken.row})))
    often = "" if len(told) == 1 else f" {len(told)} times"
    names = {tuple(item.row)[len(step.taken.row) :] for item in step.emitted if isinstance(item, Event)}
    if len(told) > 1 and len(names) == 1 and len(name := next(iter(names))) == 1:
        told = [told[0], *(one.removeprefix(f"{name[0]} ") for one in told[1:])]  # Its name need not be told each time.
    return f"emits it{often} with {_listed(told)}" if all(told) else None


def _changed(before: tuple[str, ...], now: tuple[str, ...]) -> str:
    """What is new or different, and what is gone."""
    fresh, gone = list((Counter(now) - Counter(before)).elements()), list((Counter(before) - Counter(now)).elements())
    # A group whose contents have changed is there as before, under its name.
    heads = {item.rpartition(": ")[0] for item in fresh} - {""}
    gone = [item for item in gone if item.rpartition(": ")[0] not in heads]
    parts = []
    if fresh:
        parts.append(f"now holds {_listed(fresh)}" + (f" ({len(now)} in all)" if len(now) > len(fresh) else ""))
    if gone:
        parts.append(f"lets go of {_listed(gone)}" + ("" if now else ", holds nothing more"))
    return "; ".join(parts)


def _listed(items: Sequence[str]) -> str:
    if len(items) <= LISTED:
        return "; ".join(items)
    return "; ".join([*items[: LISTED - 2], f"… {len(items) - LISTED + 1} more …", items[-1]])
