"""Offerings: which contracts an operator can keep for what arrives, and what flows on."""

from __future__ import annotations

import pytest
from contracts import GCF, Contract, Grouping, Joining, realizable
from offerings import offering

import penstock as ps
from penstock.builder.multiway import join as multijoin
from penstock.builder.stream import StreamBuilder
from penstock.contract.flow import also_ends, least, met
from penstock.contract.template import Scheme, Template
from penstock.operators.source.operator import Source
from penstock.operators.source.scheme import Unknown, flow_of, scheme_of
from penstock.pattern.schema import Schema
from penstock.plan.policy import Punctuate
from penstock.plan.promise import Domain
from penstock.plan.table import table


def stream(name: str, columns: str, *promises: Domain) -> StreamBuilder:
    return StreamBuilder(Source((), Schema.parse(columns), name=name, promises=promises))


S, T = stream("s", "a int, b int, c int"), stream("t", "b int, d int")


def scheme(of: StreamBuilder, *templates: str) -> Scheme:
    return Scheme.of(*(Template.parse(t, of.schema) for t in templates))


def offered(query: StreamBuilder, *arriving: Scheme) -> list[str]:
    """What is promised by each contract of the last operator, as words."""
    return [c.outputs[0].words for c in offering(query.operator, arriving)]


# --- sources ----------------------------------------------------------------------------------------------------------

RIDES = StreamBuilder(
    Source((), Schema.parse("ts timestamp, day date, trip int, zone string", time="ts"), name="rides")
)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (RIDES, "no punctuation"),
        (RIDES.disorder("5 s"), "ts up to"),
        (RIDES.punctuate(Punctuate.within_rows(3)), "ts up to"),
        (RIDES.punctuate(Punctuate.sorted_by("trip")), "trip up to"),
        (RIDES.punctuate(Punctuate.when_all(["a"], on="zone")), "ts up to"),
        (RIDES.disorder("5 s").punctuate(Punctuate.every("1 min")), "ts up to"),
        (RIDES.punctuate(Punctuate.once("trip")), "trip: each value"),
        (RIDES.disorder("5 s").punctuate(Punctuate.after("trip", "1 h")), "trip: each value; ts up to"),
        (RIDES.bounds("trip", 0, 9).punctuate(Punctuate.values("zone", ["a"])).ends(), "no punctuation"),
        (RIDES.punctuated().scheme(ts="up to", zone="value"), "ts up to + zone: each value"),
    ],
)
def test_what_sources_promise(source: StreamBuilder, words: str) -> None:
    assert isinstance(source.operator, Source)
    found = scheme_of(source.operator)
    assert isinstance(found, Scheme)
    assert "; ".join(sorted(found.words.split("; "))) == words


def test_what_comes_in_band_is_unknown_until_it_is_declared() -> None:
    both = RIDES.disorder("5 s").punctuated().operator
    assert isinstance(both, Source)
    found = scheme_of(both)
    assert isinstance(found, Unknown)
    assert found.known.words == "ts up to"
    assert flow_of(both).open


# --- operators --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["[[a:+]]", "[[b:#]]", "[[a:+, b:#]]", "[[c:range]]"])
def test_select_distinct_and_lookup_keep_everything(text: str) -> None:
    arriving = scheme(S, text)
    looked = S.lookup(table("names", "b int, name string", key="b").read_parquet("x"), "b")
    for query in (S.where("a > 1"), S.distinct()):
        (contract,) = offering(query.operator, [arriving])
        assert contract.outputs == (arriving,)
        assert realizable(contract, GCF[1])
    assert offered(looked, arriving) == [arriving.words]


def test_the_strongest_contract_comes_first() -> None:
    found = offered(S.where("a > 1"), scheme(S, "[[a:+]]", "[[b:#]]"))
    assert set(found[0].split("; ")) == {"a up to", "b: each value"}
    assert sorted(found[1:]) == ["a up to", "b: each value"]


