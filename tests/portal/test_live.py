"""The live view, drawn from fabricated progress at fabricated times."""

from __future__ import annotations

import re
from dataclasses import replace

from rich.console import Console

from penstock.engine.progress import Progress
from penstock.portal.live import View, lag_text, plain_line, sparkline
from penstock.portal.watch import Interrupt, choose_mode

EPOCH = Progress(
    epoch=1,
    rows_in=10_000,
    rows_out=50,
    seconds=0.5,
    scan_seconds=0.3,
    merge_seconds=0.2,
    state_rows=123,
    state_bytes=96 * 1024,
    state_runs=4,
    dead={"late": 2},
    frontier={"traffic": "2026-01-01 00:00:59.123456"},
    lag_seconds={"traffic": 3.2},
    total_rows_in=10_000,
    total_rows_out=50,
    total_dead={"late": 2, "malformed": 1},
)


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def drawn(view: View) -> str:
    console = Console(width=90, color_system=None)
    with console.capture() as captured:
        console.print(view)
    return captured.get()


def test_before_the_first_epoch_it_counts_the_seconds() -> None:
    clock = Clock()
    view = View("slow.py", clock=clock)
    clock.now += 7.6
    assert drawn(view).strip() == "● slow.py: starting Spark … 7 s"
    view.running()
    assert "waiting for the first epoch … 0 s" in drawn(view)
    view.resumed = 27
    assert "waiting for epoch 28, the first after a restart … 0 s" in drawn(view)


def test_everything_is_on_it() -> None:
    clock = Clock()
    view = View("slow.py", clock=clock)
    view.running()
    for n in range(1, 6):
        clock.now += 0.5
        view.take(replace(EPOCH, epoch=n, total_rows_in=n * 10_000))
    text = drawn(view)
    for part in (
        "slow.py · epoch 5", "20 k rows/s", "100 rows/s", "50,000 rows", "scan 300 ms · merge 200 ms", "500 ms",
        "123 rows", "96 KiB", "4 runs", "2026-01-01 00:00:59", "3.2 s behind the clock", "late 2 · malformed 1",
    ):  # fmt: skip
        assert part in text, part
    assert all(len(line) <= 90 for line in text.splitlines())


def test_what_may_be_corrected_is_on_it() -> None:
    view = View("slow.py", clock=Clock())
    view.running()
    assert "corrected" not in drawn(view)
    dial = {"traffic": {"remembered": "1 h", "blocked": "5 s", "held_back": 1_200}}
    final = {"sink-1": {"window_start": "2026-01-01 00:05:00"}}
    early = replace(EPOCH, retracted=7, total_retracted=10, speculation=dial, final_up_to=final)
    view.take(early)
    text = drawn(view)
    for part in ("remembers 1 h, blocks 5 s: 1,200 events held back", "20.0%", "10 rows taken back", "00:05:00"):
        assert part in text, part
    line = plain_line(early)
    for part in ("7 taken back", "traffic holds back 1,200", "sink-1 final to window_start 2026-01-01 00:05:00"):
        assert part in line, part


def test_rates_follow_the_last_seconds_and_fall_to_zero() -> None:
    clock = Clock()
    view = View("slow.py", clock=clock)
    view.running()
    for _ in range(20):
        clock.now += 1.0
        view.take(EPOCH)
    assert view.rates() == (10_000.0, 50.0)
    clock.now += 60
    assert view.rates() == (0.0, 0.0)


def test_the_peak_of_the_state_is_kept() -> None:
    view = View("slow.py")
    view.take(EPOCH)
    view.take(replace(EPOCH, epoch=2, state_rows=0, state_bytes=0))
    assert (view.peak_rows, view.peak_bytes) == (123, 96 * 1024)


def test_lag_in_words() -> None:
    assert lag_text("2013-01-01", 13 * 365 * 86_400.0) == "replayed"
    assert lag_text("end", 5.0) == "complete"
    assert lag_text(None, None) == "nothing promised yet"
    assert lag_text("2026-01-01", -2.0) == "2.0 s ahead of the clock"


def test_a_line_per_epoch_for_pipes() -> None:
    line = plain_line(EPOCH)
    assert "\n" not in line
    assert line.endswith("traffic to 2026-01-01 00:00:59 (3.2 s behind), dead: late 2")
    assert plain_line(replace(EPOCH, frontier={"traffic": "end"}, dead={})).endswith("traffic to end")


def test_one_is_one() -> None:
    one = replace(EPOCH, rows_in=1, rows_out=1, total_rows_in=1, total_rows_out=1, state_rows=1, state_runs=1)
    view = View("slow.py")
    view.take(one)
    assert not re.search(r"\b1 (rows\b(?!/s)|runs)", drawn(view) + plain_line(one))
    assert "epoch 1: 1 row in, 1 out" in plain_line(one) and "1 run · peak 1 row" in drawn(view)


def test_feedback_is_shown_when_there_is_some() -> None:
    view = View("slow.py")
    view.take(EPOCH)
    assert "feedback" not in drawn(view) and "feedback" not in plain_line(EPOCH)
    told = replace(
        EPOCH,
        guards=3,
        saved={"source:cars never read": 9_000, "join-1#0 dropped": 3_000},
        total_saved={
            "source:cars never read": 900_000,
            "source:cars row groups skipped": 7,
            "select-1 dropped": 300_000,
        },
    )
    view.take(told)
    text = drawn(view)
    assert "3 guards" in text and "spared 1.2 M rows, 900 k of them never read · 12 k this epoch" in text
    assert "told by" not in text
    way = "client: not [3, *] → aggregate-1: purges state, passes it on → source:cars: drops results"
    view.take(replace(told, told=way))
    shown = " ".join(drawn(view).replace("│", " ").split())
    assert way in shown and "source:cars 900,000 rows never read" in shown
    assert plain_line(told).endswith(", feedback: 3 guards, spared 12,000 rows, 9,000 of them never read")
    assert plain_line(replace(told, saved={}, guards=1)).endswith(", feedback: 1 guard")
    # What was saved stays, though punctuation has covered the last guard.
    view.take(replace(told, guards=0, saved={}))
    assert "0 guards" in drawn(view) and "this epoch" not in drawn(view)


def test_sparkline_keeps_its_width() -> None:
    assert sparkline([]) == ""
    assert sparkline([0.0, 0.0]) == "▁▁"
    assert len(sparkline([float(i) for i in range(100)], width=20)) == 20


def test_modes() -> None:
    assert choose_mode(as_json=True, quiet=True) == "json"
    assert choose_mode(as_json=False, quiet=True) == "quiet"
    assert choose_mode(as_json=False, quiet=False, terminal=True) == "live"


def test_the_first_interrupt_asks_and_the_second_insists() -> None:
    heard: list[str] = []
    interrupt = Interrupt(lambda: heard.append("finish"), lambda: heard.append("stop"))
    interrupt(2, None)
    interrupt(2, None)
    assert heard == ["finish", "stop"]
    assert interrupt.asked.is_set()
