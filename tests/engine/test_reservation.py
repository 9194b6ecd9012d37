"""Who may not run is told before Spark starts, and nothing has been changed for them."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import penstock as ps
from penstock.checkpoint.lock import Lock
from penstock.checkpoint.storage import Storage, seal
from penstock.errors import CheckpointError, PenstockError, UserError
from penstock.portal import cli
from penstock.portal.testing import local_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def never() -> SparkSession:
    raise AssertionError("Spark was asked for")


def rows(folder: Path, name: str = "a.parquet", first: int = 0) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"t": range(first, first + 10), "v": range(10)}), folder / name)
    return folder


def query(path: Path | str, schema: str = "t bigint, v bigint") -> Any:
    return ps.stream("numbers", schema, time="t").read_parquet(str(path)).disorder(0)


def refused(stream: Any, sink: Any, match: str, kind: type[PenstockError] = UserError, **options: Any) -> None:
    with pytest.raises(kind, match=match):
        stream.start(sink, trigger="available_now", spark=never, **options)


def ran(stream: Any, sink: Any, **options: Any) -> ps.Run:
    run: ps.Run = stream.start(sink, trigger="available_now", spark=local_session(), **options)
    return run.wait()


def everything(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


# --- in use, of another query, no such path -------------------------------------------------------------------------


def test_a_checkpoint_in_use_is_found_first(tmp_path: Path) -> None:
    lock = Lock(Storage.at(str(tmp_path / "ck")))
    lock.acquire()
    source = query(rows(tmp_path / "in"))
    refused(source, ps.memory(), "in use by another run", CheckpointError, checkpoint=str(tmp_path / "ck"))
    lock.release()
    ran(source, ps.memory(), checkpoint=str(tmp_path / "ck"))


def test_a_checkpoint_of_another_query_is_found_first(tmp_path: Path) -> None:
    source = query(rows(tmp_path / "in"))
    ran(source, ps.parquet(str(tmp_path / "out")))
    before = everything(tmp_path)
    changed = query(tmp_path / "in", "t bigint, v int")
    refused(changed, ps.parquet(str(tmp_path / "out")), "belongs to another query", CheckpointError)
    other = {"checkpoint": str(tmp_path / "ck")}
    refused(source, ps.parquet(str(tmp_path / "out")), "results of another checkpoint", **other)
    left = {n: data for n, data in everything(tmp_path).items() if not n.startswith("ck/")}
    assert left == {**before, "out/_penstock/checkpoint/lock": left["out/_penstock/checkpoint/lock"]}
    ran(source, ps.parquet(str(tmp_path / "out")))


def test_a_path_that_does_not_exist_is_found_first(tmp_path: Path) -> None:
    refused(query(tmp_path / "nowhere"), ps.memory(), "path .*nowhere' does not exist")


def test_what_was_taken_is_given_back_if_spark_does_not_start(tmp_path: Path) -> None:
    source = query(rows(tmp_path / "in"))

    def broken() -> SparkSession:
        raise UserError("no Java")

    for _ in range(2):
        with pytest.raises(UserError, match="no Java"):
            source.start(ps.memory(), checkpoint=str(tmp_path / "ck"), trigger="once", spark=broken)
    assert len(ran(source, ps.memory(), checkpoint=str(tmp_path / "ck")).history) == 1


def test_the_command_line_asks_first_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows(tmp_path / "in")
    file = tmp_path / "q.py"
    text = (
        "import penstock as ps\n"
        f"query = ps.stream('numbers', 't bigint, v bigint', time='t').read_parquet({str(tmp_path / 'in')!r})\n"
        "query = query.disorder(0){more}\n"
        f"sink = ps.parquet({str(tmp_path / 'out')!r})\n"
    )
    file.write_text(text.format(more=""))
    monkeypatch.setattr("penstock.engine.spark.session.spark_session", lambda *a, **k: local_session())
    done = CliRunner().invoke(cli.app, ["run", str(file), "--trigger", "once"])
    assert done.exit_code == 0, done.output
    monkeypatch.setattr("penstock.engine.spark.session.spark_session", lambda *a, **k: never())

    def said(*more: str) -> str:
        found = CliRunner().invoke(cli.app, ["run", str(file), "--trigger", "once", *more])
        assert found.exit_code == 2, found.output
        return found.output

    lock = Lock(Storage.at(str(tmp_path / "out/_penstock/checkpoint")))
    lock.acquire()
    assert "is in use by another run" in said()
    lock.release()
    file.write_text(text.format(more=".ends()"))
    assert "belongs to another query" in said()
    assert "holds the results of another checkpoint" in said("--checkpoint", str(tmp_path / "ck"))
    file.write_text(text.format(more="").replace("/out'", "/in'"))
    assert "lies in" in said()


# --- places ---------------------------------------------------------------------------------------------------------


def test_a_sink_in_the_folder_of_its_source_is_refused(tmp_path: Path) -> None:
    data = rows(tmp_path / "data" / "in").parent
    before = everything(tmp_path)
    for sink in ("data", "data/out", "data/in", "data/x/y"):
        refused(query(data), ps.parquet(str(tmp_path / sink)), "sink .* lies in .*stream 'numbers' reads.*its results")
    refused(query(data / "in"), ps.json_lines(str(data / "in")), "lies in")
    refused(query(f"{data}/*/*.parquet"), ps.parquet(str(data / "out")), "lies in")
    refused(query(f"file://{data}"), ps.parquet(str(data / "out")), "lies in")
    refused(query(data), ps.parquet(f"file://{data}/out"), "lies in")
    assert everything(tmp_path) == before
    # What is not read may lie there.
    for number, (path, sink) in enumerate(
        [(data, "data/_out"), (f"{data}/in/*.parquet", "data"), (data / "in", "data/in2")]
    ):
        ran(query(path), ps.parquet(str(tmp_path / sink)), checkpoint=str(tmp_path / f"ck{number}"))


def test_links_are_resolved(tmp_path: Path) -> None:
    data = rows(tmp_path / "data")
    (tmp_path / "other").mkdir()
    (tmp_path / "alias").symlink_to(data)
    (tmp_path / "far").symlink_to(tmp_path / "other")
    refused(query(data), ps.parquet(str(tmp_path / "alias/out")), "lies in")
    refused(query(tmp_path / "alias"), ps.parquet(str(data / "out")), "lies in")
    (data / "link").symlink_to(tmp_path / "other")
    refused(query(data), ps.parquet(str(data / "link/out")), "lies in")
    refused(query(data), ps.parquet(str(tmp_path / "other/out")), "lies in")
    refused(query(data), ps.parquet(str(tmp_path / "far/out")), "lies in")
    (tmp_path / "other" / "back").symlink_to(data)  # A loop: looked at once.
    ran(query(data / "a.parquet"), ps.parquet(str(tmp_path / "out")))


def test_checkpoint_and_dead_letters_in_the_folder_of_a_source_are_refused(tmp_path: Path) -> None:
    data = rows(tmp_path / "data")
    out = ps.parquet(str(tmp_path / "out"))
    refused(query(data), out, "checkpoint .* lies in .*its own records", checkpoint=str(data / "ck"))
    refused(query(data), out, "dead_letters .* lies in .*its dead letters", dead_letters=str(data / "late"))
    refused(query(data), ps.memory(), "checkpoint .* lies in", checkpoint=str(data))
    ran(query(data), out, checkpoint=str(data / "_ck"), dead_letters=str(data / ".late"))


def test_a_table_is_not_read_from_the_results_either(tmp_path: Path) -> None:
    data = rows(tmp_path / "data")
    names = ps.table("names", "v bigint, name string", key="v").read_parquet(str(rows(tmp_path / "names")))
    joined = query(data).lookup(names, "v")
    refused(joined, ps.parquet(str(tmp_path / "names/out")), "lies in .*table 'names' reads")


# --- what cannot be written to --------------------------------------------------------------------------------------


def test_a_sink_that_is_a_file(tmp_path: Path) -> None:
    data = rows(tmp_path / "data")
    (tmp_path / "file").write_text("x")
    refused(query(data), ps.parquet(str(tmp_path / "file")), "sink .*file' is a file")
    refused(query(data), ps.parquet(str(tmp_path / "file/out")), "cannot make checkpoint", CheckpointError)
    sink, checkpoint = ps.parquet(str(tmp_path / "file/out")), str(tmp_path / "ck")
    refused(query(data), sink, "cannot write to sink .*file/out", checkpoint=checkpoint)
    refused(query(data), ps.memory(), "cannot make checkpoint", CheckpointError, checkpoint=str(tmp_path / "file"))
    file = tmp_path / "q.py"
    file.write_text(
        f"import penstock as ps\nsink = ps.parquet({str(tmp_path / 'file')!r})\n"
        f"query = ps.stream('n', 't bigint, v bigint', time='t').read_parquet({str(data)!r}).disorder(0)\n"
    )
    said = CliRunner().invoke(cli.app, ["run", str(file), "--trigger", "once"])
    assert said.exit_code == 2 and "is a file" in said.output, said.output


def test_a_checkpoint_that_cannot_be_written_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data, checkpoint = rows(tmp_path / "data"), tmp_path / "ck"
    ran(query(data), ps.memory(), checkpoint=str(checkpoint))
    opened = Path.open

    def read_only(path: Path, mode: str = "r", *rest: Any, **named: Any) -> Any:
        if checkpoint in path.parents and mode != "r":
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))
        return opened(path, mode, *rest, **named)

    monkeypatch.setattr(Path, "open", read_only)
    match = "cannot write to checkpoint .*Read-only.*Hint: name a folder"
    refused(query(data), ps.memory(), match, CheckpointError, checkpoint=str(checkpoint))


def test_a_checkpoint_concerns_nobody_else(tmp_path: Path) -> None:
    def mode(path: Path) -> int:
        return stat.S_IMODE(path.stat().st_mode)

    data = rows(tmp_path / "data")
    before = os.umask(0o022)
    try:
        ran(query(data), ps.parquet(str(tmp_path / "out")))
        assert mode(tmp_path / "out/_penstock/checkpoint") == 0o700
        assert mode(tmp_path / "out") == 0o755, "results are for others to read"
        ran(query(data), ps.memory(), checkpoint=str(tmp_path / "ck"), checkpoint_mode=0o750)
        assert mode(tmp_path / "ck") == 0o750
    finally:
        os.umask(before)
    refused(query(data), ps.memory(), "checkpoint_mode", checkpoint_mode=0o070)


# --- stray files ----------------------------------------------------------------------------------------------------

STRAY = ["epochs/notes.commit.json", "epochs/x.plan.json", "epochs/.DS_Store", "snapshots/a.json", "snapshots/.b"]
STRAY += ["control/x.json", "control/requests/note.txt", "control/requests/bad.json", "state/a", "state/b/c/d/e.arrow"]
STRAY += ["results/x", "tables/x", "tables/a/b", "partials/x.parquet", "delivered/x", "published/x", "extra/x"]
STRAY += ["epochs/9.commit.json", "epochs/000009.commit.json.bak", "dead_letters/readme.txt", "rehearsal/x"]


def test_stray_files_are_left_alone(tmp_path: Path) -> None:
    source, sink = query(rows(tmp_path / "in")), ps.parquet(str(tmp_path / "out"))
    checkpoint = tmp_path / "out/_penstock/checkpoint"
    for name in STRAY:
        (checkpoint / name).parent.mkdir(parents=True, exist_ok=True)
        (checkpoint / name).write_text("stray")
    stray = [*(checkpoint / n for n in STRAY), tmp_path / "out/_penstock/staging/mine.txt", tmp_path / "out/x.parquet"]
    for path in stray[-2:]:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("stray")
    ran(source, sink)
    rows(tmp_path / "in", "b.parquet", 10)
    ran(source, sink)
    assert all(p.read_text() == "stray" for p in stray)
    shown = CliRunner().invoke(cli.app, ["state", str(tmp_path / "out")])
    assert shown.exit_code == 0, shown.output


@pytest.mark.parametrize("name", ["meta.json", "identity.json", "lock", "epochs/000001.commit.json"])
def test_a_folder_where_a_file_belongs(tmp_path: Path, name: str) -> None:
    source = query(rows(tmp_path / "in"))
    (tmp_path / "ck" / name).mkdir(parents=True)
    with pytest.raises(CheckpointError):
        ran(source, ps.memory(), checkpoint=str(tmp_path / "ck"))
    shown = CliRunner().invoke(cli.app, ["state", str(tmp_path / "ck")])
    assert shown.exit_code == 2 and shown.output.startswith("error: "), shown.output


@pytest.mark.parametrize("name", ["epochs", "snapshots", "control", "state", "results", "delivered", "dead_letters"])
def test_a_file_where_a_folder_belongs(tmp_path: Path, name: str) -> None:
    source = query(rows(tmp_path / "in")).window(5).agg(n="count(*)")
    (tmp_path / "ck").mkdir()
    (tmp_path / "ck" / name).write_text("stray")
    try:
        ran(source, ps.memory(), checkpoint=str(tmp_path / "ck"))
    except PenstockError:
        pass
    else:
        assert name == "snapshots", "not needed by the first epochs"
    assert (tmp_path / "ck" / name).read_text() == "stray"


def test_records_that_are_damaged_are_said_so(tmp_path: Path) -> None:
    source, sink = query(rows(tmp_path / "in")), ps.parquet(str(tmp_path / "out"))
    ran(source, sink)
    for name in ("owner.json", "checkpoint/meta.json"):
        path = tmp_path / "out/_penstock" / name
        before = path.read_bytes()
        for data in (b"", b"{}", b"\xff", seal({}), seal({"format": "x"})):
            path.write_bytes(data)
            with pytest.raises(PenstockError):
                source.start(sink, trigger="once", spark=never)
        path.write_bytes(before)
    ran(source, sink)


# --- records that are whole and say something else ------------------------------------------------------------------


@pytest.mark.parametrize("body", [[1, 2], {}, "text", None], ids=str)
def test_records_that_are_whole_and_not_ours_are_told(body: Any, tmp_path: Path) -> None:
    """A checksum says that a record is as somebody wrote it, not that it was us."""
    source, out, checkpoint = query(rows(tmp_path / "in")), ps.parquet(str(tmp_path / "out")), tmp_path / "ck"
    for sink in (out, ps.deliver(lambda table, epoch: None)):
        folder = str(checkpoint / repr(sink))
        ran(source, sink, checkpoint=folder)
        for path in [p for p in everything(tmp_path) if p.endswith(".json")]:
            whole = (tmp_path / path).read_bytes()
            (tmp_path / path).write_bytes(seal(body))
            with contextlib.suppress(PenstockError):
                ran(source, sink, checkpoint=folder)
            (tmp_path / path).write_bytes(whole)
            ran(source, sink, checkpoint=folder)


def test_what_cannot_be_deleted_is_told(tmp_path: Path) -> None:
    source, out = query(rows(tmp_path / "in")), tmp_path / "out"
    ran(source, ps.parquet(str(out)))
    (part,) = out.glob("part-*")
    part.unlink()
    (part / "mine").mkdir(parents=True)
    with pytest.raises(CheckpointError, match=r"cannot delete .*part-.*move away what is there"):
        ran(source, ps.parquet(str(out)))
    assert (part / "mine").is_dir()
    shutil.rmtree(part)
    ran(source, ps.parquet(str(out)))
    assert sum(pq.read_table(p).num_rows for p in out.glob("part-*")) == 10


@pytest.mark.parametrize("damage", ["gone", "damaged"])
def test_a_checkpoint_whose_name_is_lost_finds_it_again(damage: str, tmp_path: Path) -> None:
    source, out, checkpoint = query(rows(tmp_path / "in")), ps.parquet(str(tmp_path / "out")), tmp_path / "ck"
    ran(source, out, checkpoint=str(checkpoint))
    (checkpoint / "identity.json").unlink()
    if damage == "damaged":
        (checkpoint / "identity.json").write_bytes(bytes(80))
    ran(source, out, checkpoint=str(checkpoint))
    # Without anything that tells it: the hint is a way on.
    (checkpoint / "identity.json").write_bytes(bytes(80))
    (checkpoint / "dead_letters/_penstock/owner.json").unlink()
    refused(source, out, "identity.json is damaged.*or delete it, and", CheckpointError, checkpoint=str(checkpoint))
    (checkpoint / "identity.json").unlink()
    (tmp_path / "out/_penstock/owner.json").unlink()
    ran(source, out, checkpoint=str(checkpoint))


@pytest.mark.parametrize("way", ["out", "in/../out", "alias"])
def test_results_and_dead_letters_are_kept_apart_whatever_their_folder_is_called(way: str, tmp_path: Path) -> None:
    source = query(rows(tmp_path / "in"))
    (tmp_path / "out").mkdir()
    (tmp_path / "alias").symlink_to(tmp_path / "out")
    letters = str(tmp_path / way)
    refused(source, ps.parquet(str(tmp_path / "out")), "is the folder of the results", dead_letters=letters)
