"""Changes as PyFlink tells them. Runs in its own environment: a query and rows as JSON from standard input."""

from __future__ import annotations

import json
import os
import sys
from typing import Any


def main() -> None:
    given: dict[str, Any] = json.loads(sys.stdin.read())
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # A JVM writes to standard output too.
    from pyflink.table import DataTypes, EnvironmentSettings, TableEnvironment

    flink = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    flink.get_config().set("parallelism.default", "1")
    kinds = {"string": DataTypes.STRING(), "int": DataTypes.INT()}
    row = DataTypes.ROW([DataTypes.FIELD(name, kinds[kind]) for name, kind in given["schema"]])
    flink.create_temporary_view("s", flink.from_elements([tuple(r) for r in given["rows"]], row))
    signs = {"+I": 1, "+U": 1, "-U": -1, "-D": -1}
    told = []
    for query in given["queries"]:
        with flink.execute_sql(query).collect() as changes:
            told.append([[signs[str(c.get_row_kind())], list(c)] for c in changes])
    print(json.dumps(told), file=answers, flush=True)


if __name__ == "__main__":
    main()
