"""The worked examples of joins in the literature, item by item."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest
from scripts import arrivals, run, shown, stream

from penstock.builder.stream import StreamBuilder
from penstock.reference.interpret import Result
from penstock.reference.item import Assertion
from penstock.reference.trace import format_step


def clock(text: str) -> datetime:
    return datetime.fromisoformat(f"2010-04-01 {text}")


def held_after(result: Result, node: str, taken: str, input: int = 0) -> list[str]:
    """What an operator holds after it has taken an item, given as text."""
    (step,) = [s for s in result.trace if s.operator == node and str(s.taken) == taken and s.input == input]
    return [str(held) for held in step.state]


# --- the speed map: punctuation from one side frees the other ----------------------------------------------------

SENSOR = [
    (clock("10:00:00"), 1, 55),
    (clock("10:00:00"), 2, 55),
    (clock("10:01:00"), 1, 55),
    (clock("10:01:00"), 2, 55),
    "[<= '2010-04-01 10:01:00', *, *]",
]
PROBE = [
    (clock("10:00:00"), 2, 65),
    "[<= '2010-04-01 10:00:00', 2, *]",
    "[<= '2010-04-01 10:01:00', *, *]",
]


def speed_map(how: str, probes: int) -> Result:
    sensor, probe = (stream(name, "ts timestamp, segment int, speed int", "ts") for name in ("sensor", "probe"))
    sent = {"sensor": arrivals(sensor, *SENSOR), "probe": arrivals(probe, *PROBE[:probes])}
    query = sensor.join(probe, ["ts", "segment"], how)
    return run(query, sent, order=["sensor"] * len(SENSOR) + ["probe"] * probes)


def test_join_purge_of_the_speed_map() -> None:
    pair = (clock("10:00:00"), 2, 55, 65)
    before = speed_map("inner", 1)
    assert shown(before.outputs) == [pair]
    assert len(before.states["join-1"]) == 4  # The probe itself is not stored: no sensor event of its time can come.
    purged = speed_map("inner", 2)
    assert [(held.row["ts"], held.row["segment"]) for held in purged.states["join-1"]] == [
        (clock("10:00:00"), 1), (clock("10:01:00"), 1), (clock("10:01:00"), 2),
    ]  # fmt: skip
    assert shown(purged.outputs)[1:] == ["[<= '2010-04-01 10:00:00', 2, *, *]"]
    done = speed_map("inner", 3)
    assert done.states["join-1"] == []
    assert shown(done.outputs)[2:] == ["[<= '2010-04-01 10:01:00', *, *, *]"]


def test_the_speed_map_keeps_sensors_without_probes() -> None:
    assert shown(speed_map("left", 2).outputs) == [
        (clock("10:00:00"), 2, 55, 65),
        "[<= '2010-04-01 10:00:00', 2, *, *]",
    ]
    assert shown(speed_map("left", 3).outputs)[2:] == [
        (clock("10:00:00"), 1, 55, None),
        (clock("10:01:00"), 1, 55, None),
        (clock("10:01:00"), 2, 55, None),
        "[<= '2010-04-01 10:01:00', *, *, *]",
    ]


# --- 5-A: purge, tuple dropping and propagation in one key ---------------------------------------------------------


def test_golden_5a() -> None:
    """The example counts in time of arrival; here an event's time is the time at which it arrives there.

    What carries over: the three results; x is purged at the punctuation on 8; y and z meet b1 and are not stored; w
    is dropped without a look; the punctuation on 8 leaves as soon as nothing that it matches is stored. What differs:
    time passes by punctuation, not by the arrival of the next tuple. So b1 leaves its window when S1 has promised its
    15th hour away, which releases the punctuation before w arrives, not with it.
    """
    s1, s2 = stream("s1", "a int, b string, ts int", "ts"), stream("s2", "a int, c string, ts int", "ts")
    query = s1.join(s2, "a", within=5)
    first = arrivals(s1, (8, "x", 9), (8, "y", 12), (8, "z", 14), "[*, *, <= 15]", (8, "w", 17))
    second = arrivals(s2, (8, "b1", 10), "[8, *, *]")
    result = run(query, {"s1": first, "s2": second}, order=["s1", "s2", "s2", "s1", "s1", "s1", "s1"])
    assert [(row[0], row[1], row[3]) if isinstance(row, tuple) else row for row in shown(result.outputs)] == [
        (8, "x", "b1"),
        (8, "y", "b1"),
        (8, "z", "b1"),
        "[8, *, *, *, *]",
        "[*, *, <= 15, *, *]",
    ]
    assert [format_step(step) for step in result.trace if step.kind == "join"] == [
        "join-1: a 8, b x, ts 9 → emits nothing (holds left: a 8, b x, ts 9)",
        "join-1: a 8, c b1, ts 10 → emits a 8, b x, ts 9, c b1, ts_right 10 (holds left: a 8, b x, ts 9 (has had a "
        "partner); right: a 8, c b1, ts 10 (has had a partner))",
        "join-1: punctuation [8, *, *] → emits nothing (holds right: a 8, c b1, ts 10 (has had a partner))",
        "join-1: a 8, b y, ts 12 → emits a 8, b y, ts 12, c b1, ts_right 10, not stored: no partner can come "
        "(holds right: a 8, c b1, ts 10 (has had a partner))",
        "join-1: a 8, b z, ts 14 → emits a 8, b z, ts 14, c b1, ts_right 10, not stored: no partner can come "
        "(holds right: a 8, c b1, ts 10 (has had a partner))",
        "join-1: punctuation [*, *, <= 15] → emits punctuation [8, *, *, *, *]; punctuation [*, *, <= 15, *, *]",
        "join-1: a 8, b w, ts 17 → emits nothing, dropped: no partner can come",
    ]


# --- 5-B: the auction query ----------------------------------------------------------------------------------------


def auction(*, unique: bool) -> Result:
    """Hours as integers. Bids are in order of time. If `unique`, items and persons say of each key that it is over."""
    item = stream("item", "item_id int, category string, opened int", "opened")
    person = stream("person", "p_id string, since int", "since")
    bid = stream("bid", "item_id int, bidder_id string, price int, at int", "at").disorder(0)
    sold = item.join(bid, "item_id")
    within = sold.join(person, {"bidder_id": "p_id"}, between=(-12, None), times=("at", "since"))
    query = within.group_by("bidder_id").agg(categories="count(distinct category)")
    script: list[tuple[int, StreamBuilder, Any]] = [
        *((at, person, (p, at)) for p, at in (("p1", 0), ("p2", 6))),
        *((at, item, (i, c, at)) for i, c, at in ((1080, "art", 0), (1082, "books", 1), (1085, "art", 2))),
        *(
            (at, bid, (i, p, 10, at))
            for i, p, at in ((1080, "p1", 3), (1082, "p1", 4), (1085, "p1", 5), (1082, "p2", 7))
        ),
        (8, bid, "[1082, *, *, *]"),
        *((at, bid, (i, p, 20, at)) for i, p, at in ((1080, "p1", 13), (1085, "p2", 17), (1080, "p2", 19))),
    ]
    if unique:
        script += [(0, person, "['p1', *]"), (6, person, "['p2', *]")]
        script += [(at, item, f"[{i}, *, *]") for i, at in ((1080, 0), (1082, 1), (1085, 2))]
    script.sort(key=lambda entry: (entry[0], isinstance(entry[2], str)))
    sent: dict[str, list[Any]] = {"item": [], "person": [], "bid": []}
    order = []
    for _, source, what in script:
        name = source.operator.name  # type: ignore[attr-defined]
        sent[name] += arrivals(source, what)
        order.append(name)
    return run(query, sent, order=order)


def test_golden_5b_auction() -> None:
    """In event time: what makes time pass is that bids are in order, so each promises everything before it away.

    A result per person also needs to know that no other event of that person comes, and bids are let go because no
    other event of their item comes: both are keys, and their sources say so.
    """
    result = auction(unique=True)
    purging = "punctuation [1082, *, *, *]"
    assert [h for h in held_after(result, "join-1", purging, input=1) if "1082" in h] == []
    before = [s for s in result.trace if s.operator == "join-1" and str(s.taken) != purging]
    assert any("1082" in str(h) for s in before for h in s.state)
    assert [s for s in shown(result.outputs) if isinstance(s, tuple)] == [("p1", 2), ("p2", 2)]
    # Each answer comes with the promise that a bid at 13, or at 19, makes; that bid itself is not joined.
    speaking = [s for s in result.trace if s.operator == "aggregate-1" and s.emitted and isinstance(s.taken, Assertion)]
    assert [str(s.taken)[:19] for s in speaking if len(s.emitted) == 2] == [
        "punctuation ['p1', ",
        "punctuation ['p2', ",
    ]
    steps = [format_step(s) for s in result.trace]
    for moment, who in ((13, "p1"), (19, "p2")):
        bid, promise, emitted = (
            next(i for i, step in enumerate(steps) if step.startswith(start))
            for start in (
                f"source:bid: item_id 1080, bidder_id {who}, price 20, at {moment}",
                f"join-1: punctuation [*, *, *, < {moment}]",
                f"aggregate-1: punctuation ['{who}', ",
            )
        )
        assert bid < promise < emitted
        (met,) = [s for s in steps[bid:promise] if s.startswith("join-2")]
        assert "emits nothing, dropped: no partner can come" in met


def test_the_auction_waits_for_ever_if_keys_may_come_again() -> None:
    result = auction(unique=False)
    assert [s for s in shown(result.outputs) if isinstance(s, tuple)] == []
    assert len(result.states["aggregate-1"]) == 2


# --- who answers whom, and how often: counts per minute, joined both ways round ---------------------------------------

MESSAGE = "timestamp timestamp, source int, destination int"


def contract_query() -> tuple[StreamBuilder, StreamBuilder, StreamBuilder]:
    def counted(messages: StreamBuilder) -> StreamBuilder:
        windowed = messages.window("1 min", granularity="1 s").select("window_start", "source", "destination")
        return windowed.group_by("window_start", "source", "destination").agg(n="count(*)")

    one, two = stream("one", MESSAGE, "timestamp"), stream("two", MESSAGE, "timestamp")
    keys = {"window_start": "window_start", "source": "destination", "destination": "source"}
    return one, two, counted(one).join(counted(two), keys)


@pytest.mark.parametrize(
    ("ends", "left", "right", "joined"),
    [
        pytest.param(
            ("[<= '2010-04-01 9:59:59', *, *]", "[<= '2010-04-01 9:59:59', *, *]"),
            "[<= '2010-04-01 09:59:00', *, *, *]",
            "[<= '2010-04-01 09:59:00', *, *, *]",
            "[<= '2010-04-01 09:59:00', *, *, *, *]",
            id="by time",
        ),
        pytest.param(("[*, 1, *]", "[*, *, 1]"), "[*, 1, *, *]", "[*, *, 1, *]", "[*, 1, *, *, *]", id="by key"),
    ],
)
def test_contract_query(ends: tuple[str, str], left: str, right: str, joined: str) -> None:
    one, two, pairs = contract_query()
    minute = clock("09:59:00")
    sent = {
        "one": arrivals(one, (clock("09:59:30"), 1, 2), (clock("09:59:45"), 1, 3), ends[0]),
        "two": arrivals(two, (clock("09:59:40"), 2, 1), ends[1]),
    }
    result = run(pairs, sent, order=["one", "one", "one", "two", "two"])
    assert shown(result.streams["aggregate-1"]) == [(minute, 1, 2, 1), (minute, 1, 3, 1), left]
    assert shown(result.streams["aggregate-2"]) == [(minute, 2, 1, 1), right]
    assert shown(result.outputs) == [(minute, 1, 2, 1, 1), joined]
    assert all(held == [] for held in result.states.values())
    ratio = pairs.select("window_start", "source", "destination", ratio="n / n_right")
    assert shown(run(ratio, sent).outputs)[0] == (minute, 1, 2, 1.0)
