"""The tables and pictures of speculation, made of its record and nothing else."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.speculating.kernels import slope
from benchmarks.speculating.windows import BEFORE, MIDDLE, PATHWAYS, PLAIN, STRONG
from benchmarks.tables import NONE, ratio, table

Record = dict[str, Any]
IMAGES = Path(__file__).parents[2] / "docs" / "images"
OURS, THEIRS, OTHER, BAD = "#1f6f8b", "#9aa5b1", "#b8860b", "#c0504d"
NOTHING = "Not measured."


def tables(record: Record) -> dict[str, str]:
    """By the names that the pages have for them."""
    return {
        "speculation_cost": cost_table(record.get("cost")),
        "speculation_block": block_table(record.get("dial")),
        "speculation_remember": remember_table(record.get("dial")),
        "speculation_flights": flights_table(record.get("flights")),
        "speculation_windows": windows_table(record.get("windows")),
        "speculation_targets": targets_table(record.get("windows")),
    }


def _said(value: float | None, unit: str = "", digits: int = 0) -> str:
    return NONE if value is None else f"{value:,.{digits}f}{unit}"


def cost_table(cost: Record | None) -> str:
    if not cost:
        return NOTHING
    rows = []
    for plan, epoch, found in _plans(cost):
        sizes = {f["events"]: f["per"] for f in found}
        rows.append([plan, f"{epoch:,}", *(_said(sizes.get(n)) for n in _sizes(cost)), str(slope(found[1:]))])
    steps = {f["events"]: f["per"] for f in cost["reference"]}
    rows.append(["the reference, event by event: steps", "1", *(_said(steps.get(n), "", 1) for n in _sizes(cost)), ""])
    head = ["CPU ns ÷ (n log₂ n + m)", "epoch", *(f"n = 10{_raised(n)}" for n in _sizes(cost)), "exponent"]
    return table(head, rows, right=True)


def _plans(cost: Record) -> list[tuple[str, int, list[Record]]]:
    keys = dict.fromkeys((f["plan"], f["epoch"]) for f in cost["kernels"])
    return [(p, e, [f for f in cost["kernels"] if (f["plan"], f["epoch"]) == (p, e)]) for p, e in keys]


def _sizes(cost: Record) -> list[int]:
    return sorted({f["events"] for f in cost["kernels"]})


def _raised(n: int) -> str:
    return str(round(math.log10(n))).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))


def _length(seconds: int | None) -> str:
    """A length of event time.

    >>> [_length(s) for s in (0, 40, 120, 7_200, None)]
    ['0 s', '40 s', '2 min', '2 h', 'as long as it takes']
    """
    if seconds is None:
        return "as long as it takes"
    for size, unit in ((3600, "h"), (60, "min")):
        if seconds >= size and seconds % size == 0:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"


def block_table(dial: Record | None) -> str:
    if not dial:
        return NOTHING
    rows = [
        [
            _length(p["block"]),
            f"{p['rows']:,}",
            f"{p['back']:,}",
            f"{p['rows'] / p['windows']:.1f}",
            _said(p["first"], " s"),
            _said(p["last"], " s"),
            _said(p["last_p90"], " s"),
            f"{p['held']:,}",
            f"{p['right']:.1%}",
        ]
        for p in dial["sweep"]["points"]
    ]
    told = ["rows told", "taken back", "rows ÷ windows", "first told", "right since", "p90"]
    head = ["block", *told, "rows held", "right in the end"]
    return table(head, rows, right=True)


def remember_table(dial: Record | None) -> str:
    if not dial:
        return NOTHING
    count = dial["tails"]["events"]
    rows = [
        [
            _length(p["remember"]),
            f"{p['held']:,}",
            f"{p['lost']:,}",
            f"{p['lost'] / count:.2%}",
            f"{p['right']:.1%}",
            f"{p['error']:.2%}",
        ]
        for p in dial["tails"]["points"]
    ]
    head = ["remember", "groups held at most", "events lost", "share", "windows right", "error of the counts"]
    return table(head, rows, right=True)


def flights_table(told: Record | None) -> str:
    if not told:
        return NOTHING
    rows = [
        [
            name,
            f"{c['right']:.2%}",
            _said(c["first"], " h", 1),
            _said(c["when"], " h", 1),
            _said(c["when_p90"], " h", 1),
            f"{c['told']:,}",
            f"{c['lost']:,}",
            f"{c['held']:,}",
        ]
        for name, c in told["cases"].items()
    ]
    head = ["", "right", "first told", "right since, median", "p90", "rows told", "flights lost", "groups held"]
    return table(head, rows, right=True)


def windows_table(told: Record | None) -> str:
    if not told:
        return NOTHING
    rows = []
    for case in told["cases"]:
        series = {n: [r["seconds"] for r in runs] for n, runs in case["series"].items() if runs}
        for number, (name, seconds) in enumerate(series.items()):
            runs = case["series"][name]
            middle = statistics.median(seconds)
            epoch = [r["epoch"] for r in runs if r["epoch"] is not None]
            rows.append(
                [
                    "" if number else case["name"],
                    f"**{name}**" if name == MIDDLE.name else name,
                    f"{middle:.2f} s ({min(seconds):.2f}–{max(seconds):.2f})" + _runs(seconds, case),
                    f"{case['rows'] / middle / 1e3:,.0f} k",
                    f"{statistics.median(r['cpu'] for r in runs):.1f}",
                    f"{1e3 * statistics.median(epoch):,.0f}" if epoch else NONE,
                    ratio(seconds, series[MIDDLE.name]) if name != MIDDLE.name else "",
                ]
            )
    head = ["case", "", "seconds, median (range)", "rows ÷ s", "CPU s", "an epoch, ms", "÷ middle"]
    return table(head, rows, right=True)


def _runs(seconds: Sequence[float], case: Record) -> str:
    most = max(len(runs) for runs in case["series"].values())
    return "" if len(seconds) == most else f", {len(seconds)} runs" if len(seconds) > 1 else ", 1 run"


def targets_table(told: Record | None) -> str:
    """What was aimed at, by case: never said to be held where it was not measured."""
    if not told:
        return NOTHING
    rows = []
    for case in told["cases"]:
        series = {n: [r["seconds"] for r in runs] for n, runs in case["series"].items() if runs}
        rows.append(_target(case, "middle ÷ strong", "≤ 2 ×", series[MIDDLE.name], series[STRONG.name], 2.0, most=True))
        for early in (False, True):
            there = [c.name for c in PATHWAYS if c.name in series and ("every epoch" in c.name) == early]
            if there:
                best = min(there, key=lambda n: statistics.median(series[n]))
                what = f"Pathway ({best.removeprefix('Pathway, ')}) ÷ middle"
                rows.append(_target(case, what, "≥ 5 ×", series[best], series[MIDDLE.name], 5.0))
        rows.append(
            _target(case, "strong ÷ nothing said", "1 ×", series[STRONG.name], series[PLAIN.name], 1.05, most=True)
        )
        if BEFORE.name in series:
            name = "nothing said ÷ the code before the dial"
            rows.append(_target(case, name, "1 ×", series[PLAIN.name], series[BEFORE.name], 1.05, most=True))
    return table(["case", "", "aimed at", "measured", ""], rows)


def _target(
    case: Record, what: str, aim: str, over: list[float], under: list[float], bound: float, most: bool = False
) -> list[str]:
    rounds = [a / b for a, b in zip(over, under)]
    middle = statistics.median(rounds)
    held = middle <= bound if most else middle >= bound
    said = f"{middle:.2f} ×" + (f" ({min(rounds):.2f}–{max(rounds):.2f})" if len(rounds) > 1 else ", 1 round")
    return [case["name"], what, aim, said, "held" if held else "missed"]


# --- pictures -----------------------------------------------------------------------------------------------------


def draw(record: Record, folder: Path = IMAGES) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    plt: Any = pyplot  # half of matplotlib has no types
    if cost := record.get("cost"):
        _draw_cost(plt, cost, folder / "speculation_cost.png")
    if dial := record.get("dial"):
        _draw_dial(plt, dial, folder / "speculation_dial.png")
        _draw_triangle(plt, dial["triangle"], folder / "speculation_triangle.png")


def _draw_cost(plt: Any, cost: Record, path: Path) -> None:
    figure, axis = plt.subplots(figsize=(8, 4.5), layout="constrained")
    plans = dict.fromkeys(f["plan"] for f in cost["kernels"])
    colours = dict(zip(plans, (OURS, OTHER, "tab:purple", BAD), strict=True))
    for plan, epoch, found in _plans(cost):
        line, label = ("o-", f"{plan}, epochs of {epoch:,}") if epoch > 1000 else ("o:", None)
        axis.plot([f["events"] for f in found], [f["seconds"] for f in found], line, color=colours[plan], label=label)
    sizes = _sizes(cost)
    last = max(cost["kernels"], key=lambda f: (f["events"], -f["seconds"]))
    unit = last["seconds"] / (last["events"] * math.log2(last["events"]))
    axis.plot(sizes, [unit * n * math.log2(n) for n in sizes], "--", color=THEIRS, label="n log n")
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xlabel("events")
    axis.set_ylabel("CPU seconds in kernels")
    axis.legend(fontsize=8)
    axis.set_title("Told at once and corrected, 20 % of the events late (dotted: epochs of 1,000)", loc="left")
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _draw_dial(plt: Any, dial: Record, path: Path) -> None:
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
    points = [p for p in dial["sweep"]["points"] if p["block"] is not None]
    at = [p["block"] for p in points]
    left.plot(at, [p["rows"] / p["windows"] for p in points], "o-", color=OURS, label="rows told for a window")
    left.plot(at, [p["back"] / p["windows"] for p in points], "o-", color=BAD, label="of these taken back")
    left.set_xlabel("block, seconds")
    left.set_ylim(0, 1.3 * points[0]["rows"] / points[0]["windows"])
    left.legend(loc="upper center", fontsize=8)
    late = left.twinx()
    late.plot(at, [p["first"] for p in points], "s--", color=OTHER)
    late.set_ylabel("first told, seconds after the window began (dashed)", color=OTHER)
    left.set_title("Who waits corrects less", loc="left")
    points = dial["tails"]["points"]
    at = [p["remember"] for p in points]
    right.plot(at, [100 * p["error"] for p in points], "o-", color=BAD, label="error of the counts, %")
    right.plot(at, [100 * (1 - p["right"]) for p in points], "o-", color=OTHER, label="windows wrong, %")
    right.set_xscale("log")
    right.set_yscale("symlog", linthresh=0.1)
    right.set_ylim(bottom=0)
    right.set_xlabel("remember, seconds")
    right.legend(loc="center left", fontsize=8)
    held = right.twinx()
    held.plot(at, [p["held"] for p in points], "s--", color=OURS)
    held.set_ylim(bottom=0)
    held.set_ylabel("groups held at most (dashed)", color=OURS)
    right.set_title("Who forgets loses", loc="left")
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _draw_triangle(plt: Any, triangle: Record, path: Path) -> None:
    """Three of the same triangle: from left to right one remembers longer, upwards one waits longer."""
    steps = triangle["steps"]
    shown: tuple[tuple[str, Callable[[Record], Any], str, str], ...] = (
        ("rows told for a window", lambda p: p["rows"] / p["windows"], "{:.1f}", "Blues"),
        ("first told, seconds after it began", lambda p: p["first"], "{:.0f}", "Oranges"),
        ("windows wrong in the end, %", lambda p: 100 * (1 - p["right"]), "{:.0f}", "Reds"),
    )
    figure, axes = plt.subplots(1, 3, figsize=(13, 4.4), layout="constrained", sharey=True)
    for axis, (title, value, form, colours) in zip(axes, shown):
        grid = [[math.nan] * len(steps) for _ in steps]
        for p in triangle["points"]:
            grid[steps.index(p["block"])][steps.index(p["remember"])] = math.nan if value(p) is None else value(p)
        axis.imshow(grid, origin="lower", cmap=colours, aspect="equal", alpha=0.75)
        for i, row in enumerate(grid):
            for j, told in enumerate(row):
                if not math.isnan(told):
                    axis.text(j, i, form.format(told), ha="center", va="center", fontsize=9)
        names = [_length(s) for s in steps]
        axis.set_yticks(range(len(steps)), names, fontsize=8)
        axis.set_xticks(range(len(steps)), [f"{names[0]}\nweak", *names[1:-1], f"{names[-1]}\nmiddle"], fontsize=8)
        axis.set_xlabel("remember")
        axis.set_title(title, loc="left", fontsize=10, pad=16)
        axis.spines[["top", "left"]].set_visible(False)
        axis.text(len(steps) - 1, len(steps) - 0.4, "strong", ha="center", fontsize=8)
    axes[0].set_ylabel("block")
    figure.savefig(path, dpi=110)
    plt.close(figure)
