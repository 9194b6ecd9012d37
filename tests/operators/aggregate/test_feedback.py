"""What aggregates answer to assumed feedback: on groups, on values, and with windows of all kinds."""

from __future__ import annotations

import pytest

import penstock as ps
from penstock.analysis.cascade import respond
from penstock.pattern.pattern import Pattern
from penstock.plan.response import Response

PROBES = ps.stream("probes", "wid int, speed int, v double, flag boolean, ts int", time="ts").bounds("wid", 0)


def told(stream: ps.Stream, text: str) -> Response:
    return respond(stream.operator, Pattern.parse(text, stream.schema))


def of(aggregate: str, keys: str = "wid") -> ps.Stream:
    return PROBES.group_by(keys).agg(y=aggregate)


def is_only_behind(response: Response) -> bool:
    return bool(response.why) and response == Response(output=True, inputs=(None,), send=((),), why=response.why)


def test_golden_average() -> None:
    """From the literature: groups go, a partial average says nothing."""
    mean = of("avg(speed)")
    answer = told(mean, "[< 20, *]")
    (sent,) = answer.send[0]
    assert str(sent) == "[< 20, *, *, *, *]"
    expected = Response(
        output=True,
        inputs=(None,),
        send=((sent,),),
        purge=True,
        groups=Pattern.parse("[< 20, *]", mean.schema),
        pinned=True,
    )
    assert answer == expected
    for text in ("[*, >= 50]", "[*, < 50]", "[*, 50]", "[4, >= 50]"):
        assert is_only_behind(told(mean, text)), text


def test_golden_maximum() -> None:
    """From the literature: groups with a maximum of 50 are doomed; no event is, whatever its speed."""
    answer = told(of("max(speed)"), "[*, >= 50]")
    assert answer == Response(output=True, inputs=(None,), send=((),), sweep=True, why=answer.why)


#: Aggregate → the restrictions that doom a group, and some that do not.
DOOMING = {
    "count(*)": (["> 4", ">= 4", "[4,)", "(,)"], ["< 4", "<= 4", "4", "[4, 9]", "{4, 5}"]),
    "count(v)": (["> 4"], ["< 4"]),
    "count(distinct speed)": (["> 4"], ["< 4"]),
    "count_if(speed > 3)": (["> 4"], ["< 4"]),
    "count(*) filter (where speed > 3)": (["> 4"], ["< 4"]),
    "max(speed)": (["> 4", ">= 4", "2147483647"], ["< 4", "<= 4", "4", "[4, 9]"]),
    "min(speed)": (["< 4", "<= 4", "(, 4]", "-2147483648"], ["> 4", ">= 4", "4", "[4, 9]"]),
    # A NaN that is still to come is the maximum, and no restriction matches it. It is never a minimum before others.
    "max(v)": ([], ["> 4", ">= 4", "< 4"]),
    "min(v)": (["< 4", "<= 4"], ["> 4"]),
    "bool_or(flag)": (["true", "(,)"], ["false"]),
    "bool_and(flag)": (["false", "(,)"], ["true"]),
    "sum(wid)": (["> 4", ">= 4"], ["< 4", "4"]),  # Never negative: the source refuses such events.
    "sum(speed)": ([], ["> 4", "< 4", "4"]),
    "sum(v)": ([], ["> 4", "< 4"]),
    "avg(speed)": ([], ["> 4", "< 4"]),
    "max(speed) - min(speed)": ([], ["> 4", "< 4"]),
    "max(speed) + 1": ([], ["> 4"]),
    "first(speed)": ([], ["> 4", "< 4"]),
    "max_by(speed, v)": ([], ["> 4", "< 4"]),
    "stddev_pop(speed)": ([], ["> 4", "< 4"]),
}


@pytest.mark.parametrize("aggregate", DOOMING)
def test_which_groups_are_doomed(aggregate: str) -> None:
    stream = of(aggregate, "ts")
    for texts, sweep in zip(DOOMING[aggregate], (True, False)):
        for text in texts:
            answer = told(stream, f"[*, {text}]")
            assert answer == Response(output=True, inputs=(None,), send=((),), sweep=sweep, why=answer.why), text


