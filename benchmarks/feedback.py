"""What does feedback cost, and what does it save? The five published experiments on Spark, and one on real flights.

    python -m benchmarks.feedback                all of it, with the published counts: an hour and a half
    python -m benchmarks.feedback --quick        a look at everything, in minutes; the counts are smaller
    python -m benchmarks.feedback --only 4,5     some of the suites: 1, 2, 3, 4, 5, flights

1  What it costs to be able to listen: the code before feedback, the present code, and the present code with one useless
   feedback in every epoch, on three plans.
2  What it costs to pass feedback on: one in every epoch through 1, 5, 10 and 15 selections.
3  Useful work: an expensive function that falls behind, with UNION, with PACE, and with PACE that says so upstream.
4  How far upstream: a hundred windows that nobody wants, known to the average, the window, the join, the scan.
5  Resources: three queries of which hardly anything is wanted; rows read at the source.
Flights: missing delays are estimated by an expensive function; who is an hour old is of no interest.

Contestants run in processes of their own and take turns; ratios are taken within a round.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from benchmarks.feedback_suites.air import write as write_flights
from benchmarks.feedback_suites.contest import BEFORE, Contest, Contestant, Length, Series, ratio, summary
from benchmarks.feedback_suites.picture import draw
from benchmarks.feedback_suites.queries import LEVELS, UNWANTED
from benchmarks.feedback_suites.report import write_markdown
from benchmarks.feedback_suites.traffic import DAY, Traffic
from benchmarks.feedback_suites.traffic import write as write_traffic
from benchmarks.joins.turn import Job

RESULTS = Path(__file__).parent / "results"
SUITES = ("1", "2", "3", "4", "5", "flights")

OLD = Contestant("before", process="before", old=True)
OLD_AGAIN = Contestant("before, again", process="before-again", old=True)
# Each in a process of its own: whoever shares one runs twice as often and is warm the sooner.
IDLE = Contestant("idle", process="idle")
TOLD = Contestant("told", process="told", mode="told")
NOT_TOLD = Contestant("without")
WITH = Contestant("with", mode="told")


@dataclass(frozen=True)
class Size:
    """How much of everything."""

    minutes: int = DAY
    dirty_minutes: int = DAY // 2
    rows: int = 27_000
    """Reports in an epoch: an hour of them."""
    length: Length = field(default_factory=Length)
    months: tuple[int, ...] = tuple(range(1, 13))
    flights: int = 40
    """Flights in an epoch: about an hour of them."""
    budget: int = 43
    """Suite 3: rows that the expensive function gets in an epoch of a minute, of 225 that come. Published: 19 %."""
    micros: int = 200
    """Suite 3: what a row costs it."""
    estimates: int = 2
    """Flights: rows that the expensive function gets in an epoch."""


QUICK = Size(minutes=120, dirty_minutes=20, rows=4_500, length=Length(1, 2, 1), months=(2,))


@dataclass
class Bench:
    """One run of the benchmark."""

    contest: Contest
    size: Size
    data: Path
    results: Path
    control: bool
    record: dict[str, Any] = field(default_factory=dict)

    def traffic(self, **more: Any) -> str:
        minutes = self.size.dirty_minutes if more.get("dirty") else self.size.minutes
        part = min(60, minutes)
        return str(write_traffic(Traffic(minutes, part, 10, **more), self.data))

    def _note(self, told: str) -> None:
        print(f"  {told}", flush=True)

    def _rounds(
        self,
        contestants: tuple[Contestant, ...],
        suite: str,
        jobs: dict[str, Job],
        after: Callable[[str, Series], None],
    ) -> None:
        def write(name: str, series: Series) -> None:
            after(name, series)
            self.write()

        self.contest.rounds(
            contestants, jobs, self.size.length, lambda told: self._note(f"suite {suite}: {told}"), write
        )

    # --- what it costs ------------------------------------------------------------------------------------------

    def suite_1(self) -> None:
        there = (OLD, *((OLD_AGAIN,) if self.control else ()), IDLE, TOLD)
        jobs = {plan: self._overhead("1", plan) for plan in ("a", "b", "c")}
        self._rounds(there, "1", jobs, lambda plan, series: self._compare("1", plan, series, OLD.name))

    def suite_2(self) -> None:
        jobs = {length: self._overhead("2", length) for length in ("1", "5", "10", "15")}
        self._rounds((IDLE, TOLD), "2", jobs, lambda plan, series: self._compare("2", plan, series, IDLE.name))

    def _overhead(self, suite: str, plan: str) -> Job:
        epochs = -(-self.size.minutes * Traffic().a_minute // self.size.rows)
        return {"suite": suite, "plan": plan, "data": self.traffic(), "rows": self.size.rows, "epochs": epochs}

    def _compare(self, suite: str, plan: str, series: Series, base: str) -> None:
        out = {r["rows_out"] for runs in series.values() for r in runs}
        if len(out) != 1:
            raise SystemExit(f"suite {suite} ({plan}): the contestants do not agree: {out} results")
        told: dict[str, Any] = {"rows_out": out.pop(), "epochs": series[base][0]["epochs"], "series": {}}
        for name, runs in series.items():
            told["series"][name] = {
                "seconds": summary(runs),
                "cpu": summary(runs, "cpu"),
                "ratio": ratio(runs, series[base]),
                "ratio cpu": ratio(runs, series[base], "cpu"),
                "guards": max(r["guards"] for r in runs),
                "runs": [{k: r[k] for k in ("seconds", "cpu", "generation", "epochs", "said")} for r in runs],
            }
        self.record.setdefault(suite, {})[plan] = told

    # --- useful work ----------------------------------------------------------------------------------------------

    def suite_3(self) -> None:
        job = {
            "suite": "3",
            "data": self.traffic(dirty=True),
            "rows": Traffic().a_minute,
            "budget": self.size.budget,
            "micros": self.size.micros,
        }
        found: dict[str, Any] = {"minutes": self.size.dirty_minutes, "budget": self.size.budget, "plans": {}}
        self.record["3"] = found
        self.contest.run(WITH, {**job, "plan": "c", "data": str(write_traffic(Traffic(10, 10, 10, True), self.data))})
        for plan in ("a", "b", "c"):
            answer = self.contest.run(WITH, {**job, "plan": plan})
            answer.pop("epoch_seconds")
            found["plans"][plan] = answer
            self._note(
                f"suite 3 ({plan}) {answer['seconds']:7.1f} s, {answer['calls']:,} calls, {answer['rows_out']:,} out, "
                f"{answer['useful']:,} useful"
            )
            self.write()

    # --- how far upstream -----------------------------------------------------------------------------------------

    def suite_4(self) -> None:
        job = {"suite": "4", "data": self.traffic(), "rows": self.size.rows, "unwanted": UNWANTED}
        found = self.record["4"] = {"minutes": self.size.minutes, "unwanted": UNWANTED, "levels": {}}
        for level in LEVELS:
            counted = self.contest.run(WITH, {**job, "plan": level, "tapped": True})
            plain = self.contest.run(WITH, {**job, "plan": level})
            told = {"operators": counted["operators"], "read": plain["read"], "saved": plain["saved"]}
            told["expected"] = expected(level, self.size.minutes)
            told["exact"] = told["operators"] == told["expected"] and plain["rows_out"] == counted["rows_out"]
            found["levels"][level] = told
            self._note(f"suite 4 ({level}) {told['operators']} {'as expected' if told['exact'] else 'NOT AS EXPECTED'}")
        there = tuple(Contestant(level, mode="told", plan=level) for level in LEVELS)

        def after(_: str, series: Series) -> None:
            for level, runs in series.items():
                found["levels"][level] |= {"seconds": summary(runs), "ratio": ratio(runs, series[LEVELS[0]])}

        self._rounds(there, "4", {"": job}, after)

    # --- resources --------------------------------------------------------------------------------------------------

    def suite_5(self) -> None:
        jobs = {
            query: {"suite": "5", "plan": query, "data": self.traffic(), "rows": self.size.rows}
            for query in ("1", "2", "3")
        }
        counts: dict[str, Any] = {query: {} for query in jobs}
        for query, job in jobs.items():
            for contestant in (NOT_TOLD, WITH):
                answer = self.contest.run(contestant, {**job, "tapped": True})
                counts[query][contestant.name] = {k: answer[k] for k in ("operators", "read", "saved", "rows_out")}

        def after(query: str, series: Series) -> None:
            told: dict[str, Any] = {"counts": counts[query]}
            for name, runs in series.items():
                told[name] = {
                    "seconds": summary(runs),
                    "cpu": summary(runs, "cpu"),
                    "ratio": ratio(runs, series[NOT_TOLD.name]),
                    "ratio cpu": ratio(runs, series[NOT_TOLD.name], "cpu"),
                    "read": runs[-1]["read"],
                    "saved": runs[-1]["saved"],
                    "rows_out": runs[-1]["rows_out"],
                }
            self.record.setdefault("5", {})[query] = told

        self._rounds((NOT_TOLD, WITH), "5", jobs, after)

    # --- flights ----------------------------------------------------------------------------------------------------

    def suite_flights(self) -> None:
        data = write_flights(self.data, self.size.months)
        job = {"suite": "flights", "data": str(data), "rows": self.size.flights, "budget": self.size.estimates}
        found: dict[str, Any] = {"months": self.size.months, "budget": self.size.estimates, "runs": {}}
        self.record["flights"] = found
        self.contest.run(WITH, {**job, "rows": 1_000})  # To warm up.
        for contestant in (NOT_TOLD, WITH):
            answer = self.contest.run(contestant, job)
            answer.pop("epoch_seconds")
            found["runs"][contestant.name] = answer
            self._note(
                f"flights, {contestant.name} feedback: {answer['calls']:,} calls, {answer['call_seconds']:.1f} CPU s "
                f"in them, {answer['cpu']:.1f} altogether"
            )
            self.write()

    def write(self) -> None:
        """After every measurement, so that a run that is stopped has not been for nothing."""
        self.results.mkdir(parents=True, exist_ok=True)
        (self.results / "feedback.json").write_text(json.dumps(self.record, indent=1) + "\n")
        write_markdown(self.record, self.results / "feedback.md")
        draw(self.record, self.results / "feedback.png")


def expected(level: str, minutes: int, unwanted: int = UNWANTED) -> dict[str, int]:
    """Suite 4: events out, if feedback is there before the first of them is read.

    >>> expected("join", 1440)
    {'BUCKET': 603000, 'JOIN': 603000, 'AVERAGE': 1340}
    """
    reached, whole = LEVELS.index(level), minutes * Traffic().a_minute
    less = whole - unwanted * Traffic().a_minute
    return {
        "BUCKET": less if reached >= 2 else whole,
        "JOIN": less if reached >= 3 else whole,
        "AVERAGE": minutes - unwanted if reached >= 1 else minutes,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small data, two runs")
    parser.add_argument("--only", default="", help="suites, separated by commas")
    parser.add_argument("--generations", type=int, default=None, help="how often processes are replaced (5)")
    parser.add_argument("--rounds", type=int, default=None, help="runs of each contestant in a generation (4)")
    parser.add_argument("--no-control", action="store_true", help="suite 1 without the old code against itself")
    parser.add_argument("--before", default=BEFORE, help="the commit that knows nothing of feedback")
    parser.add_argument("--data", type=Path, default=Path(tempfile.gettempdir()) / "penstock-bench" / "feedback")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder for the tables and the picture")
    given = parser.parse_args()
    size = QUICK if given.quick else Size()
    asked = {k: v for k, v in (("generations", given.generations), ("rounds", given.rounds)) if v is not None}
    size = replace(size, length=replace(size.length, **asked))
    wanted = [s.strip() for s in given.only.split(",") if s.strip()] or SUITES
    for suite in wanted:
        if suite not in SUITES:
            parser.error(f"no suite {suite}: {', '.join(SUITES)}")
    contest = Contest(given.before)
    bench = Bench(contest, size, given.data, given.results, not given.no_control)
    stored = given.results / "feedback.json"
    if given.only and stored.exists():
        bench.record = json.loads(stored.read_text())  # The other suites stay as they were measured.
    machine = f"{os.cpu_count()} cores, {platform.machine()}"
    bench.record |= {"machine": machine, "before": given.before}
    try:
        for suite in wanted:
            bench.record.pop(suite, None)
            bench.record.setdefault("sizes", {})[suite] = "quick" if given.quick else "full"
            getattr(bench, f"suite_{suite}")()
    finally:
        contest.close()
    print("\n" + (given.results / "feedback.md").read_text())
    print(f"written: {given.results}/feedback.json, feedback.md and feedback.png")


if __name__ == "__main__":
    main()
