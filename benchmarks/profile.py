"""Where does the time go? CPU of the JVM, the driver and the workers, and within these by what they were doing.

    python -m benchmarks.profile         some minutes; `python -m benchmarks.bench` runs it as its last case

Workers are sampled (see `sampled/sitecustomize.py`), which costs them a few percent. What the exact sum costs is what a
run without it needs less.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.aggregates.workload import Windows
from benchmarks.contest import PENSTOCK, Pool
from benchmarks.joins.workload import Workload
from benchmarks.measure import cpu_by_kind
from benchmarks.process import ROOT
from benchmarks.races import Race

PHASES = ("read", "check", "pre-aggregate", "exchange", "read state", "merge", "write", "rest")


@dataclass(frozen=True)
class Portrait:
    """A race that is looked at closely, so many times."""

    race: Race
    times: int = 2

    @property
    def summed(self) -> bool:
        return isinstance(self.race.work, Windows) and self.race.work.rows > 1_000


PORTRAITS: tuple[Portrait, ...] = (
    Portrait(Race("few", "10 M rows in epochs of 5 M, 1 k keys", Windows(5_000_000, 2, 1_000)), times=4),
    Portrait(Race("big", "10 M rows in epochs of 5 M, 1 M keys", Windows(5_000_000, 2, 1_000_000))),
    Portrait(Race("join", "2 × 5 M rows joined, ten epochs", Workload("join", 500_000, 10))),
    Portrait(Race("small", "epochs of 50 k rows, 1 k keys", Windows(50_000, 20, 1_000)), times=4),
    Portrait(Race("tiny", "epochs of 10 rows", Windows(10, 60, 10)), times=4),
)


def sampled(folder: Path) -> dict[str, float]:
    """CPU seconds of all workers by phase, so far."""
    time.sleep(0.6)  # They tell four times a second.
    found: dict[str, float] = {}
    for path in folder.glob("*.json"):
        for phase, seconds in json.loads(path.read_text()).items():
            found[phase] = found.get(phase, 0.0) + seconds
    return found


def less(after: dict[str, float], before: dict[str, float]) -> dict[str, float]:
    return {k: v - before.get(k, 0.0) for k, v in after.items()}


def look(portrait: Portrait, data: Path, say: Callable[[str], None], times: int) -> dict[str, Any]:
    """One case: CPU seconds of one run, by process and by phase."""
    with tempfile.TemporaryDirectory(prefix="profile-") as name:
        folder = Path(name)
        paths = [str(ROOT / "benchmarks" / "sampled"), *filter(None, [os.environ.get("PYTHONPATH")])]
        those = Pool(portrait.race.package, env={"PENSTOCK_PROFILE": name, "PYTHONPATH": os.pathsep.join(paths)})
        try:
            for warm in (portrait.race.warm_up(), portrait.race.prefix()):
                _runs(those, warm, data, 1, stretch=True)
            before = sampled(folder)
            kinds, epochs = _runs(those, portrait.race, data, times)
            phases = less(sampled(folder), before)
            without = _runs(those, portrait.race, data, 1, sum=False)[0]["workers"] if portrait.summed else None
        finally:
            those.close()
    total = sum(phases.values())
    told: dict[str, Any] = {
        "name": portrait.race.name,
        "epochs": epochs,
        "cpu": {k: round(v / times, 4) for k, v in kinds.items()},
        "phases": {p: round(phases.get(p, 0.0) / total, 4) for p in PHASES},
    }
    if without is not None:
        told["exact sum"] = round(max(0.0, 1 - without * times / kinds["workers"]), 4)
    shares = ", ".join(f"{p} {told['phases'][p]:.0%}" for p in PHASES)
    say(f"profile    {portrait.race.slug:6} {', '.join(f'{k} {v:.2f} s' for k, v in told['cpu'].items())}; {shares}")
    return told


def _runs(those: Pool, race: Race, data: Path, times: int, **more: Any) -> tuple[dict[str, float], int]:
    """CPU seconds by kind of process over some runs, and the epochs of one."""
    spent: dict[str, float] = {}
    epochs = 0
    for _ in range(times):
        job, _found = race.prepared(PENSTOCK, data)
        with tempfile.TemporaryDirectory(prefix="profile-out-") as out:
            pid = those.pid(PENSTOCK)
            before = cpu_by_kind(pid)
            answer = those.run(PENSTOCK, {**job, **more, "out": out})
            for kind, seconds in less(cpu_by_kind(pid), before).items():
                spent[kind] = spent.get(kind, 0.0) + seconds
            epochs = len(answer["epochs"])
    return spent, epochs


def measure(data: Path, say: Callable[[str], None], *, quick: bool) -> dict[str, Any]:
    portraits = PORTRAITS
    if quick:
        portraits = tuple(replace(p, race=p.race.prefix()) for p in PORTRAITS)
    return {"cases": {p.race.slug: look(p, data, say, 1 if quick else p.times) for p in portraits}}


def main() -> None:
    from benchmarks.tables import profile_table

    told = measure(Path(tempfile.gettempdir()) / "penstock-bench", lambda text: print(text, flush=True), quick=False)
    print("\n" + profile_table(told))


if __name__ == "__main__":
    main()
