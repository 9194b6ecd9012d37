"""`penstock trace`: what every operator does with the first few events of the query's own sources."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np

from penstock.engine.query import Queries
from penstock.engine.source.formats.read import Batch, read
from penstock.engine.source.listing import open_reader, reader_options
from penstock.engine.stream import Stream
from penstock.engine.tables import read_files
from penstock.engine.terminal import say
from penstock.errors import UserError
from penstock.operators.lookup.operator import TableJoin
from penstock.operators.source.operator import Source
from penstock.pattern.pattern import Pattern
from penstock.plan.promise import Files, Inbox
from penstock.portal.script import Script
from penstock.portal.watch import say_json
from penstock.reference.brief import brief
from penstock.reference.interpret import Arrival, Interpretation
from penstock.reference.trace import format_step


def show(script: Script, rows: int, *, ends: bool, full: bool, as_json: bool, quiet: bool) -> None:
    """Print the steps of the reference interpreter over a sample of so many events of each source."""
    run = Interpretation(script.query.plan, sample(script.query, rows), ends=ends, tables=tables(script.query))
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


def sample(query: Stream | Queries, rows: int) -> dict[str, list[Arrival]]:
    """Up to `rows` arrivals of every source, by stream name: good events, malformed ones and punctuations."""
    if rows < 1:
        raise UserError(f"--rows {rows} is not possible", hint="a whole number of at least 1")
    found: dict[str, list[Arrival]] = {}
    for node in query.plan.sources:
        source = node.operator
        assert isinstance(source, Source)
        if isinstance(source.reader, Inbox):
            raise UserError(
                f"stream '{source.name}' comes from Spark and cannot be sampled",
                hint="write some of its events to a folder and read that",
            )
        reader = open_reader(source)
        arrivals: list[Arrival] = []
        while len(arrivals) < rows and (splits := reader.plan(rows - len(arrivals), None, 1, True)):
            for split in splits:
                batch = read(split, source.schema, None, source.promises, reader_options(source))
                arrivals += [(split.partition, item) for item in in_order(batch)]
        found[source.name] = arrivals[:rows]
    return found


def tables(query: Stream | Queries) -> dict[str, list[dict[str, Any]]]:
    """All rows of every table that the query looks up, as they are now."""
    found: dict[str, list[dict[str, Any]]] = {}
    for node in query.plan:
        if not isinstance(node.operator, TableJoin):
            continue
        table = node.operator.table
        if not isinstance(table.reader, Files):
            raise UserError(
                f"table '{table.name}' comes from Spark and cannot be sampled",
                hint="write it to a file and read that",
            )
        found[table.name] = read_files(table, table.reader)[0].to_pylist()
    return found


def in_order(batch: Batch) -> list[Any]:
    """Events, malformed events and punctuations of a batch in the order in which they stand in the file."""
    numbers = batch.row_numbers(np.arange(batch.table.num_rows))
    items: list[tuple[int, int, Any]] = [(n, 1, row) for n, row in zip(numbers, batch.table.to_pylist())]
    for position, pattern in batch.punctuations:
        before = numbers[position] if position < len(numbers) else (numbers[-1] + 1 if numbers else batch.first)
        items.append((before, 0, pattern))
    items += [(letter["row"], 1, _as_row(letter["event"])) for letter in batch.malformed.to_pylist()]
    return [item for _, _, item in sorted(items, key=lambda i: i[:2])]


def _as_row(event: str | None) -> dict[str, Any]:
    """A malformed event as far as it can be told apart; what is no object at all has no attribute of the schema."""
    try:
        row = json.loads(event or "")
    except ValueError:
        row = None
    return row if isinstance(row, dict) else {"?": event}
