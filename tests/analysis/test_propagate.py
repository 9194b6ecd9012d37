"""What becomes of a punctuation behind each operator."""

from __future__ import annotations

from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock as ps
from penstock.analysis.propagate import Propagation
from penstock.pattern.pattern import Pattern


def sensor(name: str = "sensor") -> ps.Stream:
    return ps.stream(name, "sensor int, temp int, hour int, minute int")


def behind(stream: ps.Stream, **given_: list[str]) -> list[str]:
    """Punctuation texts by source → texts behind the last operator."""
    plan = stream.plan
    sources = {
        f"source:{name}": [Pattern.parse(t, plan[f"source:{name}"].operator.schema) for t in texts]
        for name, texts in given_.items()
    }
    out = Propagation(plan).run(sources)
    return [str(p) for p in out[plan.nodes[-1].id]]


def test_select_passes_everything() -> None:
    assert behind(sensor().where("temp > 3"), sensor=["[3, *, < 5, *]"]) == ["[3, *, < 5, *]"]


def test_project_passes_what_it_carries_and_nothing_it_drops() -> None:
    kept = sensor().select("hour", who="sensor")
    assert behind(kept, sensor=["[3, *, *, *]"]) == ["[*, 3]"]
    assert behind(kept, sensor=["[3, > 5, *, *]"]) == []
    assert behind(kept, sensor=["[*, *, *, *]"]) == ["[*, *]"]


def test_project_does_not_see_through_a_computation() -> None:
    assert behind(sensor().select(later="hour + 1"), sensor=["[*, *, < 5, *]"]) == []


def test_an_attribute_carried_twice_is_promised_under_both_names() -> None:
    twice = sensor().select(a="hour", b="hour")
    assert sorted(behind(twice, sensor=["[*, *, < 5, *]"])) == ["[*, < 5]", "[< 5, *]"]


def test_map_passes_only_what_it_keeps() -> None:
    mapped = sensor().map(lambda t: t, keeps=["hour"])
    assert behind(mapped, sensor=["[*, *, < 5, *]", "[3, *, *, *]"]) == ["[*, *, < 5, *]"]


def test_group_by_needs_a_punctuation_that_describes_the_groups() -> None:
    by_hour = sensor().group_by("hour").agg(top="max(temp)")
    assert behind(by_hour, sensor=["[*, *, 1, *]"]) == ["[1, *]"]
    assert behind(by_hour, sensor=["[3, *, 1, *]"]) == []


def test_part_of_a_grouping_key_is_enough() -> None:
    assert behind(sensor().group_by("hour", "sensor").agg(n="count(*)"), sensor=["[3, *, *, *]"]) == ["[*, 3, *]"]


def test_union_waits_for_the_slower_input_and_takes_what_both_say() -> None:
    both = sensor("a").union(sensor("b"))
    assert behind(both, a=["[*, *, < 5, *]"]) == []
    assert behind(both, a=["[*, *, < 5, *]"], b=["[*, *, < 3, *]"]) == ["[*, *, < 3, *]"]
    assert behind(both, a=["[3, *, *, *]"], b=["[*, *, < 3, *]"]) == ["[3, *, < 3, *]"]


def test_union_remembers_across_epochs_and_says_nothing_twice() -> None:
    plan = sensor("a").union(sensor("b")).plan
    schema = plan["source:a"].operator.schema
    p = Propagation(plan)
    assert p.run({"source:a": [Pattern.parse("[*, *, < 5, *]", schema)]})["union-1"] == ()
    stored = p.to_json()
    again = Propagation(plan)
    again.restore(stored)
    late = {"source:b": [Pattern.parse("[*, *, < 4, *]", schema)]}
    assert [str(x) for x in again.run(late)["union-1"]] == ["[*, *, < 4, *]"]
    assert again.run(late)["union-1"] == ()


def test_a_window_turns_time_into_labels_and_keeps_the_rest() -> None:
    stream = ps.stream("s", "ts timestamp, key int", time="ts").window("10 s").group_by("key").agg(n="count(*)")
    assert behind(stream, s=["[< '2026-01-01 00:00:25', *]"]) == ["[<= '2026-01-01 00:00:10', *, *]"]
    assert behind(stream, s=["[< '2026-01-01 00:00:25', 7]"]) == ["[<= '2026-01-01 00:00:10', 7, *]"]
    assert behind(stream, s=["[*, 7]"]) == ["[*, 7, *]"]


def test_a_landmark_window_goes_on_for_a_key_that_is_over() -> None:
    origin = datetime(2026, 1, 1)
    stream = ps.stream("s", "ts timestamp, key int", time="ts")
    growing = stream.window(landmark="10 s", origin=origin).group_by("key").agg(n="count(*)")
    assert behind(growing, s=["[*, 7]"]) == []
    assert behind(growing, s=["[< '2026-01-01 00:00:25', *]"]) == ["[<= '2026-01-01 00:00:20', *, *]"]


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 20)), max_size=12))
def test_the_frontier_of_a_union_is_the_least_of_its_inputs(steps: list[tuple[str, int]]) -> None:
    plan = sensor("a").union(sensor("b")).plan
    schema = plan["source:a"].operator.schema
    p, reached, said = Propagation(plan), {"a": -1, "b": -1}, -1
    for name, hour in steps:
        out = p.run({f"source:{name}": [Pattern.parse(f"[*, *, <= {hour}, *]", schema)]})["union-1"]
        reached[name] = max(reached[name], hour)
        least = min(reached.values())
        assert [str(x) for x in out] == ([f"[*, *, <= {least}, *]"] if least > said else [])
        said = max(said, least)


@pytest.mark.parametrize("text", ["[*, *, *, *]"])
def test_the_end_of_a_source_passes_everything(text: str) -> None:
    plan = sensor().where("temp > 1").select("hour", "temp").group_by("hour").agg(n="count(*)")
    assert behind(plan, sensor=[text]) == ["[*, *]"]
