"""Run a query in the foreground: start Spark, show progress, heed Ctrl-C, sum up."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NoReturn

from rich.console import Console
from rich.live import Live

from penstock.engine.progress import Progress
from penstock.engine.query import Queries
from penstock.engine.run import Run
from penstock.engine.tally import since
from penstock.engine.terminal import json_safe, say
from penstock.pattern.types import value_to_json
from penstock.portal.live import View, plain_line, short_time
from penstock_command import INTERRUPTED

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Mode = Literal["live", "lines", "json", "quiet"]


def choose_mode(*, as_json: bool, quiet: bool, terminal: bool | None = None) -> Mode:
    """How to show progress.

    >>> choose_mode(as_json=False, quiet=False, terminal=False)
    'lines'
    """
    if as_json:
        return "json"
    if quiet:
        return "quiet"
    return "live" if (sys.stdout.isatty() if terminal is None else terminal) else "lines"


class Interrupt:
    """The first Ctrl-C asks the run to finish its epoch, the second ends the process at once."""

    def __init__(self, on_first: Callable[[], None], on_second: Callable[[], None]) -> None:
        self.asked = threading.Event()
        self._on_first, self._on_second = on_first, on_second

    def __call__(self, number: int, frame: object) -> None:
        if self.asked.is_set():
            self._on_second()
        else:
            self.asked.set()
            self._on_first()

    @contextlib.contextmanager
    def installed(self) -> Iterator[None]:
        """Take over from Spark's own handler, which would cancel the jobs of the epoch that is to finish."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {s: signal.signal(s, self) for s in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


@dataclass
class ForegroundRun:
    """One run in the foreground."""

    title: str
    mode: Mode
    console: Console

    def __post_init__(self) -> None:
        self.view = View(self.title)
        self._live: Live | None = None

    def run(
        self,
        query: Queries,
        options: Mapping[str, Any],
        spark: SparkSession | None = None,
        master: str | None = None,
        packed: str | None = None,
    ) -> Run:
        """Start the query, or several together, show it until it ends, and return the run, which is over."""
        interrupt = Interrupt(self._finishing, self._give_up)

        def ready() -> SparkSession:
            session = self.start_spark(master, packed) if spark is None else spark
            self.view.running()
            return session

        with interrupt.installed(), self._shown():
            run = query.start(spark=ready, listener=self._hear, **options)
            self._resume(run.resumed.epoch)
            told = 0
            while run.active and not interrupt.asked.is_set():
                told = self._warn(run, told)
                time.sleep(0.05)
            try:
                run.stop() if interrupt.asked.is_set() else run.wait()
            finally:
                self._warn(run, told)
        return run

    def _resume(self, epoch: int) -> None:
        self.view.resumed = epoch
        if epoch and self.mode == "lines" and self.view.last is None:
            self.console.print(f"goes on after epoch {epoch}")

    def start_spark(self, master: str | None, packed: str | None = None) -> SparkSession:
        from penstock.engine.spark.session import spark_session

        if self.mode == "lines":
            self.console.print("starting Spark …")
        began = time.monotonic()
        session = spark_session(master, packed=packed)
        if self.mode == "lines":
            self.console.print(f"Spark is up after {short_time(time.monotonic() - began)}")
        return session

    @contextlib.contextmanager
    def _shown(self) -> Iterator[None]:
        if self.mode != "live":
            yield
            return
        with Live(self.view, console=self.console, refresh_per_second=6, transient=False) as live:
            self._live = live
            try:
                yield
            finally:
                self._live = None

    def _hear(self, progress: Progress) -> None:
        self.view.take(progress)
        if self.mode == "lines":
            self.console.print(plain_line(progress), soft_wrap=True)
        elif self.mode == "json":
            say_json({"type": "epoch", **progress.to_json()})

    def _warn(self, run: Run, told: int) -> int:
        """Say the warnings that are new; how many have been said."""
        warnings = run.warnings[told:]
        for warning in warnings:
            self._say(f"warning: {warning}")
        return told + len(warnings)

    def _say(self, text: str) -> None:
        if self.mode != "quiet":
            say(text, file=sys.stderr)

    def _finishing(self) -> None:
        if self.view.stage != "running":  # No epoch is under way: Spark is starting.
            self._end("stopped")
        epoch = (self.view.last.epoch if self.view.last is not None else self.view.resumed) + 1
        self.view.stage = "stopping"
        self._say(f"finishing epoch {epoch} … (Ctrl-C again to stop at once)")

    def _give_up(self) -> None:
        # Not sys.exit: that would wait for the scan. A crash at any moment is what the checkpoint is made for.
        self._end("stopped at once: the epoch under way will be run again on the next start")

    def _end(self, text: str) -> NoReturn:
        if self._live is not None:
            self._live.stop()
        self._say(text)
        with contextlib.suppress(Exception):  # It may have been interrupted while it was printing.
            sys.stdout.flush()
        os._exit(INTERRUPTED)

    def summary(self, run: Run) -> dict[str, Any]:
        """What a finished run amounts to."""
        waiting = sorted({f"{name}: {why}" for r in run.driver.readers.values() for name, why in r.waiting})
        # By totals, not by the history, which forgets the first epochs of a long run.
        manifest, totals, before = run.driver.manifest, run.driver.manifest.totals, run.resumed.totals
        held = [r for runs in manifest.units.values() for r in runs]
        rows, size = sum(r.live for r in held), sum(r.bytes for r in held)
        return {
            "type": "summary",
            "query": self.title,
            "epochs": self.view.epochs,
            "last_epoch": manifest.epoch,
            "seconds": round(self.view.elapsed, 3),
            "rows_in": totals.get("rows_in", 0) - before.get("rows_in", 0),
            "rows_out": totals.get("rows_out", 0) - before.get("rows_out", 0),
            "total_rows_in": totals.get("rows_in", 0),
            "total_rows_out": totals.get("rows_out", 0),
            "dead": since(before.get("dead", {}), totals.get("dead", {})),
            "total_dead": dict(totals.get("dead", {})),
            "saved": since(before.get("saved", {}), totals.get("saved", {})),
            "state_rows": rows,
            "peak_state_rows": max(rows, self.view.peak_rows),
            "peak_state_bytes": max(size, self.view.peak_bytes),
            "waiting": waiting,
        }


def say_json(body: Mapping[str, Any]) -> None:
    """One object on one line of stdout, at once.

    >>> say_json({"mean": float("nan"), "within": [1.5, float("-inf")]})
    {"mean": "nan", "within": [1.5, "-inf"]}
    """
    text = json.dumps(_finite(body), default=str, ensure_ascii=False, allow_nan=False)
    print(json_safe(text), flush=True)


def _finite(value: Any) -> Any:
    """A value in which numbers that JSON cannot write are texts: few readers take a bare NaN or Infinity."""
    if isinstance(value, Mapping):
        return {key: _finite(v) for key, v in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(v) for v in value]
    return value_to_json(value) if isinstance(value, float) else value
