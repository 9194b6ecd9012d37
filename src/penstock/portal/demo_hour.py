"""The part of the demo that is about answers now and corrections later: one hour of flights, as it became known."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

from penstock.engine.sink import memory
from penstock.kernels.duck import query
from penstock.plan.consistency import Consistency
from penstock.plan.weight import WEIGHT
from penstock.portal import flights

#: Thunderstorms in New York: what was scheduled for this hour left over the next eight, or not at all.
HOUR, AIRPORT = datetime(2013, 6, 24, 17), "JFK"
#: Flights that an epoch takes up.
STEP = 25


def show_hour(spark: Any, table: pa.Table, folder: Path, out: Console) -> bool:
    """Play the day of the hour at the middle of the dial; whether its last word is that of a batch query."""
    that_day = f"origin = '{AIRPORT}' AND date_trunc('day', sched) = '{HOUR:%Y-%m-%d}'"
    rows = query(f"SELECT * FROM flights WHERE {that_day}", flights=table)
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(rows.cast(table.schema), folder / "day.parquet")
    known = rows["known"].to_pylist()
    target = memory()
    dial = Consistency.middle(remember="1 day")
    flights.flights_query(folder).start(
        target, trigger="available_now", max_rows=STEP, spark=spark, consistency=dial
    ).wait()
    told = [
        (known[min(epoch * STEP, len(known)) - 1], row)
        for epoch, changes in target.tables
        for row in changes.to_pylist()
        if row["window_start"] == HOUR and row[WEIGHT] > 0
    ]
    out.print(f"\nAnswers now, corrections later: the hour from {HOUR:%H:%M} at {AIRPORT}, {HOUR:%d %B %Y}")
    grid = Table("known by", "departures", "cancelled", "mean delay")
    for at, row in told:
        delay = "–" if row["mean_delay"] is None else f"{row['mean_delay']:.0f} min"
        grid.add_row(f"{at:%H:%M}", str(row["departures"]), str(row["cancelled"]), delay)
    out.print(grid)
    last = query(f"SELECT * FROM ({flights.BATCH}) WHERE window_start = '{HOUR}'", flights=rows).to_pylist()
    same = bool([r for r in target.holding() if r["window_start"] == HOUR] == last)
    out.print(
        f"{'✓' if same else '✗'} told {len(told)} times, each in place of the one before, and right in the end\n"
        "  (equal to a batch query). Waiting would have told the last line alone, on the next morning.",
        soft_wrap=True,
    )
    return same
