"""What the join benchmark found, as a table and as pictures."""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import Any

from benchmarks.joins.contest import ALL, PENSTOCK, ROCKS, SPARK

COLOURS = {
    "Penstock": "#1f6f8b",
    "Structured Streaming": "#c0504d",
    "Structured Streaming, RocksDB": "#e39a97",
    "PyFlink": "#b8860b",
    "Pathway": "#6b8e23",
    "DuckDB, batch": "#9aa5b1",
}
Record = dict[str, Any]
FULL = 10_000_000
"""Rows from which on the target is meant: with few rows an epoch costs what starting two stages costs."""


def _median(runs: list[Record], what: str) -> float:
    return statistics.median(float(r[what]) for r in runs)


def _seconds(runs: list[Record], rows: int) -> tuple[float, bool]:
    """The median time for all rows; of one that gave up, what it would have taken at the pace it had."""
    if all(r["done"] for r in runs):
        return _median(runs, "seconds"), True
    read = max(1, sum(e["rows"] for e in runs[-1]["epochs"]))
    return runs[-1]["seconds"] * rows / read, False


def native_ratio(case: Record) -> tuple[float, bool] | None:
    """How many times as long as Penstock the faster Structured Streaming took, and whether it got to the end."""
    series, rows = case["series"], case["rows"]
    if not series.get(PENSTOCK.name):
        return None
    ours, _ = _seconds(series[PENSTOCK.name], rows)
    natives = [_seconds(series[c.name], rows) for c in (SPARK, ROCKS) if series.get(c.name)]
    if not natives:
        return None
    seconds, done = min(natives)
    return seconds / ours, done


def write_markdown(record: Record, path: Path, target: float) -> None:
    lines = [f"Machine: {record['machine']}.", ""]
    if record.get("cases"):
        lines += _cases(record, target)
    if record.get("held"):
        lines += _held(record["held"])
    if record.get("trips"):
        lines += _trips(record["trips"])
    path.write_text("\n".join(lines) + "\n")


def _cases(record: Record, target: float) -> list[str]:
    head = (
        "case",
        "contestant",
        "seconds, median (range)",
        "rows a second",
        "CPU s",
        "peak memory",
        "× Penstock's time",
    )
    lines = ["| " + " | ".join(head) + " |", "|---|---|---:|---:|---:|---:|---:|"]
    for case in record["cases"]:
        ours = case["series"].get(PENSTOCK.name)
        for name, runs in case["series"].items():
            if not runs:
                continue
            seconds, done = _seconds(runs, case["rows"])
            spread = f"{min(r['seconds'] for r in runs):.1f}–{max(r['seconds'] for r in runs):.1f}"
            time = f"{seconds:.2f} ({spread})" if done else f"not done after {runs[-1]['seconds']:.0f}; ≈ {seconds:.0f}"
            ratio = f"{seconds / _seconds(ours, case['rows'])[0]:.1f}" if ours else ""
            cells = (
                f"{case['case']}; {case['results']:,} results" if name == next(iter(case["series"])) else "",
                f"**{name}**" if name == PENSTOCK.name else name,
                time,
                f"{case['rows'] / seconds:,.0f}",
                f"{_median(runs, 'cpu'):.1f}",
                f"{_median(runs, 'peak') / 2**20:,.0f} MiB",
                ratio,
            )
            lines.append("| " + " | ".join(cells) + " |")
    for name, why in record.get("missing", {}).items():
        lines += ["", f"{name} did not take part: {why}."]
    first = record["cases"][0]
    if first["rows"] >= FULL and (found := native_ratio(first)) is not None:
        times, done = found
        met = "met" if times >= target else "missed"
        told = f"{times:.1f} ×" if done else f"about {times:.0f} × (it did not get to the end)"
        lines += ["", f"{first['case']}: the faster Structured Streaming takes {told}; target {target:g} ×: {met}."]
    return [*lines, ""]


def _by_epoch(epochs: list[Record]) -> list[tuple[float, float]]:
    """State held before an epoch and the seconds it took; the first carries the start of the query."""
    held = [e["state_rows"] for e in epochs]
    return [(h, e["seconds"]) for h, e in zip(held, epochs[1:], strict=False)]


def _held(held: Record) -> list[str]:
    delta = held["delta"]
    lines = [
        f"Time per epoch of {delta:,} new rows, by what is held (median):",
        "",
        "| held | seconds | |",
        "|---:|---:|---|",
    ]
    for band in held["bands"]:
        steady = band["epochs"][-6:]
        rows, seconds = (statistics.median(e[k] for e in steady) for k in ("state_rows", "seconds"))
        lines.append(
            f"| {rows:,.0f} ({rows / delta:.0f} × delta) | {seconds:.2f} | band of {band['band'] / 60:.0f} min |"
        )
    for name, epochs in held["unbounded"].items():
        points = _by_epoch(epochs)
        for low, high in ((0, 2), (8, 12), (40, 60), (80, 100)):
            found = [s for h, s in points if low * delta <= h <= high * delta]
            if found:
                lines.append(f"| {low}–{high} × delta | {statistics.median(found):.2f} | {name}, no band |")
    return [*lines, ""]


