"""The changes that other systems tell of the same events: Pathway epoch by epoch, PyFlink event by event.

Only where their environments are: `make bench-setup` makes them.
"""

from __future__ import annotations

import csv
import json
import os
import random
import subprocess
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from backend import on_kernels
from case import Case, Cut, Feed
from test_speculation import at_once

from penstock.engine.spark.java import find_java
from penstock.plan.weight import WEIGHT

ROOT = Path(__file__).parents[2]
Bag = Counter[tuple[Any, ...]]


def python_of(package: str) -> str:
    path = ROOT / ".venv-bench" / package / "bin" / "python"
    if not path.with_name("python").exists() or not (path.parents[1] / ".ready").exists():
        pytest.skip(f"no environment with {package}: make bench-setup")
    return str(path)


def net(changes: Iterable[tuple[int, tuple[Any, ...]]]) -> Bag:
    """What changes come to; what is told and taken back is nothing."""
    total: Bag = Counter()
    for sign, row in changes:
        total[row] += sign
    return Counter({row: n for row, n in total.items() if n})


def events(seed: int, count: int) -> list[dict[str, Any]]:
    """In order of arrival, some far behind."""
    rng = random.Random(seed)
    return [
        {
            "ts": i - (rng.randrange(40) if rng.random() < 0.3 else 0),
            "k": rng.choice("abc"),
            "id": i,
            "n": rng.randrange(9),
        }
        for i in range(100, 100 + count)
    ]


def told(query: str, rows: list[dict[str, Any]], epoch: int) -> list[Bag]:
    """By epoch the changes that Penstock tells."""
    case = Case(query, (Feed("s", tuple(("", r) for r in rows)),))
    found = on_kernels(case, Cut(file_rows=epoch, max_rows=epoch), change=at_once)
    return [
        net((r[WEIGHT], tuple(v for n, v in r.items() if n != WEIGHT)) for r in found.epochs.get(e, []))
        for e in range(1, -(-len(rows) // epoch) + 1)
    ]


def test_pathway_tells_the_same_changes_of_windowed_counts(tmp_path: Path) -> None:
    """Epoch by epoch, however its windows are written."""
    rows, epoch, size = events(3, 300), 7, 10
    with (tmp_path / "rows.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["epoch", "ts", "key", "value"])
        writer.writerows([i // epoch, r["ts"], ord(r["k"]), r["n"]] for i, r in enumerate(rows))
    job = {"data": str(tmp_path / "rows.csv"), "width": size, "cutoff": None, "changes": True}
    jobs = [json.dumps({**job, "how": how}) for how in ("windows", "computed")]
    command = [python_of("pathway"), "-m", "benchmarks.speculating.on_pathway"]
    ran = subprocess.run(command, input="\n".join(jobs) + "\n", capture_output=True, text=True, cwd=ROOT, timeout=240)
    assert ran.returncode == 0, ran.stderr[-2000:]
    ours = told(f"s.window({size}).group_by('k').agg(n='count(*)', s='sum(n)')", rows, epoch)
    for line in ran.stdout.splitlines()[1:]:
        theirs: dict[int, list[tuple[int, tuple[Any, ...]]]] = {}
        for number, window, key, n, s, sign in json.loads(line)["told"]:
            theirs.setdefault(number, []).append((sign, (window, chr(key), n, s)))
        assert [net(theirs.get(e, [])) for e in range(len(ours))] == ours
    assert sum(n < 0 for bag in ours for n in bag.values()) > 50


def test_flink_tells_the_same_changes_of_aggregates_of_aggregates() -> None:
    """Of one aggregate after every event; of two in a row all that holds in the end, of which Flink too takes back."""
    rows = events(5, 60)
    inner = "SELECT k, count(*) AS c, sum(n) AS s FROM s GROUP BY k"
    queries = [inner, f"SELECT c, count(*) AS keys, max(s) AS most FROM ({inner}) GROUP BY c"]
    given = {"schema": [["k", "string"], ["n", "int"]], "rows": [[r["k"], r["n"]] for r in rows], "queries": queries}
    env = {**os.environ, "JAVA_HOME": os.environ.get("JAVA_HOME") or str(find_java().home)}
    command = [python_of("pyflink"), str(Path(__file__).with_name("on_flink.py"))]
    ran = subprocess.run(command, input=json.dumps(given), capture_output=True, text=True, env=env, timeout=240)
    assert ran.returncode == 0, ran.stderr[-2000:]
    one, two = ([(sign, tuple(row)) for sign, row in changes] for changes in json.loads(ran.stdout))
    ours = told("s.group_by('k').agg(c='count(*)', s='sum(n)')", rows, 1)
    steps = [net(one[i:j]) for i, j in _by_event(one)]
    assert steps == ours
    chained = told(
        "s.group_by('k').agg(c='count(*)', s='sum(n)').group_by('c').agg(keys='count(*)', most='max(s)')", rows, 1
    )
    assert net(two) == net((n, row) for bag in chained for row, n in bag.items())
    assert any(sign < 0 for sign, _ in two)


def _by_event(changes: list[tuple[int, tuple[Any, ...]]]) -> list[tuple[int, int]]:
    """Where the changes of one event begin and end: the first of a key is +1, later ones are −1 and +1."""
    ends = [i + 1 for i, (sign, _) in enumerate(changes) if sign > 0]
    return list(zip([0, *ends], ends))
