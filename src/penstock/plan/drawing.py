"""A graph of operators drawn as a tree of text, consumers above their inputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Box:
    """One operator: its name and what follows it on its line, its inputs, and the lines below."""

    name: str
    detail: str = ""
    inputs: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()


def draw(boxes: Mapping[str, Box]) -> str:
    """All boxes; one that is shared is drawn once and named after that.

    >>> a, b = Box("a", lines=("from a file",)), Box("b", "adds one", ("a",))
    >>> print(draw({"a": a, "b": b, "c": Box("c", inputs=("a", "b"))}))
    c
       ├─ a
       │     from a file
       └─ b: adds one
          └─ a (shared, drawn above)
    """
    lines: list[str] = []
    drawn: set[str] = set()
    fed = {i for box in boxes.values() for i in box.inputs}

    def add(name: str, indent: str, branch: str) -> None:
        box = boxes[name]
        head = f"{indent}{branch}{box.name}"
        if name in drawn:
            lines.append(f"{head} (shared, drawn above)")
            return
        drawn.add(name)
        lines.append(f"{head}: {box.detail}" if box.detail else head)
        deeper = indent + ("   " if branch in ("", "└─ ") else "│  ")
        pad = deeper + ("│  " if box.inputs else "   ")
        lines.extend(f"{pad}{line}" for line in box.lines)
        for k, child in enumerate(box.inputs):
            add(child, deeper, "└─ " if k == len(box.inputs) - 1 else "├─ ")

    for name in boxes:
        if name not in fed:
            add(name, "", "")
    return "\n".join(lines)
