"""A file that was read: touched, nothing happens; rewritten, that is said, and there is a way on."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import penstock as ps
from penstock.checkpoint.fault import Crash, hooked
from penstock.engine.source.sameness import mark_of
from penstock.errors import SourceError, UserError
from penstock.portal import cli
from penstock.portal.testing import local_session

ROWS = 3000


def write(home: Path, number: int, kind: str, add: int = 0) -> Path:
    (home / "in").mkdir(exist_ok=True)
    first = ROWS * number
    table = pa.table({"t": range(first, first + ROWS), "v": [f"{i + add:09d}" for i in range(ROWS)]})
    path = home / "in" / f"{number}.{kind}"
    if kind == "parquet":
        pq.write_table(table, path, row_group_size=1000, compression="none", use_dictionary=False)
    elif kind == "csv":
        pyarrow.csv.write_csv(table, path)
    else:
        path.write_text(
            "".join(f'{{"t": {t}, "v": "{v}"}}\n' for t, v in zip(*table.to_pydict().values(), strict=True))
        )
    return path


def touch(path: Path) -> None:
    os.utime(path, ns=(5, path.stat().st_mtime_ns + 10**9))


def start(home: Path, kind: str, **options: Any) -> ps.Run:
    stream = ps.stream("numbers", "t bigint, v string", time="t")
    read: Callable[..., Any] = getattr(stream, f"read_{kind}")
    query = read(str(home / "in")).disorder(0)
    sink, checkpoint = ps.parquet(str(home / "out")), str(home / "ck")
    started = query.start(sink, checkpoint=checkpoint, trigger="available_now", spark=local_session(), **options)
    run: ps.Run = started.wait()
    return run


def results(home: Path) -> list[int]:
    return sorted(t for f in (home / "out").glob("part-*") for t in pq.read_table(f)["t"].to_pylist())


@pytest.mark.parametrize("kind", ["parquet", "csv", "json"])
def test_a_touch_does_not_matter(tmp_path: Path, kind: str) -> None:
    first = write(tmp_path, 0, kind)
    start(tmp_path, kind)
    for number in (1, 2, 3):
        touch(first)
        write(tmp_path, number, kind)
        assert not start(tmp_path, kind).warnings
    assert results(tmp_path) == list(range(4 * ROWS))


@pytest.mark.parametrize("kind", ["parquet", "csv", "json"])
@pytest.mark.parametrize("point", ["planned", "merged", "committed"])
def test_a_touch_does_not_matter_to_a_file_that_is_read_in_part(tmp_path: Path, kind: str, point: str) -> None:
    first = write(tmp_path, 0, kind)
    crashes: list[str] = []

    def hook(reached: str) -> None:
        if reached == point and len(crashes) < 2:
            crashes.append(point)
            raise Crash

    for _ in range(2):
        with pytest.raises(Crash), hooked(hook):
            start(tmp_path, kind, max_rows=1000)
        touch(first)
    run = start(tmp_path, kind, max_rows=1000)
    assert not [w for w in run.warnings if "changed" in w]
    assert results(tmp_path) == list(range(ROWS))


@pytest.mark.parametrize("kind", ["parquet", "csv", "json"])
@pytest.mark.parametrize("add", [1, 10**8])
def test_a_rewrite_of_the_same_size_is_noticed(tmp_path: Path, kind: str, add: int) -> None:
    first = write(tmp_path, 0, kind)
    size = first.stat().st_size
    before = mark_of(str(first), size, kind)
    touch(first)
    assert mark_of(str(first), size, kind) == before != ""
    start(tmp_path, kind)
    write(tmp_path, 0, kind, add)
    assert first.stat().st_size == size
    touch(first)
    write(tmp_path, 1, kind)
    with pytest.raises(SourceError, match=rf'0\.{kind}\' changed after it was read.*changed_files="ignore"'):
        start(tmp_path, kind)
    assert results(tmp_path) == list(range(ROWS)), "neither doubled nor lost"
    run = start(tmp_path, kind, changed_files="ignore")
    assert [w for w in run.warnings if "what it holds now is not read" in w]
    assert results(tmp_path) == list(range(2 * ROWS))
    write(tmp_path, 2, kind)
    assert not start(tmp_path, kind).warnings, "said once, and it stays as it was"
    assert results(tmp_path) == list(range(3 * ROWS))


def test_a_file_read_in_part_that_was_rewritten_is_not_read_on(tmp_path: Path) -> None:
    write(tmp_path, 0, "parquet")

    def hook(reached: str) -> None:
        if reached == "write epochs/000002.plan.json":
            raise Crash

    with pytest.raises(Crash), hooked(hook):
        start(tmp_path, "parquet", max_rows=1000, overlap=False)
    write(tmp_path, 0, "parquet", 7)
    write(tmp_path, 1, "parquet")
    with pytest.raises(SourceError, match="changed after it was read"):
        start(tmp_path, "parquet")
    assert start(tmp_path, "parquet", changed_files="ignore").warnings
    assert results(tmp_path) == [*range(1000), *range(ROWS, 2 * ROWS)]
    assert not start(tmp_path, "parquet").warnings


def test_the_command_line_has_the_way_on_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, 0, "parquet")
    start(tmp_path, "parquet")
    write(tmp_path, 0, "parquet", 7)
    file = tmp_path / "q.py"
    file.write_text(
        "import penstock as ps\n"
        f"query = ps.stream('numbers', 't bigint, v string', time='t').read_parquet({str(tmp_path / 'in')!r})\n"
        f"query = query.disorder(0)\nsink = ps.parquet({str(tmp_path / 'out')!r})\n"
        f"settings = {{'checkpoint': {str(tmp_path / 'ck')!r}}}\n"
    )
    monkeypatch.setattr("penstock.engine.spark.session.spark_session", lambda *a, **k: local_session())
    said = CliRunner().invoke(cli.app, ["run", str(file), "--trigger", "available_now"])
    assert said.exit_code == 2 and "--changed-files ignore" in said.output, said.output
    more = ["--trigger", "available_now", "--changed-files", "ignore"]
    said = CliRunner().invoke(cli.app, ["run", str(file), *more])
    assert said.exit_code == 0 and "what it holds now is not read" in said.output, said.output
    with pytest.raises(UserError, match="changed_files='perhaps'"):
        start(tmp_path, "parquet", changed_files="perhaps")
