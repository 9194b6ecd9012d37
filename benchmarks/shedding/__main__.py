"""Load shedding, simulated: published experiments again, on the models that the engine plans with.

    python -m benchmarks.shedding            all of it, in two minutes: a record, tables and pictures
    python -m benchmarks.shedding --quick    a look, in seconds; nothing is written
    python -m benchmarks.shedding --report   tables and pictures again, nothing simulated

Nothing here depends on the machine: rows arrive, wait for one server, and cost what the model says.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

from benchmarks.pages import ROOT, SHEDDING, write_tables
from benchmarks.shedding import rows, windows
from benchmarks.shedding.report import draw, tables


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--report", action="store_true")
    given = parser.parse_args()
    record: dict[str, Any]
    if given.report:
        record = json.loads(SHEDDING.read_text())
    else:
        record = json.loads(json.dumps({**rows.run(given.quick), **windows.run(given.quick)}))
    print(*tables(record).values(), sep="\n\n")
    if not given.quick:
        SHEDDING.write_text(json.dumps(record, indent=1) + "\n")
        write_tables()
        draw(record, ROOT / "docs" / "images")


if __name__ == "__main__":
    main()
