"""The picture of the demo: a year of departure delays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.kernels.duck import query

NAMES = {"EWR": "Newark", "JFK": "Kennedy", "LGA": "LaGuardia"}
COLOURS = {"EWR": "#0b6e99", "JFK": "#d1495b", "LGA": "#3a7d44"}


def draw(result: pa.Table, path: Path, note: str) -> None:
    """Mean delay per airport and day, and by hour of the day through the year, from the hourly results."""
    import matplotlib

    matplotlib.use("Agg")  # no display needed, here or in CI
    from matplotlib import dates, pyplot

    plt: Any = pyplot  # half of matplotlib has no types
    mdates: Any = dates

    figure, (top, bottom) = plt.subplots(
        2, 1, figsize=(11, 7.6), sharex=True, height_ratios=(1.15, 1), layout="constrained"
    )
    for origin, name in NAMES.items():
        days, means = daily(result, origin)
        top.plot(days, means, color=COLOURS[origin], linewidth=0.6, alpha=0.35)
        top.plot(days, smooth(means, 7), color=COLOURS[origin], linewidth=2, label=f"{name} ({origin})")
    top.axhline(0, color="0.6", linewidth=0.8)
    top.set_ylabel("mean departure delay, minutes")
    top.set_title("Departure delays from New York, 2013: per day (thin) and 7-day mean", loc="left", fontsize=12)
    top.legend(frameon=False, ncols=3, loc="upper right")
    top.spines[["top", "right"]].set_visible(False)

    weeks, grid = by_hour(result)
    limit = float(np.nanpercentile(grid, 99))
    image = bottom.pcolormesh(weeks, np.arange(5, 25), grid, cmap="magma_r", vmin=0, vmax=limit)
    bottom.set_ylabel("scheduled hour of departure")
    bottom.set_yticks(range(6, 25, 3), [f"{h:02d}:00" for h in range(6, 25, 3)])
    bottom.set_title("Delays build up during the day: mean over all three airports, by week", loc="left", fontsize=12)
    bottom.xaxis.set_major_locator(mdates.MonthLocator())
    bottom.xaxis.set_major_formatter(mdates.DateFormatter("%b"))
    bottom.set_xlim(np.datetime64("2013-01-01"), np.datetime64("2014-01-01"))
    figure.colorbar(image, ax=bottom, label="minutes", pad=0.01, extend="max")
    figure.supxlabel(note, fontsize=8.5, color="0.35", x=0.01, ha="left")
    figure.savefig(path, dpi=130)
    plt.close(figure)


def daily(result: pa.Table, origin: str) -> tuple[Any, Any]:
    """Days and the mean delay of each: hours weighed by their departures."""
    found = query(
        f"""
        SELECT window_start::DATE AS day, sum(mean_delay * departures) / sum(departures) AS mean
        FROM result WHERE origin = '{origin}' AND departures > 0 GROUP BY day ORDER BY day
        """,
        result=result,
    )
    return found["day"].to_numpy(), found["mean"].to_numpy()


def smooth(values: Any, width: int) -> Any:
    """The centred mean over `width` values, over fewer at the ends.

    >>> smooth(np.array([0.0, 3.0, 6.0]), 3).tolist()
    [1.5, 3.0, 4.5]
    """
    ones = np.ones(width)
    return np.convolve(values, ones, "same") / np.convolve(np.ones(len(values)), ones, "same")


def by_hour(result: pa.Table) -> tuple[Any, Any]:
    """Edges of the weeks, and the mean delay by hour (rows 5 to 23) and week (columns); no flights, no number."""
    found = query(
        """
        SELECT (date_diff('day', DATE '2013-01-01', window_start::DATE) // 7)::INTEGER AS week,
               hour(window_start)::INTEGER AS hour, sum(mean_delay * departures) / sum(departures) AS mean
        FROM result WHERE departures > 0 GROUP BY ALL
        """,
        result=result,
    )
    week, hour = found["week"].to_numpy(), found["hour"].to_numpy()
    grid = np.full((19, 53), np.nan)
    inside = (hour >= 5) & (week >= 0) & (week < 53)
    grid[hour[inside] - 5, week[inside]] = found["mean"].to_numpy()[inside]
    return np.datetime64("2013-01-01") + np.arange(54) * np.timedelta64(7, "D"), grid