def test_all_values_must_be_on_their_way() -> None:
    stream = PROBES.group_by("wid").agg(c="count(*)", low="min(speed)", mean="avg(speed)")
    assert told(stream, "[*, > 4, < 9, *]").sweep
    assert told(stream, "[3, > 4, < 9, *]").sweep
    assert not told(stream, "[*, > 4, > 9, *]").sweep
    assert not told(stream, "[*, > 4, *, > 9]").sweep


@pytest.mark.parametrize(
    ("stream", "known"),
    [
        (PROBES.where("speed > 3").distinct().order_by("ts"), True),
        (PROBES.rename(wid="n").select("n", wid="n", speed="speed").drop("n"), True),
        (PROBES.with_columns(wid="wid - 1"), False),
        (PROBES.union(PROBES.where("speed > 3")), True),
        (PROBES.union(ps.stream("others", str(PROBES.schema))), False),
        (PROBES.map(lambda rows: rows, keeps=["wid"]), True),
        (PROBES.map(lambda rows: rows), False),
        (PROBES.join(PROBES, "ts", "full"), True),
        (PROBES.join(ps.stream("others", "ts int, wid int"), {"ts": "ts", "wid": "wid"}, "full"), False),
        (PROBES.group_by("ts").agg(wid="count(*)"), True),
        (PROBES.group_by("ts").agg(wid="min(speed)"), False),
        (PROBES.group_by("wid").agg(n="count(*)"), True),
        (ps.stream("others", "wid int").bounds("wid", -1), False),
    ],
)
def test_sums_of_what_is_never_negative(stream: ps.Stream, known: bool) -> None:
    assert told(stream.agg(y="sum(wid)"), "[> 4]").sweep == known


def test_one_group_of_everything() -> None:
    total = PROBES.agg(y="count(*)")
    assert told(total, "[> 4]").sweep
    assert told(total, "[*]").groups == Pattern.all(total.schema)
    assert [str(p) for p in told(total, "[*]").send[0]] == ["[*, *, *, *, *]"]


# --- windows ---------------------------------------------------------------------------------------------------------


def test_windows_are_groups_like_others() -> None:
    stream = PROBES.window(10, slide=5).group_by("wid").agg(y="max(speed)")
    answer = told(stream, "[< 20, 3, *]")
    (sent,) = answer.send[0]
    assert answer.groups is not None and answer.pinned and answer.output
    assert str(sent) == "[3, *, *, *, *, < 20]"
    (bucket,) = stream.operator.inputs
    assert [str(p) for p in respond(bucket, sent).send[0]] == ["[3, *, *, *, < 20]"]
    assert told(stream, "[*, *, > 4]").sweep


def test_counted_windows_let_go_of_whole_groups() -> None:
    stream = PROBES.window(rows=3).group_by("wid").agg(y="max(speed)")
    answer = told(stream, "[*, 3, *]")
    (sent,) = answer.send[0]
    assert str(sent) == "[3, *, *, *, *, *]"
    assert answer == Response(output=True, inputs=(sent,), send=((sent,),), pinned=True)
    # An event less would shift all later windows of its group.
    for text in ("[3, *, *]", "[3, 3, *]", "[*, *, > 4]", "[*, 3, > 4]"):
        assert is_only_behind(told(stream, text)), text


def test_landmark_windows_let_go_of_whole_groups_only() -> None:
    """An event counts for all later windows of its group."""
    stream = PROBES.window(landmark=10).group_by("wid").agg(y="max(speed)")
    for text in ("[> 20, *, *]", "[<= 20, *, *]", "[> 20, 3, *]", "[*, *, > 4]"):
        assert is_only_behind(told(stream, text)), text
    for text, passed in (("[*, *, *]", "[*, *, *, *, *, *]"), ("[*, 3, *]", "[3, *, *, *, *, *]")):
        answer = told(stream, text)
        (sent,) = answer.send[0]
        assert str(sent) == passed
        assert answer == Response(output=True, inputs=(sent,), send=((sent,),), pinned=True)
