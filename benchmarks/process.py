"""A contestant in a process of its own: it is given jobs as lines of JSON and answers each with a line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.joins.turn import Answer, Job
from benchmarks.measure import Peak, cpu_seconds

ROOT = Path(__file__).parents[1]


class Process:
    """Started at once, and ready when this returns; `ready` is what it says of itself then.

    What else it prints goes to the log, of which the end is shown if it dies.
    """

    def __init__(
        self, arguments: Sequence[str], log: Path, *, python: str = sys.executable, env: Mapping[str, str] | None = None
    ) -> None:
        self.name, self.log = " ".join(arguments), log
        with log.open("w") as errors:
            self.process = subprocess.Popen(
                [python, "-m", *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                cwd=ROOT,
                env={**os.environ, **(env or {})},
            )
        self.ready = self._answer()

    def _answer(self) -> Answer:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            last = "".join(self.log.read_text().splitlines(keepends=True)[-25:])
            raise RuntimeError(f"contestant {self.name} died:\n{last}")
        answer: Answer = json.loads(line)
        return answer

    def run(self, job: Job) -> Answer:
        """One turn, with what it cost: CPU seconds and the peak of memory, of all that it has started too."""
        assert self.process.stdin is not None
        before = cpu_seconds(self.process.pid)
        with Peak(self.process.pid) as peak:
            self.process.stdin.write(json.dumps(job) + "\n")
            self.process.stdin.flush()
            answer = self._answer()
        return {**answer, "cpu": cpu_seconds(self.process.pid) - before, "peak": peak.bytes}

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
