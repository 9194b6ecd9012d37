"""The house is in order: operators stay in their rooms, modules short, names apart, and the map shows what is there."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

from benchmarks.rooms import LONGEST, PACKAGE, lengths, modules, namers, operators, tree_of

ROOT = PACKAGE.parents[1]


def test_an_operator_is_named_in_few_files_outside_its_room() -> None:
    assert set(operators()) >= {"Top", "Join", "CountAggregate", "Impute"}
    assert len(namers()["Top"]) <= 3, namers()["Top"]


def test_no_module_is_long() -> None:
    long = {m: n for m, n in lengths().items() if n > LONGEST}
    assert not long


def test_the_architecture_names_files_that_exist() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    known = {p.name for folder in ("src", "docs", "tests", "benchmarks") for p in (ROOT / folder).rglob("*.*")}
    named = set(re.findall(r"`([\w./-]+\.(?:py|md|toml))`", page))
    assert named
    missing = [n for n in named if not ((PACKAGE / n).exists() or (ROOT / n).exists() or n in known)]
    linked = [Path(link) for link in re.findall(r"\]\((\.\./[^)#]+)", page)]
    missing += [str(link) for link in linked if not (ROOT / "docs" / link).exists()]
    assert not missing


def test_importing_penstock_takes_no_longer_than_it_must() -> None:
    """An Arrow array made of a list where a module is loaded would bring in all of pandas."""
    code = "import sys, penstock; print({'pandas', 'pyspark', 'matplotlib'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_every_class_has_a_name_of_its_own() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for module in modules():
        for node in tree_of(module).body:
            if isinstance(node, ast.ClassDef):
                places[node.name].append(str(module))
    assert len(places) > 300
    assert not {name: files for name, files in places.items() if len(files) > 1}


def test_every_long_search_is_in_a_part_of_make_fuzz() -> None:
    """One in a folder that no part names would never run."""
    parts = re.findall(r"\$\(FUZZ\).*? (tests/\S+)", (ROOT / "Makefile").read_text(encoding="utf-8"))
    assert len(parts) >= 7
    marked = [
        p for p in (ROOT / "tests").rglob("test_*.py") if re.search(r"\bmark\.fuzz\b", p.read_text(encoding="utf-8"))
    ]
    assert len(marked) > 15
    assert not [p for p in marked if not any(p.is_relative_to(ROOT / part) for part in parts)]
