"""Plans drawn: as a tree of text, or as a Mermaid flow chart."""

from __future__ import annotations

from penstock.analysis.judge import weigh
from penstock.plan.drawing import Box, draw
from penstock.plan.plan import Plan


def explain_text(plan: Plan, punctuation: bool = False) -> str:
    """The plan as a tree, consumers above their inputs; a shared operator is drawn once and named after that.

    With `punctuation`, also what will flow behind each operator, and on what its state leaves.
    """
    return draw(boxes(plan, punctuation))


def boxes(plan: Plan, punctuation: bool = False) -> dict[str, Box]:
    """What `explain_text` draws, by operator."""
    flows, states = _punctuated(plan) if punctuation else ({}, {})
    found = {}
    for node in plan.nodes:
        flowing = [f"⇢ {flows[node.id]}"] if node.id in flows else []
        held = (f"state: {line}" for line in states.get(node.id, ()))
        lines = (f"→ ({node.operator.schema})", *flowing, *held)
        found[node.id] = Box(node.id, node.operator.detail, node.inputs, lines)
    return found


def explain_mermaid(plan: Plan, punctuation: bool = False) -> str:
    """The plan as a Mermaid flow chart, events flowing downwards; with `punctuation`, what flows on each edge."""
    lines = ["flowchart TD"]
    flows, states = _punctuated(plan) if punctuation else ({}, {})
    for n, node in enumerate(plan.nodes):
        text = f"<b>{node.id}</b>" + (f"<br/>{_escape(node.operator.detail)}" if node.operator.detail else "")
        text += "".join(f"<br/><i>state: {_escape(line)}</i>" for line in states.get(node.id, ()))
        lines.append(f'    n{n}["{text}"]')
    place = {node.id: n for n, node in enumerate(plan.nodes)}
    for node in plan.nodes:
        for child in node.inputs:
            label = f'|"{_escape(flows[child])}"|' if child in flows else ""
            lines.append(f"    n{place[child]} -->{label} n{place[node.id]}")
    return "\n".join(lines)


def coming(plan: Plan) -> dict[str, tuple[str, ...]]:
    """Which punctuation will come behind each operator of a plan, by its id: known before it runs, but for values.

    >>> import penstock as ps
    >>> cars = ps.stream("cars", "ts int, sensor int", time="ts").disorder(5)
    >>> coming(cars.window(60).plan)
    {'source:cars': ('ts up to',), 'bucket-1': ('ts up to', 'window_start up to')}
    """
    return {i: verdict.behind.coming for i, verdict in weigh(plan).items()}


def leaving(plan: Plan) -> dict[str, tuple[str, ...]]:
    """On which punctuation the state of each operator that has any leaves; if on none, what it needs.

    >>> import penstock as ps
    >>> cars = ps.stream("cars", "ts int, sensor int", time="ts").disorder(5)
    >>> leaving(cars.window(60).group_by("sensor").agg(n="count(*)").plan)
    {'aggregate-1': ('groups leave on `window_start up to`',)}
    """
    verdicts = {i: v for i, v in weigh(plan).items() if v.state != "none"}
    return {
        i: (*v.why, *([v.at_the_end] if v.at_the_end else []), *(f"needs {said}" for said in v.needs))
        for i, v in verdicts.items()
    }


def _punctuated(plan: Plan) -> tuple[dict[str, str], dict[str, tuple[str, ...]]]:
    """By operator: the punctuations behind it, as far as somebody is there to hear them, and when its state leaves."""
    heard = {i for n in plan.nodes for i in n.inputs}
    flows = {i: "; ".join(said) or "no punctuation" for i, said in coming(plan).items() if i in heard}
    return flows, leaving(plan)


def _escape(text: str) -> str:
    return text.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;").replace(">", "&gt;")
