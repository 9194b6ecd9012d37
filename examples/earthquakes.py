"""A week of earthquakes and what was later said of them: statistics per hour, told at once and corrected.

    python examples/earthquakes.py           some seconds
    penstock check examples/earthquakes.py   will what is kept stay bounded?

An earthquake is counted when it happens. Its magnitude is what a seismologist says, minutes to days later, and until
then it is not known. So the stream takes rows back: `c` is the earthquake, `-U` takes it back as it was, and `+U`
puts it there with the magnitude. (An epoch can end between these two: then one earthquake is missing until the next.)
Who waits until an hour is final waits for a week; who has a watermark of some hours loses what is said later. Here
each hour is told at once, corrected, and right in the end.

`earthquakes.csv` has id, time, time of the last word, and magnitude of the 1,707 earthquakes of a week in 2018, as the
U.S. Geological Survey published them (public domain), taken from the package `vega-datasets` 3.2. What was said before
the last word is not in it: that the magnitude was not known until then is an assumption.
"""

from __future__ import annotations

import argparse
import math
import tempfile
from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

import penstock as ps

QUAKES = Path(__file__).with_name("earthquakes.csv")
SCHEMA = "time timestamp, id string, mag double, op string"
FOLDER = "earthquakes-out"
#: As long as anything is said of what happened: nothing is lost.
ALL = "7 days"
#: Changes that an epoch takes up.
STEP = 40
#: By the time of the last word, two changes that belong together.
CHANGES = """
SELECT time, id, NULL::DOUBLE AS mag, 'c' AS op, time AS known, 0 AS turn FROM quakes
UNION ALL SELECT time, id, NULL, '-U', updated, 1 FROM quakes
UNION ALL SELECT time, id, mag, '+U', updated, 2 FROM quakes
ORDER BY known, id, turn
"""
#: The final table, in batch, but for the mean: DuckDB's is off by a last bit here and there.
FINAL = """
SELECT time_bucket(INTERVAL '1 hour', time) AS window_start, count(*) AS quakes, count(mag) AS measured,
       max(mag) AS strongest, list(mag) AS magnitudes
FROM quakes GROUP BY ALL ORDER BY window_start
"""


def read_quakes() -> pa.Table:
    return duckdb.sql(f"SELECT * FROM read_csv('{QUAKES}')").to_arrow_table()


def changes(quakes: pa.Table) -> pa.Table:
    """What is said of them, in the order in which it was said."""
    return duckdb.sql(CHANGES).to_arrow_table()


def final_table(quakes: pa.Table) -> list[dict[str, Any]]:
    """What a batch says, when all is known."""
    hours: list[dict[str, Any]] = duckdb.sql(FINAL).to_arrow_table().to_pylist()
    for hour in hours:
        magnitudes = hour.pop("magnitudes")
        hour["mean"] = math.fsum(magnitudes) / len(magnitudes)
    return hours


def statistics(folder: str) -> ps.Stream:
    """How many earthquakes each hour had, how many are measured, the strongest, and the mean magnitude."""
    said = ps.stream("quakes", SCHEMA, time="time").read_parquet(folder, order="name").disorder(ALL).ends()
    hours = said.changes("op").window("1 h")
    return hours.agg(quakes="count(*)", measured="count(mag)", strongest="max(mag)", mean="avg(mag)")


query = statistics(FOLDER)
settings = {"consistency": ps.Consistency.middle(), "max_rows": STEP}


def run(folder: Path, said: pa.Table, dial: ps.Consistency, spark: Any = None) -> tuple[Any, int]:
    """All of the week; the results, and how many changes came too late."""
    (folder / "in").mkdir(parents=True, exist_ok=True)
    pq.write_table(said, folder / "in" / "week.parquet")
    target = ps.memory()
    options: dict[str, Any] = {"trigger": "available_now", "max_rows": STEP, "spark": spark}
    done = statistics(str(folder / "in")).start(target, consistency=dial, **options).wait()
    assert done.progress is not None
    return target, sum(done.progress.total_dead.values())


def told_of(target: Any, said: pa.Table, hour: datetime) -> list[tuple[datetime, dict[str, Any]]]:
    """What was told of an hour, and when: by what was known at the end of the epoch."""
    known = said["known"].to_pylist()
    return [
        (known[min(epoch * STEP, len(known)) - 1], row)
        for epoch, rows in target.tables
        for row in rows.to_pylist()
        if row["window_start"] == hour and row["_weight"] > 0
    ]


def most_corrected(target: Any) -> datetime:
    times = Counter(row["window_start"] for row in target.rows() if row["_weight"] > 0)
    return times.most_common(1)[0][0]


def print_week(folder: Path, out: Console, spark: Any = None) -> bool:
    """Whether the last word on every hour is that of the final table."""
    quakes = read_quakes()
    said = changes(quakes)
    target, late = run(folder, said, ps.Consistency.middle(), spark)
    hour = most_corrected(target)
    grid = Table(
        "said by", "earthquakes", "measured", "strongest", "mean", title=f"The hour from {hour:%d %B %Y, %H:%M}"
    )
    for at, row in told_of(target, said, hour):
        strongest, mean = ("–" if row[n] is None else f"{row[n]:.2f}" for n in ("strongest", "mean"))
        grid.add_row(f"{at:%a %d, %H:%M}", str(row["quakes"]), str(row["measured"]), strongest, mean)
    out.print(grid)
    final = final_table(quakes)
    holding = sorted(target.holding(), key=lambda row: row["window_start"])
    right = bool(holding == final) and not late
    rows = target.rows()
    taken = sum(row["_weight"] < 0 for row in rows)
    out.print(
        f"{'✓' if right else '✗'} {len(final)} hours, told {len(rows) - taken:,} times and taken back {taken:,} times; "
        "in the end all are as in the final table",
        soft_wrap=True,
    )
    return right


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="earthquakes-") as folder:
        raise SystemExit(not print_week(Path(folder), Console(highlight=False)))


if __name__ == "__main__":
    main()
