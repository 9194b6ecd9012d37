"""Files of others in the folder of a sink are neither deleted nor overwritten."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import penstock as ps
from penstock.checkpoint.fault import Crash, hooked
from penstock.checkpoint.storage import seal, unseal
from penstock.errors import CheckpointError, UserError
from penstock.portal.testing import local_session


def feed(home: Path, number: int) -> None:
    (home / "in").mkdir(exist_ok=True)
    pq.write_table(pa.table({"t": range(8 * number, 8 * number + 8)}), home / "in" / f"{number}.parquet")


def run(home: Path, kind: str = "parquet", tasks: int = 2) -> ps.Run:
    query = ps.stream("numbers", "t bigint", time="t").read_parquet(str(home / "in")).disorder(0)
    sink = ps.parquet(str(home / "out")) if kind == "parquet" else ps.json_lines(str(home / "out"))
    started = query.where("t >= 0").start(
        sink, checkpoint=str(home / "ck"), trigger="once", dead_letters=str(home / "late"), spark=local_session(tasks)
    )
    return started.wait()


def results(home: Path) -> list[int]:
    files = sorted((home / "out").glob("part-*.parquet"))
    return sorted(t for f in files for t in pq.read_table(f)["t"].to_pylist())


def put(path: Path) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text("mine")
    return path


@pytest.mark.parametrize("folder", ["out", "late"])
def test_a_folder_with_results_of_others_is_refused_at_first(tmp_path: Path, folder: str) -> None:
    feed(tmp_path, 0)
    theirs = put(tmp_path / folder / "part-000777-b1000.parquet")
    with pytest.raises(UserError, match=r"did not write, such as part-000777-b1000\.parquet.*Hint: choose an empty"):
        run(tmp_path)
    assert theirs.read_text() == "mine"
    theirs.unlink()
    put(tmp_path / folder / "readme.parquet")  # Other names are nobody's concern.
    run(tmp_path)
    assert results(tmp_path) == list(range(8))


def test_what_comes_later_is_left_alone(tmp_path: Path) -> None:
    feed(tmp_path, 0)
    run(tmp_path)
    theirs = [put(tmp_path / d / f"part-000{n}-b1000.parquet") for d in ("out", "late") for n in ("777", "001")]
    theirs.append(put(tmp_path / "out/_penstock/staging/notes.txt"))
    feed(tmp_path, 1)
    run(tmp_path)
    assert all(p.read_text() == "mine" for p in theirs)


@pytest.mark.parametrize("kind", ["parquet", "json"])
def test_a_file_in_the_way_is_not_overwritten(tmp_path: Path, kind: str) -> None:
    feed(tmp_path, 0)
    run(tmp_path, kind)
    feed(tmp_path, 1)
    (mine,) = (tmp_path / "out").glob("part-000001-*")
    theirs = put(tmp_path / "out" / mine.name.replace("000001", "000002"))
    for _ in range(2):
        with pytest.raises(CheckpointError, match=r"part-000002-.* already, which is not by this query.*Hint: move it"):
            run(tmp_path, kind)
        assert theirs.read_text() == "mine"
    theirs.rename(tmp_path / "theirs")
    assert run(tmp_path, kind).driver.manifest.epoch == 2
    assert theirs.exists() and theirs.read_bytes() != b"mine"


def test_results_of_an_epoch_whose_manifest_is_damaged_are_replaced(tmp_path: Path) -> None:
    """Cut into other tasks the second time: what the first left would be counted twice."""
    feed(tmp_path, 0)
    run(tmp_path)
    for number in (1, 2):
        feed(tmp_path, number)
    run(tmp_path)
    manifest = tmp_path / "ck/epochs/000002.commit.json"
    manifest.write_bytes(manifest.read_bytes()[:-30])
    (second,) = (tmp_path / "out").glob("part-000002-*")
    second.rename(tmp_path / "out" / "part-000002-s007.parquet")
    note = next((tmp_path / "ck/published").glob("sink-*.json"))
    note.write_bytes(seal({**unseal(note.read_bytes(), "x"), "2": ["part-000002-s007.parquet"]}))
    theirs = put(tmp_path / "out/part-000002-s009.parquet")
    run(tmp_path)
    assert theirs.read_text() == "mine"
    theirs.unlink()
    assert results(tmp_path) == list(range(24))


def test_a_move_that_was_cut_in_two_is_finished(tmp_path: Path) -> None:
    """On object stores a move is a copy and a deletion."""
    feed(tmp_path, 0)

    def hook(point: str) -> None:
        if point.startswith("publish part-000001"):
            raise Crash

    with pytest.raises(Crash), hooked(hook):
        run(tmp_path)
    (staged,) = (tmp_path / "out/_penstock/staging").iterdir()
    final = tmp_path / "out" / f"part-000001-{staged.name.split('-')[1]}.parquet"
    final.write_bytes(staged.read_bytes())
    run(tmp_path)
    assert results(tmp_path) == list(range(8)) and not staged.exists()


@pytest.mark.parametrize("planned", [True, False])
@pytest.mark.parametrize("share", [0.0, 0.5])
def test_a_delivery_that_is_cut_off_is_said(tmp_path: Path, share: float, planned: bool) -> None:
    """Its epoch is run again; without the plan that takes, it is left alone."""
    feed(tmp_path, 0)
    query = ps.stream("numbers", "t bigint", time="t").read_parquet(str(tmp_path / "in")).disorder(0)
    got: list[int] = []

    def start() -> ps.Run:
        sink = ps.deliver(lambda rows, epoch: got.extend(rows["t"].to_pylist()))
        run = query.start(sink, checkpoint=str(tmp_path / "ck"), trigger="once", spark=local_session())
        return run.wait()

    def hook(point: str) -> None:
        if point == "committed":
            raise Crash

    with pytest.raises(Crash), hooked(hook):
        start()
    (staged,) = (tmp_path / "ck/results").iterdir()
    whole = staged.read_bytes()
    staged.write_bytes(whole[: int(len(whole) * share)])
    if not planned:
        (tmp_path / "ck/epochs/000001.plan.json").unlink()
        with pytest.raises(CheckpointError, match=r"part-000001-.* of epoch 1 is missing or damaged"):
            start()
        staged.write_bytes(whole)
    run = start()
    assert sorted(got) == list(range(8))
    assert planned == bool([w for w in run.warnings if "damaged" in w and "epoch 1 is run again" in w])
