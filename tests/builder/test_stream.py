"""The builder says what is wrong where it is written, and builds what it says."""

from __future__ import annotations

import pyarrow as pa
import pytest

import penstock as ps
from penstock.errors import UserError
from penstock.operators.aggregate.operator import Aggregate
from penstock.operators.source.operator import Source
from penstock.operators.window.operator import Bucket
from penstock.plan.plan import Plan


def traffic(name: str = "traffic") -> ps.Stream:
    return ps.stream(name, "ts timestamp, segment int, speed double", time="ts")


def test_the_query_of_the_design_has_the_schema_it_promises() -> None:
    slow = (
        traffic()
        .read_parquet("data")
        .disorder("30 s")
        .where("speed >= 0")
        .window("2 min", slide="20 s")
        .group_by("segment")
        .agg(avg_speed="avg(speed)", n="count(*)")
        .where("avg_speed < 40")
    )
    assert str(slow.schema) == "window_start timestamp, segment int, avg_speed double, n bigint"
    assert slow.schema.times == ("window_start",)


def test_calls_leave_the_stream_they_were_called_on_alone() -> None:
    base = traffic()
    base.where("speed > 1")
    assert isinstance(base.operator, Source)


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda t: t.where("sped > 1"), ["sped", "speed"]),
        (lambda t: t.where("speed + 1"), ["speed + 1", "not a condition"]),
        (lambda t: t.select("segmnt"), ["segmnt", "segment"]),
        (lambda t: t.drop("ts", "segment", "speed"), ["no attribute"]),
        (lambda t: t.window("2 parsecs"), ["2 parsecs"]),
        (lambda t: t.window("2 min", slide="0 s"), ["slide", "0 s"]),
        (lambda t: t.window(5), ["timestamp"]),
        (lambda t: t.window("1 min", rows=3), ["exactly one"]),
        (lambda t: t.window("1 min", on="sped"), ["sped"]),
        (lambda t: t.group_by("segmen").agg(n="count(*)"), ["segmen", "segment"]),
        (lambda t: t.group_by("segment").agg(), ["agg"]),
        (lambda t: t.group_by("segment").agg(segment="count(*)"), ["segment"]),
        (lambda t: t.agg(m="median(speed)"), ["median", "parts"]),
        (lambda t: t.agg(m="avrage(speed)"), ["avrage"]),
        (lambda t: t.disorder("soon"), ["soon"]),
        (lambda t: t.disorder("1 s").disorder("2 s"), ["twice"]),
        (lambda t: t.where("speed > 1").disorder("1 s"), ["source"]),
        (lambda t: t.bounds("speed"), ["neither"]),
        (lambda t: t.bounds("speed", low="fast"), ["fast"]),
        (lambda t: t.complete_when([], on="segment"), ["no keys"]),
        (lambda t: t.complete_when(["a"], on="segment"), ["'a'"]),
        (lambda t: t.punctuated("speed"), ["speed"]),
        (lambda t: t.on_violation("ignore"), ["ignore"]),
        (lambda t: t.window(rows=3).where("speed > 1"), ["group_by"]),
        (lambda t: t.window(landmark="1 h").select("ts", "window_end"), ["group_by"]),
        (lambda t: t.union(), ["needs another stream"]),
        (lambda t: t.union(ps.stream("other", "ts timestamp, segment int", time="ts")), ["differ"]),
        (lambda t: t.map(lambda b: b, keeps=["nothing"]), ["nothing"]),
        (lambda t: t.explain("pdf"), ["pdf"]),
        (lambda t: t.read_parquet("x", partitions="hourly"), ["hourly"]),
        (lambda t: t.start("out"), ["not a sink"]),
        (lambda t: t.start(ps.memory(), trigger="sometimes"), ["sometimes"]),
        (lambda t: t.start(ps.memory(), max_rws=3), ["max_rws", "max_rows"]),
        (lambda t: t.start(ps.memory(), max_rows=0), ["max_rows"]),
        (lambda t: t.start(ps.memory(), trigger="once", every="1 s"), ["both"]),
    ],
)
def test_a_mistake_is_one_line_that_names_it(build: object, words: list[str]) -> None:
    with pytest.raises(UserError) as caught:
        build(traffic())  # type: ignore[operator]
    text = str(caught.value)
    assert "\n" not in text
    for word in words:
        assert word in text


def test_names_are_found_in_any_case_and_come_out_as_declared() -> None:
    assert traffic().select("TS", "Speed").schema.names == ("ts", "speed")


def test_rename_keeps_a_time_attribute_a_time_attribute() -> None:
    assert traffic().rename(ts="at").schema.times == ("at",)
    assert traffic().select("segment", at="ts + INTERVAL 1 HOUR").schema.times == ()


