"""The command `penstock shed`: what a run gives up, how much it is to give up, and what it would at another load."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa
import pyarrow.compute as pc
import typer

from penstock.checkpoint.checkpoint import Checkpoint
from penstock.checkpoint.storage import Storage
from penstock.engine.overload import wished
from penstock.engine.terminal import say
from penstock.errors import UserError
from penstock.feedback.consumer import Consumer
from penstock.portal.feedback import TAKEN_UP, watched
from penstock.portal.options import Json, Quiet
from penstock.portal.outcome import queries_of
from penstock.portal.script import load, parse_spec
from penstock.portal.table import print_table
from penstock.portal.watch import say_json
from penstock.shedding.controller import Controller, RoadStanding
from penstock.shedding.outgoing import outgoing
from penstock.shedding.policy import Shedding, percent
from penstock.shedding.qos import QoS
from penstock.shedding.terms import Terms
from penstock.statistics.measured import RunStatistics


def shed(
    target: Annotated[str, typer.Argument(metavar="RUN|FILE.py[:NAME]", help="A run, or with --at a query file.")],
    to: Annotated[
        str | None, typer.Option(metavar="SHARE", help="Deliver so much of every output from now on: '60%'.")
    ] = None,
    off: Annotated[bool, typer.Option("--off", help="Give nothing up any more.")] = False,
    auto: Annotated[bool, typer.Option("--auto", help="Give up what the load demands, and no more.")] = False,
    at: Annotated[
        str | None, typer.Option(metavar="LOAD", help="Of a query: what would be lost at this load, such as '+50%'.")
    ] = None,
    costs: Annotated[
        str | None, typer.Option(metavar="RUN|FILE", help="With --at: a run, or what `penstock calibrate` wrote.")
    ] = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Show what a run gives up and where it stands in its table of plans, or say how much it is to give up."""
    chosen = [
        option
        for option, given in (("--to", to), ("--off", off), ("--auto", auto), ("--at", at))
        if given not in (None, False)
    ]
    if len(chosen) > 1:
        raise UserError(f"{' and '.join(chosen)} exclude each other", hint="say one of them")
    if at is not None:
        _forecast(target, at, costs, as_json=as_json, quiet=quiet)
        return
    if costs is not None:
        raise UserError("--costs goes with --at", hint=f"penstock shed FILE.py --at +50% --costs {costs}")
    if target.partition(":")[0].endswith(".py"):
        raise UserError(f"'{target}' is a query file, not a run", hint=f"penstock shed {target} --at +50%")
    consumer = Consumer.at(target)
    if chosen:
        policy = Shedding.off() if off else Shedding.auto() if auto else Shedding.parse(to or "")
        _say(consumer, target, policy, as_json=as_json, quiet=quiet)
    elif not quiet:
        _show(consumer, as_json)


def _say(consumer: Consumer, run: str, policy: Shedding, *, as_json: bool, quiet: bool) -> None:
    receipt, active = consumer.shed(policy), consumer.active
    taken_up = active and watched(consumer, lambda: consumer.way(receipt), TAKEN_UP) is not None
    if as_json:
        say_json({"id": receipt.id, "shedding": policy.text, "active": active, "taken_up": taken_up})
    elif not quiet:
        say(f"{policy!r}: " + ("taken up" if taken_up else "it waits for the next epoch to be planned"))
    if not active and not quiet:
        say(f"warning: '{run}' is not running; the message waits for its next start", file=sys.stderr)


def _show(consumer: Consumer, as_json: bool) -> None:
    found = consumer.shedding()
    state, table, account = found["state"], found["table"], found["account"]
    if not state:
        raise UserError(
            f"'{consumer.url}' gives nothing up: it was started without qos= and shedding=",
            hint="start it with shedding=ps.Shedding.off() to be able to change that while it runs",
        )
    sums = _sums(account)
    if as_json:
        say_json(
            {"at": state["policy"], "delivered": state["delivered"], "off": state["off"], "table": table}
            | {"road": state["road"], "outputs": sums.to_pylist()}
        )
        return
    say(f"{consumer.url}: sheds {state['policy']}")
    if table:
        cursor = state["road"].get("cursor", 0)
        say("what is delivered, step by step; → is where the run stands")
        for n, row in enumerate(table):
            marks = "→" if n == cursor and state["road"] else " "
            said = ", ".join(f"{name} {percent(share)}" for name, share in row["delivered"].items())
            say(
                f"{marks} {n:3}  {said}  utility lost {row['lost']:.3g}"
                + (f"  off: {row['off']}" if row["off"] else "")
            )
    if state["road"]:
        say(f"why: {state['road']['pressure']['why']}")
    if sums.num_rows:
        print_table(sums)


