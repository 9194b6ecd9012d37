"""The Markdown pages hold what they say: links lead somewhere, examples run, timelines happen as they are written.

A *timeline* is a table whose first column is `arrives`. It is played twice: item by item through the reference
interpreter, and, one file per item and one item per epoch, through the engine. The query is what the Python block
before it defines under the name `query`. With several sources each item says whose it is, `probe: ts 5, …`; with
several source partitions, from which it comes, `from a: ts 5, …`.

A *conversation* is a table whose first column is `happens`: items arrive, the consumer says something, or nothing. The
engine plays it, one epoch a row, and has to emit, hold, save and say upstream what the row says. The reference
interpreter, which hears no feedback, holds it to the guarantee: nothing is lost but what the consumer ignores.
"""

from __future__ import annotations

import doctest
import json
import os
import re
import tomllib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import penstock as ps
from penstock.analysis.turning import turned
from penstock.checkpoint.checkpoint import Checkpoint
from penstock.operators.join.reference_partner import HeldEvent
from penstock.operators.source.operator import Source
from penstock.pattern.feedback import Feedback
from penstock.pattern.pattern import Pattern
from penstock.pattern.schema import Schema
from penstock.plan.consistency import Setting
from penstock.plan.operator import Operator
from penstock.plan.plan import Plan
from penstock.plan.promise import Adaptive, Files
from penstock.portal.testing import local_session
from penstock.reference.grouping import Group
from penstock.reference.interpret import Interpretation, TraceStep
from penstock.reference.item import Assertion, Event, Item

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md")])
_LINK = re.compile(r"\[[^\]]*\]\(<?([^)\s>]+)>?[^)]*\)")
_CODE = re.compile(r"^(```|~~~).*?^\1|`[^`\n]*`", re.MULTILINE | re.DOTALL)
_PYTHON = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
_TABLE = re.compile(r"^(\| arrives .*)\n\|[-| ]+\|\n((?:\|.*\n)+)", re.MULTILINE)
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
    known = _built(page) if _name(page) in BUILDING else {}
    assert doctest.testfile(str(page), module_relative=False, optionflags=flags, globs=known).failed == 0


#: Pages that build something: their examples use what the other blocks define, and what these say is true of it.
BUILDING = ("docs/add-an-operator.md",)


def _built(page: Path) -> dict[str, Any]:
    """What the blocks of a page define that are not examples. Like those of a script, its functions travel to tasks."""
    known: dict[str, Any] = {"__name__": "__main__"}
    for block in _PYTHON.findall(page.read_text()):
        if ">>>" not in block:
            exec(compile(block, page.name, "exec"), known)
    return known


def test_the_architecture_shows_all_packages_and_names_modules_as_they_are() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text()
    links = re.findall(r"\[`([\w./]+\.py)`\]\(\.\./src/penstock/([\w./]+)\)", text)
    assert len(links) > 40 and [(name, path) for name, path in links if not path.endswith(name)] == []
    drawn = re.findall(r"^ {4}(\w+)\[\"<b>\1</b>", text, re.MULTILINE)
    explained = re.findall(r"\*\*`(\w+)`\*\*", text)
    packages = sorted(p.parent.name for p in (ROOT / "src" / "penstock").glob("*/__init__.py"))
    assert sorted(drawn) == sorted(explained) == packages


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


_NAMED = re.compile(r"\[`(\w+)`\]\(\.\./(tests/[\w/]+\.py)\)")


def test_every_guarantee_is_shown_by_tests_that_exist() -> None:
    text = (ROOT / "docs" / "guarantees.md").read_text()
    rows = [line for line in text.splitlines() if re.match(r"\| (?!promised)[^-]", line)]
    assert [row for row in rows if not _NAMED.search(row)] == []
    named = _NAMED.findall(text)
    missing = [pair for pair in named if not re.search(rf"^def {pair[0]}\(", (ROOT / pair[1]).read_text(), re.M)]
    assert len(rows) > 40 and missing == []


# --- timelines ------------------------------------------------------------------------------------------------------


#: Operators that hold something, and so can be meant by a column `holds`.
_KEEPING = ("aggregate", "distinct", "orderby", "top", "join", "multijoin")


