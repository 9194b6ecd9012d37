"""The Markdown pages hold what they say: links lead somewhere, examples run, timelines happen as they are written.

A *timeline* is a table whose first column is `arrives`. It is played twice: item by item through the reference
interpreter, and, one file per item, through the engine. The query is what the Python block before it defines under
the name `query`; its sources read from the folder `in`.
"""

from __future__ import annotations

import doctest
import json
import os
import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import penstock as ps
from penstock.algebra.operator import Source
from penstock.algebra.pattern import Pattern
from penstock.algebra.schema import Schema
from penstock.portal.testing import local_session
from penstock.reference.interpret import Run, Step
from penstock.reference.item import Event, Item, Punctuate

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md")])
_LINK = re.compile(r"\[[^\]]*\]\(<?([^)\s>]+)>?[^)]*\)")
_CODE = re.compile(r"^(```|~~~).*?^\1|`[^`\n]*`", re.MULTILINE | re.DOTALL)
_PYTHON = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
_TABLE = re.compile(r"^\| arrives .*\n\|[-| ]+\|\n((?:\|.*\n)+)", re.MULTILINE)
_END = "end of input"


def _name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def anchors(page: Path) -> set[str]:
    """The names under which a page's headings can be linked to, as code hosts make them."""
    headings = re.findall(r"^#{1,6} +(.+?) *#*$", re.sub(r"^```.*?^```", "", page.read_text(), flags=re.M | re.S), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_links_lead_somewhere(page: Path) -> None:
    broken = []
    for link in _LINK.findall(_CODE.sub("", page.read_text())):
        if re.match(r"[a-z][a-z0-9+.-]*:", link):
            continue  # another site: not asked here, tests must pass without a network
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and target.suffix == ".md" and anchor not in anchors(target)):
            broken.append(link)
    assert broken == []


