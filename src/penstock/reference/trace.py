"""What every operator does with every event of a small sample, as lines to read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from penstock.plan.operator import Operator
from penstock.plan.plan import Plan
from penstock.reference.interpret import Arrival, Interpretation, TraceStep
from penstock.reference.item import Assertion


def trace(plan: Plan | Operator, inputs: Mapping[str, Sequence[Arrival]], *, ends: bool = False) -> Iterator[TraceStep]:
    """The steps of a run, one by one as they happen.

    >>> from penstock.operators.source.operator import Source
    >>> from penstock.pattern.schema import Schema
    >>> numbers = Source((), Schema.parse("n int"), name="numbers")
    >>> for step in trace(numbers, {"numbers": [{"n": 1}, {"n": "one"}]}, ends=True):
    ...     print(format_step(step))
    source:numbers: n 1 → emits n 1
    source:numbers: n one → dead letter: attribute 'n': ...'one' is not...
    source:numbers: end of input → emits punctuation [*]
    """
    yield from Interpretation(plan, inputs, ends=ends).steps()


def format_step(step: TraceStep) -> str:
    """One line: who, what came in, what went out, what is held."""
    held = f" (holds {'; '.join(shown(item, step.kind) for item in step.state)})" if step.state else ""
    return f"{step.operator}: {taken_text(step)} → {outcome_text(step)}{held}"


def taken_text(step: TraceStep) -> str:
    """What came in."""
    if step.taken is not None:
        return str(step.taken)
    # A source speaks by itself because of what it has seen, or because it is at its end.
    last = step.emitted[-1]
    ended = isinstance(last, Assertion) and not last.pattern.restricted
    return "end of input" if ended else "knows now"


def outcome_text(step: TraceStep) -> str:
    """What went out."""
    if step.dead_letter is not None:
        outcome = f"dead letter: {step.dead_letter.reason}"
    elif step.emitted:
        outcome = "emits " + "; ".join(map(str, step.emitted))
    else:
        outcome = "emits nothing"
    return f"{outcome}, {step.note}" if step.note else outcome


def shown(item: object, kind: str) -> str:
    """What an operator holds. A join of two inputs calls them as everybody does; more of them are numbered."""
    text = str(item)
    for k, side in enumerate(("left", "right") if kind == "join" else ()):
        if text.startswith(f"input {k}: "):
            return f"{side}: {text.removeprefix(f'input {k}: ')}"
    return text
