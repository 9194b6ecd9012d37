"""The command `penstock feedback`: talk to a run from another terminal, and see what is in force."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict
from typing import Any, TypeVar

import pyarrow as pa
from rich.table import Table

from penstock.engine.terminal import cell, say, terminal
from penstock.errors import UserError, counted
from penstock.feedback.answers import AS_OF, PARTIAL
from penstock.feedback.consumer import Consumer
from penstock.feedback.receipt import Guard, Receipt
from penstock.feedback.talk import Talk
from penstock.feedback.trail import Stop
from penstock.pattern.feedback import Feedback, Intent
from penstock.portal.savings import Savings
from penstock.portal.table import print_table
from penstock.portal.watch import say_json

T = TypeVar("T")
#: Seconds that a message is watched: for its answer, or until an epoch has taken it up.
ANSWERED, TAKEN_UP = 60.0, 10.0
#: Seconds between two looks.
PERIOD = 0.05


# --- saying something -------------------------------------------------------------------------------------------------


def give(
    run: str, text: str, *, to: str | None = None, timeout: float | None = None, as_json: bool, quiet: bool
) -> None:
    """Leave a message for a run and tell what becomes of it."""
    consumer = Consumer.at(run)
    told = Feedback.parse(text, consumer.schema_of(consumer.address(to).node))
    if told.intent is Intent.DEMANDED:
        answer = ask(consumer, run, text, to, ANSWERED if timeout is None else timeout)
        if not quiet:
            _show_answer(answer, as_json)
        return
    receipt, active = consumer.feedback(text, to=to), consumer.active
    plainly = not as_json and not quiet
    if plainly:
        say(f"{receipt.text} left for {receipt.to} as {receipt.id}")
        for remark in receipt.remarks:
            say(f"note: {remark}")
    way = None
    if active and not quiet:
        way = watched(consumer, lambda: consumer.way(receipt), TAKEN_UP if timeout is None else timeout)
        active = way is not None or consumer.active
    if as_json:
        say_json(_told(receipt, active, way))
    elif plainly:
        if way is not None:
            say(*way_lines(way))
        elif active:
            print("it waits for the next epoch to be planned")
    if not active and not quiet:
        say(f"warning: '{run}' is not running; the message waits for its next start", file=sys.stderr)


def ask(consumer: Consumer, run: str, text: str, to: str | None, timeout: float) -> pa.Table:
    """Partial results. A demand that nobody has answered in time is taken back."""
    if not consumer.active:
        raise UserError(
            f"'{run}' is not running, so nobody would answer",
            hint=f"start it first; what it holds: penstock state {run}",
        )
    receipt = consumer.feedback(text, to=to)
    found = watched(consumer, lambda: consumer.answer(receipt), timeout)
    if found is None:
        consumer.withdraw(receipt)
        ended = "" if consumer.active else ": the run has ended"
        raise UserError(
            f"no answer to '{receipt.text}' within {timeout:g} s{ended}",
            hint="demands are answered after an epoch; --timeout waits longer",
        )
    return found


def watched(consumer: Consumer, look: Callable[[], T | None], timeout: float) -> T | None:
    """What `look` finds as soon as it finds something; None if the run ends before, or time is up."""
    deadline = time.monotonic() + timeout
    while (found := look()) is None and time.monotonic() < deadline:
        if not consumer.active:
            return look()  # What it has said last.
        time.sleep(PERIOD)
    return found


def _show_answer(answer: pa.Table, as_json: bool) -> None:
    epochs = answer[AS_OF].unique().to_pylist()
    if as_json:
        say_json({PARTIAL: True, AS_OF: epochs[0] if epochs else None, "rows": answer.to_pylist()})
    elif epochs:
        print(f"partial, as of epoch {epochs[0]}; the final results follow")
        print_table(answer.drop_columns([PARTIAL, AS_OF]))
    else:
        print("partial: no result that matches is under way")


def _told(receipt: Receipt, active: bool, way: tuple[Stop, ...] | None) -> dict[str, Any]:
    return {
        "id": receipt.id,
        "feedback": receipt.text,
        "to": receipt.to,
        "remarks": list(receipt.remarks),
        "active": active,
        "taken_up": way is not None,
        "epoch": way[0].epoch if way else None,
        "way": [asdict(stop) for stop in way or ()],
    }


# --- what has become of it --------------------------------------------------------------------------------------------


def way_lines(way: tuple[Stop, ...]) -> list[str]:
    """The stops of one message."""
    if not way:
        return ["taken up, to no effect"]
    wide, long = max(len(s.node) for s in way), max(len(s.feedback) for s in way)
    return [
        f"taken up, from epoch {way[0].epoch} on:",
        *(f"  {s.node:{wide}}  {s.feedback:{long}}  {deed(s)}" for s in way),
    ]


def deed(stop: Stop) -> str:
    """What an operator did about a feedback, and why it goes no further.

    >>> deed(Stop("project-1", "not [8]", "drops results", "'twice' is computed here"))
    "drops results; goes no further: 'twice' is computed here"
    >>> deed(Stop("source:cars", "not [8]", "drops results"))
    'drops them as it reads'
    """
    did = {"nothing": "does nothing", "passed on": "passes it on"}.get(stop.did, stop.did)
    if stop.node.startswith("source:"):
        did = {"drops results": "drops them as it reads", "taken first": "reads them first"}.get(did, did)
    if not stop.why:
        return did
    further = "passes it on" in did or stop.did in ("nothing", "waits")
    return f"{did}: {stop.why}" if further else f"{did}; goes no further: {stop.why}"


# --- what is in force -------------------------------------------------------------------------------------------------


def show(run: str, *, as_json: bool, quiet: bool) -> None:
    """Everything that is in force, and what it has saved."""
    consumer = Consumer.at(run)
    talk = consumer.talk()
    if quiet:
        return
    if as_json:
        say_json(account(consumer, talk))
        return
    say(headline(consumer, talk))
    if talk.guards or talk.wishes:
        terminal().print(_grid(talk))
    if lines := [*_waiting(talk), *saved_lines(talk, consumer.operators)]:
        say(*lines)


def headline(consumer: Consumer, talk: Talk) -> str:
    """Where a run stands, and how much of it is feedback."""
    stands = f"after epoch {talk.epoch}" if talk.epoch else "before its first epoch"
    running = "running" if consumer.active else "not running"
    return f"{consumer.url}: {stands}, {running}; {gist(len(talk.guards), Savings.of(talk.saved))}"


def gist(guards: int, savings: Savings) -> str:
    """The whole on one line.

    >>> gist(3, Savings(never_read=900, dropped=300))
    '3 guards, spared 1,200 rows, 900 of them never read'
    >>> gist(0, Savings())
    'no feedback in force'
    """
    said = counted(guards, "guard") if guards else "no feedback in force"
    return f"{said}, {savings}" if savings else said


def _grid(talk: Talk) -> Table:
    grid = Table()
    grid.add_column("place")
    grid.add_column("feedback", overflow="fold")
    grid.add_column("since epoch", justify="right")
    grid.add_column("stays")
    for word, guards in ((Intent.ASSUMED, talk.guards), (Intent.DESIRED, talk.wishes)):
        for g in guards:
            grid.add_row(
                cell(g.place), cell(f"{word} {g.pattern}"), str(g.since), "until it is covered" if g.pinned else ""
            )
    return grid


def _waiting(talk: Talk) -> list[str]:
    return [f"waits to be taken up: {w.feedback} for {w.to} ({w.id})" for w in talk.waiting]


def saved_lines(talk: Talk, operators: Iterable[str]) -> list[str]:
    """What each operator has saved."""
    return [f"{o}: {s.detail()}" for o in operators if (s := Savings.of(talk.saved, o))]


def account(consumer: Consumer, talk: Talk) -> dict[str, Any]:
    """The same for machines."""
    return {
        "checkpoint": consumer.url,
        "epoch": talk.epoch,
        "active": consumer.active,
        "guards": [guard_json(g) for g in talk.guards],
        "wishes": [guard_json(w) for w in talk.wishes],
        "waiting": [asdict(w) for w in talk.waiting],
        "saved": dict(talk.saved),
        "spared": {**asdict(s := Savings.of(talk.saved)), "rows": s.rows},
    }


def guard_json(guard: Guard) -> dict[str, Any]:
    return {"place": guard.place, "pattern": str(guard.pattern), "since": guard.since, "pinned": guard.pinned}
