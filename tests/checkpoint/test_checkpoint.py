"""The records of a checkpoint: which manifest counts, what is refused, what is swept and what is not."""

from __future__ import annotations

from pathlib import Path

import pytest

import penstock as ps
from penstock.checkpoint import checkpoint as module
from penstock.checkpoint.checkpoint import Checkpoint, EpochPlan, Manifest, Output, named_by
from penstock.checkpoint.runs import StoredRun, UnitKey
from penstock.checkpoint.storage import Storage
from penstock.errors import CheckpointError
from penstock.plan.plan import Plan

EVENTS = ps.stream("events", "ts timestamp, key int, value double", time="ts").read_parquet("nowhere")


def plan(size: str = "10 s") -> Plan:
    return EVENTS.disorder("1 s").window(size).group_by("key").agg(n="count(*)").plan


@pytest.fixture
def checkpoint(tmp_path: Path) -> Checkpoint:
    return Checkpoint(Storage.at(str(tmp_path)))


def manifest(epoch: int, *runs: str) -> Manifest:
    units = {UnitKey("aggregate-1", 0): tuple(StoredRun(r, 1, 1, epoch) for r in runs)} if runs else {}
    return Manifest(epoch, units, outputs=(Output("sink-2", f"results/{epoch}", f"part-{epoch}", 1, 1),))


def write(checkpoint: Checkpoint, epoch: int, *runs: str) -> Manifest:
    for run in runs:
        checkpoint.storage.write(run, b"rows")
    made = manifest(epoch, *runs)
    checkpoint.write_commit(made)
    return made


def tear(checkpoint: Checkpoint, name: str) -> None:
    path = Path(checkpoint.storage.path(name))
    path.write_bytes(path.read_bytes()[:-20])


def contents(checkpoint: Checkpoint) -> dict[str, bytes]:
    return {n: checkpoint.storage.read(n) for n in checkpoint.storage.tree()}


def test_a_manifest_comes_back(checkpoint: Checkpoint) -> None:
    assert checkpoint.latest() is None
    write(checkpoint, 1, "state/a")
    second = write(checkpoint, 2, "state/a", "state/b")
    assert checkpoint.latest() == second and not checkpoint.warnings
    assert named_by(second) == {"state/a", "state/b", "results/2"}


def test_a_torn_manifest_is_an_epoch_that_did_not_happen(checkpoint: Checkpoint) -> None:
    first = write(checkpoint, 1, "state/a")
    write(checkpoint, 2, "state/a", "state/b")
    tear(checkpoint, "epochs/000002.commit.json")
    assert checkpoint.latest() == first
    (warning,) = checkpoint.warnings
    assert "epochs/000002.commit.json" in warning and "run again" in warning


def test_even_the_very_first_one(checkpoint: Checkpoint) -> None:
    write(checkpoint, 1)
    tear(checkpoint, "epochs/000001.commit.json")
    assert checkpoint.latest() is None and len(checkpoint.warnings) == 1


def test_no_way_back_beyond_two_manifests(checkpoint: Checkpoint) -> None:
    for epoch in (1, 2, 3):
        write(checkpoint, epoch)
    tear(checkpoint, "epochs/000003.commit.json")
    tear(checkpoint, "epochs/000002.commit.json")
    before = contents(checkpoint)
    with pytest.raises(CheckpointError, match=r"last two manifests.*000003.*Hint: restore .*nothing has been changed"):
        checkpoint.latest()
    assert contents(checkpoint) == before


def test_no_way_back_without_its_runs(checkpoint: Checkpoint) -> None:
    write(checkpoint, 1, "state/a")
    write(checkpoint, 2, "state/b")
    tear(checkpoint, "epochs/000002.commit.json")
    checkpoint.storage.delete("state/a")
    with pytest.raises(CheckpointError, match=r"state/a, which is gone.*Hint: restore epochs/000002"):
        checkpoint.latest()


