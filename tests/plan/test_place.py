"""Places are their texts, and what they consist of can be told from them."""

from __future__ import annotations

import json
import pickle

from hypothesis import given
from hypothesis import strategies as st

import penstock as ps
from penstock.plan.place import Place
from penstock.portal.testing import local_session

NAMES = st.sampled_from(["join-1", "source:cars", "source:groups", "source:my-cars", "slow_ones", "groups"])


@given(NAMES, st.integers(0, 12))
def test_a_place_is_its_text(node: str, port: int) -> None:
    made = [Place(node), Place.at(node, port)] + ([] if node.startswith("source:") else [Place.of_groups(node)])
    assert [p.node for p in made] == [node] * len(made)
    assert [p.port for p in made] == [None, port, None][: len(made)]
    assert [p.part for p in made] == ["", "", "groups"][: len(made)]
    assert len(set(made)) == len(made)
    for place in made:
        again = Place(json.loads(json.dumps({place: 1})).popitem()[0])
        assert (again, again.node, again.port) == (place, place.node, place.port)
        assert pickle.loads(pickle.dumps(place)).part == place.part


def test_the_speaker_is_who_brings_the_events() -> None:
    inputs = {"join-1": ("source:a", "source:b"), "aggregate-1": ("join-1",)}
    assert Place.at("join-1", 1).speaker(inputs) == "source:b"
    assert Place("join-1").speaker(inputs) == "join-1"
    assert Place.of_groups("aggregate-1").speaker(inputs) == "aggregate-1"
    assert (Place.stored("join-1", 1, 2), Place.stored("aggregate-1", 0, 1)) == ("join-1#1", "aggregate-1")


def test_a_stream_may_be_called_groups() -> None:
    cars = ps.generate("groups", rate=10, rows=50, columns={"k": ("key", 5)}).ends()
    target = ps.memory()
    run = cars.start(target, feedback="not [*, 1]", trigger="available_now", spark=local_session(), max_rows=20).wait()
    assert {row["k"] for row in target.rows()} == {0, 2, 3, 4}
    assert list(run.progress.saved) == ["source:groups dropped"]
