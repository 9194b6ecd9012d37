"""The worked examples of joins from the literature, for all back ends. Every event has an `id` for dead letters."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from case import Case, Feed


def feed(name: str, schema: str, *items: Any, promises: str = ".punctuated()") -> Feed:
    """Rows as tuples without the id, punctuations as text without it."""
    names = [part.split()[0] for part in schema.split(", ")]
    made: list[tuple[str, Any]] = []
    for number, item in enumerate(items):
        if isinstance(item, str):
            made.append(("", item[:-1] + ", *]"))
        else:
            made.append(("", {**dict(zip(names, item, strict=True)), "id": number}))
    return Feed(name, tuple(made), promises, schema=f"{schema}, id int")


def clock(text: str) -> datetime:
    return datetime.fromisoformat(f"2010-04-01 {text}")


_SPEED = "ts timestamp, segment int, speed int"
SENSOR = feed(
    "sensor",
    _SPEED,
    *((clock(f"10:0{minute}:00"), segment, 55) for minute in (0, 1) for segment in (1, 2)),
    "[<= '2010-04-01 10:01:00', *, *]",
)
PROBE = feed(
    "probe",
    _SPEED,
    (clock("10:00:00"), 2, 65),
    "[<= '2010-04-01 10:00:00', 2, *]",
    "[<= '2010-04-01 10:01:00', *, *]",
)
S1 = feed("s1", "ts int, a int, b string", (9, 8, "x"), (12, 8, "y"), (14, 8, "z"), "[<= 15, *, *]", (17, 8, "w"))
S2 = feed("s2", "ts int, a int, c string", (10, 8, "b1"), "[*, 8, *]")

ITEM = feed(
    "item",
    "opened int, item_id int, category string",
    *((at, number, kind) for number, kind, at in ((1080, "art", 0), (1082, "books", 1), (1085, "art", 2))),
    "[*, {1080, 1082, 1085}, *]",
)
PERSON = feed("person", "since int, p_id string", (0, "p1"), "[*, 'p1']", (6, "p2"), "[*, 'p2']")
BID = feed(
    "bid",
    "at int, item_id int, bidder_id string",
    (3, 1080, "p1"),
    (4, 1082, "p1"),
    (5, 1085, "p1"),
    (7, 1082, "p2"),
    "[*, 1082, *]",
    (13, 1080, "p1"),
    (17, 1085, "p2"),
    (19, 1080, "p2"),
    promises=".disorder(0).punctuated()",
)

_MESSAGE = "timestamp timestamp, source int, destination int"
_COUNTED = (
    "{0}.window('1 min', granularity='1 s').select('window_start', 'source', 'destination')"
    ".group_by('window_start', 'source', 'destination').agg(n='count(*)')"
)
_BOTH_WAYS = (
    f"{_COUNTED.format('one')}.join({_COUNTED.format('two')}, "
    "{'window_start': 'window_start', 'source': 'destination', 'destination': 'source'})"
    ".select('window_start', 'source', 'destination', ratio='n / n_right')"
)


def _messages(left: str, right: str) -> tuple[Feed, Feed]:
    one = feed("one", _MESSAGE, (clock("09:59:30"), 1, 2), (clock("09:59:45"), 1, 3), left)
    return one, feed("two", _MESSAGE, (clock("09:59:40"), 2, 1), right)


_LATE = "[<= '2010-04-01 09:59:59', *, *]"
GOLDEN = {
    "speed map": Case("sensor.join(probe, ['ts', 'segment'])", (SENSOR, PROBE)),
    "speed map with all sensors": Case("sensor.join(probe, ['ts', 'segment'], 'left')", (SENSOR, PROBE)),
    "one key that ends": Case("s1.join(s2, 'a', within=5)", (S1, S2)),
    "the auction": Case(
        "item.join(bid, 'item_id').join(person, {'bidder_id': 'p_id'}, between=(-12, None), times=('at', 'since'))"
        ".group_by('bidder_id').agg(categories='count(distinct category)')",
        (ITEM, BID, PERSON),
    ),
    "messages both ways, by time": Case(_BOTH_WAYS, _messages(_LATE, _LATE)),
    "messages both ways, by key": Case(_BOTH_WAYS, _messages("[*, 1, *]", "[*, *, 1]")),
}
#: What comes out, as the examples say.
EXPECTED: dict[str, list[tuple[Any, ...]]] = {
    "one key that ends": [(8, "x", "b1"), (8, "y", "b1"), (8, "z", "b1")],
    "the auction": [("p1", 2), ("p2", 2)],
    "messages both ways, by time": [(clock("09:59:00"), 1, 2, 1.0)],
    "messages both ways, by key": [(clock("09:59:00"), 1, 2, 1.0)],
    "speed map": [(clock("10:00:00"), 2, 55, 65)],
    "speed map with all sensors": [
        (clock("10:00:00"), 1, 55, None),
        (clock("10:00:00"), 2, 55, 65),
        (clock("10:01:00"), 1, 55, None),
        (clock("10:01:00"), 2, 55, None),
    ],
}