@dataclass(frozen=True)
class Row:
    """One row of a timeline: what arrives (from which source and partition), what that brings, what is held then."""

    arrives: str
    source: str | None
    partition: str | None
    emits: tuple[str, ...]
    holds: str | None

    @property
    def dial(self) -> ps.Consistency | None:
        """Where the dial is turned to, if that is what happens."""
        return eval(self.arrives) if self.arrives.startswith("ps.Consistency") else None


@dataclass(frozen=True)
class Timeline:
    page: Path
    number: int
    code: str
    header: str
    rows: tuple[Row, ...]

    def __str__(self) -> str:
        return f"{self.page.name}-{self.number}"

    @property
    def arrivals(self) -> list[Row]:
        return [row for row in self.rows if row.arrives != _END and row.dial is None]


def _plain(cell: str) -> str:
    return cell.replace("`", "").replace(r"\|", "|").strip()


def _cells(line: str) -> list[str]:
    return [c.strip() for c in re.split(r"(?<!\\)\|", line.strip().strip("|"))]


def _row(line: str) -> Row:
    cells = _cells(line)
    arrives = _plain(cells[0])
    origin = re.match(r"(?:from (?P<partition>\w+)|(?P<source>\w+)): ", arrives)
    emits = tuple(_plain(part) for part in cells[1].split("<br>"))
    return Row(
        arrives[origin.end() :] if origin else arrives,
        origin["source"] if origin else None,
        origin["partition"] if origin else None,
        () if emits == ("nothing",) else emits,
        _plain(cells[2]) if len(cells) > 2 else None,
    )


def timelines() -> list[Timeline]:
    found = []
    for page in PAGES:
        text = page.read_text()
        for number, table in enumerate(_TABLE.finditer(text), start=1):
            code = [b[1] for b in _PYTHON.finditer(text, 0, table.start()) if "query =" in b[1] and ">>>" not in b[1]]
            rows = tuple(_row(line) for line in table[2].splitlines())
            found.append(Timeline(page, number, code[-1], table[1], rows))
    return found


def _query(timeline: Timeline) -> tuple[ps.Stream, dict[str | None, Source]]:
    """The query, and its sources by name; the only one goes without."""
    scope: dict[str, Any] = {"ps": ps}
    exec(timeline.code, scope)
    query = scope["query"]
    sources = [node.operator for node in query.plan.sources if isinstance(node.operator, Source)]
    by_name: dict[str | None, Source] = {s.name: s for s in sources}
    if len(sources) == 1:
        by_name[None] = sources[0]
    return query, by_name


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


def _inputs(operator: Operator) -> list[str]:
    """What to call the inputs of a join: by the stream that each comes from, if that tells them apart."""
    names = []
    for below in operator.inputs:
        while len(below.inputs) == 1:
            (below,) = below.inputs
        names.append(below.name if isinstance(below, Source) else "")
    return names if "" not in names and len(set(names)) == len(names) else ["left", "right"]


def _piece(held: Any, inputs: list[str]) -> str:
    """A group with its number of events, `10 A (2)`; a row of a join with its input, `probe 10 A`; else a plain row."""
    if isinstance(held, Group):
        return f"{' '.join(map(str, held.key)) or 'all'} ({len(held.rows)})"
    values = " ".join("null" if v is None else str(v) for v in held.row.values())
    return f"{inputs[held.input]} {values}" if isinstance(held, HeldEvent) else values


def _held(state: Iterable[Any], operator: Operator) -> str:
    inputs = _inputs(operator)
    return ", ".join(sorted(_piece(held, inputs) for held in state)) or "nothing"


def _keeping(timeline: Timeline, plan: Plan) -> str | None:
    """The operator that a column `holds` speaks of: the one it names, or the only one that can be meant."""
    if named := re.search(r"`([a-z]+-\d+)`", timeline.header):
        return named[1]
    found = [n.id for n in plan if n.operator.kind in _KEEPING]
    return found[0] if found else None


def _by_row(steps: list[TraceStep]) -> list[list[TraceStep]]:
    """The steps that belong to each row: a source that takes something, or comes to its end, begins a new one."""
    parts: list[list[TraceStep]] = [[]]
    for step in steps:
        ended = any(isinstance(i, Assertion) and not i.pattern.restricted for i in step.emitted)
        if step.kind == "source" and (step.taken is not None or ended):
            parts.append([])
        parts[-1].append(step)
    return parts[1:]


