"""Consumers: somebody who knows a run by its checkpoint alone talks to it and sees what is dropped where."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import penstock as ps
from penstock.analysis.feedback_check import remarks
from penstock.checkpoint.storage import Storage, seal, unseal
from penstock.engine.sink import MemoryTarget
from penstock.errors import CheckpointError, UserError
from penstock.feedback.consumer import Consumer, consumer
from penstock.feedback.contract_record import CONTRACT
from penstock.feedback.log import ControlLog
from penstock.pattern.feedback import Feedback
from penstock.portal.testing import local_session

SCHEMA = pa.schema([("ts", pa.int64()), ("segment", pa.int32()), ("speed", pa.float64())])


def arrive(home: Path, number: int) -> None:
    """Sixty ticks, one event each, in three segments."""
    folder = home / "in"
    folder.mkdir(exist_ok=True)
    ticks = range(60 * number, 60 * (number + 1))
    table = pa.table([list(ticks), [t % 3 for t in ticks], [float(t % 50) for t in ticks]], SCHEMA)
    pq.write_table(table, folder / f"{number:03}.parquet")


def cars(home: Path) -> ps.Stream:
    declared = ps.stream("cars", "ts bigint, segment int, speed double", time="ts").disorder(0)
    return declared.read_parquet(str(home / "in"), order="name")


def slow(home: Path) -> ps.Stream:
    return cars(home).window(20).group_by("segment").agg(mean="avg(speed)", n="count(*)")


def ran(query: ps.Stream, home: Path, target: MemoryTarget | None = None) -> MemoryTarget:
    """All there is, and no more."""
    target = target or ps.memory()
    query.start(
        target, trigger="available_now", checkpoint=str(home / "kept"), spark=local_session(), allow_unbounded="a test"
    ).wait()
    return target


@pytest.fixture
def home(tmp_path: Path) -> Path:
    arrive(tmp_path, 0)
    ran(slow(tmp_path), tmp_path)
    return tmp_path


# --- who is there -----------------------------------------------------------------------------------------------------


def test_a_checkpoint_tells_what_there_is(home: Path) -> None:
    dashboard = Consumer.at(home / "kept")
    assert str(dashboard.schema) == "window_start bigint, segment int, mean double, n bigint"
    assert dashboard.root == "aggregate-1"
    assert set(dashboard.operators) == {"source:cars", "bucket-1", "aggregate-1"}
    assert dashboard.schema_of("source:cars").names == ("ts", "segment", "speed")
    assert dashboard.guards() == []


def test_the_folder_of_the_results_will_do(tmp_path: Path) -> None:
    arrive(tmp_path, 0)
    out = str(tmp_path / "out")
    slow(tmp_path).start(ps.parquet(out), trigger="available_now", spark=local_session()).wait()
    assert ps.consumer(out).root == "aggregate-1"


def test_a_handle_will_do(home: Path) -> None:
    with slow(home).start(ps.memory(), every="1 h", spark=local_session()) as run:
        assert str(consumer(run).schema) == str(slow(home).schema)
        assert consumer(run).active
    assert not Consumer.at(home / "kept").active


@pytest.mark.parametrize("place", ["nowhere", "in"])
def test_no_run_there(home: Path, place: str) -> None:
    with pytest.raises(UserError, match="is not the checkpoint of a run"):
        Consumer.at(home / place)


def test_a_run_of_another_version(home: Path) -> None:
    storage = Storage.at(str(home / "kept"))
    meta = unseal(storage.read("meta.json"), "meta.json")
    storage.write("meta.json", seal({**meta, "format": 99}))
    with pytest.raises(CheckpointError, match="has format 99"):
        Consumer.at(home / "kept")


# --- talking ----------------------------------------------------------------------------------------------------------


def test_what_is_ignored_is_dropped_from_the_next_epoch_on(home: Path) -> None:
    receipt = Consumer.at(home / "kept").ignore("[*, 1, *, *]")
    ((name, body),) = ControlLog(Storage.at(str(home / "kept"))).requests()
    assert name == receipt.id and body == {"text": "not [*, 1, *, *]", "node": "aggregate-1"}
    arrive(home, 1)
    rows = ran(slow(home), home).rows()
    assert {r["segment"] for r in rows} == {0, 2}
    guards = Consumer.at(home / "kept").guards()
    assert {"source:cars", "aggregate-1"} <= {g.place for g in guards}
    assert all(g.pattern["segment"].matches(1) and not g.pattern["segment"].matches(2) for g in guards)
    assert any(g.pinned for g in guards) and all(g.since == 2 for g in guards)
    assert str(next(g for g in guards if g.place == "source:cars")) == "source:cars: not [*, 1, *], since epoch 2"


def test_guards_that_punctuation_has_covered_are_no_longer_shown(home: Path) -> None:
    dashboard = Consumer.at(home / "kept")
    assert dashboard.ignore("[<= 100, *, *, *]").remarks == ()
    arrive(home, 1)
    ran(slow(home), home)
    assert dashboard.guards(), "the last window up to there is still open"
    arrive(home, 2)
    ran(slow(home), home)
    assert dashboard.guards() == []


def test_another_operator_may_be_told(home: Path) -> None:
    receipt = Consumer.at(home / "kept").feedback("not [*, *, > 40]", to="source:cars")
    assert "source:cars keeps not [speed > …] for ever" in receipt.remarks[0]
    arrive(home, 1)
    rows = ran(slow(home), home).rows()
    assert rows and all(r["mean"] <= 40 for r in rows)


def test_a_demand_is_answered(home: Path) -> None:
    dashboard = Consumer.at(home / "kept")
    receipt = dashboard.demand("[*, 1, *, *]")
    assert receipt.remarks == () and dashboard.answer(receipt) is None
    arrive(home, 1)
    ran(slow(home), home)
    answered = dashboard.answer(receipt)
    assert answered is not None and set(answered["segment"].to_pylist()) <= {1}


def test_a_wish_waits_for_the_run(home: Path) -> None:
    Consumer.at(home / "kept").prefer("[*, 1, *, *]")
    ((_, body),) = ControlLog(Storage.at(str(home / "kept"))).requests()
    assert body["text"] == "prefer [*, 1, *, *]"


@pytest.mark.parametrize(
    ("text", "to", "complaint"),
    [
        ("not [*, 1]", None, "pattern has 2 restrictions for 4 attributes"),
        ("never [*, 1, *, *]", None, "starts with 'never'"),
        ("not *, 1, *, *", None, "'not' is not followed by a pattern in brackets"),
        ("not not [*, 1, *, *]", None, "'not' is not followed by a pattern in brackets"),
        ("now", None, "'now' is not followed by a pattern in brackets"),
        ("not [segment = 1, *, *, *]", None, "restrictions go by place, without names"),
        ("not [*, 'x', *, *]", None, "attribute 'segment'"),
        ("not [*, 1, *]", "source:car", "did you mean 'source:cars'"),
        ("now [*, 1, *]", "source:cars", "demand results of the query itself"),
    ],
)
def test_what_is_wrong_with_a_message_is_said_at_once(home: Path, text: str, to: str | None, complaint: str) -> None:
    with pytest.raises(UserError) as error:
        Consumer.at(home / "kept").feedback(text, to=to)
    assert complaint in str(error.value)
    assert ControlLog(Storage.at(str(home / "kept"))).requests() == []


def test_only_runs_have_consumers() -> None:
    with pytest.raises(UserError, match="no run"):
        consumer(None)  # type: ignore[arg-type]


# --- looking ----------------------------------------------------------------------------------------------------------


def test_the_way_of_a_message_is_known_once_it_is_taken_up(home: Path) -> None:
    dashboard = Consumer.at(home / "kept")
    receipt = dashboard.ignore("[*, 1, *, *]")
    assert dashboard.way(receipt) is None
    assert [(w.id, w.feedback, w.to) for w in dashboard.talk().waiting] == [
        (receipt.id, "not [*, 1, *, *]", "aggregate-1")
    ]
    arrive(home, 1)
    ran(slow(home), home)
    way = dashboard.way(receipt)
    assert way is not None and [s.node for s in way] == ["aggregate-1", "bucket-1", "source:cars"]
    assert "purges state" in way[0].did and way[1].did == "passed on"
    assert dashboard.talk().waiting == ()
    # Much later, and after others have spoken, it still holds and is still known.
    dashboard.ignore("[*, *, *, > 100]")
    for number in range(2, 6):
        arrive(home, number)
        ran(slow(home), home)
    assert dashboard.way(receipt) == way


def test_what_is_saved_is_told_with_it(home: Path) -> None:
    dashboard = Consumer.at(home / "kept")
    assert dashboard.talk().saved == {}
    dashboard.ignore("[*, 1, *, *]")
    arrive(home, 1)
    ran(slow(home), home)
    saved = dashboard.talk().saved
    assert saved["source:cars dropped"] == 20
    assert saved["aggregate-1 purged"] == 1, "the group of the window that was open"


def test_wishes_are_told_too(home: Path) -> None:
    dashboard = Consumer.at(home / "kept")
    receipt = dashboard.prefer("[*, 1, *, *]")
    arrive(home, 1)
    ran(slow(home), home)
    assert dashboard.guards() == []
    assert dashboard.talk().wishes == ()
    way = dashboard.way(receipt)
    # Its files are in the order that lateness is judged by.
    assert way is not None and [(s.node, s.did) for s in way] == [("source:cars", "nothing")]


def test_a_message_may_be_taken_back(home: Path) -> None:
    dashboard = Consumer.at(home / "kept")
    dashboard.withdraw(dashboard.ignore("[*, 1, *, *]"))
    arrive(home, 1)
    assert {r["segment"] for r in ran(slow(home), home).rows()} == {0, 1, 2}


# --- the contract -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("restriction", ["<= 40", "40", ">= 40"])
@pytest.mark.parametrize("position", range(4))
def test_the_recorded_contract_says_what_the_plan_says(home: Path, restriction: str, position: int) -> None:
    parts = ["*"] * 4
    parts[position] = restriction
    text = f"not [{', '.join(parts)}]"
    query = slow(home)
    receipt = Consumer.at(home / "kept").feedback(text)
    assert list(receipt.remarks) == remarks(query.plan, Feedback.parse(text, query.schema))


def test_what_is_narrower_than_what_goes_needs_no_remark(home: Path) -> None:
    dashboard = Consumer.at(home / "kept")
    assert dashboard.ignore("[<= 40, *, > 40, *]").remarks == ()
    assert "for ever" in dashboard.ignore("[>= 40, *, > 40, *]").remarks[0]


def test_a_contract_that_is_gone_only_leaves_out_the_remarks(home: Path) -> None:
    dashboard = Consumer.at(home / "kept")
    assert dashboard.ignore("[*, *, > 40, *]").remarks
    os.remove(home / "kept" / CONTRACT)
    assert dashboard.ignore("[*, *, > 40, *]").remarks == ()


def test_what_is_promised_anew_is_in_the_contract_of_the_next_start(home: Path) -> None:
    dashboard = Consumer.at(home / "kept")
    assert dashboard.ignore("[*, *, > 40]", to="source:cars").remarks
    changed = unseal((home / "kept" / CONTRACT).read_bytes(), CONTRACT)
    changed["operators"]["source:cars"]["templates"] = []
    (home / "kept" / CONTRACT).write_bytes(seal(changed))
    assert "no punctuation comes there" in dashboard.ignore("[<= 40, *, *]", to="source:cars").remarks[0]
    ran(slow(home), home)
    (inside,) = dashboard.ignore("[<= 40, *, *]", to="source:cars").remarks
    assert inside.startswith("operators behind source:cars may need")