def _trips(trips: Record) -> list[str]:
    lines = [
        f"{trips['trips an hour']:,} trips an hour, joined with their ends:",
        "",
        "| | most state rows | at the end | seconds per epoch |",
    ]
    lines.append("|---|---:|---:|---:|")
    most = {name: max(e["state_rows"] for e in epochs) for name, epochs in trips["runs"].items() if epochs}
    for name, rows in most.items():
        epochs = trips["runs"][name]
        seconds = statistics.median(e["seconds"] for e in epochs)
        lines.append(f"| {name} | {rows:,} | {epochs[-1]['state_rows']:,} | {seconds:.2f} |")
    names = list(most)
    if len(names) > 1 and most[names[1]]:
        lines += ["", f"Punctuation per trip holds {most[names[0]] / most[names[1]]:.1%} of what the watermark holds."]
    return [*lines, ""]


def draw(record: Record, folder: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    plt: Any = pyplot  # half of matplotlib has no types
    if record.get("cases"):
        _draw_cases(plt, record["cases"], folder / "join.png")
    if record.get("held"):
        _draw_held(plt, record["held"], folder / "join_held.png")
    if record.get("trips"):
        _draw_trips(plt, record["trips"], folder / "join_trips.png")


def _draw_cases(plt: Any, cases: list[Record], path: Path) -> None:
    names = [c.name for c in ALL if any(case["series"].get(c.name) for case in cases)]
    figure, axis = plt.subplots(figsize=(11, 0.28 * len(names) * len(cases) + 1.5), layout="constrained")
    height = 0.8 / len(names)
    for k, name in enumerate(names):
        places, rates = [], []
        for i, case in enumerate(cases):
            if runs := case["series"].get(name):
                places.append(i + (k - (len(names) - 1) / 2) * height)
                rates.append(case["rows"] / _seconds(runs, case["rows"])[0] / 1e6)
        axis.barh(places, rates, height, label=name, color=COLOURS[name])
    axis.set_yticks(range(len(cases)), [case["case"] for case in cases])
    axis.invert_yaxis()
    axis.set_xscale("log")
    axis.set_xlabel("million input rows per second (logarithmic), whole run")
    axis.set_title("Two streams joined within ten seconds of event time", loc="left")
    axis.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def _draw_held(plt: Any, held: Record, path: Path) -> None:
    figure, axis = plt.subplots(figsize=(9, 4.5), layout="constrained")
    for name, epochs in held["unbounded"].items():
        points = _by_epoch(epochs)
        axis.plot(
            [h / 1e6 for h, _ in points],
            [s for _, s in points],
            ".-",
            color=COLOURS[name],
            label=f"{name}, no band",
            alpha=0.6,
        )
    steady = [b["epochs"][-6:] for b in held["bands"]]
    if steady:
        x, y = ([statistics.median(e[k] for e in s) for s in steady] for k in ("state_rows", "seconds"))
        axis.plot([v / 1e6 for v in x], y, "D", color="black", label="Penstock, band of that length")
    axis.axvline(10 * held["delta"] / 1e6, color="0.7", linestyle="--", linewidth=1)
    axis.annotate("10 × delta", (10 * held["delta"] / 1e6, axis.get_ylim()[1]), color="0.4", ha="left", va="top")
    axis.set_ylim(bottom=0)
    axis.set_xlabel("million rows held")
    axis.set_ylabel("seconds per epoch")
    axis.set_title(f"{held['delta']:,} new rows in every epoch", loc="left")
    axis.legend(frameon=False)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def _draw_trips(plt: Any, trips: Record, path: Path) -> None:
    figure, axis = plt.subplots(figsize=(9, 4.5), layout="constrained")
    for (name, epochs), colour in zip(trips["runs"].items(), ("#1f6f8b", "#7fb2c4", "#c0504d"), strict=False):
        hours = [(i + 1) * trips["hours"] for i in range(len(epochs))]
        axis.plot(hours, [e["state_rows"] for e in epochs], color=colour, label=name)
    axis.set_xlabel("hours of event time")
    axis.set_ylabel("rows held")
    axis.set_title("Trips joined with their ends", loc="left")
    axis.legend(frameon=False)
    figure.savefig(path, dpi=130)
    plt.close(figure)
