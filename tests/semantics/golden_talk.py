"""The worked examples of feedback from the literature, for all back ends: what is said when, and what comes of it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from case import Case, Feed


@dataclass(frozen=True)
class Golden:
    """A case in which something is said when each stream has brought so many events or punctuations.

    `spares` are the sources that need not bring something any more.
    """

    case: Case
    after: int
    said: str
    expected: list[tuple[Any, ...]]
    spares: tuple[str, ...] = ()


def feed(name: str, schema: str, *items: Any) -> Feed:
    names = [a.split()[0] for a in schema.split(", ")]
    made = (i if isinstance(i, str) else {**dict(zip(names, i, strict=True)), "id": n} for n, i in enumerate(items))
    return Feed(name, tuple(("", item) for item in made), ".punctuated().ends()", schema=f"{schema}, id int")


def _windows(aggregate: str, *items: Any) -> Case:
    """Speeds of probes by window. Whole numbers: the maximum of others may become NaN, which nothing matches."""
    return Case(f"s.group_by('wid').agg(y='{aggregate}(speed)')", (feed("s", "wid int, speed int", *items),))


def _closed(*windows: int) -> list[str]:
    return [f"[{wid}, *, *]" for wid in windows]


def _three(a: list[Any], b: list[Any]) -> Case:
    """A(a, t, sid) and B(t, sid, b) to C(a, t, sid, b)."""
    left, right = feed("s", "a int, t int, sid int", *a), feed("t", "t int, sid int, b int", *b)
    return Case("s.drop('id').join(t.drop('id'), ['t', 'sid']).select('a', 't', 'sid', 'b')", (left, right))


def _two(*right: Any) -> Case:
    """S1(a, b) and S2(b, c) to (a, b, c)."""
    left = feed("s", "a int, b int", (1, 1), (2, 1), (3, 1), (4, 1), "[*, 1, *]")
    return Case("s.drop('id').join(t.drop('id'), 'b').select('a', 'b', 'c')", (left, feed("t", "b int, c int", *right)))


TEN, LATER = datetime(2010, 4, 1, 10), datetime(2010, 4, 1, 10, 1)


def _road() -> Case:
    """Probe vehicles and detectors at the same place and time."""
    probes = (1, 11, 30, TEN, 48), (2, 11, 30, TEN, 55), (3, 11, 40, TEN, 60), (4, 11, 30, LATER, 40)
    detectors = (11, 30, TEN, 7, 45), (11, 40, TEN, 8, 47), (11, 30, LATER, 7, 44)
    place = "freeway int, milepost int, ts timestamp"
    on = "['freeway', 'milepost', 'ts']"
    names = "'probe', 'freeway', 'milepost', 'ts', 'speed', 'detector', 'counted'"
    return Case(
        f"s.drop('id').join(t.drop('id'), {on}).select({names})",
        (
            feed("s", f"probe int, {place}, speed int", *probes),
            feed("t", f"{place}, detector int, counted int", *detectors),
        ),
    )


_A, _B = [(50, 3, 4), (60, 3, 4), (50, 1, 1), (60, 1, 1)], [(3, 4, 50), (3, 4, 60), (1, 1, 1), (1, 1, 50)]
_C = [(a, t, sid, b) for a, t, sid in _A for u, other, b in _B if (t, sid) == (u, other)]
_ALL = [(a, 1, c) for a in (1, 2, 3, 4) for c in (1, 2)]
_ROAD = [
    (1, 11, 30, TEN, 48, 7, 45),
    (2, 11, 30, TEN, 55, 7, 45),
    (3, 11, 40, TEN, 60, 8, 47),
    (4, 11, 30, LATER, 40, 7, 44),
]

GOLDENS = {
    "1: windows that nobody wants": Golden(
        _windows("avg", (4, 50), (30, 10), (4, 52), (30, 20), *_closed(4, 30)), 1, "[< 20, *]", [(30, 15.0)], ("s",)
    ),
    "1: an average of 51 that may still fall": Golden(
        _windows("avg", (4, 51), (4, 17), *_closed(4)), 1, "[*, >= 50]", [(4, 34.0)]
    ),
    "1: an average of 51 that is complete": Golden(
        _windows("avg", (4, 51), (5, 20), *_closed(4, 5)), 1, "[*, >= 50]", [(5, 20.0)]
    ),
    "2: a maximum that is reached": Golden(
        _windows("max", (4, 60), (5, 20), (4, 10), (5, 55), (6, 30), (4, 5), (5, 1), *_closed(4, 5, 6)),
        1,
        "[*, >= 50]",
        [(6, 30)],
        ("s",),
    ),
    "3: keys go to both": Golden(_three(_A, _B), 0, "[*, 3, 4, *]", [r for r in _C if r[1] != 3], ("s", "t")),
    "3: the left one's own": Golden(_three(_A, _B), 0, "[50, *, *, *]", [r for r in _C if r[0] != 50], ("s",)),
    "3: of both, to neither": Golden(_three(_A, _B), 0, "[50, *, *, 50]", [r for r in _C if (r[0], r[3]) != (50, 50)]),
    "3: what halves would lose": Golden(_three([(50, 1, 1)], [(1, 1, 1)]), 0, "[50, *, *, 50]", [(50, 1, 1, 1)]),
    "4: of both": Golden(_two((1, 2)), 0, "[<= 3, *, 2]", [(4, 1, 2)]),
    "4: of both, before the last event": Golden(
        _two((1, 2)), 3, "[<= 3, *, 2]", [(1, 1, 2), (2, 1, 2), (3, 1, 2), (4, 1, 2)]
    ),
    "4: of both and the key": Golden(
        _two((1, 1), (1, 2)), 0, "[<= 3, 1, 2]", [r for r in _ALL if r[0] == 4 or r[2] == 1]
    ),
    "4: the key and the left one's own": Golden(
        _two((1, 1), (1, 2)), 0, "[<= 3, 1, *]", [(4, 1, 1), (4, 1, 2)], ("s",)
    ),
    "5: a place and a time": Golden(_road(), 0, "[*, 11, 30, '2010-04-01 10:00:00', *, *, *]", _ROAD[2:], ("s", "t")),
    "5: the speed of probes": Golden(_road(), 0, "[*, *, *, *, >= 50, *, *]", [_ROAD[0], _ROAD[3]], ("s",)),
}
