"""Records are not trusted: what they name lies where it belongs, and links lead nowhere."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock as ps
from penstock.checkpoint.checkpoint import Checkpoint, EpochPlan, Manifest, Output
from penstock.checkpoint.names import ForeignNameError, check_names, check_plain
from penstock.checkpoint.runs import StoredRun, UnitKey
from penstock.checkpoint.storage import Storage, seal
from penstock.errors import CheckpointError
from penstock.portal.testing import local_session

EVIL = ["../../x", "/etc/passwd", "state/../../x", "state//x", "state/./x", "state\\..\\x", "state/x\0", "", "x", "st"]


@pytest.mark.parametrize("name", EVIL)
def test_a_name_outside_its_folder_is_refused(name: str) -> None:
    with pytest.raises(ForeignNameError, match="record names"):
        check_names([name], ("state/",), "record")
    with pytest.raises(ForeignNameError, match="record names"):
        check_plain([f"part-{name}/../a"], "part-", "record")


@given(st.text(alphabet="ab./\\~\0", max_size=12))
def test_what_is_let_through_stays_inside(name: str) -> None:
    try:
        check_names([f"state/{name}"], ("state/",), "record")
    except ForeignNameError:
        return
    assert Path(f"/base/state/{name}").resolve().is_relative_to("/base/state")


GOOD = Manifest(1, {UnitKey("aggregate-1", 0): (StoredRun("state/a/0/r", 1, 1, 1),)})
BAD = [
    replace(GOOD, outputs=(Output("sink-2", "../../x", "part-1", 1, 1),)),
    replace(GOOD, outputs=(Output("sink-2", "results/x", "../part-1", 1, 1),)),
    replace(GOOD, outputs=(Output("sink-2", "results/x", "part-/../../y", 1, 1),)),
    replace(GOOD, outputs=(Output("sink-2", "results/x", "owner.json", 1, 1),)),
    replace(GOOD, units={UnitKey("aggregate-1", 0): (StoredRun("meta.json", 1, 1, 1),)}),
    replace(GOOD, units={UnitKey("aggregate-1", 0): (StoredRun("state/a", 1, 1, 1, marks="/tmp/x", dead=0),)}),
    replace(GOOD, units={UnitKey("../../aggregate-1", 0): (StoredRun("state/a", 1, 1, 1),)}),
]


@pytest.mark.parametrize("number", range(len(BAD)))
def test_a_manifest_that_names_what_is_not_its_own(tmp_path: Path, number: int) -> None:
    checkpoint = Checkpoint(Storage.at(str(tmp_path)))
    checkpoint.write_commit(GOOD)
    assert checkpoint.latest() == GOOD
    checkpoint.write_commit(BAD[number])
    with pytest.raises(ForeignNameError, match=r"epochs/000001\.commit\.json names .*Hint: .*nothing has been changed"):
        checkpoint.latest()


@pytest.mark.parametrize("body", [{}, {"epoch": 1}, {**GOOD.to_json(), "units": 3}, {**GOOD.to_json(), "epoch": "1"}])
def test_a_manifest_of_another_shape_is_damaged(tmp_path: Path, body: dict[str, object]) -> None:
    checkpoint = Checkpoint(Storage.at(str(tmp_path)))
    for epoch in (1, 2):
        checkpoint.storage.write(f"epochs/{epoch:06d}.commit.json", seal(body))
    with pytest.raises(CheckpointError, match="neither of its last two manifests"):
        checkpoint.latest()


def test_plans_are_looked_at_too(tmp_path: Path) -> None:
    checkpoint = Checkpoint(Storage.at(str(tmp_path)))
    for plan in (EpochPlan(1, tables={"t": "../x"}), EpochPlan(1, heard={"requests": ["../../../x"]})):
        checkpoint.write_plan(plan)
        with pytest.raises(ForeignNameError, match=r"000001\.plan\.json names"):
            checkpoint.plan_of(1)


def run(home: Path) -> ps.Run:
    query = ps.stream("numbers", "t bigint, v bigint", time="t").read_parquet(str(home / "in")).disorder(0)
    sink, checkpoint = ps.parquet(str(home / "out")), str(home / "ck")
    counted = query.window(5).agg(n="count(*)")
    return counted.start(sink, checkpoint=checkpoint, trigger="once", spark=local_session()).wait()


def feed(home: Path, number: int) -> None:
    (home / "in").mkdir(exist_ok=True)
    rows = pa.table({"t": range(8 * number, 8 * number + 8), "v": range(8)})
    pq.write_table(rows, home / "in" / f"{number}.parquet")


def test_a_forged_manifest_moves_nothing_out_of_the_sink(tmp_path: Path) -> None:
    feed(tmp_path, 0)
    run(tmp_path)
    (tmp_path / "secret").write_text("mine")
    path = tmp_path / "ck/epochs/000001.commit.json"
    body = json.loads(path.read_bytes())["body"]
    body["outputs"] = [{**body["outputs"][0], "staged": "../secret", "final": "part-000001-b1000.parquet"}]
    path.write_bytes(seal(body))
    with pytest.raises(ForeignNameError, match=r"\.\./secret"):
        run(tmp_path)
    assert (tmp_path / "secret").read_text() == "mine"


@pytest.mark.parametrize(
    "name", ["ck/state", "ck/results", "ck/epochs", "ck/state/aggregate-1", "out/_penstock/staging"]
)
def test_links_are_not_followed(tmp_path: Path, name: str) -> None:
    feed(tmp_path, 0)
    run(tmp_path)
    there = tmp_path / "elsewhere"
    place = tmp_path / name
    if place.exists():
        place.rename(there)
    there.mkdir(exist_ok=True)
    orphan = there / ("000009-0-3f9c0a1b2c3d.arrow" if "state" in name else "000009-b1000-3f9c0a1b2c3d.arrow")
    orphan.write_text("mine")
    place.symlink_to(there)
    with pytest.raises(CheckpointError, match=r"is a symbolic link.*Hint"):
        run(tmp_path)
    assert orphan.read_text() == "mine"
    assert not [n for n in Storage.at(str(tmp_path)).tree() if n.endswith(f"{place.name}/{orphan.name}")]


def test_the_whole_checkpoint_may_be_reached_by_a_link(tmp_path: Path) -> None:
    feed(tmp_path, 0)
    (tmp_path / "far").mkdir()
    (tmp_path / "ck").symlink_to(tmp_path / "far")
    run(tmp_path)
    feed(tmp_path, 1)
    assert run(tmp_path).driver.manifest.epoch == 2
