"""`penstock trace`: what every operator does with the first few events."""

from __future__ import annotations

from dataclasses import replace

from penstock.engine.terminal import say
from penstock.pattern.pattern import Pattern
from penstock.portal.sample import sample, tables
from penstock.portal.script import Script
from penstock.portal.watch import say_json
from penstock.reference.brief import brief
from penstock.reference.interpret import Run
from penstock.reference.trace import format_step


def show(script: Script, rows: int, *, ends: bool, full: bool, as_json: bool, quiet: bool) -> None:
    """Print the steps of the reference interpreter over a sample of so many events of each source."""
    run = Run(script.query.plan, sample(script.query, rows), ends=ends, tables=tables(script.query))
    steps = (replace(step, state=tuple(map(_held, step.state))) for step in run.steps())
    if not (full or as_json or quiet):
        for line in brief(steps, max(len(node.id) for node in script.query.plan)):
            say(line)
        return
    for step in steps:
        if as_json:
            say_json(
                {
                    "operator": step.operator,
                    "kind": step.kind,
                    "taken": None if step.taken is None else str(step.taken),
                    "emitted": [str(item) for item in step.emitted],
                    "state": list(step.state),
                    "note": step.note,
                    "dead_letter": None if step.dead_letter is None else step.dead_letter.reason,
                }
            )
        elif not quiet:
            say(format_step(step))


def _held(item: object) -> str:
    """What an operator holds, as text; a union holds promises that its other inputs have not given yet."""
    if isinstance(item, tuple) and len(item) == 2 and isinstance(item[1], Pattern):
        return f"input {item[0]}: punctuation {item[1]}"
    return str(item)
