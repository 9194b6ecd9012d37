"""Limit and top as declared, and between epochs: what they promise, order, ask and remember."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

import penstock as ps
from penstock.analysis.explain import coming, leaving
from penstock.analysis.propagate import Propagation
from penstock.errors import UserError
from penstock.operators.aggregate.operator import Aggregate
from penstock.operators.top.operator import Top
from penstock.pattern.pattern import Pattern
from penstock.plan.domain import domains
from penstock.plan.orders import Answer


def cars() -> ps.Stream:
    return ps.stream("cars", "ts int, segment int, speed double, `a, b` int", time="ts")


def top(stream: ps.Stream) -> Top:
    assert isinstance(stream.operator, Top)
    return stream.operator


# --- declaring --------------------------------------------------------------------------------------------------------


def test_orders_and_groups_are_read() -> None:
    made = top(cars().top(3, by="speed desc, ts", per=["segment"]))
    assert (made.count, made.by, made.per) == (3, (("speed", True), ("ts", False)), ("segment",))
    # What decides within a group: not what groups are made of; then the other attributes as they come.
    assert made.order == (("speed", True), ("ts", False), ("a, b", False))
    assert made.schema == cars().schema
    assert top(cars().top(1, by=["a, b", "TS desc"], per="segment")).by == (("a, b", False), ("ts", True))
    assert top(cars().top(1, by="a, b")).by == (("a, b", False),)
    assert top(cars().top(1, by="ts desc, ts")).order[0] == ("ts", True)


def test_behind_a_window_its_label_is_a_group() -> None:
    windows = cars().window(10)
    assert top(windows.top(3, by="speed")).per == ("window_start",)
    assert top(windows.where("speed > 1").top(3, by="speed", per="segment")).per == ("window_start", "segment")
    assert top(windows.drop("window_start").top(3, by="speed")).per == ()


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda s: s.limit(0), r"limit\(0\) is not a number of events.*1 or more"),
        (lambda s: s.limit("3"), r"limit\('3'\)"),
        (lambda s: s.limit(True), "is not a number of events"),
        (lambda s: s.top(1.5, by="ts"), r"top\(1.5\)"),
        (lambda s: s.top(3, by=""), "top: unknown column ''"),
        (lambda s: s.top(3, by=[]), "top.. without an order.*speed desc"),
        (lambda s: s.top(3, by="sped"), "top: unknown column 'sped'.*did you mean 'speed'"),
        (lambda s: s.top(3, by="speed down"), "top: 'speed down'.*name desc"),
        (lambda s: s.top(3, by=[7]), "top: 7 is not a column.*by="),
        (lambda s: s.top(3, by="ts", per=["segmnt"]), "top: unknown column 'segmnt'.*did you mean 'segment'"),
        (lambda s: s.window(rows=3).top(3, by="ts"), "must be followed by group_by"),
    ],
)
def test_mistakes(call: Callable[[ps.Stream], object], said: str) -> None:
    with pytest.raises(UserError, match=said):
        call(cars())


def test_what_a_plan_says_of_them() -> None:
    query = cars().limit(1000).top(3, by="speed desc, ts", per=["segment"])
    assert "top-1: 3 by speed desc, ts per segment" in query.explain()
    assert "limit-1: the first 1,000" in query.explain()
    described = query.plan.describe()
    assert described["top-1"]["keeps"] == {"kind": "top", "keys": ["segment"]}
    assert described["limit-1"]["keeps"] == {"kind": "limit"}
    windowed = cars().window(10).top(3, by="speed").plan.describe()
    assert windowed["top-1"]["keeps"]["label"] == "window_start"
    for other in ("limit(1000).top(4, by='speed desc, ts', per=['segment'])", "limit(999).top(3, by='speed')"):
        changed: ps.Stream = eval(f"s.{other}", {"s": cars()})
        assert any("definition was" in line for line in changed.plan.differences(described))


def test_what_will_be_punctuated() -> None:
    timed = cars().disorder(5)
    query = timed.window(10).top(3, by="speed", per="segment")
    assert leaving(query.plan)["top-1"] == ("at most 3 events of each group, which leave on `window_start up to`",)
    assert coming(query.plan)["top-1"] == ("window_start up to",)
    assert leaving(timed.top(3, by="speed", per="segment").plan)["top-1"] == (
        "at most 3 events of each group, which never leave: nothing promises `segment` (what arrives: ts up to)",
        "needs cars: segment: each value",
    )
    assert coming(timed.limit(7).plan)["limit-1"] == ("ts up to", "everything, at the end")


def test_domains_go_through() -> None:
    few = cars().punctuate(ps.Punctuate.values("segment", [1, 2]))
    for query in (few.limit(3), few.top(3, by="ts")):
        assert {n: str(v) for n, v in domains(query.operator).items()} == {"segment": "{1, 2}"}


# --- between epochs ---------------------------------------------------------------------------------------------------


class Epochs:
    """A query whose one source says something in each epoch; the state answers with a number of rows."""

    def __init__(self, query: ps.Stream) -> None:
        self.plan = query.plan
        self.root = self.plan.nodes[-1].id
        self.schema = self.plan.sources[0].operator.schema
        self.propagation = Propagation(self.plan)

    def epoch(self, *texts: str, rows: int = 0) -> list[str]:
        # Everything that is remembered goes through a checkpoint.
        stored = json.loads(json.dumps(self.propagation.to_json()))
        self.propagation = Propagation(self.plan)
        self.propagation.restore(stored)
        (source,) = self.plan.sources
        out = self.propagation.run({source.id: [Pattern.parse(t, self.schema) for t in texts]})
        orders = self.propagation.orders()
        self.released = [str(p) for p in orders[self.keeper].release[0]] if self.keeper in orders else []
        self.asked = bool(orders[self.keeper].ask)
        if self.asked:
            self.propagation.answered({self.keeper: ((Answer(rows),),)})
        return [str(p) for p in out[self.root]]

    @property
    def keeper(self) -> str:
        return next(n.id for n in self.plan.nodes if n.operator.kind in ("limit", "top"))


def test_a_limit_passes_punctuation_until_it_is_reached() -> None:
    run = Epochs(cars().limit(5))
    assert run.epoch("[< 3, *, *, *]", rows=4) == ["[< 3, *, *, *]"]
    assert (run.asked, run.propagation.pending) == (True, False)
    assert run.epoch("[< 4, *, *, *]", rows=5) == ["[< 4, *, *, *]"]
    assert run.propagation.pending
    assert run.epoch("[< 5, *, *, *]") == ["[*, *, *, *]"]
    assert (run.asked, run.released, run.propagation.pending) == (False, [], False)
    assert run.epoch("[< 6, *, *, *]") == []
    # Only when the input is over nobody needs the count any more.
    assert run.epoch("[*, *, *, *]") == []
    assert run.released == ["[*, *, *, *]"]


def test_a_stream_that_ends_below_the_limit() -> None:
    run = Epochs(cars().limit(5))
    assert run.epoch("[*, *, *, *]") == ["[*, *, *, *]"]
    assert (run.asked, run.released) == (False, ["[*, *, *, *]"])
    assert not run.propagation.pending


def test_the_end_of_a_limit_closes_groups_behind_it() -> None:
    query = cars().limit(2).group_by("segment").agg(n="count(*)")
    assert isinstance(query.operator, Aggregate)
    run = Epochs(query)
    assert run.epoch("[< 3, *, *, *]", rows=2) == []
    assert run.epoch() == ["[*, *]"]


def test_top_passes_what_describes_its_groups() -> None:
    run = Epochs(cars().top(3, by="speed", per=["segment", "ts"]))
    assert run.epoch("[< 3, *, *, *]", "[*, 7, < 2.0, *]") == ["[< 3, *, *, *]"]
    assert run.released == ["[< 3, *, *, *]"]
    assert run.epoch("[4, 7, *, *]") == ["[4, 7, *, *]"]
    assert run.epoch() == [] and run.released == []
    assert run.epoch("[*, *, *, *]") == run.released == ["[*, *, *, *]"]


def test_one_group_is_complete_at_the_end() -> None:
    run = Epochs(cars().top(3, by="speed"))
    assert run.epoch("[< 3, *, *, *]") == [] and run.released == []
    assert run.epoch("[*, *, *, *]") == run.released == ["[*, *, *, *]"]


def test_several_punctuations_together_describe_a_group() -> None:
    few = cars().punctuate(ps.Punctuate.values("segment", [1, 2]))
    run = Epochs(few.top(3, by="speed", per="ts"))
    assert run.epoch("[< 7, 1, *, *]") == []
    assert run.epoch("[< 5, 2, *, *]") == run.released == ["[< 5, *, *, *]"]
