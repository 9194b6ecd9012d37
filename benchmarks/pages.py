"""Write the tables of the pages anew from `results/results.json`.

    python -m benchmarks.pages            write
    python -m benchmarks.pages --check    only say whether they are as they should be

In a page, `<!-- measured: races -->` begins a table and `<!-- end -->` ends it.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks import tables
from benchmarks.plots import draw
from benchmarks.shedding.report import tables as shedding_tables
from benchmarks.speculating.report import tables as speculation_tables

ROOT = Path(__file__).parents[1]
RESULTS = Path(__file__).parent / "results" / "results.json"
#: What `benchmarks.speculation` writes; its tables are made of it in the same way.
SPECULATION = RESULTS.with_name("speculation.json")
#: What `benchmarks.shedding` writes.
SHEDDING = RESULTS.with_name("shedding.json")
PAGES = (ROOT / "README.md", ROOT / "docs" / "results.md", ROOT / "docs" / "shedding.md")
TABLES: dict[str, Callable[[dict[str, Any]], str]] = {
    "readme": tables.readme_table,
    "races": tables.races_table,
    "targets": tables.targets_table,
    "settings": tables.settings_table,
    "latency": tables.latency_table,
    "stalls": tables.stalls_table,
    "profile": lambda record: tables.profile_table(record["cases"].get("profile", {})),
}
_PART = re.compile(r"(<!-- measured: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def others() -> dict[str, str]:
    """The tables of other records, by their names."""
    speculated = json.loads(SPECULATION.read_text()) if SPECULATION.exists() else {}
    shed = json.loads(SHEDDING.read_text()) if SHEDDING.exists() else {}
    return {**speculation_tables(speculated), **shedding_tables(shed)}


def rewritten(page: str, record: dict[str, Any]) -> str:
    """A page with the tables that the record gives.

    >>> rewritten("a <!-- measured: stalls -->\\nold\\n<!-- end --> b", {"cases": {}})
    'a <!-- measured: stalls -->\\nNot measured.\\n<!-- end --> b'
    """
    other = others()

    def made(name: str) -> str:
        return other[name] if name in other else TABLES[name](record)

    return _PART.sub(lambda found: f"{found[1]}{made(found[2])}\n{found[3]}", page)


def write_pages(record: dict[str, Any]) -> None:
    for page in PAGES:
        page.write_text(rewritten(page.read_text(), record))
    draw(record, ROOT / "docs" / "images")


def write_tables() -> None:
    """The tables of the pages alone."""
    record = json.loads(RESULTS.read_text())
    for page in PAGES:
        page.write_text(rewritten(page.read_text(), record))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    given = parser.parse_args()
    record = json.loads(RESULTS.read_text())
    if given.check:
        stale = [page.name for page in PAGES if rewritten(page.read_text(), record) != page.read_text()]
        raise SystemExit(
            f"not as {RESULTS.name} says: {', '.join(stale)}; run python -m benchmarks.pages" if stale else 0
        )
    write_pages(record)


if __name__ == "__main__":
    main()