def test_a_checkpoint_remembers_its_query_and_buckets(checkpoint: Checkpoint) -> None:
    assert checkpoint.check(plan()) is None
    assert checkpoint.open(plan(), 4) == 4
    assert checkpoint.open(plan(), 9) == checkpoint.check(plan()) == 4
    before = contents(checkpoint)
    with pytest.raises(CheckpointError, match=r"belongs to another query: .*10 s.*20 s.*Hint: use a new checkpoint"):
        checkpoint.open(plan("20 s"), 4)
    assert contents(checkpoint) == before


def test_another_format_is_refused(checkpoint: Checkpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FORMAT", 99)
    checkpoint.open(plan(), 4)
    monkeypatch.undo()
    with pytest.raises(CheckpointError, match=r"format 99 \(Penstock .*reads format 6.*Hint: run it with that version"):
        checkpoint.open(plan(), 4)


def test_meta_may_be_torn_only_before_the_first_epoch(checkpoint: Checkpoint) -> None:
    checkpoint.open(plan(), 4)
    tear(checkpoint, "meta.json")
    assert checkpoint.open(plan(), 5) == 5
    write(checkpoint, 1)
    tear(checkpoint, "meta.json")
    with pytest.raises(CheckpointError, match=r"meta.json.*Hint: restore meta.json"):
        checkpoint.open(plan(), 5)
    checkpoint.storage.delete("meta.json")
    with pytest.raises(CheckpointError, match=r"has epochs but no meta\.json"):
        checkpoint.open(plan(), 5)


def test_plans_come_back_unless_torn(checkpoint: Checkpoint) -> None:
    made = EpochPlan(1, {"source-1": [{"path": "a"}]}, ["source-1"], 0, "abc", {"source-1": ["", "b"]})
    checkpoint.write_plan(made)
    checkpoint.write_plan(EpochPlan(2))
    assert checkpoint.plan_of(1) == made and checkpoint.plan_of(3) is None
    tear(checkpoint, "epochs/000001.plan.json")
    assert checkpoint.plan_of(1) is None
    checkpoint.forget_plans(after=0)
    assert checkpoint.storage.tree() == []


def test_snapshots(checkpoint: Checkpoint) -> None:
    assert checkpoint.snapshot(0) == {}
    for epoch in (32, 64, 96):
        checkpoint.write_snapshot(epoch, {"source-1": {"epoch": epoch}})
    checkpoint.retire_snapshots(96)
    assert checkpoint.storage.names("snapshots") == ["000064.json", "000096.json"]
    assert checkpoint.snapshot(64) == {"source-1": {"epoch": 64}}
    with pytest.raises(CheckpointError, match=r"snapshots/000032\.json is missing or damaged"):
        checkpoint.snapshot(32)


ORPHANS = ["state/op/0/000007-0-3f9c0a1b2c3d.arrow", "results/000007-b1000-3f9c0a1b2c3d.arrow"]


def test_the_sweep_takes_what_nobody_names(checkpoint: Checkpoint) -> None:
    for epoch in range(1, 8):
        checkpoint.write_plan(EpochPlan(epoch))
        write(checkpoint, epoch)
    last = write(checkpoint, 8, "state/op/0/kept")
    for epoch in (8, 9):
        checkpoint.write_plan(EpochPlan(epoch))
    others = [*ORPHANS, "epochs/.x.1.partial", "inbox/s/.x.1.partial", "inbox/s/x", "mine.txt", "my.partial"]
    others += ["state/cities.csv", "results/report.pdf", "state/op/0/notes.txt", "epochs/x.commit.json"]
    others += ["epochs/a.plan.json", "snapshots/old.json", "snapshots/notes.txt", "control/x.json", "tables/t/mine"]
    for name in ("results/8", *others):
        checkpoint.storage.write(name, b"")
    checkpoint.write_snapshot(32, {})
    found = checkpoint.sweep(named_by(last), last)
    assert {*ORPHANS, "epochs/000005.commit.json", "snapshots/000032.json"} <= set(found)
    records = [f"epochs/{e:06d}.{kind}.json" for e in (6, 7, 8) for kind in ("commit", "plan")]
    kept = {*records, "epochs/000009.plan.json", "state/op/0/kept", "results/8", *others[3:]}
    assert set(checkpoint.storage.tree()) == kept, "what has other names is not Penstock's to delete"
    assert checkpoint.sweep(named_by(last), last) == []