def _shown(items: list[Item], wanted: tuple[str, ...]) -> list[str]:
    """Items as a page writes them. Pages that show no punctuation in a row leave it out."""
    every = any(_is_punctuation(w) for w in wanted)
    return [str(i) for i in items if every or isinstance(i, Event)]


def _net(shown: list[str]) -> list[str]:
    """What is told and taken back in one moment is not seen, as an epoch does not tell it."""
    left = list(shown)
    for told in shown:
        back = told.removesuffix(", _weight 1") + ", _weight -1"
        if told.endswith(", _weight 1") and told in left and back in left:
            left.remove(told)
            left.remove(back)
    return left


def _sorted(items: Iterable[str]) -> list[str]:
    """Results of one moment have no order among themselves; a punctuation comes after them."""
    return sorted(items, key=lambda item: (_is_punctuation(item), item))


def _by_definition(timeline: Timeline) -> bool:
    """Disorder that is measured depends on the cut into epochs, which the reference interpreter does not know."""
    _, sources = _query(timeline)
    return not any(isinstance(p, Adaptive) for s in sources.values() for p in s.promises)


def _by_reference(query: ps.Stream, sources: dict[str | None, Source], rows: Iterable[Row]) -> list[TraceStep]:
    """What the reference interpreter does about arrivals, step by step."""
    arrivals: dict[str, list[Any]] = {}
    order: list[str] = []
    dials: dict[int, Setting] = {}
    for row in rows:
        if row.dial is not None:
            dials[len(order)] = turned(query.plan, row.dial)
            continue
        source = sources[row.source]
        item: Any = (
            Pattern.parse(row.arrives.removeprefix("punctuation "), source.schema)
            if _is_punctuation(row.arrives)
            else _event(row.arrives, source.schema)
        )
        arrivals.setdefault(source.name, []).append(item if row.partition is None else (row.partition, item))
        order.append(source.name)
    run = Interpretation(query.plan, arrivals, order=order)
    run.dial = dials
    return list(run.steps())


@pytest.mark.parametrize("timeline", [t for t in timelines() if _by_definition(t)], ids=str)
def test_timeline_by_definition(timeline: Timeline) -> None:
    query, sources = _query(timeline)
    parts = _by_row(_by_reference(query, sources, (r for r in timeline.rows if r.arrives != _END)))
    for number, row in enumerate(timeline.rows):
        if row.dial is not None:
            parts.insert(number, [])  # From the next event on.
    assert len(parts) == len(timeline.rows)
    keeping = _keeping(timeline, query.plan)
    held: tuple[Any, ...] = ()
    for row, steps in zip(timeline.rows, parts):
        out = [item for s in steps if s.operator == query.plan.nodes[-1].id for item in s.emitted]
        letters = [f"dead letter: {s.dead_letter.kind}" for s in steps if s.dead_letter is not None]
        shown = _net(_shown(out, row.emits))
        assert all(map(_is_punctuation, shown[sum(not _is_punctuation(i) for i in shown) :])), row.arrives
        assert _sorted([*shown, *letters]) == _sorted(row.emits), row.arrives
        held = next((s.state for s in reversed(steps) if s.operator == keeping), held)
        if row.holds is not None:
            assert keeping is not None
            assert _held(held, query.plan[keeping].operator) == row.holds, row.arrives


@dataclass
class Played:
    """What the engine has made of each row: results, how many rows it holds then (if known), and all dead letters."""

    results: list[list[str]]
    held: list[int]
    letters: list[tuple[int, str]]


def _write(folder: Path, number: int, row: Row, source: Source) -> None:
    assert isinstance(source.reader, Files)
    file = folder / source.reader.path / (row.partition or "") / f"{number:03d}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    record = (
        {"punctuation": row.arrives.removeprefix("punctuation ")}
        if _is_punctuation(row.arrives)
        else _event(row.arrives, source.schema)
    )
    file.write_text(json.dumps(record) + "\n")
    os.utime(file, ns=(number * 10**9, number * 10**9))


def _settings() -> dict[str, Any]:
    return {"trigger": "available_now", "buckets": 2, "checkpoint": "checkpoint", "spark": local_session()}


def _letters(run: ps.Run) -> list[tuple[int, str]]:
    return sorted((int(Path(r["file"]).stem), f"dead letter: {r['reason']}") for r in run.dead_letters().to_pylist())


