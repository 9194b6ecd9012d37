"""The live view of a running query, and its one-line-per-epoch form for pipes and log files.

A `View` only collects what a run tells and draws itself from that; time comes from a clock it is given, so a test can
fabricate any moment.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from penstock.engine.progress import Progress
from penstock.engine.source.promises.disorder import Disorderliness
from penstock.errors import counted
from penstock.portal.savings import Savings
from penstock.shedding.policy import percent

BARS = "▁▂▃▄▅▆▇█"
#: Lag behind the clock beyond which the events are plainly history that is being replayed.
REPLAYED = 365 * 86_400.0
#: Operators whose savings are shown one by one.
_SAVERS = 3
#: Seconds over which rates are averaged: long enough to be read, short enough to follow.
RECENT = 5.0


def sparkline(values: list[float], width: int = 32) -> str:
    """The last values as bars, the greatest of them at full height.

    >>> sparkline([0, 1, 2, 4])
    '▁▂▄█'
    """
    shown = values[-width:]
    top = max(shown, default=0.0)
    return "".join(BARS[min(7, int(v / top * 7.999))] if top > 0 else BARS[0] for v in shown)


def short_count(n: float) -> str:
    """
    >>> short_count(950), short_count(1_234_567), short_count(45_300)
    ('950', '1.23 M', '45.3 k')
    """
    for limit, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if n >= limit:
            return f"{n / limit:.3g} {unit}" if n < 1000 * limit else f"{n / limit:,.0f} {unit}"
    return f"{n:.0f}"


def short_bytes(n: float) -> str:
    """
    >>> short_bytes(512), short_bytes(96 * 1024)
    ('512 B', '96 KiB')
    """
    for unit in ("B", "KiB", "MiB", "GiB"):
        if n < 1024:
            return f"{n:.3g} {unit}" if n < 1000 else f"{n:.0f} {unit}"
        n /= 1024
    return f"{n:,.1f} TiB"


def short_time(seconds: float) -> str:
    """
    >>> short_time(0.042), short_time(3.21), short_time(150), short_time(90_000)
    ('42 ms', '3.2 s', '2 min 30 s', '25 h 0 min')
    """
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 100:
        return f"{seconds:.1f} s"
    if seconds < 7200:
        return f"{int(seconds // 60)} min {int(seconds % 60)} s"
    if seconds < 4 * 86_400:
        return f"{int(seconds // 3600)} h {int(seconds % 3600 // 60)} min"
    return f"{seconds / 86_400:.0f} days"


def lag_text(frontier: str | None, lag: float | None) -> str:
    """How far a frontier is behind the clock, in words.

    >>> lag_text("2026-01-01 00:00:00", 3.2), lag_text("2013-01-01 00:00:00", 4e8), lag_text("end", 4e8)
    ('3.2 s behind the clock', 'replayed', 'complete')
    """
    if frontier is None:
        return "nothing promised yet"
    if frontier == "end":
        return "complete"
    if lag is None:
        return ""
    if lag > REPLAYED:
        return "replayed"
    return f"{short_time(lag)} behind the clock" if lag >= 0 else f"{short_time(-lag)} ahead of the clock"


@dataclass
class View:
    """Everything a run has told so far, drawn on demand.

    >>> view = View("slow.py", clock=lambda: 1.0)
    >>> view.take(Progress(1, 1000, 10, 0.5, 0.3, 0.2, 7, 2048, 1))
    >>> view.peak_rows
    7
    """

    title: str
    clock: Callable[[], float] = time.monotonic
    stage: str = "starting Spark"
    began: float = 0.0
    last: Progress | None = None
    resumed: int = 0
    """The last epoch of earlier runs."""
    epochs: int = 0
    peak_rows: int = 0
    peak_bytes: int = 0
    _told: deque[tuple[float, int, int]] = field(default_factory=lambda: deque(maxlen=512))
    _rates: deque[float] = field(default_factory=lambda: deque(maxlen=512))

    def __post_init__(self) -> None:
        self.began = self.clock()
        self._told.append((self.began, 0, 0))

    def running(self) -> None:
        """Spark is up; the first epoch begins."""
        self.stage = "running"
        self.began = self.clock()
        self._told.clear()
        self._told.append((self.began, 0, 0))

    def take(self, progress: Progress) -> None:
        """The listener of a run."""
        now = self.clock()
        before = self._told[-1][0]
        self._rates.append(progress.rows_in / max(now - before, 1e-3))
        self._told.append((now, progress.rows_in, progress.rows_out))
        self.last = progress
        self.epochs += 1
        self.peak_rows = max(self.peak_rows, progress.state_rows)
        self.peak_bytes = max(self.peak_bytes, progress.state_bytes)

    @property
    def elapsed(self) -> float:
        return self.clock() - self.began

    def rates(self) -> tuple[float, float]:
        """Rows a second, in and out, over the last seconds. A run that has stalled goes to zero."""
        now = self.clock()
        since = max(self.began, now - RECENT)
        # The epoch that ends inside the stretch counts whole, so the stretch begins where that epoch began.
        inside = [t for t in self._told if t[0] > since]
        earlier = [t[0] for t in self._told if t[0] <= since]
        if not inside:
            return 0.0, 0.0
        span = max(now - (earlier[-1] if earlier else self.began), 1e-3)
        return sum(t[1] for t in inside) / span, sum(t[2] for t in inside) / span

    # --- drawing ------------------------------------------------------------------------------------------------

    def __rich__(self) -> RenderableType:
        if self.last is None:
            seconds = int(self.elapsed)
            what = self.stage
            if self.stage == "running":
                # Whether there is nothing new, or the epoch takes its time, cannot be seen from here.
                next_one = f"epoch {self.resumed + 1}, the first after a restart" if self.resumed else "the first epoch"
                what = f"waiting for {next_one}"
            return Text.assemble(("● ", "cyan"), f"{self.title}: {what} … {seconds} s")
        p = self.last
        rate_in, rate_out = self.rates()
        grid = Table.grid(padding=(0, 2))
        grid.add_column(style="dim", min_width=8)
        grid.add_column(justify="right", min_width=12)
        grid.add_column(ratio=1, overflow="ellipsis", no_wrap=True)
        total_in = counted(p.total_rows_in, "row")
        grid.add_row(
            "in",
            f"{short_count(rate_in)} rows/s",
            Text.assemble((sparkline(list(self._rates)), "cyan"), "  ", total_in),
        )
        grid.add_row("out", f"{short_count(rate_out)} rows/s", counted(p.total_rows_out, "row"))
        parts = f"scan {short_time(p.scan_seconds)} · merge {short_time(p.merge_seconds)}"
        grid.add_row("epoch", short_time(p.seconds), parts)
        state = f"{short_bytes(p.state_bytes)} · {counted(p.state_runs, 'run')} · peak {counted(self.peak_rows, 'row')}"
        grid.add_row("state", counted(p.state_rows, "row"), state)
        for name, frontier in p.frontier.items():
            lag = lag_text(frontier, p.lag_seconds.get(name))
            shown = "all" if frontier == "end" else _to_second(frontier or "–")
            grid.add_row("frontier", name, f"{shown}  {lag}".rstrip())
        for name, seen in p.disorder.items():
            for attribute, d in seen.items():
                grid.add_row("disorder", name, Disorderliness(**d).text(f" in {attribute}"))
        for name, at in p.speculation.items():
            grid.add_row("dial", name, _dial(at))
        if p.speculation:
            grid.add_row("corrected", f"{p.retraction_ratio:.1%}", f"{counted(p.total_retracted, 'row')} taken back")
            for name, up_to in p.final_up_to.items():
                grid.add_row("final", name, _final(up_to))
        dead = sum(p.total_dead.values())
        reasons = " · ".join(f"{reason} {count:,}" for reason, count in sorted(p.total_dead.items()))
        grid.add_row("dead", Text(f"{dead:,}", style="yellow" if dead else ""), Text(reasons, style="yellow"))
        for label, value, more in shedding_lines(p):
            grid.add_row(label, value, Text(more, style="yellow" if p.shed else ""))
        if p.guards or p.total_saved:
            grid.add_row("feedback", _guards(p), _spared(p))
            for operator, saved in Savings.by_operator(p.total_saved)[:_SAVERS]:
                grid.add_row("", operator, Text(saved.detail(), style="dim"))
        body: list[RenderableType] = [grid]
        body += [Text(f"told by {p.told}", style="dim")] if p.told else []
        body += [Text(f"waiting for {w}", style="dim") for w in p.waiting[:3]]
        heading = Text(f"{self.title} · epoch {p.epoch} · {self.stage} {short_time(self.elapsed)}")
        return Panel(Group(*body), title=heading, title_align="left", border_style="cyan", padding=(0, 1))


def plain_line(p: Progress) -> str:
    """One epoch as one line, for stdout that is not a terminal.

    >>> plain_line(Progress(3, 1000, 10, 0.5, 0.3, 0.2, 7, 2048, 1, frontier={"s": "2013-01-01 00:00:00"}))
    'epoch 3: 1,000 rows in, 10 out, 500 ms (scan 300 ms, merge 200 ms), state 7 rows 2 KiB, s to 2013-01-01 00:00:00'
    """
    parts = [
        f"epoch {p.epoch}: {counted(p.rows_in, 'row')} in",
        f"{p.rows_out:,} out",
        f"{short_time(p.seconds)} (scan {short_time(p.scan_seconds)}, merge {short_time(p.merge_seconds)})",
        f"state {counted(p.state_rows, 'row')} {short_bytes(p.state_bytes)}",
    ]
    for name, frontier in p.frontier.items():
        if frontier is not None:
            lag = p.lag_seconds.get(name)
            behind = (
                f" ({short_time(lag)} behind)" if frontier != "end" and lag is not None and 0 <= lag < REPLAYED else ""
            )
            parts.append(f"{name} to {_to_second(frontier)}{behind}")
    if p.speculation:
        parts.append(f"{p.retracted:,} taken back")
        parts += [f"{name} holds back {at['held_back']:,}" for name, at in p.speculation.items() if at["held_back"]]
        parts += [f"{name} final to {_final(up_to)}" for name, up_to in p.final_up_to.items() if up_to]
    if p.dead:
        parts.append("dead: " + " ".join(f"{reason} {count:,}" for reason, count in sorted(p.dead.items())))
    if p.shedding:
        parts += [f"{label} {value} {more}".strip() for label, value, more in shedding_lines(p)]
    if p.guards or p.saved:
        parts.append(f"feedback: {_guards(p)}" + (f", {spared}" if (spared := Savings.of(p.saved)) else ""))
    return ", ".join(parts)


def shedding_lines(p: Progress) -> list[tuple[str, str, str]]:
    """What is given up, by output, and the load that it is given up for.

    >>> at = {"at": "60%", "outputs": {"sink-1": {"share": 0.6, "windows": 10, "dropped": 4, "longest_gap": 2}}}
    >>> shedding_lines(Progress(3, 1000, 10, 0.5, 0.3, 0.2, 7, 2048, 1, shedding=at, total_shed={"cars dropped": 5}))
    [('shed', '60%', '5 rows'), ('', 'sink-1', '4 of 10 windows dropped, at most 2 in a row; 60% asked for')]
    """
    if not p.shedding:
        return []
    at, rows = p.shedding, sum(n for what, n in p.total_shed.items() if not what.endswith("skipped"))
    lines = [("shed", str(at["at"]), counted(rows, "row"))]
    if "load" in at:
        share = at["load"] / at["capacity"] if at["capacity"] else 0.0
        said = f"{at['load']:.2f} of {at['capacity']:.2f} cores · step {at['cursor']} of {at['rows'] - 1}"
        lines.append(("load", f"{share:.0%}", f"{said} · utility {at['utility']:.0%}"))
    for name, of in at["outputs"].items():
        said = f"{of['dropped']:,} of {counted(of['windows'], 'window')} dropped, at most {of['longest_gap']} in a row"
        lines.append(("", name, f"{said}; {percent(of['share'])} asked for"))
    return lines


def _dial(at: Mapping[str, Any]) -> str:
    """Where the dial of a stream stands, and what that keeps from being told.

    >>> _dial({"remembered": "1 h", "blocked": "5 s", "held_back": 1200})
    'remembers 1 h, blocks 5 s: 1,200 events held back'
    """
    said = f"remembers {at['remembered']}, blocks {at['blocked']}"
    return f"{said}: {counted(at['held_back'], 'event')} held back" if at["held_back"] else said


def _final(up_to: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {_to_second(value)}" for name, value in up_to.items()) or "nothing yet"


def _guards(p: Progress) -> str:
    return counted(p.guards, "guard")


def _spared(p: Progress) -> str:
    """What feedback has saved in all, and in the last epoch."""
    now = Savings.of(p.saved)
    this = f" · {short_count(now.rows)} this epoch" if now.rows else ""
    return Savings.of(p.total_saved).text(short_count) + this


def _to_second(stamp: str) -> str:
    """A frontier without its microseconds, which nobody reads while it moves."""
    head, dot, tail = stamp.rpartition(".")
    return head if dot and tail.isdigit() and ":" in head else stamp
