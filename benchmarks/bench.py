"""How fast is Penstock, against the best of everybody else? All cases, in under half an hour.

    python -m benchmarks.bench                    everything; the pages are written anew from the results
    python -m benchmarks.bench --only big-1k      one case, or those whose names begin so; --list names them
    python -m benchmarks.bench --resume           what an interrupted run of the same commit has left
    python -m benchmarks.bench --quick            two repetitions, little patience; keeps its results to itself

Contestants run in processes of their own and take turns within each repetition, on the same rows, 2 cores each. All
must find the same, by count and checksum. Structured Streaming has both state stores and 1, 2 and 4 shuffle partitions:
all six run a beginning of the case, the best two the whole of it, and the better one takes part. Who is slow gets fewer
turns, which the tables say. Polars, PyFlink and Pathway have environments of their own; see `make bench-setup`.

Results are written after every turn (`results/results.json`); `python -m benchmarks.pages` makes the pages of them.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks import latency, profile, stalls
from benchmarks.contest import ENVIRONMENTS, NATIVE, NATIVES, PENSTOCK, Contestant, Pool, Run, agree, environments, turn
from benchmarks.pages import RESULTS, write_pages
from benchmarks.races import RACES, Race

#: Seconds for everything, kept by being less patient with those who are slow.
BUDGET = 1650.0
#: The share of the patience that others than Structured Streaming get.
SLOW = 0.4
#: Seconds after which somebody who has waited runs something short first, which is not counted: Spark ends Python
#: workers that have had nothing to do for a minute, and nobody is to pay for the time that others take.
IDLE = 20.0
#: The cases that are not races: what measures them, and how many minutes that takes.
OTHERS: dict[str, tuple[Callable[..., dict[str, Any]], float]] = {
    "latency": (latency.measure, 3.5),
    "stalls": (stalls.measure, 1.5),
    "profile": (profile.measure, 2.5),
}


@dataclass
class Bench:
    """One run of the benchmark."""

    path: Path
    data: Path
    pythons: dict[str, str]
    quick: bool
    began: float = field(default_factory=time.monotonic)
    record: dict[str, Any] = field(default_factory=dict)

    def say(self, text: str) -> None:
        seconds = time.monotonic() - self.began
        print(f"{seconds // 60:3.0f}:{seconds % 60:02.0f}  {text}", flush=True)

    def write(self) -> None:
        """Whole or not at all: a run that is stopped has not been for nothing."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        beside = self.path.with_suffix(".part")
        beside.write_text(json.dumps(self.record, indent=1) + "\n")
        beside.replace(self.path)

    def note(self, slug: str, told: dict[str, Any]) -> None:
        self.record["cases"][slug] = {**told, "commit": commit()}
        self.write()

    # --- races --------------------------------------------------------------------------------------------------

    def race(self, those: Pool, race: Race, patience: float) -> None:
        told: dict[str, Any] = {"kind": "race", "name": race.name, "rows": race.rows, "epochs": race.work.epochs}
        repetitions = 2 if self.quick else race.repetitions
        told |= {
            "repetitions": repetitions,
            "limit": race.limit,
            "patience": patience,
            "missing": {},
            "complete": False,
        }
        there: list[Contestant] = []
        for contestant in race.contestants:
            if (why := those.why_not(contestant)) is None:
                there.append(contestant)
            else:
                self.say(f"without {contestant.name}: {why}")
                told["missing"][contestant.name] = why
        self.warm(those, race, [*there, NATIVES[0], NATIVES[3]])
        natives = self.search(those, race, told)
        for contestant in [c for c in there if c.module == PENSTOCK.module] * 2:  # What Java has compiled by now.
            self.one(those, race.prefix(), contestant, stretch=True)
        told["series"] = {c.name: [] for c in (*there, *natives)}
        found: dict[str, list[str]] = {}
        for repetition in range(repetitions):
            # A different order each time, so that nobody always runs after the same neighbour.
            order = [*there, *natives]
            at = repetition % len(order)
            for contestant in (*order[at:], *order[:at]):
                runs = told["series"][contestant.name]
                if sum(r["seconds"] for r in runs) > patience * (1 if contestant.native else SLOW):
                    continue
                run = self.one(those, race, contestant, found)
                if run is None:
                    told["missing"][contestant.name] = "it failed"
                    there = [c for c in there if c is not contestant]
                    continue
                runs.append(run)
                self.say(f"{race.slug:10} {repetition + 1}/{repetitions} {_told(contestant.name, run)}")
                self.note(race.slug, told)
            agree(race.name, found)
            natives = natives[:1] if repetition else _faster(natives, told["series"])
        told["found"] = next(iter(found.values()))[0]
        told["native"] = natives[0].name
        told["series"][NATIVE] = told["series"].pop(natives[0].name)
        told["complete"] = True
        self.note(race.slug, told)

    def one(
        self,
        those: Pool,
        race: Race,
        contestant: Contestant,
        found: dict[str, list[str]] | None = None,
        *,
        stretch: bool = False,
    ) -> Run | None:
        """One turn; to `stretch`, Penstock runs it on both of its paths. None if it failed."""
        job, finding = race.prepared(contestant, self.data)
        job = {**job, "stretch": stretch}
        try:
            if those.idle(contestant) > IDLE:
                little, nothing = race.warm_up(3).prepared(contestant, self.data)
                turn(those, contestant, {**little, "stretch": True}, nothing)
            answer = turn(those, contestant, job, finding)
        except (RuntimeError, OSError) as error:
            self.say(f"{contestant.name} failed: {str(error)[-600:]}")
            those.drop(contestant)
            return None
        if found is not None and "found" in answer:
            found[contestant.name] = answer["found"]
        return short(answer)

    def warm(self, those: Pool, race: Race, contestants: list[Contestant]) -> None:
        """Java compiles what it has seen often: enough epochs that nobody is measured while that goes on.

        Structured Streaming goes on warming up while its settings are chosen, so Penstock runs this once more.
        """
        cold = [c for c in contestants if c.name not in those.warm]
        for contestant in (*cold, *(c for c in cold if c.module == PENSTOCK.module)):
            run = self.one(those, race.warm_up(), contestant)
            self.say(f"warming up {contestant.name}" + (f": {run['seconds']:.1f} s" if run else ""))
        those.warm.update(c.name for c in cold)

    def search(self, those: Pool, race: Race, told: dict[str, Any]) -> list[Contestant]:
        """The two best settings of Structured Streaming on a beginning of the case."""
        tried: dict[str, float] = {}
        best = float("inf")
        for contestant in NATIVES[:2] if self.quick else NATIVES:
            # Who takes three times as long as another on less will not catch up on more.
            prefix = race.prefix()
            job, finding = prefix.prepared(contestant, self.data)
            try:
                answer = turn(those, contestant, {**job, "limit": min(race.limit, max(10.0, 3 * best))}, finding)
            except (RuntimeError, OSError) as error:
                self.say(f"{contestant.name} failed: {str(error)[-600:]}")
                those.drop(contestant)
                tried[contestant.name] = float("inf")
                continue
            tried[contestant.name] = answer["seconds"] if answer["done"] else float("inf")
            best = min(best, tried[contestant.name])
            self.say(f"{race.slug:10} choosing settings: {_told(contestant.name, answer)}")
        told["search"] = {n: (round(s, 3) if s < float("inf") else None) for n, s in tried.items()}
        return sorted(NATIVES[: len(tried)], key=lambda c: tried[c.name])[:2]