def _play_one_source(timeline: Timeline, folder: Path) -> Played:
    """All files are there from the start; one row an epoch, so that epoch n shows what arrival n has brought."""
    query, sources = _query(timeline)
    for number, row in enumerate(timeline.arrivals, start=1):
        _write(folder, number, row, sources[row.source])
    target = ps.memory()
    run = query.start(target, max_rows=1, **_settings()).wait()
    results: list[list[str]] = [[] for _ in timeline.arrivals]
    for epoch, table in target.tables:
        # The end of the input is told in the epoch that reads the last file.
        results[min(epoch, len(results)) - 1] += [str(Event(r)) for r in table.to_pylist()]
    return Played(results, [], _letters(run))


def _play_several_sources(timeline: Timeline, folder: Path) -> Played:
    """Each file comes when its turn has come, and a run that goes on from the last one takes it."""
    query, sources = _query(timeline)
    for source in sources.values():
        assert isinstance(source.reader, Files)
        (folder / source.reader.path).mkdir(parents=True, exist_ok=True)
        (folder / source.reader.path / "000.json").write_text("\n")
    results: list[list[str]] = []
    held: list[int] = []
    for number, row in enumerate(timeline.rows, start=1):
        if row.dial is not None:
            ps.consumer("checkpoint").consistency(row.dial)
            continue
        _write(folder, number, row, sources[row.source])
        target = ps.memory()
        run = query.start(target, **_settings()).wait()
        results.append([str(Event(r)) for r in target.rows()])
        held.append(run.progress.state_rows if run.progress is not None else held[-1])
    return Played(results, held, _letters(run))