def _sums(account: pa.Table) -> pa.Table:
    """By sink, over all epochs."""
    found = account.group_by("sink").aggregate([("windows", "sum"), ("dropped", "sum"), ("longest_gap", "max")])
    found = found.rename_columns(["sink", "windows", "dropped", "longest_gap"])
    if not found.num_rows:
        return found
    kept = pc.subtract(found["windows"], found["dropped"])
    share = pc.round(pc.divide(pc.multiply(kept.cast(pa.float64()), 100.0), found["windows"].cast(pa.float64())), 1)
    return found.append_column("delivered_percent", share).sort_by("sink")


# --- before the start -----------------------------------------------------------------------------------------------


def measured_at(costs: str | None) -> RunStatistics:
    """What is known of costs: from a run, from a file of `penstock calibrate`, or nothing."""
    if costs is None:
        return RunStatistics()
    if Path(costs).is_file():
        try:
            return RunStatistics.from_json(json.loads(Path(costs).read_text(encoding="utf-8")))
        except (ValueError, KeyError, TypeError):
            raise UserError(f"'{costs}' holds no costs", hint="penstock calibrate FILE.py --out costs.json") from None
    done = Checkpoint(Storage.at(Consumer.at(costs).url)).latest()
    return RunStatistics() if done is None else RunStatistics.from_json(done.measured)


def _forecast(target: str, at: str, costs: str | None, *, as_json: bool, quiet: bool) -> None:
    most = _load(at)
    parse_spec(target)
    queries = queries_of(load(target), as_json=True, quiet=True)
    plan = queries.plan
    wish = wished(plan, Shedding.auto())
    assert wish is not None
    outputs = outgoing(plan, wish.sheddable)
    qos = {o.name: getattr(plan[o.exit.sink].operator, "qos", None) or QoS() for o in outputs}
    terms = {o.name: Terms.of(qos[o.name]) for o in outputs if o.label or o.chance}
    controller = Controller(plan, terms, tuple(n for n, t in terms.items() if t.least))
    measured = measured_at(costs)
    rows: list[dict[str, Any]] = []
    steps = 6
    for n in range(steps + 1):
        share = 1 + (most - 1) * n / steps
        row, where = controller.decide(Shedding.auto(load=share), RoadStanding(), measured, 1)
        saved = 1 - 1 / share
        enough = row.saves({s.id: measured.rates.get(s.id, 1.0) for s in plan.sources})
        full = controller.network(measured).load({s.id: measured.rates.get(s.id, 1.0) for s in plan.sources})
        rows.append(
            {
                "load": f"{share:+.0%}".replace("+", "") if share < 1 else f"+{share - 1:.0%}",
                **{name: percent(round(each, 3)) for name, each in row.delivered.items()},
                "utility": round(1 - where.lost / where.full, 3) if where.full else 1.0,
                "off": ", ".join(sorted(row.off)),
                "enough": bool(enough >= saved * full - 1e-12),
            }
        )
    if quiet:
        return
    if not as_json and not measured.operators:
        say("costs are not known: every operator is taken to cost the same (penstock calibrate measures them)")
    print_table(pa.Table.from_pylist(rows), as_json)
    if not as_json and not rows[-1]["enough"]:
        say(f"at +{most - 1:.0%} it would be too much whatever is given up: add cores, or loosen gaps")


def _load(at: str) -> float:
    text = at.strip().removeprefix("+").removesuffix("%")
    try:
        share = float(text) / 100
    except ValueError:
        share = -1.0
    if not (at.strip().startswith("+") and at.strip().endswith("%") and 0 < share <= 100):
        raise UserError(f"--at {at}: no load", hint="how much more comes than the machine can take: +50%")
    return 1 + share