def _faster(natives: list[Contestant], series: dict[str, list[Run]]) -> list[Contestant]:
    """The better one goes on; who has not come to the end loses to who has."""

    def seconds(contestant: Contestant) -> tuple[bool, float]:
        run = series[contestant.name][0]
        return not run["done"], run["seconds"] if run["done"] else -float(run["rows"])

    return [min((n for n in natives if series[n.name]), key=seconds)]


def short(answer: Run) -> Run:
    """What is kept of an answer: the median epoch instead of all, the first left out, which carries the start."""
    epochs = [e["seconds"] if isinstance(e, dict) else e for e in answer["epochs"]]
    run: Run = {k: answer[k] for k in ("seconds", "cpu", "peak", "done", "cpu_epoch", "state", "paths") if k in answer}
    if not answer["done"]:
        run["rows"] = sum(e["rows"] for e in answer["epochs"]) if "rows" not in answer else answer["rows"]
    if epochs[1:]:
        run["epoch"] = statistics.median(epochs[1:])
    return {k: round(v, 4) if isinstance(v, float) else v for k, v in run.items()}


def _told(name: str, run: Run) -> str:
    end = "" if run["done"] else ", not done"
    return f"{name:50} {run['seconds']:8.2f} s, CPU {run['cpu']:6.1f} s{end}"