def test_a_window_over_windows_needs_no_further_declaration() -> None:
    minutes = traffic().window("1 min").group_by("segment").agg(n="count(*)")
    hours = minutes.rename(window_start="minute").window("1 h").agg(n="sum(n)")
    assert str(hours.schema) == "window_start timestamp, n bigint"


def test_a_condition_between_window_and_group_leaves_the_window_a_grouping_attribute() -> None:
    windowed = traffic().window("2 min", slide="20 s")
    for between in (windowed.where("speed > 1"), windowed.select("window_start", "segment"), windowed.drop("ts")):
        assert between.group_by("segment").agg(n="count(*)").schema.names == ("window_start", "segment", "n")
    dropped = windowed.drop("window_start").group_by("segment").agg(n="count(*)")
    assert dropped.schema.names == ("segment", "n")


def test_ids_depend_on_the_shape_alone() -> None:
    def build() -> ps.Stream:
        a, b = traffic("a"), traffic("b")
        return a.where("speed > 1").union(b.where("speed > 2")).window("1 min").agg(n="count(*)")

    first, second = build().plan, build().plan
    assert [n.id for n in first] == [n.id for n in second]
    assert [n.id for n in first] == [
        "source:a",
        "select-1",
        "source:b",
        "select-2",
        "union-1",
        "bucket-1",
        "aggregate-1",
    ]
    assert first.fingerprint == second.fingerprint


def test_a_stream_used_twice_is_one_node() -> None:
    base = traffic().where("speed > 1")
    both = base.select("segment").union(base.select("segment"))
    assert sum(n.operator.kind == "select" for n in both.plan) == 1


def test_two_sources_of_one_name_are_refused() -> None:
    with pytest.raises(UserError, match="two sources"):
        _ = traffic().union(traffic()).plan


def test_differences_between_plans_are_named() -> None:
    before = traffic().window("1 min").group_by("segment").agg(n="count(*)")
    after = traffic().window("2 min").group_by("segment").agg(n="count(*)")
    (line,) = after.plan.differences(before.plan.describe())
    assert "bucket-1" in line
    assert "1 min" in line
    assert "2 min" in line


def test_where_the_columns_of_a_join_come_from_can_be_read() -> None:
    a, b, c = (ps.stream(n, "k int, v int") for n in "abc")
    described = a.join(b, on="k", how="full").plan.describe()["join-1"]
    assert described["definition"] == "full on k; k ← left.k, right.k; v ← left.v; v_right ← right.v"
    described = ps.join(a, b, c, on="k", strategy="mjoin").plan.describe()["multijoin-1"]
    assert described["definition"].endswith("; k ← input 1.k; v ← input 1.v; v_2 ← input 2.v; v_3 ← input 3.v")
    (line,) = a.join(b, on="k").plan.differences(a.join(b, on="k", how="right").plan.describe())
    assert "k ← right.k" in line and "k ← left.k" in line


def test_explain_draws_every_operator_once_and_both_inputs_of_a_union() -> None:
    base = traffic("a")
    plan = base.where("speed > 1").union(base, traffic("b")).window("1 min").agg(n="count(*)")
    text = plan.explain()
    for node in plan.plan:
        assert node.id in text
    mermaid = plan.explain("mermaid")
    assert mermaid.count("-->") == sum(len(n.inputs) for n in plan.plan)
    assert '"speed' not in mermaid  # quotes of the query would end Mermaid's own


def test_a_plan_of_a_thousand_operators_is_no_problem() -> None:
    stream = traffic()
    for _ in range(1000):
        stream = stream.where("speed > 1")
    assert len(stream.plan.nodes) == 1001


def test_an_aggregate_after_a_window_groups_by_its_label_first() -> None:
    built = traffic().window("1 min").group_by("segment").agg(n="count(*)").operator
    assert isinstance(built, Aggregate)
    assert built.keys == ("window_start", "segment")
    assert isinstance(built.inputs[0], Bucket)


def test_generated_streams_say_what_they_carry() -> None:
    made = ps.generate(rate=10, rows=5, columns={"who": ("category", "a", "b"), "paid": ("chance", 0.5)})
    assert str(made.schema) == "ts timestamp, who string, paid boolean"
    assert made.schema.type_of("ts") == pa.timestamp("us")
    with pytest.raises(UserError, match="colour"):
        ps.generate(rate=1, rows=1, columns={"x": "colour"})


def test_the_plan_keeps_what_it_is_given() -> None:
    stream = traffic()
    assert Plan.of(stream.operator)["source:traffic"].operator is stream.operator
