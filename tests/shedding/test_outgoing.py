"""Outputs of the same streams toss the same coins, whatever their windows."""

from __future__ import annotations

import penstock as ps
from penstock.plan.plan import Plan
from penstock.shedding.fates import FateRecord, Fates
from penstock.shedding.outgoing import coins, outgoing
from penstock.shedding.sheddable import sheddable

cars = ps.stream("cars", "ts int, k int", time="ts").disorder(0)
vans = ps.stream("vans", "ts int, k int", time="ts").disorder(0)


def counted(stream: ps.Stream, size: int, **how: int) -> ps.Stream:
    return stream.window(size, **how).group_by("k").agg(n="count(*)")


def tossed(*made: tuple[ps.Stream, int | None]) -> list[tuple[str, int]]:
    plan = Plan.of(*(stream.operator for stream, _ in made))
    outputs = outgoing(plan, sheddable(plan))
    by_root = {e.root: e.name for e in plan.exits}
    names = [by_root[next(n.id for n in plan.nodes if n.operator is s.operator)] for s, _ in made]
    found = coins(outputs, {name: gap for name, (_, gap) in zip(names, made, strict=True)})
    return [found[name] for name in names]


def test_one_output_alone_has_a_coin_for_each_gap() -> None:
    assert tossed((counted(cars, 10), 7)) == [("10/0", 7)]
    assert tossed((counted(cars, 10), None)) == [("10/0", 1)]
    assert tossed((counted(cars, 20, slide=10), None)) == [("10/0", 8)]
    assert tossed((counted(cars, 10, slide=25), 3)) == [("25/0", 3)]
    assert tossed((counted(cars, 10), 1000)) == [("10/0", 1000)]


def test_outputs_of_one_stream_toss_together() -> None:
    found = tossed((counted(cars, 4, slide=2), 9), (counted(cars, 3), 4))
    assert found == [("12/0", 6), ("12/0", 4)]
    dropped = []
    for (of, batch), gap, slide in zip(found, (9, 4), (2, 3), strict=True):
        _, runs = Fates(1, of, gap, batch=batch).decide(FateRecord(), 0, 600 // slide, 0.5)
        dropped.append({t for low, high in runs for t in range(low * slide, (high + 1) * slide)})
    both, either = dropped[0] & dropped[1], dropped[0] | dropped[1]
    assert len(both) > 0.7 * len(either)  # with coins of their own, a third of it


def test_outputs_of_other_streams_or_with_too_little_in_common_toss_apart() -> None:
    assert tossed((counted(cars, 10), 2), (counted(vans, 20), 2)) == [("10/0", 2), ("20/0", 2)]
    assert tossed((counted(cars, 10), 1), (counted(cars, 20), 5)) == [("10/0", 1), ("100/0", 5)]
    assert tossed((counted(cars, 7), None), (counted(cars, 997), None)) == [("7/0", 1), ("997/0", 1)]
    assert tossed((counted(cars, 10, origin=3), 2), (counted(cars, 10), 3)) == [("10/3", 2), ("10/0", 3)]


def test_whoever_joins_belongs_to_the_stream_that_its_windows_are_of() -> None:
    joined = counted(cars, 10).join(counted(vans, 10).rename(n="m"), on=["window_start", "k"])
    assert tossed((counted(cars, 20), 4), (joined, 4)) == [("40/0", 2), ("40/0", 4)]