def commit() -> str:
    found = subprocess.run(["git", "describe", "--always", "--dirty"], capture_output=True, text=True)
    return found.stdout.strip()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", default=[], help="cases whose names begin so; may be repeated")
    parser.add_argument("--list", action="store_true", help="name the cases")
    parser.add_argument("--quick", action="store_true", help="two repetitions, little patience, results elsewhere")
    parser.add_argument("--resume", action="store_true", help="leave out what was measured at this commit")
    scratch = Path(tempfile.gettempdir()) / "penstock-bench"
    parser.add_argument("--json", action="store_true", help="print the results at the end")
    parser.add_argument("--data", type=Path, default=scratch)
    parser.add_argument("--results", type=Path, default=None, help=f"instead of {RESULTS.name} beside this file")
    parser.add_argument("--environments", type=Path, default=ENVIRONMENTS, help="where `make bench-setup` put them")
    for package in ("pyflink", "pathway", "polars"):
        parser.add_argument(f"--{package}-python", default="", help=f"the Python of an environment with {package}")
    given = parser.parse_args()
    minutes = {**{r.slug: r.minutes for r in RACES}, **{slug: m for slug, (_, m) in OTHERS.items()}}
    if given.list:
        names = {**{r.slug: r.name for r in RACES}, **dict.fromkeys(OTHERS, "")}
        print("\n".join(f"{slug:12} {names[slug]:40} about {m:g} min" for slug, m in minutes.items()))
        return
    path = given.results or (scratch / "quick.json" if given.quick else RESULTS)
    pythons = environments(
        given.environments, {p: getattr(given, f"{p}_python") for p in ("pyflink", "pathway", "polars")}
    )
    bench = Bench(path, given.data, pythons, given.quick)
    bench.record = json.loads(path.read_text()) if path.exists() else {}
    bench.record["machine"] = f"{os.cpu_count()} cores, {platform.machine()}"
    cases = bench.record.setdefault("cases", {})
    wanted = [s for s in minutes if not given.only or any(s.startswith(o) for o in given.only)]
    if given.resume:
        wanted = [s for s in wanted if not (s in cases and cases[s]["complete"] and cases[s]["commit"] == commit())]
    measure(bench, wanted, minutes)
    if path == RESULTS:
        write_pages(bench.record)
    if given.json:
        print(json.dumps(bench.record))
    print(f"\nwritten: {path}" + (", and the pages made of it" if path == RESULTS else ""))


def measure(bench: Bench, wanted: list[str], minutes: dict[str, float]) -> None:
    races = {r.slug: r for r in RACES}
    planned = {s: 60 * minutes[s] for s in wanted}
    those: Pool | None = None
    for at, slug in enumerate(wanted):
        left = BUDGET - (time.monotonic() - bench.began)
        pace = min(1.0, max(0.1, left / sum(planned[s] for s in wanted[at:])))
        bench.say(f"=== {at + 1} of {len(wanted)}: {slug}, about {minutes[slug] * pace:.1f} min")
        if slug in races:
            package = races[slug].package
            if those is None or those.package != package:
                if those is not None:
                    those.close()
                those = Pool(package, bench.pythons)
            bench.race(those, races[slug], 5.0 if bench.quick else races[slug].patience * pace)
        else:
            if those is not None:
                those.close()
            those = None
            told = OTHERS[slug][0](bench.data, bench.say, quick=bench.quick)
            bench.note(slug, {**told, "kind": slug, "complete": True})
    if those is not None:
        those.close()


if __name__ == "__main__":
    main()
