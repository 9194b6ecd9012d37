"""What `penstock run` gives: where results go as the command line asks, and the summary at the end."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa

from penstock.engine.query import Queries
from penstock.engine.sink import Target, console, deliver
from penstock.engine.sink.target import DeliverTarget
from penstock.engine.terminal import say
from penstock.errors import counted
from penstock.portal.live import short_bytes, short_time
from penstock.portal.savings import Savings
from penstock.portal.script import Script
from penstock.portal.table import rows_of
from penstock.portal.watch import say_json


def queries_of(script: Script, as_json: bool, quiet: bool) -> Queries:
    """The queries of the file with their sinks."""
    if isinstance(script.query, Queries):
        parts = script.query.parts
    else:
        parts = (script.query.to(script.sink if script.sink is not None else console(), qos=script.qos),)
    return Queries(tuple(replace(part, sink=_sink(part.sink, as_json, quiet)) for part in parts))


def _sink(sink: Target, as_json: bool, quiet: bool) -> Target:
    """A sink of the file. What would be printed as tables becomes JSON lines, or nothing, where asked for."""
    if isinstance(sink, DeliverTarget) and sink.name == "console":
        if as_json:
            return deliver(_rows_as_json)
        if quiet:
            return deliver(lambda rows, epoch: None)
    return sink


def _rows_as_json(rows: pa.Table, epoch: int) -> None:
    for row in rows_of(rows):
        say_json({"type": "row", "epoch": epoch, "row": row})


def print_summary(s: dict[str, Any]) -> None:
    rate = s["rows_in"] / s["seconds"] if s["seconds"] else 0.0
    print(
        f"{s['query']}: {counted(s['rows_in'], 'row')} in, {s['rows_out']:,} out, {counted(s['epochs'], 'epoch')}, "
        f"{short_time(s['seconds'])} ({rate:,.0f} rows/s); state peaked at {counted(s['peak_state_rows'], 'row')} "
        f"({short_bytes(s['peak_state_bytes'])}), {counted(s['state_rows'], 'row is', 'rows are')} open"
    )
    if not s["epochs"] and s["last_epoch"]:
        print(f"nothing was new: all input was read by epoch {s['last_epoch']}")
    if s["dead"]:
        print("dead letters: " + ", ".join(f"{reason} {count:,}" for reason, count in sorted(s["dead"].items())))
    if spared := Savings.of(s["saved"]):
        print(f"feedback: {spared}")
    for file in s["waiting"]:
        say(f"not read: {file}")
