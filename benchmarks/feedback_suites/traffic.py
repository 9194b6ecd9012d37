"""A day of freeway traffic: sensors in the road, probe vehicles on it, and where the sensors are.

    python -m benchmarks.feedback_suites.traffic FOLDER

The counts are those of the published experiments. A sensor reports every 20 seconds, so 150 of them make 450 reports a
minute and 648,000 a day; a punctuation a minute says that all before it has come. A probe vehicle reports every five
minutes, ten of the fifty in any minute, and each report is followed by a punctuation on time and probe. There are 5
freeways with 10 stations each and 3 sensors at a station. For the experiment on late work there are twelve hours in
which every other report has no speed (-1).
"""

from __future__ import annotations

import argparse
import os
import shutil
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

SENSOR = "sensor_id int, ts timestamp, ts_text string, volume int, speed int, occupancy int"
PROBE = "probe_id int, ts timestamp, ts_text string, freeway_id int, milepost int, speed int"
LOCATION = "sensor_id int, freeway_id int, milepost int"

START = datetime(2010, 2, 15, 9, tzinfo=UTC)
"""A Monday at nine, as in the published example."""
SENSORS = 150
FIRST_SENSOR = 1001
REPORTS_A_MINUTE = 3
PROBES = 50
PROBES_A_MINUTE = 10
FREEWAYS, STATIONS, LANES = 5, 10, 3
FIRST_MILEPOST = 101
DAY = 24 * 60

CROWDED = 20
"""`occupancy > CROWDED` held of 514,421 of the 648,000 published reports …"""
SLOW = 20
"""… and `speed > SLOW` of 505,481. Here it is the same."""
_OCCUPIED, _MOVING, _OF = 514_421, 505_481, 648_000

_TEXT = "%A, %B %d, %Y %I:%M:%S %p"


@dataclass(frozen=True)
class Traffic:
    """What is to be written: so many minutes, so many of them to a file and to a row group.

    `dirty`: every other report has speed -1. `told`: punctuations lie in the files as records; those of sensors, one
    a minute, in row groups of their own, so that statistics of the others speak of reports alone. Otherwise the files
    hold the same reports in order, and `Punctuate.sorted_by("ts")` with `Punctuate.every("1 min")` says the same.
    """

    minutes: int = DAY
    file_minutes: int = 1
    group_minutes: int = 1
    dirty: bool = False
    told: bool = False
    seed: int = 5

    def __post_init__(self) -> None:
        if self.minutes % self.file_minutes or self.file_minutes % min(self.group_minutes, self.file_minutes):
            raise ValueError(f"{self} does not come out even")

    @property
    def slug(self) -> str:
        kind = ("-dirty" if self.dirty else "") + ("-told" if self.told else "")
        return f"traffic-{self.minutes}m-{self.file_minutes}-{self.group_minutes}-{self.seed}{kind}"

    @property
    def a_minute(self) -> int:
        return SENSORS * REPORTS_A_MINUTE

    @property
    def reports(self) -> int:
        return self.minutes * self.a_minute


def minute(number: int) -> str:
    """The beginning of a minute of the data, as text for patterns.

    >>> minute(0), minute(100)
    ('2010-02-15 09:00:00', '2010-02-15 10:40:00')
    """
    return f"{START + timedelta(minutes=number):%Y-%m-%d %H:%M:%S}"


