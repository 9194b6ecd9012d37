"""An operator from outside: a package of its own, of which Penstock knows nothing but its registration.

Everything that an operator is asked is asked here: it is explained, checked, traced, fed back to and run.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest

import penstock as ps
from penstock import extend
from penstock.errors import CheckpointError, UnknownOperatorError, UserError
from penstock.plan import spec as protocol
from penstock.portal import script
from penstock.portal.testing import local_session
from penstock.reference.interpret import interpret
from penstock.reference.item import Assertion, Event

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: The package, file by file: events whose key leaves a given rest.
PACKAGE = {
    "__init__.py": '''
"""Events whose key leaves a given rest."""

from penstock import extend

from .operator import Leftover
from .spec import LeftoverSpec

extend.register(LeftoverSpec())


def leftover(stream, key, by, rest):
    return extend.put_on(stream, lambda below: Leftover((below,), below.schema, key=key, by=by, rest=rest))
''',
    "operator.py": '''
from dataclasses import dataclass, field

from penstock import extend


@dataclass(frozen=True, eq=False)
class Leftover(extend.Operator):
    """Keeps the events whose key, divided, leaves a given rest."""

    key: str = field(kw_only=True)
    by: int = field(kw_only=True)
    rest: int = field(kw_only=True)

    @property
    def detail(self):
        return f"{self.key} divided by {self.by} leaves {self.rest}"
''',
    "spec.py": """
from penstock import extend

from .operator import Leftover


class LeftoverStep(extend.SqlStep):
    def __init__(self, operator):
        self.operator = operator

    def reads(self, passed, wanted):
        return passed | {self.operator.key}

    def sql(self, rows, asked):
        o = self.operator
        return f'SELECT * FROM ({rows}) WHERE "{o.key}" % {o.by} = {o.rest}'


class LeftoverReference:
    def __init__(self, operator):
        self.operator = operator

    def on_event(self, event, input=0):
        o, value = self.operator, event.row[self.operator.key]
        return [event] if value is not None and value % o.by == o.rest else []

    def on_punctuation(self, pattern, input=0):
        return [extend.Assertion(pattern)]

    def state(self):
        return []


class LeftoverSpec(extend.ThinningSpec):
    operator = Leftover

    def looks_at(self, operator):
        return {operator.key}

    def definition(self, operator):
        return operator.detail

    def step(self, operator, node_id):
        return LeftoverStep(operator)

    def reference(self, operator, around):
        return LeftoverReference(operator)

    def example(self, random, below, other):
        return None
""",
}
QUERY = """
import {package} as package
import penstock as ps

cars = ps.stream("cars", "ts int, segment int, speed int", time="ts").read_json({folder!r}).disorder(2).ends()
query = package.leftover(cars, "segment", by=3, rest=1).window(10).group_by("segment").agg(n="count(*)")
"""
ROWS = [{"ts": t, "segment": t % 7 if t % 11 else None, "speed": t % 40} for t in range(60)]


def write(home: Path, name: str) -> Path:
    """The package and events for it."""
    (home / name).mkdir(parents=True)
    for file, text in PACKAGE.items():
        (home / name / file).write_text(text)
    (home / "in").mkdir()
    (home / "in" / "1.json").write_text("".join(f"{json.dumps(row)}\n" for row in ROWS))
    return home


@pytest.fixture(autouse=True)
def _as_it_was(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What a test has registered or imported is unknown to the next."""
    known, imported = dict(protocol._SPECS), set(sys.modules)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield
    protocol._SPECS.clear()
    protocol._SPECS.update(known)
    for name in set(sys.modules) - imported:
        if name.startswith(("leftovers", "penstock_query_")):
            del sys.modules[name]


@pytest.fixture
def package(tmp_path: Path) -> ModuleType:
    sys.path.insert(0, str(write(tmp_path, "leftovers")))
    importlib.invalidate_caches()
    return importlib.import_module("leftovers")


@pytest.fixture
def query(package: ModuleType, tmp_path: Path) -> ps.Stream:
    cars = ps.stream("cars", "ts int, segment int, speed int", time="ts")
    read = cars.read_json(str(tmp_path / "in"), order="name").disorder(2).ends()
    made: ps.Stream = package.leftover(read, "segment", 3, 1).window(10).group_by("segment").agg(n="count(*)")
    return made