@pytest.mark.parametrize("page", [p for p in PAGES if ">>>" in p.read_text()], ids=_name)
def test_examples_give_what_they_show(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    assert doctest.testfile(str(page), module_relative=False, optionflags=flags).failed == 0


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_python_blocks_can_be_read(page: Path) -> None:
    for block in _PYTHON.findall(page.read_text()):
        if ">>>" not in block:
            compile(block, page.name, "exec")


def test_every_page_is_on_the_map() -> None:
    index = ROOT / "docs" / "index.md"
    linked = {(index.parent / link).resolve() for link in _LINK.findall(index.read_text())}
    assert [p.name for p in index.parent.glob("*.md") if p != index and p.resolve() not in linked] == []


def test_dependencies_are_those_of_the_project() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    declared = [project["dependencies"], *project["optional-dependencies"].values()]
    wanted = {re.sub(r"^([\w-]+)", r"\1 ", d) for listed in declared for d in listed}
    text = (ROOT / "docs" / "dependencies.md").read_text()
    found = {f"{name} {span}" for name, span in re.findall(r"\| ([\w-]+) \| (>=\S+) \|", text)}
    assert found == wanted


# --- timelines ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """One row of a timeline: what arrives (in which source partition), what that brings, what is held afterwards."""

    arrives: str
    partition: str | None
    emits: tuple[str, ...]
    holds: str | None


@dataclass(frozen=True)
class Timeline:
    page: Path
    number: int
    code: str
    rows: tuple[Row, ...]

    def __str__(self) -> str:
        return f"{self.page.name}-{self.number}"


def _plain(cell: str) -> str:
    return cell.replace("`", "").replace(r"\|", "|").strip()


def _cells(line: str) -> list[str]:
    return [c.strip() for c in re.split(r"(?<!\\)\|", line.strip().strip("|"))]


def _row(line: str) -> Row:
    cells = _cells(line)
    arrives = _plain(cells[0])
    partition = re.match(r"from (\w+): ", arrives)
    emits = tuple(_plain(part) for part in cells[1].split("<br>"))
    return Row(
        arrives[partition.end() :] if partition else arrives,
        partition[1] if partition else None,
        () if emits == ("nothing",) else emits,
        _plain(cells[2]) if len(cells) > 2 else None,
    )


def timelines() -> list[Timeline]:
    found = []
    for page in PAGES:
        text = page.read_text()
        for number, table in enumerate(_TABLE.finditer(text), start=1):
            code = [b[1] for b in _PYTHON.finditer(text, 0, table.start()) if "query =" in b[1] and ">>>" not in b[1]]
            rows = tuple(_row(line) for line in table[1].splitlines())
            found.append(Timeline(page, number, code[-1], rows))
    return found


def _query(timeline: Timeline) -> tuple[ps.Stream, Source]:
    scope: dict[str, Any] = {"ps": ps}
    exec(timeline.code, scope)
    query = scope["query"]
    (node,) = query.plan.sources
    assert isinstance(node.operator, Source)
    return query, node.operator


def _event(text: str, schema: Schema) -> dict[str, Any]:
    """`ts 105, key C, value 3` as an event."""
    values: dict[str, Any] = {}
    for part in text.split(", "):
        name, _, word = part.partition(" ")
        t = schema.type_of(name)
        number = pa.types.is_integer(t) or pa.types.is_floating(t)
        values[name] = None if word == "null" else json.loads(word) if number and word[:1] not in "abc" else word
    return values


def _is_punctuation(text: str) -> bool:
    return text.startswith("punctuation ")


def _held(state: tuple[Any, ...]) -> str:
    """Open groups, each with its number of events: `10 A (2)`."""
    groups = [f"{' '.join(map(str, g.key)) or 'all'} ({len(g.rows)})" for g in state]
    return ", ".join(sorted(groups)) or "nothing"


def _by_row(steps: list[Step]) -> list[list[Step]]:
    """The steps that belong to each row: a source that takes something, or comes to its end, begins a new one."""
    parts: list[list[Step]] = [[]]
    for step in steps:
        ended = any(isinstance(i, Punctuate) and not i.pattern.restricted for i in step.emitted)
        if step.kind == "source" and (step.taken is not None or ended):
            parts.append([])
        parts[-1].append(step)
    return parts[1:]


def _shown(items: list[Item], wanted: tuple[str, ...]) -> list[str]:
    """Items as a page writes them. Pages that show no punctuation in a row leave it out."""
    every = any(_is_punctuation(w) for w in wanted)
    return [str(i) for i in items if every or isinstance(i, Event)]


def _sorted(items: Iterable[str]) -> list[str]:
    """Results of one moment have no order among themselves; a punctuation comes after them."""
    return sorted(items, key=lambda item: (_is_punctuation(item), item))


@pytest.mark.parametrize("timeline", timelines(), ids=str)
def test_timeline_by_definition(timeline: Timeline) -> None:
    query, source = _query(timeline)
    arrivals: list[Any] = []
    for row in timeline.rows:
        if row.arrives != _END:
            item: Any = (
                Pattern.parse(row.arrives.removeprefix("punctuation "), source.schema)
                if _is_punctuation(row.arrives)
                else _event(row.arrives, source.schema)
            )
            arrivals.append(item if row.partition is None else (row.partition, item))
    run = Run(query.plan, {source.name: arrivals})
    parts = _by_row(list(run.steps()))
    assert len(parts) == len(timeline.rows)
    aggregate = next((n.id for n in query.plan if n.operator.kind == "aggregate"), None)
    held: tuple[Any, ...] = ()
    for row, steps in zip(timeline.rows, parts):
        out = [item for s in steps if s.operator == query.plan.nodes[-1].id for item in s.emitted]
        letters = [f"dead letter: {s.dead_letter.kind}" for s in steps if s.dead_letter is not None]
        shown = _shown(out, row.emits)
        assert all(map(_is_punctuation, shown[sum(not _is_punctuation(i) for i in shown) :])), row.arrives
        assert _sorted([*shown, *letters]) == _sorted(row.emits), row.arrives
        held = next((s.state for s in reversed(steps) if s.operator == aggregate), held)
        if row.holds is not None:
            assert _held(held) == row.holds, row.arrives


@pytest.mark.parametrize("timeline", timelines(), ids=str)
def test_timeline_in_the_engine(timeline: Timeline, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    arrivals = [r for r in timeline.rows if r.arrives != _END]
    query, source = _query(timeline)
    for number, row in enumerate(arrivals, start=1):
        file = tmp_path / "in" / (row.partition or "") / f"{number:03d}.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        record = (
            {"punctuation": row.arrives.removeprefix("punctuation ")}
            if _is_punctuation(row.arrives)
            else _event(row.arrives, source.schema)
        )
        file.write_text(json.dumps(record) + "\n")
        os.utime(file, ns=(number * 10**9, number * 10**9))
    # One row an epoch, so that the results of epoch n are what arrival n has brought.
    target = ps.memory()
    settings: dict[str, Any] = {"max_rows": 1, "buckets": 2, "checkpoint": "checkpoint", "spark": local_session()}
    run = query.start(target, trigger="available_now", **settings).wait()
    wanted: dict[int, list[str]] = {}
    for number, row in enumerate(timeline.rows, start=1):
        epoch = min(number, len(arrivals))  # the end of the input is told in the epoch that reads the last file
        wanted.setdefault(epoch, []).extend(
            e for e in row.emits if not _is_punctuation(e) and not e.startswith("dead letter")
        )
    got = {epoch: [str(Event(r)) for r in table.to_pylist()] for epoch, table in target.tables}
    for epoch, expected in wanted.items():
        assert sorted(got.get(epoch, [])) == sorted(expected), arrivals[epoch - 1].arrives
    dead = [(int(Path(r["file"]).stem), f"dead letter: {r['reason']}") for r in run.dead_letters().to_pylist()]
    letters = [(n, e) for n, row in enumerate(timeline.rows, start=1) for e in row.emits if e.startswith("dead letter")]
    assert sorted(dead) == letters
