"""How fast and how lean are joins? Two streams of files, against Structured Streaming, PyFlink, Pathway and DuckDB.

    python -m benchmarks.join                   all of it at full size: 2 × 5 M rows, up to 20 M held
    python -m benchmarks.join --rows 100000 --repetitions 1 --limit 20 --results /tmp/join     a look at everything
    python -m benchmarks.join --only trips      one of: cases, held, trips; or part of a case's name

Contestants run in processes of their own and take turns within each repetition, on the same rows, 2 cores each. All
must find the same pairs: count and checksum are compared, and the benchmark ends if they differ. PyFlink and Pathway
take part if there are environments for them (`make bench-setup`); the packages on
PyPI read no Parquet, so they get the same rows as CSV.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from benchmarks.contest import ENVIRONMENTS, environments
from benchmarks.joins.contest import ALL, DUCKDB, PENSTOCK, ROCKS, SPARK, Contest, Contestant, agree, contest
from benchmarks.joins.report import draw, write_markdown
from benchmarks.joins.turn import Answer
from benchmarks.joins.workload import Workload, make, part_of
from benchmarks.trips import LONGEST_HOURS, Trips
from benchmarks.trips import write as write_trips

RESULTS = Path(__file__).parent / "results"
EPOCHS = 10
TARGET = 15.0
HELD = (5, 10, 25, 50, 100)
"""How many times the delta of an epoch is held."""
PATIENCE = 20.0
"""Whoever has taken longer than this for a case, in seconds, is not asked again."""
GROWING = 60.0
"""So many seconds everyone but Penstock gets to show how state grows."""


@dataclass
class Bench:
    """One run of the benchmark."""

    contest: Contest
    rows: int
    repetitions: int
    data: Path
    only: str
    results: Path
    names: tuple[str, ...] = ()
    warm: set[Contestant] = field(default_factory=set)
    record: dict[str, Any] = field(default_factory=dict)

    def wanted(self, name: str) -> bool:
        return self.only in name

    def those(self, *contestants: Contestant) -> tuple[Contestant, ...]:
        """The ones that are wanted and can take part, warmed up: Java compiles what it has seen often."""
        there = []
        for contestant in contestants:
            if self.names and not any(name.lower() in contestant.name.lower() for name in self.names):
                continue
            why = self.contest.why_not(contestant)
            if why is None:
                there.append(contestant)
            else:
                print(f"  without {contestant.name}, {why}", flush=True)
                self.record.setdefault("missing", {})[contestant.name] = why
        cold = [c for c in there if c not in self.warm]
        warm = Workload("warm-up", 5_000, EPOCHS)
        agree("warm-up", {c.name: self._join(c, warm, limit=3600)["found"] for c in cold})
        self.warm.update(cold)
        return tuple(there)

    # --- how fast -----------------------------------------------------------------------------------------------

    def cases(self) -> tuple[Workload, ...]:
        per_epoch = self.rows // EPOCHS
        less = max(100, per_epoch // 5)
        return (
            Workload(f"2 × {_short(self.rows)} rows, 50 % have a partner", per_epoch, EPOCHS),
            Workload(f"2 × {_short(less * EPOCHS)} rows, 10 % have a partner", less, EPOCHS, rate=0.1),
            Workload(f"2 × {_short(less * EPOCHS)} rows, 50 % have a partner", less, EPOCHS),
            Workload(f"2 × {_short(less * EPOCHS)} rows, all have a partner", less, EPOCHS, rate=1.0),
            Workload(f"2 × {_short(less * EPOCHS)} rows, 50 % have 10 partners", less, EPOCHS, matches=10),
            Workload(f"2 × {_short(less * EPOCHS)} rows, keys by Zipf 1.1", less, EPOCHS, skew=1.1),
        )

    def measure_cases(self) -> None:
        cases = [c for c in self.cases() if self.wanted("cases") or self.wanted(c.name)]
        there = self.those(*ALL) if cases else ()
        for case in cases:
            found: dict[str, list[str]] = {}
            series: dict[str, list[Answer]] = {c.name: [] for c in there}
            for repetition in range(self.repetitions):
                # A different order each time, so that nobody always runs after the same neighbour.
                turn = repetition % len(there)
                for contestant in (*there[turn:], *there[:turn]):
                    runs = series[contestant.name]
                    if sum(r["seconds"] for r in runs) > PATIENCE:
                        continue
                    answer = self._join(contestant, case)
                    runs.append(answer)
                    if answer["done"]:
                        found[contestant.name] = answer["found"]
                    print(
                        f"  {case.name:40} {repetition + 1}/{self.repetitions} {_told(contestant, answer)}", flush=True
                    )
            agree(case.name, found)
            results = int(next(iter(found.values()))[0])
            told = {"case": case.name, "rows": 2 * case.rows * case.epochs, "results": results, "series": series}
            self.record.setdefault("cases", []).append(told)
            self.write()

    def _join(self, contestant: Contestant, work: Workload, folder: Path | None = None, **more: Any) -> Answer:
        band = None if work.band is None else work.band * 1000
        data = folder if folder is not None else make(work, self.data)
        return self.contest.run(contestant, {"kind": "pairs", "band": band, "rows": work.rows, **more}, data)

    # --- time per epoch as state grows --------------------------------------------------------------------------

    def measure_held(self) -> None:
        """The same delta every epoch. Without a band state grows for ever; with bands it stays at a level."""
        delta = max(1_000, self.rows // EPOCHS // 5)
        work = Workload("held", delta, max(HELD), band=None)
        whole = make(work, self.data)
        told: dict[str, Any] = {"delta": 2 * delta, "unbounded": {}, "bands": []}
        self.record["held"] = told
        found = {}
        for contestant in self.those(PENSTOCK, SPARK, ROCKS):
            answer = self._join(contestant, work, whole, limit=GROWING)
            told["unbounded"][contestant.name] = answer["epochs"]
            if answer["done"]:
                found[contestant.name] = answer["found"]
            print(f"  all is held: {_told(contestant, answer)}", flush=True)
            self.write()
        found[DUCKDB.name] = self._join(DUCKDB, work, whole)["found"]
        agree("held", found)
        for times in HELD:
            # A row is held for as long as the band is, and an epoch is a minute.
            epochs = min(max(HELD), times + 8)
            banded = replace(work, band=60 * (epochs - 8), epochs=epochs)
            folder = part_of(whole, epochs)
            answer = self._join(PENSTOCK, banded, folder)
            agree(
                "held",
                {c.name: a["found"] for c, a in ((PENSTOCK, answer), (DUCKDB, self._join(DUCKDB, banded, folder)))},
            )
            told["bands"].append({"band": banded.band, "epochs": answer["epochs"]})
            print(f"  {_short(2 * delta * (epochs - 8))} held: {_told(PENSTOCK, answer)}", flush=True)
            self.write()

    # --- punctuation on keys --------------------------------------------------------------------------------------

    def measure_trips(self) -> None:
        """The state of trips and their ends: released by a punctuation per trip, or by a watermark a day later."""
        trips = Trips(epochs=36, hours=2, rate=max(200, self.rows // 1000))
        data = write_trips(trips, self.data)
        untold = replace(trips, told=False)
        plain = write_trips(untold, self.data)
        day = LONGEST_HOURS * 3_600_000
        told: dict[str, Any] = {"trips an hour": trips.rate, "hours": trips.hours, "runs": {}}
        self.record["trips"] = told
        found = {}
        runs = (
            ("Penstock, punctuation per trip", PENSTOCK, None, data, trips.rows),
            ("Penstock, watermark", PENSTOCK, day, plain, untold.rows),
            ("Structured Streaming, watermark", SPARK, day, plain, untold.rows),
        )
        there = self.those(PENSTOCK, SPARK)
        for name, contestant, band, folder, rows in runs:
            if contestant not in there:
                continue
            job = {"kind": "trips", "band": band, "rows": rows}
            answer = self.contest.run(contestant, job, folder, ("starts", "ends"))
            told["runs"][name] = answer["epochs"]
            if answer["done"]:
                found[name] = answer["found"]
            print(f"  trips: {name:32} {answer['seconds']:8.2f} s, most state {_most(answer):,} rows", flush=True)
            self.write()
        agree("trips", found)

    def write(self) -> None:
        """After every measurement, so that a run that is stopped has not been for nothing."""
        self.results.mkdir(parents=True, exist_ok=True)
        (self.results / "join.json").write_text(json.dumps(self.record, indent=1) + "\n")
        write_markdown(self.record, self.results / "join.md", TARGET)
        draw(self.record, self.results)


def _told(contestant: Contestant, answer: Answer) -> str:
    end = "" if answer["done"] else f", not done: {sum(e['rows'] for e in answer['epochs']):,} rows"
    return f"{contestant.name:30} {answer['seconds']:8.2f} s, CPU {answer['cpu']:7.1f} s{end}"


def _most(answer: Answer) -> int:
    return max((e["state_rows"] for e in answer["epochs"]), default=0)


def _short(n: int) -> str:
    return f"{n / 1e6:g} M" if n >= 1_000_000 else f"{n / 1e3:g} k" if n >= 1_000 else str(n)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=5_000_000, help="rows of each input in the largest case")
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--limit", type=float, default=240.0, help="seconds after which Structured Streaming gives up")
    parser.add_argument("--only", default="", help="cases, held, trips, or part of the name of a case")
    parser.add_argument("--contestants", default="", help="only those whose names contain one of these, by commas")
    parser.add_argument("--data", type=Path, default=Path(tempfile.gettempdir()) / "penstock-bench" / "join")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder for the table and the pictures")
    parser.add_argument("--pyflink-python", default="", help="the Python of an environment with PyFlink")
    parser.add_argument("--pathway-python", default="", help="the Python of an environment with Pathway")
    given = parser.parse_args()
    names = tuple(n.strip() for n in given.contestants.split(",") if n.strip())
    pythons = environments(ENVIRONMENTS, {"pyflink": given.pyflink_python, "pathway": given.pathway_python})
    with contest(pythons, given.limit) as those:
        bench = Bench(those, given.rows, given.repetitions, given.data, given.only, given.results, names)
        bench.record["machine"] = f"{os.cpu_count()} cores, {platform.machine()}"
        bench.record["limit"] = given.limit
        bench.measure_cases()
        if bench.wanted("held"):
            bench.measure_held()
        if bench.wanted("trips"):
            bench.measure_trips()
    print("\n" + (given.results / "join.md").read_text())
    print(f"written: {given.results}/join.json, join.md and join*.png")


if __name__ == "__main__":
    main()
