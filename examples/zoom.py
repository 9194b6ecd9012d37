"""A traffic map that is zoomed in: what need not be read for what is not on the screen?

    python examples/zoom.py                  the same day of traffic twice, untold and told; about a minute
    penstock check examples/zoom.py          will what the map says be forgotten in time?

Two hundred segments of road report every twenty seconds; the map shows the mean speed of each, every half hour. At six
in the morning somebody zooms in on ten of them until six in the evening, and the map tells the query so: `not [[06:00,
18:00), < 120, *]`, and as much for the segments behind. That goes upstream, through the averages and the windows into
the scan: row groups of other segments are not read any more. At six in the evening punctuation covers what was said,
and all is as before.

Leaves the files in zoom-out/, and the picture zoom-out/zoom.png.
"""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

import penstock as ps

FOLDER = Path("zoom-out")
SCHEMA = "ts timestamp, segment int, speed double"
MIDNIGHT = datetime(2026, 3, 2)
HALF_HOUR = timedelta(minutes=30)
PLAIN, TOLD = "without feedback", "with feedback"


@dataclass(frozen=True)
class Day:
    """What is written: a file for each half hour, sorted by segment, as whoever asks for segments keeps it."""

    files: int = 48
    segments: int = 200
    reports: int = 90
    """Of each segment in half an hour: one every twenty seconds."""
    grouped: int = 10
    """Segments in a row group."""
    zoomed: tuple[int, int] = (120, 129)
    since: int = 12
    until: int = 36

    @property
    def rows(self) -> int:
        """In a file."""
        return self.segments * self.reports

    def time_of(self, number: int) -> datetime:
        return MIDNIGHT + number * HALF_HOUR

    @property
    def says(self) -> list[str]:
        """What the map tells the query while it is zoomed in."""
        first, last = self.zoomed
        while_zoomed = f"['{self.time_of(self.since)}', '{self.time_of(self.until)}')"
        return [f"not [{while_zoomed}, {off}, *]" for off in (f"< {first}", f"> {last}")]


