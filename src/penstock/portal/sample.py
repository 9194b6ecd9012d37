"""The first few events of a query's own sources, and its tables, as the reference interpreter takes them."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from penstock.engine.query import Queries
from penstock.engine.source.formats.read import Batch, read
from penstock.engine.source.listing import open_reader, reader_options
from penstock.engine.stream import Stream
from penstock.engine.tables import read_files
from penstock.errors import UserError
from penstock.operators.lookup.operator import TableJoin
from penstock.operators.source.operator import Source
from penstock.plan.promise import Files, Inbox
from penstock.reference.interpret import Arrival


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
