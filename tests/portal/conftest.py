"""Small inputs and query files for the command line."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

HEAD = """import penstock as ps
s = ps.stream("traffic", "ts timestamp, segment int, speed double", time="ts").read_parquet(r"{data}", order="name")
"""


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Two files of events, a second apart, the third one late."""
    folder = tmp_path / "data"
    folder.mkdir()
    start = datetime(2026, 1, 1)
    for f in range(2):
        rows = [{"ts": start + timedelta(seconds=100 * f + i), "segment": i % 3, "speed": float(i)} for i in range(100)]
        if f == 1:
            rows[50]["ts"] = start
        schema = pa.schema([("ts", pa.timestamp("us")), ("segment", pa.int32()), ("speed", pa.float64())])
        pq.write_table(pa.Table.from_pylist(rows, schema), folder / f"{f}.parquet")
    return folder


@pytest.fixture
def query_file(tmp_path: Path, data: Path) -> Callable[..., str]:
    """Writes a query file: the declaration of the stream `s`, then the given text."""

    def write(text: str = "query = s", path: Path | None = None) -> str:
        file = tmp_path / "query.py"
        file.write_text(HEAD.format(data=path or data) + text)
        return str(file)

    return write