@pytest.mark.parametrize("timeline", timelines(), ids=str)
def test_timeline_in_the_engine(timeline: Timeline, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    several = any(row.source or row.dial for row in timeline.rows)
    played = (_play_several_sources if several else _play_one_source)(timeline, tmp_path)
    wanted: list[list[str]] = [[] for _ in timeline.arrivals]
    for number, row in enumerate(r for r in timeline.rows if r.dial is None):
        told = [e for e in row.emits if not _is_punctuation(e) and not e.startswith("dead letter")]
        wanted[min(number, len(wanted) - 1)] += told
    for row, got, expected in zip(timeline.arrivals, played.results, wanted):
        assert sorted(got) == sorted(expected), row.arrives
    letters = [(n, e) for n, row in enumerate(timeline.rows, start=1) for e in row.emits if e.startswith("dead letter")]
    assert played.letters == letters
    for row, count in zip(timeline.arrivals, played.held):
        if row.holds is not None and "-1` holds" not in timeline.header:  # Of several operators one alone is shown.
            assert count == (0 if row.holds == "nothing" else len(row.holds.split(", "))), row.arrives


# --- conversations --------------------------------------------------------------------------------------------------

_TALK = re.compile(_TABLE.pattern.replace("arrives", "happens"), re.MULTILINE)
_COLUMNS = ("emits", "holds", "saved", "guards", "says upstream")


@dataclass(frozen=True)
class Moment:
    """One row of a conversation: what arrives, what the consumer says, and by column what the page says of it."""

    arrivals: tuple[Row, ...]
    said: str | None
    cells: dict[str, list[str]]


@dataclass(frozen=True)
class Talk:
    timeline: Timeline
    moments: tuple[Moment, ...]

    def __str__(self) -> str:
        return str(self.timeline)


def _moment(line: str, columns: list[str]) -> Moment:
    happens, *cells = [[_plain(part) for part in cell.split("<br>")] for cell in _cells(line)]
    said = [h.removeprefix("consumer: ") for h in happens if h.startswith("consumer: ")]
    arrivals = tuple(_row(f"| {h} | nothing |") for h in happens if not h.startswith("consumer: ") and h != "nothing")
    told = {name: [] if cell == ["nothing"] else sorted(cell) for name, cell in zip(columns, cells, strict=True)}
    told["holds"] = [piece for cell in told.get("holds", ()) for piece in cell.split(", ")]
    return Moment(arrivals, said[0] if said else None, told)


def conversations() -> list[Talk]:
    found = []
    for page in PAGES:
        text = page.read_text()
        for number, table in enumerate(_TALK.finditer(text), start=1):
            code = [b[1] for b in _PYTHON.finditer(text, 0, table.start()) if "query =" in b[1] and ">>>" not in b[1]]
            columns = [next(c for c in _COLUMNS if _plain(cell).startswith(c)) for cell in _cells(table[1])[1:]]
            moments = tuple(_moment(line, columns) for line in table[2].splitlines())
            found.append(Talk(Timeline(page, number, code[-1], table[1], ()), moments))
    return found


def _said_upstream(run: ps.Run, plan: Plan) -> list[str]:
    """What operators have found out in the epoch that is over: `to probe: not [4, *, *]`."""
    found = set()
    manifest = Checkpoint(run.checkpoint).latest()
    for issued in manifest.feedback.get("issued", ()) if manifest is not None else ():
        node = plan[issued["node"]]
        told = node.operator.inputs[issued["port"]]
        names = _inputs(node.operator)
        name = node.inputs[issued["port"]] if names == ["left", "right"] else names[issued["port"]]
        found.add(f"to {name}: {Feedback.from_json(issued['feedback'], told.schema)}")
    return sorted(found)


@pytest.mark.parametrize("talk", conversations(), ids=str)
def test_conversation_in_the_engine(talk: Talk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    query, sources = _query(talk.timeline)
    for source in sources.values():
        assert isinstance(source.reader, Files)
        (tmp_path / source.reader.path).mkdir(parents=True, exist_ok=True)
        (tmp_path / source.reader.path / "000.json").write_text("\n")
    number = answers = 0
    for moment in talk.moments:
        for row in moment.arrivals:
            number += 1
            _write(tmp_path, number, row, sources[row.source])
        target = ps.memory()
        settings = _settings() | {"trigger": "once", "buckets": 1}
        run = query.start(target, feedback=[moment.said] if moment.said else [], **settings).wait()
        partials = run.partials().to_pylist()[answers:]
        answers += len(partials)
        assert all(row.pop("partial") and row.pop("as_of_epoch") for row in partials)
        emits = [str(Event(r)) for r in target.rows()] + [f"partial: {Event(r)}" for r in partials]
        assert sorted(emits) == moment.cells["emits"], moment
        assert run.progress is not None, moment
        if "holds" in talk.timeline.header:
            # Of a group one row for every epoch that brought it events, until they are merged.
            events = [int((re.findall(r"\((\d+)\)$", piece) or [1])[0]) for piece in moment.cells["holds"]]
            assert len(events) <= run.progress.state_rows <= sum(events), moment
        if (saved := moment.cells.get("saved")) is not None:
            assert sorted(f"{what} {n}" for what, n in run.progress.saved.items()) == saved, moment
        if (guards := moment.cells.get("guards")) is not None:
            assert sorted(map(str, run.guards())) == guards, moment
        if (says := moment.cells.get("says upstream")) is not None:
            assert _said_upstream(run, query.plan) == says, moment


@pytest.mark.parametrize("talk", conversations(), ids=str)
def test_conversation_keeps_the_guarantee(talk: Talk) -> None:
    query, sources = _query(talk.timeline)
    steps = _by_reference(query, sources, [row for moment in talk.moments for row in moment.arrivals])
    root = query.plan.nodes[-1].id
    plain = [item for s in steps if s.operator == root for item in s.emitted if isinstance(item, Event)]
    shown = Counter(e for m in talk.moments for e in m.cells["emits"] if not e.startswith("partial: "))
    told = [Feedback.parse(m.said, query.schema) for m in talk.moments if m.said]
    ignored = [f.pattern for f in told if str(f.intent) == "not"]
    assert not shown - Counter(map(str, plain)), "invented"
    lost = Counter(map(str, plain)) - shown
    if any(n.operator.kind == "pace" for n in query.plan):
        lost.clear()  # What is too far behind depends on the epochs, which the reference interpreter does not know.
    assert all(any(p.matches_row(e.row) for p in ignored) for e in plain if str(e) in lost), "lost"
    keeping = _keeping(talk.timeline, query.plan)
    if keeping is None:
        return
    parts = iter(_by_row(steps))
    held: tuple[Any, ...] = ()
    for moment in talk.moments:
        for _ in moment.arrivals:
            held = next((s.state for s in reversed(next(parts)) if s.operator == keeping), held)
        known = Counter(_piece(h, _inputs(query.plan[keeping].operator)) for h in held)
        assert not Counter(moment.cells["holds"]) - known, moment