def test_project_renames_doubles_and_drops() -> None:
    query = S.select(x="a", y="a", z="b + 1")
    assert set(offered(query, scheme(S, "[[a:+]]"))[0].split("; ")) == {"x up to", "y up to"}
    assert offered(query, scheme(S, "[[b:#]]")) == ["no punctuation"]
    assert offered(query, scheme(S, "[[a:+, b:#]]")) == ["no punctuation"]
    (contract,) = offering(S.select("a", "c").operator, [scheme(S, "[[a:+]]")])
    assert realizable(contract, GCF[2])


def test_project_drops_what_is_finite() -> None:
    few = stream("s", "a int, b int", Domain("b", (1, 2)))
    assert offered(few.select("a"), scheme(few, "[[a:+, b:#]]")) == ["a up to"]


def test_map_keeps_what_it_says() -> None:
    kept = S.map(lambda t: t, keeps=["a"])
    assert offered(kept, scheme(S, "[[a:+]]", "[[b:#]]")) == ["a up to"]


def test_union_takes_one_of_each() -> None:
    other = stream("u", "a int, b int, c int")
    query = S.union(other)
    assert offered(query, scheme(S, "[[a:+]]"), scheme(other, "[[a:+]]")) == ["a up to"]
    assert offered(query, scheme(S, "[[a:+]]"), scheme(other, "[[a:#]]")) == ["a: each value"]
    assert offered(query, scheme(S, "[[a:+]]"), scheme(other, "[[b:#]]")) == ["a up to + b: each value"]
    assert offered(query, scheme(S, "[[a:+]]"), Scheme()) == ["no punctuation"]


def test_windows_tell_their_labels() -> None:
    labelled = offered(S.window(10, on="a"), scheme(S, "[[a:+, b:#]]"))[0].split("; ")
    assert set(labelled) == {"a up to + b: each value", "b: each value + window_start up to"}
    assert offered(S.window(10, on="a"), scheme(S, "[[a:range]]")) == ["a: ranges"]
    assert offered(S.window(rows=10), scheme(S, "[[a:+]]")) == ["a up to"]


def test_groups_close_on_part_of_their_key() -> None:
    count = S.group_by("a", "b").agg(n="count(*)")
    for text, words in (
        ("[[a:+]]", "a up to"),
        ("[[b:#]]", "b: each value"),
        ("[[a:+, b:#]]", "a up to + b: each value"),
    ):
        (contract,) = offering(count.operator, [scheme(S, text)])
        assert contract.outputs[0].words == words
        assert realizable(contract, Grouping(frozenset({"a", "b"})))
    assert offered(count, scheme(S, "[[c:+]]")) == []
    assert offered(count, scheme(S, "[[a:+, c:#]]")) == []


def test_sorting_passes_the_prefix_only() -> None:
    assert offered(S.order_by("a", "b"), scheme(S, "[[a:+]]", "[[b:#]]")) == ["a up to"]
    assert offered(S.order_by("b"), scheme(S, "[[a:+]]")) == []
    assert offered(S.order_by("b", slack=2), scheme(S, "[[b:+]]")) == ["no punctuation"]


JOINS = [
    ("[[b:+]]", "[[b:+]]", "b up to"),
    ("[[b:#]]", "[[b:#]]", "b: each value"),
    ("[[b:+]]", "[[b:#]]", "b: each value"),
    ("[[a:#]]", "[[d:#]]", None),
    ("[[b:#]]", "[[d:#]]", None),
    ("[[a:#, b:+]]", "[[b:+]]", None),
]


@pytest.mark.parametrize(("left", "right", "out"), JOINS)
def test_joins_need_the_join_attributes_from_both(left: str, right: str, out: str | None) -> None:
    found = offering(S.join(T, "b").operator, [scheme(S, left), scheme(T, right)])
    if out is None:
        assert found == ()
        return
    assert out in found[0].outputs[0].words.split("; ")
    assert realizable(Contract.parse(str(found[0])), Joining(frozenset({"b"})))


