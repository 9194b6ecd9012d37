"""A year of departures from New York, in the order in which they became known: data that nobody here has made.

Of 336,776 flights 8,255 have no delay, because they never left. They do not come evenly: on the days of the blizzard of
February 2013 there are hundreds, so whoever has to estimate their delays falls behind just then.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from penstock.portal.flights import read_flights, write_files


def write(root: Path, months: tuple[int, ...]) -> Path:
    """A folder with `flights`, a file per week of the months asked for, and `all.parquet`, the whole year."""
    folder = root / f"flights-{min(months)}-{max(months)}"
    if (folder / "complete").exists():
        return folder
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    year = read_flights()
    pq.write_table(year, folder / "all.parquet")
    chosen = year.filter(pc.is_in(pc.month(year["known"]), pa.array(months, pa.int64())))
    write_files(chosen, folder / "flights", days=7)
    (folder / "complete").touch()
    return folder
