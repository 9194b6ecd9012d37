"""What does it cost that nothing is lost when the power goes, and that no damaged file is believed?

    python -m benchmarks.durability --baseline ../before          seven repetitions
    python -m benchmarks.durability --baseline ../before --quick  three, epochs of 50 k rows only

`--baseline` is a checkout of the code before: `git worktree add ../before e96bb51`. Windowed count and sum per key, one
file per epoch, results as Parquet on the local disk. Contestants run in processes of their own, each with a Spark of 2
cores, and take turns within each repetition on the same files:

- *before*: waits for its records only, knows no checksums;
- *commit*: waits for everything that a manifest names (the default);
- *process*: waits for nothing;
- *no checksums*: as *process*, and CRC-32 costs nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.aggregates.workload import Windows, make
from benchmarks.joins.turn import Answer
from benchmarks.process import ROOT, Process

RESULTS = Path(__file__).parent / "results"

CASES = (
    Windows(50_000, 40, 1_000),
    Windows(50_000, 40, 100_000),
    Windows(500_000, 10, 100_000),
    Windows(5_000_000, 2, 1_000_000),
)
QUICK = CASES[:2]
WARM_UP = Windows(20_000, 30, 1_000)
#: By name: what is put in front of the path of Python, and the settings of the run.
CONTESTANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "before": ("{baseline}/src", {}),
    "commit": ("{root}/src", {"durability": "commit"}),
    "process": ("{root}/src", {"durability": "process"}),
    "no checksums": ("{root}/src:{root}/benchmarks/unsummed", {"durability": "process"}),
}
#: What is compared: the one that pays, the one that does not, and how much it may be.
COSTS = {
    "power loss and checksums": ("commit", "before", 15.0),
    "waiting for the disk": ("commit", "process", None),
    "checksums": ("process", "no checksums", 2.0),
}


#: By case and contestant, the answers of all repetitions.
Series = dict[Windows, dict[str, list[Answer]]]


def started(name: str, baseline: Path, logs: Path) -> Process:
    path, _ = CONTESTANTS[name]
    env = {"PYTHONPATH": path.format(baseline=baseline.resolve(), root=ROOT)}
    return Process(["benchmarks.aggregates.on_penstock"], logs / f"{name}.log", env=env)


def measure(cases: tuple[Windows, ...], repetitions: int, baseline: Path, data: Path) -> Series:
    logs = Path(tempfile.mkdtemp(prefix="durability-"))
    processes = {name: started(name, baseline, logs) for name in CONTESTANTS}
    results: Series = {}
    names = list(CONTESTANTS)
    try:
        for _ in range(3):
            for name in names:
                answer = _one(processes[name], name, WARM_UP, make(WARM_UP, data))
                print(f"  warming up: {name}, {answer['code']}", flush=True)
        for case in cases:
            series = results.setdefault(case, {name: [] for name in names})
            for repetition in range(repetitions):
                turn = repetition % len(names)
                for name in (*names[turn:], *names[:turn]):
                    answer = _one(processes[name], name, case, make(case, data))
                    series[name].append(answer)
                    middle = statistics.median(answer["epochs"][1:]) * 1e3
                    print(f"  {case.name:32} {repetition + 1}/{repetitions} {name:14} {middle:8.1f} ms", flush=True)
    finally:
        for process in processes.values():
            process.close()
    return results


def _one(process: Process, name: str, case: Windows, data: Path) -> Answer:
    job = {"data": str(data), "rows_per_epoch": case.rows, "settings": CONTESTANTS[name][1], "tell_code": True}
    with tempfile.TemporaryDirectory(prefix="durability-out-") as out:
        return process.run({**job, "out": out})


def epochs(series: list[Answer]) -> list[float]:
    """The median epoch of each run in milliseconds; the first epoch carries the start of the query."""
    return [statistics.median(r["epochs"][1:]) * 1e3 for r in series]


def cost(case: dict[str, list[Answer]], payer: str, other: str) -> tuple[float, float, float]:
    """By how many percent an epoch takes longer: the median over the repetitions, each compared with its own turn."""
    pairs = zip(epochs(case[payer]), epochs(case[other]), strict=True)
    found = sorted(100 * (a / b - 1) for a, b in pairs)
    return statistics.median(found), found[0], found[-1]


def table(results: Series) -> str:
    head = [
        "case",
        *CONTESTANTS,
        *(f"{what}{f' (≤ {most:g} %)' if most else ''}" for what, (_, _, most) in COSTS.items()),
    ]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for case, series in results.items():
        cells = [case.name]
        for name in CONTESTANTS:
            found = epochs(series[name])
            cells.append(f"**{statistics.median(found):.1f} ms** ({min(found):.1f}–{max(found):.1f})")
        for payer, other, _ in COSTS.values():
            middle, low, high = cost(series, payer, other)
            cells.append(f"{middle:+.1f} % ({low:+.1f} to {high:+.1f})")
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--baseline", type=Path, required=True, help="a checkout of the code to compare with")
    parser.add_argument("--quick", action="store_true", help="three repetitions, epochs of 50 k rows only")
    parser.add_argument("--repetitions", type=int, default=None)
    parser.add_argument("--only", default="", help="cases whose name contains this text")
    parser.add_argument("--data", type=Path, default=Path(tempfile.gettempdir()) / "penstock-bench")
    arguments = parser.parse_args()
    repetitions = arguments.repetitions or (3 if arguments.quick else 7)
    cases = tuple(c for c in (QUICK if arguments.quick else CASES) if arguments.only in c.name)
    results = measure(cases, repetitions, arguments.baseline, arguments.data)
    text = table(results)
    record = {
        "machine": f"{os.cpu_count()} cores, {platform.machine()}",
        "repetitions": repetitions,
        "epochs": {case.name: {name: epochs(s) for name, s in series.items()} for case, series in results.items()},
    }
    (RESULTS / "durability.json").write_text(json.dumps(record, indent=1) + "\n")
    (RESULTS / "durability.md").write_text(text + "\n")
    print(f"\n{text}\n\nwritten: {RESULTS}/durability.json, durability.md")


if __name__ == "__main__":
    main()
