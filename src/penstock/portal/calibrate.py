"""The command `penstock calibrate`: what a query costs, row by row, over what there is to read now."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Annotated, Any

import pyarrow as pa
import typer

from penstock.engine.progress import Progress
from penstock.engine.query import Queries
from penstock.engine.sink import deliver
from penstock.engine.terminal import say
from penstock.portal.options import File, Json, Master, Quiet, writable
from penstock.portal.outcome import queries_of
from penstock.portal.script import check_sources, load
from penstock.portal.table import print_table
from penstock.portal.watch import say_json
from penstock.statistics.measured import RunStatistics

#: An epoch of it; costs per row show when epochs are of different size, so the last one is smaller.
ROWS = 200_000


def calibrate(
    file: File,
    rows: Annotated[int, typer.Option(min=1, help="Stop after so many rows.")] = 2_000_000,
    out: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write the costs down, for `penstock shed --at … --costs`.")
    ] = None,
    master: Master = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Run a query over its present input, into nothing, and say what every operator costs per row."""
    target = None if out is None else writable(out, "--out")
    script = load(file)
    queries = queries_of(script, as_json=True, quiet=True)
    check_sources(queries)
    measured = calibrated(queries, rows, master)
    if target is not None:
        target.write_text(json.dumps(measured.to_json()), encoding="utf-8")
    if as_json:
        say_json(measured.summary())
    elif not quiet:
        print_table(cost_table(measured))
        say(f"an epoch costs {measured.fixed * 1000:.1f} ms anyway")


def calibrated(queries: Queries, rows: int, master: str | None = None, spark: Any = None) -> RunStatistics:
    """The statistics of a run over some rows, of which no sink gets anything."""

    def nothing(table: pa.Table, epoch: int) -> None:
        """Nobody gets it."""

    parts = tuple(replace(part, sink=deliver(nothing), qos=None) for part in queries.parts)
    read = 0

    def look(progress: Progress) -> None:
        nonlocal read
        read = progress.total_rows_in
        run.tune(max_rows=max(1, ROWS // (1 + progress.epoch % 3)))
        if read >= rows:
            run._stop.set()

    options: dict[str, Any] = {"master": master} if spark is None else {"spark": spark}
    run = Queries(parts).start(trigger="available_now", max_rows=min(rows, ROWS), listener=look, **options)
    run.wait()
    return run.driver.statistics


def cost_table(measured: RunStatistics) -> pa.Table:
    """By operator: rows in and out, how many come out of one, and its CPU time per row."""
    found = [
        {
            "operator": name,
            "rows_in": passed.total_in,
            "rows_out": passed.total_out,
            "per_row": None if passed.selectivity is None else round(passed.selectivity, 4),
            "us_per_row": round(measured.cost(name) * 1e6, 4),
        }
        for name, passed in sorted(measured.operators.items())
    ]
    return pa.Table.from_pylist(found)