def sensor_reports(traffic: Traffic) -> pa.Table:
    """All reports in order of time, then of sensor."""
    rng = np.random.default_rng(traffic.seed)
    count, rounds = traffic.reports, traffic.minutes * REPORTS_A_MINUTE
    seconds = np.repeat(np.arange(rounds) * (60 // REPORTS_A_MINUTE), SENSORS)
    speed = _above(SLOW, 100, _share(_MOVING, count), count, rng)
    if traffic.dirty:
        speed[1::2] = -1
    return pa.table(
        {
            "sensor_id": pa.array(np.tile(np.arange(SENSORS) + FIRST_SENSOR, rounds), pa.int32()),
            **_times(seconds),
            "volume": pa.array(rng.integers(0, 31, count), pa.int32()),
            "speed": pa.array(speed, pa.int32()),
            "occupancy": pa.array(_above(CROWDED, 100, _share(_OCCUPIED, count), count, rng), pa.int32()),
        }
    )


def probe_reports(traffic: Traffic) -> pa.Table:
    """The reports of the probe vehicles; if they are to be told, each with a record that says how far it has got."""
    rng = np.random.default_rng(traffic.seed + 1)
    every = PROBES // PROBES_A_MINUTE
    minutes = np.repeat(np.arange(traffic.minutes), PROBES_A_MINUTE)
    probe = np.tile(np.arange(PROBES_A_MINUTE), traffic.minutes) * every + minutes % every
    events = pa.table(
        {
            "probe_id": pa.array(probe + 1, pa.int32()),
            **_times(minutes * 60),
            "freeway_id": pa.array(probe % FREEWAYS + 1, pa.int32()),
            "milepost": pa.array((probe + minutes // every) % STATIONS + FIRST_MILEPOST, pa.int32()),
            "speed": pa.array(rng.integers(SLOW, 71, len(probe)), pa.int32()),
        }
    )
    if not traffic.told:
        return events
    told = [f"[{p}, <= '{minute(int(m))}', *, *, *, *]" for p, m in zip(probe + 1, minutes)]
    together = _with_punctuation(events, told)
    return together.take(pa.array(np.arange(2 * len(told)).reshape(2, -1).T.ravel()))


def locations() -> pa.Table:
    """Where each sensor is."""
    sensor = np.arange(SENSORS)
    return pa.table(
        {
            "sensor_id": pa.array(sensor + FIRST_SENSOR, pa.int32()),
            "freeway_id": pa.array(sensor // (STATIONS * LANES) + 1, pa.int32()),
            "milepost": pa.array(sensor // LANES % STATIONS + FIRST_MILEPOST, pa.int32()),
        }
    )


def write(traffic: Traffic, root: Path) -> Path:
    """A folder with `sensor`, `probe` and `location.parquet`; made once, then found again."""
    folder = root / traffic.slug
    if (folder / "complete").exists():
        return folder
    shutil.rmtree(folder, ignore_errors=True)
    _write_files(sensor_reports(traffic), folder / "sensor", traffic, traffic.a_minute, traffic.told)
    told = PROBES_A_MINUTE * (2 if traffic.told else 1)
    _write_files(probe_reports(traffic), folder / "probe", traffic, told, False)
    pq.write_table(locations(), folder / "location.parquet")
    (folder / "complete").touch()
    return folder


def _write_files(rows: pa.Table, folder: Path, traffic: Traffic, a_minute: int, told: bool) -> None:
    folder.mkdir(parents=True)
    schema = rows.schema if not told else rows.schema.append(pa.field("punctuation", pa.string()))
    for first in range(0, traffic.minutes, traffic.file_minutes):
        path = folder / f"{first:05d}.parquet"
        with pq.ParquetWriter(path, schema) as writer:
            group = 1 if told else min(traffic.group_minutes, traffic.file_minutes)
            for at in range(first, first + traffic.file_minutes, group):
                part = rows.slice(at * a_minute, group * a_minute)
                if told:
                    over = [f"[*, < '{minute(at + 1)}', *, *, *, *]"]
                    writer.write_table(_with_punctuation(part, []))
                    writer.write_table(_with_punctuation(part.slice(0, 0), over))
                else:
                    writer.write_table(part)
        os.utime(path, (1_700_000_000 + first, 1_700_000_000 + first))


def _with_punctuation(events: pa.Table, told: list[str]) -> pa.Table:
    """Events, then one record per punctuation with nothing else in it."""
    events = events.append_column("punctuation", pa.nulls(events.num_rows, pa.string()))
    records = pa.table({"punctuation": pa.array(told, pa.string())})
    return pa.concat_tables([events, records], promote_options="default").combine_chunks()


def _times(seconds: Any) -> dict[str, pa.Array]:
    """Time as a timestamp and as people write it."""
    first = int(START.timestamp()) * 1_000_000
    distinct, place = np.unique(seconds, return_inverse=True)
    texts = pa.array([f"{START + timedelta(seconds=int(s)):{_TEXT}}" for s in distinct])
    return {
        "ts": pa.array(seconds * 1_000_000 + first, pa.timestamp("us", tz="UTC")),
        "ts_text": texts.take(pa.array(place)),
    }


def _share(part: int, count: int) -> int:
    return round(part * count / _OF)


def _above(limit: int, most: int, many: int, count: int, rng: np.random.Generator) -> Any:
    """So many whole numbers above a limit, the others from 0 up to it, shuffled: an exact share, not a likely one."""
    values = np.concatenate([rng.integers(limit + 1, most + 1, many), rng.integers(0, limit + 1, count - many)])
    rng.shuffle(values)
    return values


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--minutes", type=int, default=DAY)
    parser.add_argument("--file-minutes", type=int, default=1, help="minutes of reports in a file")
    parser.add_argument("--group-minutes", type=int, default=1, help="minutes of reports in a row group")
    parser.add_argument("--dirty", action="store_true", help="every other report has no speed")
    parser.add_argument("--told", action="store_true", help="write the punctuations of the sensors into the files")
    given = parser.parse_args()
    traffic = Traffic(given.minutes, given.file_minutes, given.group_minutes, given.dirty, given.told)
    print(write(traffic, given.folder))


if __name__ == "__main__":
    main()
