"""Taxi trips joined with their ends: what has to be kept, and for how long?

    python examples/trips.py                 Penstock and Structured Streaming over the same files, about a minute
    penstock check examples/trips.py         will what is kept stay bounded?
    penstock explain examples/trips.py       afterwards: what each operator lets go of, and when

Most trips take minutes, a few take most of a day. Without a limit Structured Streaming keeps every event for ever. With
a watermark it keeps every trip for a day, since any could be one of the long ones. The files know better: behind each
event comes a punctuation, "no more of trip 4711". So Penstock keeps the trips that are on the road, and nothing else.

Leaves the files in trips-out/, and the picture trips-out/trips_state.png.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
from rich.console import Console
from rich.live import Live
from rich.table import Table

import penstock as ps

# The generator of the trips serves the benchmarks too; it is found also when only this file is named.
sys.path.append(str(Path(__file__).parents[1]))
from benchmarks.trips import ENDS, LONGEST_HOURS, SLACK_MINUTES, STARTS, Trips, write

FOLDER = Path("trips-out")
PENSTOCK = "Penstock"
WATERMARK = "Structured Streaming, watermark"
FOREVER = "Structured Streaming, no watermark"

Tell = Callable[[int], None]
"""Called after each epoch with the number of rows held."""


def trips_with_ends(data: Path) -> ps.Stream:
    """Each trip with its end. No time limit is declared: what the streams say about trips is enough."""
    starts = ps.stream("starts", STARTS, time="ts").read_parquet(str(data / "starts"), order="name")
    ends = ps.stream("ends", ENDS, time="ts").read_parquet(str(data / "ends"), order="name")
    # What the punctuations in the files will say, so that `penstock check` can tell that the join lets go of all.
    starts, ends = starts.punctuated().scheme(trip="value"), ends.punctuated().scheme(trip="value")
    return starts.join(ends, on="trip").select("trip", "zone", "zone_to", "fare", start="ts", end="ts_right")


query = trips_with_ends(FOLDER / "input")


def run_penstock(spark: Any, data: Path, out: Path, trips: Trips, tell: Tell) -> None:
    trips_with_ends(data).start(
        ps.parquet(str(out / "results")),
        trigger="available_now",
        checkpoint=str(out / "checkpoint"),
        max_rows=trips.rows,  # of each stream: one file
        spark=spark,
        listener=lambda progress: tell(progress.state_rows),
    ).wait()


def run_native(spark: Any, data: Path, out: Path, tell: Tell, *, watermark: bool) -> None:
    """The same in Structured Streaming, one file of each stream per micro-batch, tuned for one machine."""
    from pyspark.sql import functions as sql

    def stream(name: str, schema: str) -> Any:
        read = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(data / name))
        read = read.where("trip IS NOT NULL")  # to Spark, punctuation is nothing but a record without values
        return read.withWatermark("ts", f"{SLACK_MINUTES} minutes") if watermark else read

    starts = stream("starts", STARTS).withColumnRenamed("ts", "start")
    ends = stream("ends", ENDS).withColumnsRenamed({"ts": "end", "trip": "ended"})
    on = sql.expr("trip = ended")
    if watermark:
        on = on & sql.expr(f"end BETWEEN start AND start + INTERVAL '{LONGEST_HOURS}' HOUR")
    joined = starts.join(ends, on).select("trip", "zone", "zone_to", "fare", "start", "end")
    with _settings(spark, {"spark.sql.shuffle.partitions": "2"}):
        running = (
            joined.writeStream.trigger(availableNow=True)
            .option("checkpointLocation", str(out / "checkpoint"))
            .format("parquet")
            .start(str(out / "results"))
        )
        told = 0
        over = False
        while not over:
            over = running.awaitTermination(0.2)
            batches = [p for p in running.recentProgress if p["numInputRows"]]
            for batch in batches[told:]:
                tell(batch["stateOperators"][0]["numRowsTotal"])
            told = len(batches)


@contextmanager
def _settings(spark: Any, wanted: dict[str, str]) -> Iterator[None]:
    before = {key: spark.conf.get(key, None) for key in wanted}
    for key, value in wanted.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key, value in before.items():
            if value is None:
                spark.conf.unset(key)
            else:
                spark.conf.set(key, value)


def table(held: dict[str, list[int]], trips: Trips) -> Table:
    """Rows held after each epoch, so far."""
    shown = Table("hours", *held, title="Rows held", title_justify="left")
    for column in shown.columns:
        column.justify = "right"
    every = max(1, trips.epochs // 12)
    for epoch in range(every - 1, trips.epochs, every):
        if any(len(rows) > epoch for rows in held.values()):
            cells = [f"{rows[epoch]:,}" if len(rows) > epoch else "" for rows in held.values()]
            shown.add_row(f"{(epoch + 1) * trips.hours:g}", *cells)
    return shown


def draw(held: dict[str, list[int]], trips: Trips, path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")  # no display needed
    from matplotlib import pyplot

    plt: Any = pyplot  # half of matplotlib has no types
    colours = {PENSTOCK: "#1f6f8b", WATERMARK: "#e08e79", FOREVER: "#c0504d"}
    figure, axis = plt.subplots(figsize=(9, 4.8), layout="constrained")
    for name, rows in held.items():
        hours = [(i + 1) * trips.hours for i in range(len(rows))]
        axis.plot(hours, rows, color=colours[name], linewidth=2)
        axis.annotate(f"{name}: {rows[-1]:,}", (hours[-1], rows[-1]), (-4, 5), textcoords="offset points",
                      ha="right", va="bottom", color=colours[name])  # fmt: skip
    axis.set_xlim(0, trips.epochs * trips.hours)
    axis.set_ylim(0)
    axis.yaxis.set_major_formatter("{x:,.0f}")
    axis.set_xlabel("hours of event time")
    axis.set_ylabel("rows held after an epoch")
    axis.spines[["top", "right"]].set_visible(False)
    axis.set_title(f"{trips.rate:,} trips an hour joined with their ends: what is held", loc="left")
    figure.savefig(path, dpi=130)
    plt.close(figure)


def results(out: Path) -> tuple[int, int]:
    """How many, and a checksum that does not depend on their order."""
    with duckdb.connect() as db:
        found = db.sql(
            'SELECT count(*), coalesce(sum(hash(trip, zone, zone_to, fare, start, "end")), 0) '
            f"FROM '{out}/results/*.parquet'"
        ).fetchall()
    count, total = found[0]
    return int(count), int(total)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=16)
    parser.add_argument("--hours", type=float, default=2.0, help="hours of event time in an epoch")
    parser.add_argument("--rate", type=int, default=500, help="trips an hour")
    parser.add_argument("--folder", type=Path, default=FOLDER)
    given = parser.parse_args()
    trips = Trips(given.epochs, given.hours, given.rate)
    print_comparison(trips, given.folder, Console(highlight=False))


def print_comparison(trips: Trips, folder: Path, out: Console, spark: Any = None) -> dict[str, list[int]]:
    """Run all of them over the same files; the rows each held after each epoch."""
    began = time.monotonic()
    shutil.rmtree(folder / "input", ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    made = write(trips, folder)
    data = made.rename(folder / "input")
    out.print(f"{trips.events * trips.epochs:,} trips start and as many end, in {trips.epochs} files each.\n")
    session = spark if spark is not None else ps.spark_session("local[2]")
    held: dict[str, list[int]] = {PENSTOCK: [], WATERMARK: [], FOREVER: []}
    found: dict[str, tuple[int, int]] = {}
    work = Path(tempfile.mkdtemp(prefix="trips-"))
    with Live(table(held, trips), console=out, refresh_per_second=4) as live:
        for name, rows in held.items():

            def tell(state_rows: int, rows: list[int] = rows) -> None:
                rows.append(state_rows)
                live.update(table(held, trips))

            if name == PENSTOCK:
                run_penstock(session, data, work / name, trips, tell)
            else:
                run_native(session, data, work / name, tell, watermark=name == WATERMARK)
            found[name] = results(work / name)
    shutil.rmtree(work, ignore_errors=True)
    if len(set(found.values())) > 1:
        raise SystemExit(f"they do not agree: {found}")
    out.print(f"\n✓ the same {found[PENSTOCK][0]:,} results from each")
    share = max(held[PENSTOCK]) / max(held[WATERMARK])
    out.print(f"✓ Penstock never held more than {max(held[PENSTOCK]):,} rows: {share:.1%} of what a watermark needs")
    picture = folder / "trips_state.png"
    draw(held, trips, picture)
    out.print(f"  plot: [b]{picture}[/b]\n\nThis took {time.monotonic() - began:.0f} s.")
    return held


if __name__ == "__main__":
    main()
