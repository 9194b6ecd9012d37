"""Hand-picked cases: one for each operator and kind of promise, and the worked examples of the literature."""

from __future__ import annotations

from typing import Any

from case import Case, Feed, at

SENSOR = "minute int, sensor int, temp int, hour int, id int"


def feed(name: str, *items: Any, promises: str = ".punctuated().ends()", **options: Any) -> Feed:
    """Rows as tuples of (ts, k, v), punctuations as text."""
    made = []
    for number, item in enumerate(items):
        if isinstance(item, tuple):
            ts, k, v = item
            made.append(("", {"ts": ts, "k": k, "id": number, "v": v, "n": number % 3, "d": f"{number}.25"}))
        else:
            made.append(("", item))
    return Feed(name, tuple(_decimal(m) for m in made), promises, **options)


def _decimal(item: Any) -> Any:
    from decimal import Decimal

    partition, row = item
    return (partition, row) if isinstance(row, str) else (partition, {**row, "d": Decimal(row["d"])})


def _sensor() -> Feed:
    rows: list[Any] = [(15, 3, 75, 1), (30, 3, 78, 1), (45, 3, 75, 1), (0, 3, 76, 2), "[*, *, *, 1, *]", (15, 3, 75, 2)]
    items = [
        r if isinstance(r, str) else {**dict(zip(("minute", "sensor", "temp", "hour"), r)), "id": i}
        for i, r in enumerate(rows)
    ]
    return Feed("s", tuple(("", i) for i in items), ".punctuated()", schema=SENSOR)


MIXED = feed(
    "s",
    (3, "a", 1.5),
    (1, "b", 2.5),
    (None, "a", 7.0),
    (7, None, -3.0),
    "[< 4, *, *, *, *, *]",
    (5, "a", None),
    (2, "a", 9.0),
    (-8, "it's ü", 0.25),
    (12, "a", 4.0),
    "[*, 'b', *, *, *, *]",
    (13, "b", 1.0),
    (19, "it's ü", 0.1),
    "[[10, 15), 'a', *, *, *, *]",
    (11, "a", 3.0),
    (31, "c", 0.2),
    (44, "a", 0.3),
)
ORDERLY = feed(
    "s",
    *[(t + (-2 if t % 5 == 0 else 0), "abc"[t % 3], t / 4) for t in range(-9, 25, 2)],
    (3, "a", 1.0),
    (40, "b", 2.0),
    promises=".disorder(3).ends()",
)
OTHER = feed("t", (0, "a", 5.0), (6, "b", 6.0), (20, "a", 7.0), (4, "c", 1.0), promises=".disorder(3).ends()")

CASES = {
    "the maximum of an hour": Case("s.group_by('hour').agg(top='max(temp)', n='count(*)')", (_sensor(),)),
    "bids end by item": Case("s.group_by('k').agg(top='max(v)', bids='count(*)')", (MIXED,)),
    "counts by key and window": Case("s.window(5).group_by('k').agg(n='count(*)', total='sum(v)')", (MIXED,)),
    "sliding": Case("s.window(10, slide=4, origin=3).group_by('k').agg(n='count(*)', s='sum(d)')", (ORDERLY,)),
    "gaps": Case("s.window(3, slide=7, origin=-5).agg(n='count(*)', some='any_value(k)')", (ORDERLY,)),
    "by count": Case("s.window(rows=3, slide_rows=2).group_by('k').agg(n='count(*)', ids='sum(id)')", (MIXED,)),
    "landmark": Case("s.window(landmark=10).group_by('k').agg(n='count(*)', total='sum(v)')", (ORDERLY,)),
    "sessions": Case("s.window(session=4).group_by('k').agg(n='count(*)', total='sum(v)')", (ORDERLY,)),
    "union": Case("s.union(t).window(5).group_by('k').agg(n='count(*)', total='sum(v)')", (ORDERLY, OTHER)),
    "with itself": Case("s.union(s, s).window(5).group_by('k').agg(n='count(*)', total='sum(v)')", (ORDERLY,)),
    "aggregate over aggregate": Case(
        "s.window(4).group_by('k').agg(x='sum(v)').rename(window_start='w')"
        ".window(12, on='w').agg(most='max(x)', groups='count(*)')",
        (ORDERLY,),
    ),
    "fan-out": Case(
        "(a := s.where('v is not null')).where('v > 1').union(a.with_columns(v='v * 2'))"
        ".window(8).group_by('k').agg(n='count(*)', total='sum(v)')",
        (ORDERLY,),
    ),
    "map": Case("s.map(twice, keeps=['ts', 'k']).window(5).group_by('k').agg(n='sum(n)', c='count(*)')", (ORDERLY,)),
    "all keys have passed": Case(
        "s.window(5).group_by('k').agg(n='count(*)', last='last(v)', first='first(id)')",
        (
            feed(
                "s",
                *[(t // 2 + (t % 3) * 2, "abcd"[t % 4], t / 8) for t in range(24)],
                promises=".complete_when(['a', 'b', 'c'], on='k', slack=1).ends()",
            ),
        ),
    ),
    "partitions that promise different things": Case(
        "s.group_by('k', 'ts').agg(n='count(*)')",
        (
            Feed(
                "s",
                (
                    ("p", {"ts": 3, "k": "a", "id": 0}),
                    ("q", {"ts": 3, "k": "b", "id": 1}),
                    ("p", {"ts": 12, "k": "a", "id": 2}),
                    ("p", "[< 10, *, *, *, *, *]"),
                    ("q", "[*, 'a', *, *, *, *]"),
                    ("q", {"ts": 4, "k": "b", "id": 3}),
                    ("p", {"ts": 4, "k": "b", "id": 4}),
                ),
                ".punctuated()",
            ),
        ),
    ),
    "no aggregate": Case("s.where('v > 0').select('ts', 'id', w='v / 2', name='upper(k)')", (MIXED,)),
    "lines of text": Case(
        "s.window('5 s').group_by('k').agg(n='count(*)', total='sum(v)')",
        (
            Feed(
                "s",
                tuple(
                    ("", i)
                    for i in (
                        {"ts": at(1), "k": "a", "id": 0, "v": 1.5},
                        {"ts": at(7.5), "k": "quo\"te'", "id": 1, "v": None},
                        "[< '1970-01-01 00:00:05', *, *, *]",
                        {"ts": at(2), "k": "a", "id": 2, "v": 2.5},
                        {"ts": at(-3), "k": "b", "id": 3, "v": 2.5},
                        {"ts": at(6), "k": "a", "id": 4, "v": 0.5},
                        "[*, 'a', *, *]",
                        {"ts": at(9), "k": None, "id": 5, "v": 4.0},
                    )
                ),
                ".punctuated().ends()",
                format="json",
                schema="ts timestamp, k string, id int, v double",
            ),
        ),
    ),
}
