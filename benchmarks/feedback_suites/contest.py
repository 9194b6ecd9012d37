"""Contestants that take turns, each in a process of its own, and what comes of it.

The machine is never the same for long, so nobody runs twenty times in a row: all contestants run once, in an order that
changes, then all of them again. What is compared is the ratio within such a round. After some rounds the processes are
replaced, since how fast a Java process happens to be stays with it for life.
"""

from __future__ import annotations

import io
import math
import os
import shutil
import statistics
import subprocess
import tarfile
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.joins.turn import Answer, Job
from benchmarks.process import ROOT, Process

Series = dict[str, list[Answer]]

BEFORE = "ea18d66"
"""The last commit that knew nothing of feedback."""


@dataclass(frozen=True)
class Length:
    """So many rounds in each generation of processes, after so many to warm them up."""

    generations: int = 5
    rounds: int = 4
    warm: int = 3

    @property
    def runs(self) -> int:
        return self.generations * self.rounds


@dataclass(frozen=True)
class Contestant:
    """A name, the process it runs in (several may share one), and what its jobs say: mode, old code, plan."""

    name: str
    process: str = "now"
    mode: str = "silent"
    old: bool = False
    plan: str = ""


def started(name: str, source: Path | None, logs: Path) -> Process:
    """A contestant's process, with the Penstock of a given folder or the one that is installed."""
    paths = os.pathsep.join(str(p) for p in (source, ROOT) if p is not None)
    process = Process(["benchmarks.feedback_suites.turn"], logs / f"{name}.log", env={"PYTHONPATH": paths})
    where = Path(process.ready["ready"])
    if source is not None and source not in where.parents:
        raise RuntimeError(f"contestant {name} runs {where}, not what is in {source}")
    return process


@dataclass
class Contest:
    """The processes, started when their first turn comes."""

    before: str = BEFORE
    _processes: dict[str, Process] = field(default_factory=dict)
    _folder: Path = field(default_factory=lambda: Path(tempfile.mkdtemp(prefix="feedback-contest-")))

    def run(self, contestant: Contestant, job: Job) -> Answer:
        if contestant.process not in self._processes:
            source = self._old() if contestant.old else None
            self._processes[contestant.process] = started(contestant.process, source, self._folder)
        useless = job.get("epochs", 0) if contestant.mode == "told" else 0
        own = {"mode": contestant.mode, "useless": useless, **({"plan": contestant.plan} if contestant.plan else {})}
        return self._processes[contestant.process].run({**job, **own})

    def rounds(
        self,
        contestants: Sequence[Contestant],
        jobs: Mapping[str, Job],
        length: Length,
        note: Callable[[str], None],
        after: Callable[[str, Series], None],
    ) -> None:
        """All contestants in turns, job after job, and all of it again in new processes.

        `after` each generation, it is told by job what every contestant has answered so far.
        """
        found: dict[str, Series] = {job: {c.name: [] for c in contestants} for job in jobs}
        for generation in range(length.generations):
            self.close(keep=True)
            for name, job in jobs.items():
                for contestant in (*contestants,) * length.warm:
                    self.run(contestant, job)
                for turn in range(length.rounds):
                    for k in range(len(contestants)):
                        # A different order each time, so that nobody always runs after the same neighbour.
                        contestant = contestants[(turn + k) % len(contestants)]
                        answer = {**self.run(contestant, job), "generation": generation}
                        found[name][contestant.name].append(answer)
                        note(
                            f"{name} {generation * length.rounds + turn + 1}/{length.runs} {contestant.name:14} "
                            f"{answer['seconds']:7.2f} s, CPU {answer['cpu']:6.2f} s"
                        )
                after(name, found[name])

    def _old(self) -> Path:
        """The source as it was before, taken out of the repository."""
        folder = self._folder / "before"
        if not folder.exists():
            packed = subprocess.run(["git", "archive", self.before, "src"], cwd=ROOT, capture_output=True, check=True)
            with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as files:
                files.extractall(folder, filter="data")
        return folder / "src"

    def close(self, *, keep: bool = False) -> None:
        """End all processes; `keep` the folder for others to come."""
        for process in self._processes.values():
            process.close()
        self._processes.clear()
        if not keep:
            shutil.rmtree(self._folder, ignore_errors=True)


def summary(runs: Sequence[Answer], what: str = "seconds") -> dict[str, float]:
    """Mean, standard deviation and range."""
    values = [float(r[what]) for r in runs]
    spread = statistics.stdev(values) if len(values) > 1 else 0.0
    return {
        "mean": statistics.fmean(values),
        "sigma": spread,
        "median": statistics.median(values),
        "low": min(values),
        "high": max(values),
    }


def ratio(runs: Sequence[Answer], base: Sequence[Answer], what: str = "seconds") -> dict[str, float]:
    """How many times the base, round by round: the geometric mean, its standard error as a factor, and the quartiles.

    Rounds of one generation have their processes in common, so it is generations that are independent of each other.

    >>> found = ratio([{"seconds": 2.0}, {"seconds": 4.0}], [{"seconds": 1.0}, {"seconds": 2.0}])
    >>> found["mean"], found["error"]
    (2.0, 0.0)
    """
    logs = [math.log(float(r[what]) / float(b[what])) for r, b in zip(runs, base, strict=True)]
    generations = [r.get("generation", 0) for r in runs]
    means = [statistics.fmean(x for x, g in zip(logs, generations) if g == k) for k in sorted(set(generations))]
    apart = means if len(means) > 2 else logs
    error = statistics.stdev(apart) / math.sqrt(len(apart)) if len(apart) > 1 else 0.0
    low, _, high = statistics.quantiles(logs, n=4, method="inclusive") if len(logs) > 1 else [logs[0]] * 3
    return {
        "mean": math.exp(statistics.fmean(logs)),
        "median": math.exp(statistics.median(logs)),
        "error": error,
        "low": math.exp(low),
        "high": math.exp(high),
    }
