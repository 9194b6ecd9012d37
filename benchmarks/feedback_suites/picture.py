"""The experiments in one picture: what feedback costs, and what it saves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.feedback_suites import published
from benchmarks.feedback_suites.report import LEVELS, TARGET, UTILITY, Record

OURS, THEIRS, LIGHT, BAD = "#1f6f8b", "#9aa5b1", "#7fb2c4", "#c0504d"


def draw(record: Record, path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    plt: Any = pyplot  # half of matplotlib has no types
    parts = [
        (("1", "2"), _draw_cost),
        (("3",), _draw_utility),
        (("4",), _draw_levels),
        (("5",), _draw_resources),
        (("flights",), _draw_flights),
    ]
    there = [draw_part for suites, draw_part in parts if any(record.get(s) for s in suites)]
    if not there:
        return
    columns = min(2, len(there))
    lines = -(-len(there) // columns)
    figure, axes = plt.subplots(lines, columns, figsize=(7 * columns, 3.8 * lines), layout="constrained", squeeze=False)
    for axis, draw_part in zip(axes.flat, there, strict=False):
        draw_part(axis, record)
    for axis in list(axes.flat)[len(there) :]:
        axis.axis("off")
    figure.savefig(path, dpi=120)
    plt.close(figure)


def _draw_cost(axis: Any, record: Record) -> None:
    """CPU ratios with two standard errors; the published ones by the clock, which is all there is of them."""
    labels, at = [], 0.0
    ticks = []
    for plan, told in record.get("1", {}).items():
        for name, colour in (("before, again", THEIRS), ("idle", LIGHT), ("told", OURS)):
            if name in told["series"]:
                _bar(axis, at, told["series"][name]["ratio cpu"], colour)
                at += 1
        before, _, after, _ = published.OVERHEAD[plan]
        axis.plot([after / before], [at - 2], "x", color=BAD)
        ticks.append(at - 2)
        labels.append(f"plan ({plan})")
        at += 0.7
    for length, told in record.get("2", {}).items():
        _bar(axis, at, told["series"]["told"]["ratio cpu"], OURS)
        off, _, on, _ = published.CHAIN[length]
        axis.plot([on / off], [at], "x", color=BAD)
        ticks.append(at)
        labels.append(f"{length} SELECTs")
        at += 1.3
    axis.axvline(1, color="0.5", linewidth=1)
    axis.axvspan(1, 1 + TARGET, color="0.92", zorder=0)
    axis.set_yticks(ticks, labels)
    axis.invert_yaxis()
    axis.set_xlabel("CPU, × without (grey band: 3 %; red: published, by the clock)")
    axis.set_title("Cost: grey the old code again, light idle, dark told", loc="left")


def _bar(axis: Any, at: float, told: Record, colour: str) -> None:
    axis.errorbar([told["mean"]], [at], xerr=[2 * told["error"] * told["mean"]], fmt="o", color=colour, capsize=3)


def _draw_utility(axis: Any, record: Record) -> None:
    labels, at = [], 0
    for plan, told in record["3"]["plans"].items():
        for who in ("published", "measured"):
            if who == "published" and plan not in published.UTILITY:
                continue
            if who == "published":
                calls, _, out, share = published.UTILITY[plan]
                scale = 324_000
                useful = round(out * share)
                clean = 162_000
                made = max(0, useful - clean)
            else:
                scale = record["3"]["minutes"] * 450
                calls, useful, made = told["calls"], told["useful"], told["useful_imputed"]
                clean = useful - made
            # Each part with its label once, for the legend.
            names = ("as it came", "made in time", "made for nothing") if not at else (None, None, None)
            parts = (clean, made, max(0, calls - made))
            for k, (colour, name) in enumerate(zip((LIGHT, OURS, BAD), names, strict=True)):
                start, size = 100 * sum(parts[:k]) / scale, 100 * parts[k] / scale
                axis.barh([at], [size], left=start, color=colour, alpha=0.6 if colour == BAD else 1, label=name)
            labels.append(UTILITY[plan] if who == "measured" else f"{UTILITY[plan][:3]} published")
            at += 1
    axis.set_yticks(range(at), labels)
    axis.invert_yaxis()
    axis.set_xlabel("% of the reports")
    axis.set_title("Useful work", loc="left")
    axis.legend(frameon=False, loc="lower right")
    axis.set_xlim(0, 130)


def _draw_levels(axis: Any, record: Record) -> None:
    levels = record["4"]["levels"]
    names = list(levels)
    for k, (operator, colour) in enumerate((("read", THEIRS), ("JOIN", LIGHT), ("BUCKET", OURS))):
        counts = [
            sum(t["read"].values()) / 2 if operator == "read" else t["operators"].get(operator, 0)
            for t in levels.values()
        ]
        whole = record["4"]["minutes"] * 450
        places = [i + (k - 1) * 0.25 for i in range(len(names))]
        label = "read, of each stream" if operator == "read" else f"out of {operator}"
        axis.bar(places, [100 * (whole - c) / whole for c in counts], 0.25, color=colour, label=label)
    axis.set_xticks(range(len(names)), [LEVELS[n] for n in names])
    axis.set_ylabel("% of the events spared")
    axis.set_title("The further upstream, the less is done", loc="left")
    axis.legend(frameon=False)


def _draw_resources(axis: Any, record: Record) -> None:
    for i, (query, told) in enumerate(record["5"].items()):
        without, _, with_, _ = published.RESOURCES[query]
        ratio = told["with"]["ratio"]
        axis.bar([i - 0.2], [100 * with_ / without], 0.4, color=THEIRS, label="published" if not i else None)
        axis.bar([i + 0.2], [100 * ratio["mean"]], 0.4, color=OURS, label="measured" if not i else None)
        read = [sum(told[k]["read"].values()) for k in ("with", "without")]
        told_read = f"reads {read[0]:,}\nof {read[1]:,}"
        axis.annotate(told_read, (i + 0.02, 100 * ratio["mean"] + 1), ha="left", va="bottom", fontsize=8)
    axis.axhline(100, color="0.5", linewidth=1)
    axis.set_ylim(0, 118)
    axis.set_xticks(range(len(record["5"])), [f"query {q}" for q in record["5"]])
    axis.set_ylabel("time with feedback, % of without")
    axis.set_title("Queries of which hardly anything is wanted", loc="left")
    axis.legend(frameon=False, loc="upper right", ncols=2)


def _draw_flights(axis: Any, record: Record) -> None:
    runs = record["flights"]["runs"]
    for i, told in enumerate(runs.values()):
        share = told["useful_imputed"] / max(1, told["calls"])
        axis.bar([i], [told["call_seconds"] * share], color=OURS, label="of use" if not i else None)
        rest = told["call_seconds"] * (1 - share)
        axis.bar(
            [i],
            [rest],
            bottom=[told["call_seconds"] * share],
            color=BAD,
            alpha=0.6,
            label="too late" if not i else None,
        )
        axis.annotate(f"{told['calls']:,} estimates", (i, told["call_seconds"]), ha="center", va="bottom")
    axis.set_xticks(range(len(runs)), [f"{n} feedback" for n in runs])
    axis.margins(y=0.12)
    axis.set_ylabel("CPU seconds in estimates")
    axis.set_title("Flights: an hour old is too old", loc="left")
    axis.legend(frameon=False)
