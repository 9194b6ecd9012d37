"""What was measured, beside what was published: tables in Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.feedback_suites import published

Record = dict[str, Any]

TARGET = 0.03
"""What feedback may cost where it is of no use."""

PLANS = {
    "a": "(a) two SELECTs, UNION, BUCKET, MAX",
    "b": "(b) SELECT, BUCKET, MAX",
    "c": "(c) JOIN, BUCKET, MAX",
}
OVERHEAD = {
    "before": "code before feedback",
    "before, again": "the same, another process",
    "idle": "feedback in, unused",
    "told": "one useless feedback an epoch",
}
UTILITY = {
    "a": "(a) UNION",
    "b": "(b) PACE, says nothing",
    "c": "(c) PACE, tells EXPENSIVE",
}
LEVELS = {
    "nowhere": "(a) nobody",
    "average": "(b) AVERAGE",
    "bucket": "(c) and BUCKET",
    "join": "(d) and JOIN",
    "scan": "(e) and the scan",
}
QUERIES = {
    "1": "1: two SELECTs and UNION",
    "2": "2: sensor ⋈ location, BUCKET, MAX",
    "3": "3: BUCKET and AVERAGE of two streams, JOIN",
}


def write_markdown(record: Record, path: Path) -> None:
    lines = [
        f"Machine: {record['machine']}. Contestants take turns. Seconds are means of their runs (σ, fastest–slowest); "
        "a ratio is the geometric mean over the rounds, ± two standard errors (middle half of the rounds)."
    ]
    makers = {"1": _overhead, "2": _chain, "3": _utility, "4": _aggressiveness, "5": _resources, "flights": _flights}
    for suite, make in makers.items():
        if record.get(suite):
            small = record["sizes"][suite] == "quick"
            heading, *rest = make(record[suite])
            lines += ["", f"{heading} (small data)" if small else heading, *rest]
    path.write_text("\n".join(lines) + "\n")


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    lines = ["| " + " | ".join(head) + " |", "|---|" + "---:|" * (len(head) - 1)]
    return lines + ["| " + " | ".join(row) + " |" for row in rows]


def _time(told: Record) -> str:
    return f"{told['mean']:.2f} (σ {told['sigma']:.2f}, {told['low']:.2f}–{told['high']:.2f})"


def _ratio(told: Record) -> str:
    """The ratio with two standard errors, and where the middle half of the rounds lies."""
    return f"{told['mean']:.3f} ± {2 * told['error'] * told['mean']:.3f} ({told['low']:.2f}–{told['high']:.2f})"


def _rounds(told: Record) -> str:
    """How many rounds, and how many epochs a run has."""
    first = next(iter(told["series"].values()))
    return f"{len(first['runs'])} of {told['epochs']} epochs"


def _verdict(series: Record) -> str:
    """Whether the cost is within the target, by the clock and by CPU, or cannot be told apart from it."""
    found = {how: _within(series[key]) for how, key in (("clock", "ratio"), ("CPU", "ratio cpu"))}
    if len(set(found.values())) == 1:
        return found["CPU"]
    return ", ".join(f"{how}: {said}" for how, said in found.items())


def _within(told: Record) -> str:
    low, high = (told["mean"] * (1 + sign * 2 * told["error"]) for sign in (-1, 1))
    if high <= 1 + TARGET:
        return "within"
    if told["mean"] <= 1 + TARGET:
        return "within, by less than the error"
    return "above" if low > 1 + TARGET else "above, by less than the error"


def _overhead(suite: Record) -> list[str]:
    rows = []
    for plan, told in suite.items():
        before, sigma, after, after_sigma = published.OVERHEAD[plan]
        rows.append(
            [
                PLANS[plan],
                "published",
                f"{before:.2f} (σ {sigma}) → {after:.2f} (σ {after_sigma})",
                f"{after / before:.3f}",
                "",
                "",
            ]
        )
        for name, series in told["series"].items():
            first = name == next(iter(told["series"]))
            rows.append(
                [
                    "",
                    OVERHEAD[name],
                    _time(series["seconds"]),
                    "1" if first else _ratio(series["ratio"]),
                    "1" if first else _ratio(series["ratio cpu"]),
                    "" if name.startswith("before") else _verdict(series),
                ]
            )
    head = ("plan", "", "seconds", "× before, by the clock", "× before, CPU", f"target {TARGET:.0%}")
    runs = [_rounds(told) for told in suite.values()]
    return ["### 1: what it costs to be able to listen", "", f"Rounds: {', '.join(runs)}.", "", *_table(head, rows)]


def _chain(suite: Record) -> list[str]:
    rows = []
    for length, told in suite.items():
        off, off_sigma, on, on_sigma = published.CHAIN[length]
        idle, spoken = told["series"]["idle"], told["series"]["told"]
        rows.append(
            [
                length,
                f"{off:.2f} (σ {off_sigma:.2f})",
                f"{on:.2f} (σ {on_sigma:.2f})",
                f"{on / off:.3f}",
                _time(idle["seconds"]),
                _time(spoken["seconds"]),
                _ratio(spoken["ratio"]),
                _ratio(spoken["ratio cpu"]),
                _verdict(spoken),
            ]
        )
    head = (
        "SELECTs",
        "published off",
        "on",
        "ratio",
        "off",
        "on",
        "ratio, clock",
        "ratio, CPU",
        f"target {TARGET:.0%}",
    )
    runs = [_rounds(told) for told in suite.values()]
    return ["### 2: what it costs to pass feedback on", "", f"Rounds: {', '.join(runs)}.", "", *_table(head, rows)]


def _utility(suite: Record) -> list[str]:
    rows = []
    for plan, told in suite["plans"].items():
        if plan in published.UTILITY:
            calls, dropped, out, useful = published.UTILITY[plan]
            rows.append([UTILITY[plan], "published", f"{calls:,}", f"{dropped:,}", f"{out:,}", f"{useful:.1%}", "", ""])
        rows.append(
            [
                "" if plan in published.UTILITY else UTILITY[plan],
                "measured",
                f"{told['calls']:,}",
                f"{sum(told['dead'].values()):,}",
                f"{told['rows_out']:,}",
                f"{told['useful'] / max(1, told['rows_out']):.1%}",
                f"{told['useful_imputed']:,}",
                f"{told['call_seconds']:.1f}",
            ]
        )
    head = (
        "plan",
        "",
        "expensive calls",
        "dropped by PACE",
        "output",
        "useful",
        "useful and imputed",
        "CPU s in calls",
    )
    lines = ["### 3: useful work", "", *_table(head, rows)]
    plans = suite["plans"]
    if "b" in plans and "c" in plans:
        avoided = plans["b"]["calls"] - plans["c"]["calls"]
        lines += ["", f"Expensive calls avoided by telling: {avoided:,} (published: 131,069)."]
    return lines


def _aggressiveness(suite: Record) -> list[str]:
    rows = []
    for level, told in suite["levels"].items():
        found, before = told["operators"], published.AGGRESSIVENESS.get(level)
        events = [
            f"{found.get(name, -1):,}" + (f" ({before[k]:,})" if before else "")
            for k, name in enumerate(("JOIN", "BUCKET", "AVERAGE"))
        ]
        times = [_time(told["seconds"]), _ratio(told["ratio"])] if "seconds" in told else ["", ""]
        exact = "yes" if told["exact"] else f"no: {told['expected']}"
        rows.append([LEVELS[level], *events, f"{sum(told['read'].values()):,}", exact, *times])
    head = ("taken up by", "JOIN", "BUCKET", "AVERAGE", "rows read", "as predicted", "seconds", "× (a)")
    return ["### 4: how far upstream; events out, published in brackets", "", *_table(head, rows)]


def _resources(suite: Record) -> list[str]:
    lines = ["### 5: resources", ""]
    rows = []
    for query, told in suite.items():
        without, sigma, with_, with_sigma = published.RESOURCES[query]
        rows.append(
            [
                QUERIES[query],
                "published",
                f"{without:.2f} (σ {sigma})",
                f"{with_:.2f} (σ {with_sigma})",
                f"{with_ / without - 1:+.1%}",
                "all",
                "all",
            ]
        )
        off, on = told["without"], told["with"]
        rows.append(
            [
                "",
                "measured",
                _time(off["seconds"]),
                _time(on["seconds"]),
                f"{on['ratio']['mean'] - 1:+.1%}",
                f"{sum(off['read'].values()):,}",
                f"{sum(on['read'].values()):,}",
            ]
        )
    head = ("query", "", "seconds without feedback", "with", "change", "rows read without", "with")
    lines += [*_table(head, rows), ""]
    rows = []
    for query, told in suite.items():
        for name, (off, on) in published.EVENTS[query].items():
            counts = [told["counts"][k]["operators"].get(name, 0) for k in ("without", "with")]
            rows.append([QUERIES[query][0], name, f"{off:,} → {on:,}", f"{counts[0]:,} → {counts[1]:,}"])
    return [*lines, *_table(("query", "operator", "events out, published", "measured"), rows)]


def _flights(suite: Record) -> list[str]:
    rows = [
        [
            f"{name} feedback",
            f"{told['calls']:,}",
            f"{told['useful_imputed']:,}",
            f"{told['call_seconds']:.1f}",
            f"{told['cpu']:.1f}",
            f"{told['seconds']:.1f}",
            f"{told['epochs']:,}",
            f"{told['rows_out']:,}",
        ]
        for name, told in suite["runs"].items()
    ]
    head = ("", "delays estimated", "of use", "CPU s in estimates", "CPU s in all", "seconds", "epochs", "flights out")
    lines = ["### Flights: a consumer that loses interest after an hour", "", *_table(head, rows)]
    runs = suite["runs"]
    if len(runs) == 2:
        saved = runs["without"]["call_seconds"] - runs["with"]["call_seconds"]
        calls = runs["without"]["calls"] - runs["with"]["calls"]
        share = saved / max(1e-9, runs["without"]["call_seconds"])
        lines += ["", f"Saved: {calls:,} estimates, {saved:.1f} CPU seconds, {share:.0%} of what they cost."]
    return lines