def write(day: Day, folder: Path) -> list[Path]:
    """The files of the day, not yet where the query looks for them."""
    folder.mkdir(parents=True)
    random = np.random.default_rng(5)
    segment = np.repeat(np.arange(day.segments, dtype=np.int32), day.reports)
    files = []
    for number in range(day.files):
        first = np.datetime64(day.time_of(number), "us")
        at = np.tile(np.arange(day.reports) * (HALF_HOUR // day.reports), day.segments)
        busy = 40 * np.exp(-(((number / 2 - 8) / 2) ** 2)) + 35 * np.exp(-(((number / 2 - 17) / 2) ** 2))
        speed = 110 - busy + 6 * np.sin(segment / 9) + random.normal(0, 5, day.rows)
        table = pa.table({"ts": first + at.astype("m8[us]"), "segment": segment, "speed": np.round(speed, 1)})
        files.append(folder / f"{number:03}.parquet")
        pq.write_table(table, files[-1], row_group_size=day.grouped * day.reports)
    return files


def means(data: Path) -> ps.Stream:
    """What the map shows."""
    reports = ps.stream("reports", SCHEMA, time="ts").read_parquet(str(data), order="name", wait=True)
    # A file is sorted by segment, so times in it go back half an hour again and again.
    return reports.disorder("30 min").window("30 min").group_by("segment").agg(mean="avg(speed)")


query = means(FOLDER / "input")


@dataclass
class Watched:
    """What a run has read and found."""

    read: list[int] = field(default_factory=list)
    results: pa.Table | None = None
    guards: list[int] = field(default_factory=list)


def watch(day: Day, files: Sequence[Path], data: Path, spark: Any, zooms: bool) -> Watched:
    """Let the files arrive one by one, each when the one before has been dealt with."""
    data.mkdir(parents=True)
    found, target = Watched(), ps.memory()
    with means(data).start(target, every="5 ms", spark=spark) as run:
        for number, file in enumerate(files):
            if zooms and number == day.since:
                for text in day.says:
                    before = run.progress.guards if run.progress is not None else 0
                    run.feedback(text)
                    _wait(run, lambda now: now.guards > before)  # noqa: B023 - called at once
            (data / file.name).hardlink_to(file)
            _wait(run, lambda now: _dealt_with(now) == (number + 1) * day.rows)  # noqa: B023 - called at once
    for progress in run.history:
        if _dealt_with(progress) > len(found.read) * day.rows:
            found.read.append(day.rows - progress.saved.get("source:reports never read", 0))
            found.guards.append(progress.guards)
    found.results = target.table()
    return found


def _wait(run: ps.Run, until: Callable[[ps.Progress], bool]) -> None:
    while run.progress is None or not until(run.progress):
        run.wait(0.002)


def _dealt_with(now: ps.Progress) -> int:
    """Rows that the run is through with, read or not."""
    spared = ("source:reports never read", "source:reports dropped")
    return now.total_rows_in + sum(now.total_saved.get(name, 0) for name in spared)


def on_screen(day: Day, results: pa.Table | None) -> list[tuple[Any, ...]]:
    """The results that the map shows, of whichever run."""
    first, last = day.zoomed
    since, until = day.time_of(day.since), day.time_of(day.until)
    rows = [] if results is None else [tuple(row.values()) for row in results.to_pylist()]
    return sorted(r for r in rows if not since <= r[0] < until or first <= r[1] <= last)


def draw(day: Day, runs: dict[str, Watched], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")  # no display needed
    from matplotlib import pyplot

    plt: Any = pyplot  # half of matplotlib has no types
    colours = {PLAIN: "#c0504d", TOLD: "#1f6f8b"}
    figure, (each, total) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
    hours = np.arange(day.files + 1) / 2
    for name, found in runs.items():
        each.stairs(found.read, hours, baseline=None, color=colours[name], linewidth=2)
        total.plot(hours, np.cumsum([0, *found.read]), color=colours[name], linewidth=2)
        total.annotate(f"{name}: {sum(found.read):,}", (24, sum(found.read)), (0, 6), textcoords="offset points",
                       ha="right", va="bottom", color=colours[name])  # fmt: skip
    for axis in (each, total):
        for number in (day.since, day.until):
            axis.axvline(number / 2, color="0.75", linewidth=1, linestyle=":", zorder=0)
        axis.text((day.since + day.until) / 4, 0.09 if axis is each else 0.03, "zoomed in", color="0.4", ha="center",
                  transform=axis.get_xaxis_transform())  # fmt: skip
        axis.set_xlim(0, 24)
        axis.set_ylim(0, day.rows * (1 if axis is each else day.files) * 1.12)
        axis.set_xticks(range(0, 25, 6))
        axis.set_xlabel("hour of the day")
        axis.yaxis.set_major_formatter("{x:,.0f}")
        axis.spines[["top", "right"]].set_visible(False)
    each.set_title("Rows read in an epoch (half an hour)", loc="left", fontsize=11)
    total.set_title("Rows read altogether", loc="left", fontsize=11)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--segments", type=int, default=200)
    parser.add_argument("--reports", type=int, default=90, help="of each segment in half an hour")
    parser.add_argument("--folder", type=Path, default=FOLDER)
    given = parser.parse_args()
    if given.segments < 130:
        parser.error("the map zooms in on segments 120 to 129")
    print_comparison(Day(segments=given.segments, reports=given.reports), given.folder, Console(highlight=False))


def print_comparison(day: Day, folder: Path, out: Console, spark: Any = None) -> dict[str, Watched]:
    """The day twice, with a map that says nothing and with one that does."""
    shutil.rmtree(folder, ignore_errors=True)
    files = write(day, folder / "day")
    out.print(f"{day.rows * day.files:,} reports of {day.segments} segments, in {day.files} files.")
    session = spark if spark is not None else ps.spark_session("local[2]")
    runs = {
        name: watch(day, files, folder / where, session, zooms=name == TOLD)
        for name, where in ((PLAIN, "input"), (TOLD, "input-zoomed"))
    }
    first, last = day.zoomed
    out.print(f"From 06:00 to 18:00 the map shows segments {first} to {last} only. It says so at 06:00:")
    for text in day.says:
        out.print(f"  {text}", markup=False)
    shown = Table("", "rows read", "06:00 to 18:00", "guards at most", "at the end")
    for column in shown.columns[1:]:
        column.justify = "right"
    for name, found in runs.items():
        zoomed = sum(found.read[day.since : day.until])
        counts = [sum(found.read), zoomed, max(found.guards), found.guards[-1]]
        shown.add_row(name, *(f"{n:,}" for n in counts))
    out.print(shown)
    if on_screen(day, runs[PLAIN].results) != on_screen(day, runs[TOLD].results):
        raise SystemExit("what is on the screen differs")
    out.print(f"✓ the same {len(on_screen(day, runs[TOLD].results)):,} results on the screen")
    picture = folder / "zoom.png"
    draw(day, runs, picture)
    out.print(f"  plot: [b]{picture}[/b]")
    return runs


if __name__ == "__main__":
    main()
