"""What speculation costs and what it gains.

    python -m benchmarks.speculation                     all of it, in half an hour
    python -m benchmarks.speculation --quick             a look at everything, in minutes, with less of it
    python -m benchmarks.speculation --only cost,dial    some of the suites: cost, dial, flights, windows
    python -m benchmarks.speculation --report            tables and plots again, nothing measured

cost     kernels and the reference on 10³ to 10⁷ events: n log n + m?
dial     the same disordered events at many points of the dial: output, latency, state, error
flights  two weeks of flights as they became known, against Structured Streaming with watermarks
windows  rows a second, against Structured Streaming and Pathway (`make bench-setup`), and against a checkout of the
         code before the dial, if `--before` names one

Writes `results/speculation.json`, from it the tables in `docs/results.md` and the plots.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.speculating import dial, flights, kernels, windows
from benchmarks.speculating.report import draw, tables

RESULTS = Path(__file__).parent / "results"
SUITES = ("cost", "dial", "flights", "windows")


def measured(suite: str, given: argparse.Namespace) -> dict[str, Any]:
    pathway = str(Path(given.environments) / "pathway" / "bin" / "python")
    if suite == "cost":
        return kernels.run(given.quick)
    if suite == "dial":
        parts: dict[str, Callable[[bool], Any]] = {"sweep": dial.sweep, "tails": dial.tails, "triangle": dial.triangle}
        return {**{name: part(given.quick) for name, part in parts.items()}, "quakes": dial.quakes()}
    if suite == "flights":
        return flights.run(given.quick)
    those = [t for t in given.contestants.split(";") if t]
    asked = given.works, given.budget, given.patience, those
    return windows.run(given.quick, given.rounds, pathway, given.before, *asked)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", default=",".join(SUITES))
    parser.add_argument("--report", action="store_true")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--works", default="", help="of windows: those with this in their name")
    parser.add_argument("--budget", type=float, default=600, help="of windows: seconds after which no round begins")
    parser.add_argument("--patience", type=float, default=windows.PATIENCE, help="of windows: seconds for a contestant")
    parser.add_argument("--contestants", default="", help="of windows: those with one of these in their name, by ;")
    parser.add_argument("--before", default="", help="a checkout of the code before the dial")
    parser.add_argument("--environments", default=".venv-bench")
    given = parser.parse_args()
    # A look is not what the pages tell.
    path = Path(tempfile.gettempdir()) / "speculation-quick.json" if given.quick else RESULTS / "speculation.json"
    record: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    for suite in () if given.report else given.only.split(","):
        if suite not in SUITES:
            raise SystemExit(f"no suite '{suite}'; there are {', '.join(SUITES)}")
        found = measured(suite, given)
        if suite == "windows" and given.works:  # Beside the others of an earlier run.
            names = {c["name"] for c in found["cases"]}
            found["cases"] = [c for c in record.get(suite, {}).get("cases", []) if c["name"] not in names] + found[
                "cases"
            ]
        record[suite] = found
        path.write_text(json.dumps(record, indent=1) + "\n")
    for name, table in tables(record).items():
        print(f"\n{name}\n\n{table}")
    if not given.quick:
        draw(record)
        from benchmarks.pages import write_tables

        write_tables()


if __name__ == "__main__":
    main()