def bag(rows: list[Any]) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in rows)


def by_reference(query: ps.Stream) -> list[tuple[Any, ...]]:
    result = interpret(query.plan, {"cars": ROWS}, ends=True)
    assert result.states["leftover-1"] == []
    return bag([item.row for item in result.outputs if isinstance(item, Event)])


def by_hand() -> list[tuple[Any, ...]]:
    kept = [(r["ts"] // 10 * 10, r["segment"]) for r in ROWS if r["segment"] is not None and r["segment"] % 3 == 1]
    return sorted((*group, kept.count(group)) for group in set(kept))


def test_it_is_explained(query: ps.Stream) -> None:
    assert "leftover-1: segment divided by 3 leaves 1" in query.explain()
    assert "leftover-1" in query.explain("mermaid")
    assert "ts up to" in query.explain(punctuation=True)


def test_it_is_checked(query: ps.Stream) -> None:
    report = query.check()
    assert report.safe
    (found,) = (f for f in report.findings if f.operator == "leftover-1")
    assert found.state == "none"


def test_it_is_traced(query: ps.Stream) -> None:
    result = interpret(query.plan, {"cars": ROWS[:5]}, ends=True)
    steps = [s for s in result.trace if s.operator == "leftover-1"]
    passed = [item.row["segment"] for s in steps for item in s.emitted if isinstance(item, Event)]
    assert passed == [1, 4]
    assert any(isinstance(s.taken, Assertion) and s.emitted == (s.taken,) for s in steps)


def test_it_runs_and_agrees_with_its_oracle(query: ps.Stream) -> None:
    found = query.collect(spark=local_session(), max_rows=17).to_pylist()
    assert bag(found) == by_reference(query) == by_hand()


def test_feedback_passes_through_it_to_the_source(query: ps.Stream, tmp_path: Path) -> None:
    target = ps.memory()
    run = query.start(target, feedback=["not [*, 4, *]"], trigger="available_now", spark=local_session()).wait()
    assert bag(target.rows()) == [row for row in by_hand() if row[1] != 4]
    assert run.progress is not None
    assert run.progress.saved == {"source:cars dropped": sum(r["segment"] == 4 for r in ROWS)}


def test_a_run_is_taken_up_again_only_by_the_same_operator(
    package: ModuleType, query: ps.Stream, tmp_path: Path
) -> None:
    settings: dict[str, Any] = {"checkpoint": str(tmp_path / "checkpoint"), "spark": local_session()}
    query.start(ps.memory(), trigger="available_now", **settings).wait()
    cars = ps.stream("cars", "ts int, segment int, speed int", time="ts")
    read = cars.read_json(str(tmp_path / "in"), order="name").disorder(2).ends()
    other = package.leftover(read, "segment", 3, 2).window(10).group_by("segment").agg(n="count(*)")
    with pytest.raises(CheckpointError, match="leftover-1: definition was"):
        other.start(ps.memory(), trigger="available_now", **settings).wait()


def test_without_its_registration_it_is_unknown(package: ModuleType) -> None:
    protocol._SPECS.pop(package.Leftover)
    cars = ps.stream("cars", "ts int, segment int", time="ts")
    with pytest.raises(UnknownOperatorError, match="nobody knows the operator 'leftover'"):
        package.leftover(cars, "segment", 3, 1)


def test_put_on_takes_operators_only() -> None:
    with pytest.raises(UserError, match="put_on"):
        extend.put_on(ps.stream("cars", "ts int"), lambda below: None)  # type: ignore[arg-type,return-value]


@pytest.mark.spark
def test_it_travels_to_spark_with_the_query_file_beside_it(spark: SparkSession, tmp_path: Path) -> None:
    """Workers cannot import the package: no path of theirs leads to it."""
    home = write(tmp_path, "leftovers_on_spark")
    (home / "query.py").write_text(QUERY.format(package="leftovers_on_spark", folder=str(home / "in")))
    loaded = script.load(str(home / "query.py")).query
    assert isinstance(loaded, ps.Stream)
    assert bag(loaded.collect(spark=spark).to_pylist()) == by_hand()