def test_each_side_may_speak_of_another_part_of_the_key() -> None:
    left, right = stream("l", "a int, b int, c int"), stream("r", "b int, c int, d int")
    found = offered(left.join(right, ["b", "c"]), scheme(left, "[[b:+]]"), scheme(right, "[[c:+]]"))
    # Both are asked of the state too: as rows leave, what is left begins later.
    assert set(found[0].split("; ")) == {"b up to", "c up to"}
    by_value = offered(left.join(right, ["b", "c"]), scheme(left, "[[b:#]]"), scheme(right, "[[c:#]]"))
    assert by_value == ["b: each value + c: each value"]


def test_an_outer_join_speaks_of_padded_attributes_no_more() -> None:
    arriving = scheme(S, "[[a:+]]", "[[b:#]]"), scheme(T, "[[b:#]]", "[[d:+]]")
    for how, words in {
        "inner": {"a up to", "d up to", "b: each value"},
        "left": {"a up to", "b: each value"},
        "right": {"d up to", "b: each value"},
        "full": {"b: each value"},
        "semi": {"a up to", "b: each value"},
        "anti": {"a up to", "b: each value"},
    }.items():
        assert set(offered(S.join(T, "b", how), *arriving)[0].split("; ")) == words, how


def test_a_join_of_three_needs_all() -> None:
    u = stream("u", "b int, e int")
    query = multijoin(S, T, u, on="b")
    each = [scheme(x, "[[b:#]]") for x in (S, T, u)]
    assert offered(query, *each)[0] == "b: each value"
    for k in range(3):
        assert offering(query.operator, [Scheme() if i == k else e for i, e in enumerate(each)]) == ()


def test_lineage_is_told_for_feedback() -> None:
    (contract,) = offering(S.join(T, "b", "full").operator, [scheme(S, "[[b:#]]"), scheme(T, "[[b:#]]")])
    assert contract.lineage == {("b", 0, "b"), ("b", 1, "b"), ("a", 0, "a"), ("c", 0, "c"), ("d", 1, "d")}


# --- templates together -----------------------------------------------------------------------------------------------


def test_the_weaker_template_goes_unless_it_assumes_less() -> None:
    wide, narrow = frozenset({("a", "+")}), frozenset({("a", "+"), ("b", "#")})
    assert list(least([(narrow, frozenset()), (wide, frozenset())])) == [wide]  # type: ignore[list-item]
    assert set(least([(narrow, frozenset()), (wide, frozenset({"x"}))])) == {wide, narrow}  # type: ignore[list-item]


def test_what_several_promise_is_the_intersection() -> None:
    a, b = frozenset({("a", "+")}), frozenset({("a", "#"), ("b", "range")})
    assert met([{a: frozenset({"x"})}, {b: frozenset({"y"})}]) == {b: frozenset({"x", "y"})}  # type: ignore[dict-item]


def test_an_assumption_names_both_streams() -> None:
    one, two = (flow_of(x.operator) for x in (S, T) if isinstance(x.operator, Source))
    assert also_ends(one, "b", two, "b") == {"every `b` of s also ends in t"}
    assert also_ends(one, "a", two, "b") == {"every `a` of s also ends in t (`b`)"}
    assert also_ends(one, "b", one, "b") == frozenset()


def test_values_that_end_in_pairs_are_assumed_to_end_in_the_pairs_that_wait() -> None:
    """That each value ends in some pair is not enough."""
    a = ps.stream("a", "k int, g int").punctuated().scheme(k="value")
    b = ps.stream("b", "k int, g int, v int").punctuated().scheme(k="value", g="value")
    found = a.join(b, ["k", "g"]).check().findings[-1]
    assert "`g` and `k` that come together in a also end together in b" in found.assumes
    assert not [
        x for x in a.join(a.where("k > 0"), ["k", "g"], suffix="_b").check().findings[-1].assumes if "together" in x
    ]
