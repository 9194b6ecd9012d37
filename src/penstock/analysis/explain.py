"""Plans drawn: as a tree of text, or as a Mermaid flow chart."""

from __future__ import annotations

from penstock.analysis.forecast import forecast, releases
from penstock.plan.drawing import Box, draw
from penstock.plan.plan import Plan


def explain_text(plan: Plan, punctuation: bool = False) -> str:
    """The plan as a tree, consumers above their inputs; a shared operator is drawn once and named after that.

    With `punctuation`, also what will flow behind each operator, and what each releases on it.
    """
    return draw(boxes(plan, punctuation))


def boxes(plan: Plan, punctuation: bool = False) -> dict[str, Box]:
    """What `explain_text` draws, by operator."""
    flows, released = _punctuated(plan) if punctuation else ({}, {})
    found = {}
    for node in plan.nodes:
        flowing = [f"⇢ {flows[node.id]}"] if node.id in flows else []
        releasing = (f"releases {line}" for line in released.get(node.id, ()))
        lines = (f"→ ({node.operator.schema})", *flowing, *releasing)
        found[node.id] = Box(node.id, node.operator.detail, node.inputs, lines)
    return found


def explain_mermaid(plan: Plan, punctuation: bool = False) -> str:
    """The plan as a Mermaid flow chart, events flowing downwards; with `punctuation`, what flows on each edge."""
    lines = ["flowchart TD"]
    flows, released = _punctuated(plan) if punctuation else ({}, {})
    for n, node in enumerate(plan.nodes):
        text = f"<b>{node.id}</b>" + (f"<br/>{_escape(node.operator.detail)}" if node.operator.detail else "")
        text += "".join(f"<br/><i>releases {_escape(line)}</i>" for line in released.get(node.id, ()))
        lines.append(f'    n{n}["{text}"]')
    place = {node.id: n for n, node in enumerate(plan.nodes)}
    for node in plan.nodes:
        for child in node.inputs:
            label = f'|"{_escape(flows[child])}"|' if child in flows else ""
            lines.append(f"    n{place[child]} -->{label} n{place[node.id]}")
    return "\n".join(lines)


def _punctuated(plan: Plan) -> tuple[dict[str, str], dict[str, tuple[str, ...]]]:
    """By operator: the punctuations behind it, as far as somebody is there to hear them, and what it releases."""
    heard = {i for n in plan.nodes for i in n.inputs}
    flows = {i: "; ".join(map(str, f)) or "no punctuation" for i, f in forecast(plan).items() if i in heard}
    return flows, releases(plan)


def _escape(text: str) -> str:
    return text.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;").replace(">", "&gt;")
