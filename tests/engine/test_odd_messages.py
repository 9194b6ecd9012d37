"""Messages that anybody may leave in a checkpoint: whatever is in one, the run goes on, and so does the next one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import penstock as ps
from penstock.checkpoint.storage import seal
from penstock.errors import UserError
from penstock.feedback.log import LARGEST
from penstock.portal.testing import local_session


def run(home: Path, **more: Any) -> ps.Run:
    (home / "in").mkdir(exist_ok=True)
    for minute in range(4):
        rows = {"minute": pa.array([minute] * 2, pa.int32()), "name": pa.array(["a", "b"])}
        if not (file := home / "in" / f"{minute}.parquet").exists():
            pq.write_table(pa.table(rows), file)
    cars = ps.stream("cars", "minute int, name string", time="minute").read_parquet(str(home / "in"), order="name")
    query = cars.disorder(0).group_by("minute", "name").agg(n="count(*)")
    settings = {"trigger": "available_now", "max_rows": 2, "spark": local_session(), "checkpoint": str(home / "kept")}
    return query.start(ps.parquet(str(home / "out")), **{**settings, **more})


def leave(home: Path, name: str, data: bytes) -> Path:
    folder = home / "kept" / "control" / "requests"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.json").write_bytes(data)
    return folder / f"{name}.json"


def lone() -> bytes:
    """A whole record with half of a surrogate pair in it."""
    return seal({"text": "not [*, '\ud800', *]"})


ODD = {
    "list as operator": seal({"text": "not [*, *, *]", "node": ["x"]}),
    "number as operator": seal({"text": "not [*, *, *]", "node": 7}),
    "object as operator": seal({"text": "not [*, *, *]", "node": {"a": 1}}),
    "unknown operator": seal({"text": "not [*, *, *]", "node": "join-77"}),
    "the sink": seal({"text": "not [*, *, *]", "node": "sink"}),
    "demand inside": seal({"text": "now [*, *]", "node": "source:cars"}),
    "no text": seal({"node": "source:cars"}),
    "text of a number": seal({"text": 7}),
    "other pattern": seal({"text": "not [1]"}),
    "no such year": seal({"text": "not [99999999999999999999999999, *, *]"}),
    "lone surrogate": lone(),
    "surrogate operator": seal({"text": "not [*, *, *]", "node": "\udcff"}),
    "more keys": seal({"text": "prefer [1, *, *]", "by": "aggregate-1", "epoch": {}, "id": [], "requests": 3}),
    "very long": seal({"text": "not [" + "1, " * (LARGEST // 3) + "*]"}),
}
UNREADABLE = {
    "no JSON": b"\xff\xfe",
    "half": seal({"text": "not [*, *, *]"})[:-9],
    "no checksum": json.dumps({"body": {"text": "now [*, *, *]"}}).encode(),
    "checksum of a list": json.dumps({"sha256": [], "body": {"text": "now [*, *, *]"}}).encode(),
    "nested": b'{"sha256":"x","body":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "not an object": b"[]",
    "a list": seal([1, 2]),  # type: ignore[arg-type]
    "null": seal(None),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("what", ODD)
def test_a_message_that_makes_no_sense_is_refused_and_the_run_goes_on(tmp_path: Path, what: str) -> None:
    file = leave(tmp_path, "00000000000000000001-odd", ODD[what])
    done = run(tmp_path).wait()
    assert not file.exists()
    if what != "more keys":
        (said,) = [w for w in done.warnings if "refused" in w]
        assert "Hint" in said and len(said) < 500
        with pytest.raises(UserError):
            ps.consumer(tmp_path / "kept").way(_receipt("00000000000000000001-odd"))
    run(tmp_path).wait()
    assert pq.read_table(tmp_path / "out", columns=["n"]).num_rows == 6


@pytest.mark.parametrize("what", UNREADABLE)
def test_a_message_that_cannot_be_read_is_left_alone_with_a_warning(tmp_path: Path, what: str) -> None:
    file = leave(tmp_path, "00000000000000000001-odd", UNREADABLE[what])
    done = run(tmp_path).wait()
    assert file.exists() and any("cannot be read" in w for w in done.warnings)
    ps.consumer(tmp_path / "kept").talk()


def test_a_message_that_breaks_an_operator_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from penstock.feedback.guards import Guards

    def broken(self: Guards, *args: object, **more: object) -> None:
        raise KeyError("minute")

    leave(tmp_path, "00000000000000000001-odd", seal({"text": "not [1, *, *]"}))
    monkeypatch.setattr(Guards, "tell", broken)
    done = run(tmp_path).wait()
    assert any("cannot be taken up: KeyError" in w for w in done.warnings)
    assert pq.read_table(tmp_path / "out", columns=["n"]).num_rows == 6


def _receipt(name: str) -> Any:
    from penstock.feedback.receipt import Receipt

    return Receipt(name, "", "")
