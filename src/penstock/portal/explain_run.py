"""`penstock explain --run`: the plan of a run with the feedback on its edges.

Drawn from the checkpoint alone, or from the query as well, which then has to be the one that runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from typing import Any

from penstock.analysis.explain import boxes
from penstock.engine.terminal import say
from penstock.errors import UserError, counted
from penstock.feedback.consumer import Consumer
from penstock.feedback.receipt import Guard
from penstock.feedback.talk import Talk
from penstock.feedback.trail import CLIENT, Stop
from penstock.plan.drawing import Box, draw
from penstock.plan.place import Place
from penstock.plan.refit import refitted
from penstock.portal.feedback import account, deed, headline
from penstock.portal.savings import Savings
from penstock.portal.script import Script, load
from penstock.portal.watch import say_json
from penstock.statistics.measured import RunStatistics

#: Messages shown at one operator: of somebody outside, and of each operator.
OUTSIDE, EACH = 4, 1


def show(run: str, file: str | None = None, *, plain: bool, as_json: bool, quiet: bool) -> None:
    """Print it, for people or machines."""
    consumer = Consumer.at(run)
    script = None if file is None else load(file)
    text = explain_run(consumer, script, plain=plain)  # In any case: the query may be another.
    if as_json:
        say_json(explain_json(consumer))
    elif not quiet:
        say(text)


def explain_run(consumer: Consumer, script: Script | None = None, *, plain: bool = False) -> str:
    """The tree, consumers above their inputs, with a line for what was heard, what holds and what it saved."""
    talk = consumer.talk()
    found = _described(consumer) if script is None else _of_query(consumer, script, plain)
    noted = {
        i: replace(box, lines=(*box.lines, *figures(talk.measured, i), *notes(talk, i))) for i, box in found.items()
    }
    waiting = [f"waits to be taken up: {w.feedback} for {w.to}" for w in talk.waiting]
    return "\n".join([headline(consumer, talk), *waiting, draw(noted)])


def _described(consumer: Consumer) -> dict[str, Box]:
    return {
        i: Box(i, o["definition"], tuple(o["inputs"]), (f"→ ({o['schema']})",)) for i, o in consumer.description.items()
    }


def _of_query(consumer: Consumer, script: Script, plain: bool) -> dict[str, Box]:
    plan = refitted(script.query.plan, consumer.description, {})
    if lines := plan.differences({i: dict(o) for i, o in consumer.description.items()}):
        more = f"; and {len(lines) - 1} more" if len(lines) > 1 else ""
        raise UserError(
            f"{script.title} is not the query of '{consumer.url}': {lines[0]}{more}",
            hint="name the file that runs, or leave it out",
        )
    return boxes(plan, punctuation=not plain)


def notes(talk: Talk, operator: str) -> Iterator[str]:
    """What there is to say of one operator."""
    mine = [g for g in talk.guards if g.operator == operator]
    if issued := _issued(talk, operator):
        said, epoch = issued[-1]
        yield f"issues {said} (epoch {epoch})" + (f", and {len(issued) - 1} before" if len(issued) > 1 else "")
    heard = [s for s in talk.trail if s.node == operator]
    for stops in _by_issuer(heard).values():
        latest = sorted(stops, key=lambda s: s.epoch)
        shown = latest[-(OUTSIDE if latest[0].by == CLIENT else EACH) :]
        for stop in shown:
            over = "" if mine or "drops" not in stop.did else "; over by now: nothing more will match"
            yield f"⇠ {stop.feedback} ({stop.by}, epoch {stop.epoch}): {deed(stop)}{over}"
        if len(latest) > len(shown):
            yield f"⇠ and {len(latest) - len(shown)} more of {latest[0].by}"
    yield from _in_force(mine)
    for wish in talk.wishes:
        if wish.operator == operator:
            yield f"takes first {wish.pattern}, since epoch {wish.since}"
    if saved := Savings.of(talk.saved, operator):
        yield f"saved: {saved.detail()}"


def figures(measured: RunStatistics, operator: str) -> Iterator[str]:
    """What was measured of an operator and of the way to it: rows in and out, selectivity, CPU time per row."""
    for name in sorted(n for n in measured.operators if n == operator or n.startswith(f"{operator}#")):
        passed = measured.operators[name]
        where = "" if name == operator else f" on the way to input {Place(name).port}"
        share = "" if passed.selectivity is None else f" ({passed.selectivity:.3g} per row)"
        cost = measured.cost(name)
        spent = f", {cost * 1e6:.3g} µs of CPU per row" if cost else ""
        yield f"measured{where}: {counted(passed.total_in, 'row')} in, {passed.total_out:,} out{share}{spent}"
    if operator in measured.backlog:
        rate = measured.rates.get(operator, 0.0)
        yield f"brings {rate:,.0f} rows a second; waiting to be read: {measured.backlog[operator]}"


def _issued(talk: Talk, operator: str) -> list[tuple[str, int]]:
    """The last messages of an operator, and when each was taken up."""
    return list(dict.fromkeys((s.said, s.epoch) for s in talk.trail if s.by == operator))


def _by_issuer(stops: list[Stop]) -> Mapping[str, list[Stop]]:
    found: dict[str, list[Stop]] = {}
    for stop in stops:
        found.setdefault(stop.by, []).append(stop)
    return found


def _in_force(guards: list[Guard]) -> Iterator[str]:
    """One line for a pattern, with all the places of the operator where it is dropped."""
    places: dict[tuple[str, int, bool], list[str]] = {}
    for g in guards:
        places.setdefault((str(g.pattern), g.since, g.pinned), []).append(_place(g))
    for (pattern, since, pinned), where in places.items():
        stays = "; stays until punctuation covers it" if pinned else ""
        yield f"in force since epoch {since}: not {pattern}, on {' and '.join(where)}{stays}"


def _place(guard: Guard) -> str:
    if guard.place.port is not None:
        return f"input {guard.place.port}"
    if guard.place.part:
        return guard.place.part
    return "what is read" if guard.place.startswith("source:") else "results"


def explain_json(consumer: Consumer) -> dict[str, Any]:
    """The same for machines: by operator what was issued, heard and saved there."""
    talk = consumer.talk()
    whole = account(consumer, talk)
    measured = talk.measured.summary()
    operators = {}
    for i in consumer.operators:
        described = consumer.description[i]
        saved = Savings.of(talk.saved, i)
        operators[i] = {
            "inputs": list(described["inputs"]),
            "schema": described["schema"],
            "definition": described["definition"],
            "issued": [{"feedback": said, "epoch": epoch} for said, epoch in _issued(talk, i)],
            "heard": [asdict(s) for s in talk.trail if s.node == i],
            "guards": [g for g, of in zip(whole["guards"], talk.guards, strict=True) if of.operator == i],
            "wishes": [w for w, of in zip(whole["wishes"], talk.wishes, strict=True) if of.operator == i],
            "saved": {**asdict(saved), "rows": saved.rows},
            "measured": {n: m for n, m in measured["operators"].items() if n == i or n.startswith(f"{i}#")},
        }
    rest = {k: v for k, v in whole.items() if k not in ("guards", "wishes")}
    return {**rest, "operators": operators, "measured": {k: v for k, v in measured.items() if k != "operators"}}
