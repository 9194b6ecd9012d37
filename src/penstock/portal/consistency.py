"""The command `penstock consistency`: turn the dial of a run from another terminal, or see where it stands."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from penstock.engine.terminal import say
from penstock.feedback.consumer import Consumer
from penstock.plan.consistency import Consistency
from penstock.portal.feedback import TAKEN_UP, watched
from penstock.portal.options import Json, Quiet
from penstock.portal.watch import say_json


def consistency(
    run: Annotated[str, typer.Argument(metavar="RUN", help="The checkpoint folder, or the folder of a file sink.")],
    block: Annotated[
        str | None, typer.Option(help="How long an event is held back before results count it, such as '5 s'.")
    ] = None,
    remember: Annotated[
        str | None, typer.Option(help="How late an event may come and still be counted; '-': as the streams say.")
    ] = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Turn the dial of a run: what is not named stays as it is. Without options: show where it stands."""
    consumer = Consumer.at(run)
    now = consumer.talk().consistency
    if block is None and remember is None:
        if not quiet:
            say_json({"consistency": _lengths(now)}) if as_json else say(repr(now))
        return
    stands = _lengths(now)
    knows = stands["remember"] if remember is None else None if remember == "-" else remember
    # Who waits until results are final does so for as long as is remembered.
    waits = block if block is not None else stands["block"] if now.speculates else knows
    wanted = Consistency.at(block=waits, remember=knows)
    receipt, active = consumer.consistency(wanted), consumer.active
    taken_up = active and watched(consumer, lambda: consumer.way(receipt), TAKEN_UP) is not None
    if as_json:
        say_json({"id": receipt.id, "consistency": _lengths(wanted), "active": active, "taken_up": taken_up})
    elif not quiet:
        say(f"{now!r} → {wanted!r}: " + ("taken up" if taken_up else "it waits for the next epoch to be planned"))
    if not active and not quiet:
        say(f"warning: '{run}' is not running; the message waits for its next start", file=sys.stderr)


def _lengths(at: Consistency) -> dict[str, str | None]:
    block, remember = at.text.split("/")
    return {"block": None if block == "-" else block, "remember": None if remember == "-" else remember}
