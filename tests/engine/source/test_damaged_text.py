"""Text files that are none: told, waited for or passed over with a letter, never taken for files without events."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import penstock as ps
from penstock.errors import SourceError, UnreadableError
from penstock.portal.testing import local_session

ROWS = 8


def fill(folder: Path, kind: str, files: int = 3) -> None:
    folder.mkdir()
    for n in range(files):
        at = range(n * ROWS, (n + 1) * ROWS)
        csv = "ts,k\n" + "".join(f"{t},key{t % 3}\n" for t in at)
        text = csv if kind == "csv" else "".join(f'{{"ts":{t},"k":"key{t % 3}"}}\n' for t in at)
        (folder / f"{n}.{kind}").write_text(text)


def start(home: Path, kind: str, policy: str = "wait", **settings: Any) -> ps.Run:
    stream = ps.stream("s", "ts bigint, k string", time="ts")
    read = stream.read_csv if kind == "csv" else stream.read_json
    query = read(str(home / "in"), order="name", on_unreadable=policy, settle=0).disorder(0)  # type: ignore[arg-type]
    options = {"trigger": "available_now", "checkpoint": str(home / "ck"), "spark": local_session(), **settings}
    return query.start(ps.parquet(str(home / "out")), **options).wait()


def counts(run: ps.Run) -> tuple[int, list[str]]:
    return run.driver.manifest.totals["rows_in"], sorted(set(run.dead_letters()["reason"].to_pylist()))


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "zeros": lambda data: bytes(len(data)),
    "packed": gzip.compress,
    "wide": lambda data: data.decode().encode("utf-16"),
    "one line": lambda data: b"\x80" * len(data),
}


# A line that is no JSON is a dead letter of its own.
@pytest.mark.parametrize(("how", "kind"), [*((how, "csv") for how in DAMAGES), ("zeros", "json"), ("wide", "json")])
def test_a_file_that_is_no_text_is_not_one_without_events(how: str, kind: str, tmp_path: Path) -> None:
    fill(tmp_path / "in", kind)
    path = tmp_path / f"in/1.{kind}"
    whole = path.read_bytes()
    path.write_bytes(DAMAGES[how](whole))
    with pytest.raises(SourceError, match=rf"1\.{kind}"):
        start(tmp_path, kind)
    path.write_bytes(whole)
    assert counts(start(tmp_path, kind)) == (3 * ROWS, [])


@pytest.mark.parametrize("how", DAMAGES)
def test_passed_over_it_leaves_a_letter(how: str, tmp_path: Path) -> None:
    fill(tmp_path / "in", "csv")
    path = tmp_path / "in/1.csv"
    path.write_bytes(DAMAGES[how](path.read_bytes()))
    assert counts(start(tmp_path, "csv", "skip"))[1] == ["unreadable"]


def test_a_header_alone_has_no_events(tmp_path: Path) -> None:
    fill(tmp_path / "in", "csv")
    for text in ("ts,k", "ts,k\n", '"k","ts",more\r\n', "\ufeffts,k"):
        (tmp_path / "in/1.csv").write_text(text)
        assert counts(start(tmp_path, "csv", checkpoint=str(tmp_path / str(len(text))))) == (2 * ROWS, [])
        for part in (tmp_path / "out").rglob("*"):
            part.unlink() if part.is_file() else None
    (tmp_path / "in/1.csv").write_text("ts,")  # Somebody has just begun to write it.
    with pytest.raises(UnreadableError, match="it does not name 'k'"):
        start(tmp_path, "csv", checkpoint=str(tmp_path / "begun"))


def test_a_page_of_zeros_within_text_is_not_an_event(tmp_path: Path) -> None:
    """It swallows the ends of lines, too: the line that is left is told of."""
    (tmp_path / "in").mkdir()
    lines = "ts,k\n" + "".join(f"{t},key{t % 3}\n" for t in range(20_000))
    data = bytearray(lines.encode())
    at = data.index(b",key", 100_000) + 2
    end = data.index(b"\n", at + 4096)
    data[at:end] = bytes(end - at)
    (tmp_path / "in/0.csv").write_bytes(data)
    run = start(tmp_path, "csv")
    (letter,) = run.dead_letters().to_pylist()
    assert letter["reason"] == "malformed" and "zero bytes" in letter["detail"]


def test_a_plan_over_a_file_that_was_mended_in_place_is_made_anew(tmp_path: Path) -> None:
    """Put back with its old time and size, it has its lines elsewhere than the damaged one had."""
    fill(tmp_path / "in", "csv", files=1)
    path = tmp_path / "in/0.csv"
    whole, status = path.read_bytes(), path.stat()
    # The header has a byte that is no text; what was the second line now ends within the third.
    damaged = whole.replace(b"1,key1\n2,key2\n", b"1,key1 2,ke\n22").replace(b"ts,k", b"ts,\xff", 1)
    assert len(damaged) == len(whole)
    path.write_bytes(damaged)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    with pytest.raises(SourceError, match=r"0\.csv"):
        start(tmp_path, "csv", max_rows=2)
    path.write_bytes(whole)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert counts(start(tmp_path, "csv", max_rows=2)) == (ROWS, [])
