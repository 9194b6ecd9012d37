"""The tables of the pages, made of `results.json` and nothing else."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from benchmarks.contest import DUCKDB, FLINK, NATIVE, ONE_CORE, PATHWAY, PENSTOCK, POLARS
from benchmarks.latency import PLAIN, TUNED
from benchmarks.profile import PHASES
from benchmarks.stalls import TARGET as MOST

Record = dict[str, Any]
NONE = "–"
RACES = ("big-1k", "big-100k", "big-1M", "small-1k", "small-100k", "small-1M", "tiny", "join")
#: By case: how much slower than DuckDB in batch Penstock may be, and how much faster than native it is to be per epoch.
TARGETS = {"big-1k": 1.8, "big-100k": 2.5, "big-1M": 2.5, "join": 2.5}
PER_EPOCH = {"small-1k": 8.0}


def table(head: Sequence[str], rows: Sequence[Sequence[str]], right: bool = False) -> str:
    """Markdown; the first column to the left."""
    lines = [f"| {' | '.join(head)} |", "|---|" + ("---:|" if right else "---|") * (len(head) - 1)]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


# --- races --------------------------------------------------------------------------------------------------------


def scaled(case: Record, run: Record) -> float:
    """The seconds of a run; of one that gave up, what it would have taken at the pace it had."""
    return float(run["seconds"] if run["done"] else run["seconds"] * case["rows"] / max(1, run["rows"]))


def times(case: Record, name: str) -> list[float]:
    return [scaled(case, run) for run in case["series"].get(name, ())]


def limit(case: Record) -> str:
    """The faster of those who work in batch."""
    there = [c.name for c in (DUCKDB, POLARS) if times(case, c.name)]
    return min(there, key=lambda n: statistics.median(times(case, n)), default="")


def ratio(over: Sequence[float], under: Sequence[float]) -> str:
    """Of the medians; in brackets the range over the rounds that both took part in.

    >>> ratio([4.0, 6.0, 5.0], [2.0, 2.0, 2.0]), ratio([4.0], [2.0, 1.0]), ratio([], [1.0])
    ('2.5 × (2.0–3.0)', '2.7 ×', '–')
    """
    if not over or not under:
        return NONE
    rounds = [a / b for a, b in zip(over, under, strict=False)]
    middle = statistics.median(over) / statistics.median(under)
    return f"{_number(middle)} ×" + (f" ({_number(min(rounds))}–{_number(max(rounds))})" if len(rounds) > 1 else "")


def _number(x: float) -> str:
    """Two digits are told, or all of a whole number.

    >>> _number(0.0123), _number(1.26), _number(12.6), _number(126.4)
    ('0.012', '1.3', '13', '126')
    """
    return f"{x:.0f}" if x >= 10 else f"{x:.1f}" if x >= 1 else f"{x:.2g}"


def _seconds(case: Record, name: str, spread: bool = True) -> str:
    found = times(case, name)
    if not found:
        return NONE
    about = "" if all(r["done"] for r in case["series"][name]) else "≈ "
    middle = statistics.median(found)
    digits = 0 if middle >= 100 else 1 if middle >= 10 else 2
    told = f"{about}{middle:.{digits}f} s"
    if spread and len(found) > 1:
        told += f" ({min(found):.{digits}f}–{max(found):.{digits}f})"
    return told + (f", {len(found)} run{'s' if len(found) > 1 else ''}" if spread and len(found) < 5 else "")


def epochs(case: Record, name: str) -> list[float]:
    return [run["epoch"] for run in case["series"].get(name, ()) if "epoch" in run]


def _races(record: Record) -> list[tuple[str, Record]]:
    cases = record["cases"]
    return [(slug, cases[slug]) for slug in RACES if slug in cases and cases[slug]["complete"]]


def races_table(record: Record) -> str:
    """For the results: every contestant with its spread."""
    head = ("case", "contestant", "seconds, median (range)", "CPU s", "peak MiB", "÷ Penstock", "an epoch, ms")
    rows = []
    for _, case in _races(record):
        first = case["name"]
        ours = times(case, PENSTOCK.name)
        for name in (PENSTOCK.name, ONE_CORE.name, NATIVE, *_other_natives(case), FLINK.name, PATHWAY.name):
            rows += _race_row(case, name, ours, first)
            first = "" if case["series"].get(name) else first
        for name in (DUCKDB.name, POLARS.name):
            rows += _race_row(case, name, ours, first)
        rows += [["", name, why, *[NONE] * 4] for name, why in case["missing"].items()]
    return table(head, rows, right=True)


def _other_natives(case: Record) -> list[str]:
    return [n for n in case["series"] if n.startswith(f"{NATIVE},")]


def _race_row(case: Record, name: str, ours: Sequence[float], first: str) -> list[list[str]]:
    runs = case["series"].get(name)
    if not runs:
        return []
    told = f"**{name}**" if name == PENSTOCK.name else f"{case['native']}, the best" if name == NATIVE else name
    told += ", in batch" if name in (DUCKDB.name, POLARS.name) else ""
    each = epochs(case, name)
    cells = [
        first,
        told,
        _seconds(case, name),
        f"{statistics.median(r['cpu'] for r in runs):.1f}",
        f"{statistics.median(r['peak'] for r in runs) / 2**20:,.0f}",
        "" if name == PENSTOCK.name else ratio(times(case, name), ours),
        f"{statistics.median(each) * 1e3:,.0f}" if each else NONE,
    ]
    return [cells]


def targets_table(record: Record) -> str:
    """What was aimed at, and what came of it."""
    rows: list[list[str]] = []
    found = dict(_races(record))
    for slug, case in found.items():
        ours = times(case, PENSTOCK.name)
        if slug in TARGETS and times(case, DUCKDB.name):
            theirs = times(case, DUCKDB.name)
            rows.append(
                _row(
                    f"{case['name']}: against {DUCKDB.name}",
                    f"≤ {TARGETS[slug]:g} ×",
                    ratio(ours, theirs),
                    statistics.median(ours) / statistics.median(theirs) <= TARGETS[slug],
                )
            )
        if slug in PER_EPOCH and epochs(case, NATIVE):
            theirs, mine = epochs(case, NATIVE), epochs(case, PENSTOCK.name)
            rows.append(
                _row(
                    f"{case['name']}: native's time per epoch",
                    f"≥ {PER_EPOCH[slug]:g} ×",
                    ratio(theirs, mine),
                    statistics.median(theirs) / statistics.median(mine) >= PER_EPOCH[slug],
                )
            )
        if epochs(case, ONE_CORE.name):
            one, two = epochs(case, ONE_CORE.name), epochs(case, PENSTOCK.name)
            rows.append(
                _row(
                    f"{case['name']}: one core's time per epoch",
                    "> 1 ×",
                    ratio(one, two),
                    statistics.median(one) > statistics.median(two),
                )
            )
    if "tiny" in found:
        runs = found["tiny"]["series"][PENSTOCK.name]
        middle, cpu = (1e3 * statistics.median(r[k] for r in runs) for k in ("epoch", "cpu_epoch"))
        rows.append(_row("an epoch of 10 rows", "≤ 15 ms", f"{middle:.0f} ms", middle <= 15))
        rows.append(_row("… CPU", "≤ 30 ms", f"{cpu:.0f} ms", cpu <= 30))
    rows += _latency_targets(record) + _stall_targets(record)
    return table(("", "aimed at", "measured", ""), rows)


def _row(what: str, target: str, measured: str, met: bool) -> list[str]:
    return [what, target, measured, "held" if met else "missed"]


def readme_table(record: Record) -> str:
    head = ("", NATIVE, "PyFlink", "Pathway", "Penstock", "in batch", "native ÷ Penstock", "Penstock ÷ batch")
    rows = []
    for slug, case in _races(record):
        ours, best = times(case, PENSTOCK.name), limit(case)
        if slug == "tiny":
            mine, theirs = epochs(case, PENSTOCK.name), epochs(case, NATIVE)
            cells = [
                f"{1e3 * statistics.median(theirs):.0f} ms",
                NONE,
                NONE,
                f"**{1e3 * statistics.median(mine):.0f} ms**",
            ]
            rows.append(["an epoch of 10 rows", *cells, NONE, ratio(theirs, mine), NONE])
            continue
        cells = [_seconds(case, n, spread=False) for n in (NATIVE, FLINK.name, PATHWAY.name, PENSTOCK.name)]
        cells[-1] = f"**{cells[-1]}**"
        batch = f"{_seconds(case, best, spread=False)} ({best})" if best else NONE
        rows.append([case["name"], *cells, batch, ratio(times(case, NATIVE), ours), ratio(ours, times(case, best))])
    return table(head, rows)


def settings_table(record: Record) -> str:
    """Which settings of Structured Streaming were tried on a beginning of each case."""
    rows = []
    names = [n.removeprefix(f"{NATIVE}, ") for n in max((c["search"] for _, c in _races(record)), key=len, default={})]
    for _, case in _races(record):
        tried = [case["search"].get(f"{NATIVE}, {n}") for n in names]
        chosen = case["native"].removeprefix(f"{NATIVE}, ")
        cells = [NONE if s is None else f"**{s:.1f}**" if n == chosen else f"{s:.1f}" for n, s in zip(names, tried)]
        rows.append([case["name"], *cells])
    return table(("seconds", *names), rows, right=True)


# --- the others ---------------------------------------------------------------------------------------------------


def latency_table(record: Record) -> str:
    rows = []
    told = record["cases"].get("latency", {"queries": {}})
    for query, found in told["queries"].items():
        ours = found[PENSTOCK.name]
        for name, f in found.items():
            rows.append(
                [
                    {"filter": "filter", "window": "count and sum per key and second"}[query],
                    f"**{name}**" if name == PENSTOCK.name else name,
                    f"{f['p50']:.0f}",
                    f"{f['p99']:.0f}",
                    f"{f['least']:.0f}–{f['most']:.0f}",
                    str(f["files"]) + (f" ({f['missing']} not seen)" if f["missing"] else ""),
                    "" if name == PENSTOCK.name else f"{_number(f['p50'] / ours['p50'])} ×",
                ]
            )
    return table(("query", "", "p50, ms", "p99, ms", "range", "files", "p50 ÷ Penstock's"), rows, right=True)


def _latency_targets(record: Record) -> list[list[str]]:
    rows = []
    for query, most in (("filter", 12), ("window", 25)):
        found = record["cases"].get("latency", {"queries": {}})["queries"].get(query)
        if not found:
            continue
        ours = found[PENSTOCK.name]
        rows.append(_row(f"file to result, {query}: p50", f"≤ {most} ms", f"{ours['p50']:.0f} ms", ours["p50"] <= most))
        tail = ours["p99"] / ours["p50"]
        rows.append(_row("… p99 ÷ p50", "≤ 4 ×", f"{_number(tail)} ×", tail <= 4))
        if PLAIN.name in found:
            better = found[PLAIN.name]["p50"] / ours["p50"]
            rows.append(_row("… native's default trigger", "≥ 10 ×", f"{_number(better)} ×", better >= 10))
        if TUNED.name in found:
            better = found[TUNED.name]["p50"] / ours["p50"]
            rows.append(["… tuned", "", f"{_number(better)} ×", ""])
    return rows


def stalls_table(record: Record) -> str:
    told = record["cases"].get("stalls")
    if told is None:
        return "Not measured."
    found = sorted(1e3 * t for t in told["epochs"])
    middle = statistics.median(found)
    rows = [
        [
            f"{told['held'] / 1e6:g} M",
            f"{told['delta']:,}",
            str(len(found)),
            f"{middle:.0f}",
            f"{found[int(0.99 * len(found))]:.0f}",
            f"{found[-1]:.0f}",
            f"{found[-1] / middle:.1f} ×",
            f"{sum(f > MOST * middle for f in found)}",
        ]
    ]
    head = (
        "groups held",
        "rows an epoch",
        "epochs",
        "median, ms",
        "p99, ms",
        "longest, ms",
        "÷ median",
        f"above {MOST:g} ×",
    )
    return table(head, rows, right=True)


def _stall_targets(record: Record) -> list[list[str]]:
    told = record["cases"].get("stalls")
    if told is None:
        return []
    worst = max(told["epochs"]) / statistics.median(told["epochs"])
    what = f"longest of {len(told['epochs'])} epochs with {told['held'] / 1e6:g} M groups held ÷ median"
    return [_row(what, f"≤ {MOST:g} ×", f"{worst:.1f} ×", worst <= MOST)]


def profile_table(told: Record) -> str:
    """CPU of an epoch by process, and that of the workers by what they did."""
    cases = told.get("cases")
    if not cases:
        return "Not measured."
    head = ("CPU ms an epoch", *(c["name"] for c in cases.values()))
    rows = []
    for kind, name in (("jvm", "JVM"), ("driver", "driver"), ("workers", "workers")):
        rows.append([name, *(f"{1e3 * c['cpu'][kind] / c['epochs']:,.0f}" for c in cases.values())])
    for phase in PHASES:
        shares = [c["phases"][phase] for c in cases.values()]
        rows.append([f"– {phase}", *(f"{s:.0%}" for s in shares)])
    sums = [c.get("exact sum") for c in cases.values()]
    rows.append(
        ["of the workers' time, less without the exact sum", *(NONE if s is None else f"{s:.0%}" for s in sums)]
    )
    return table(head, rows, right=True)
