"""Random streams whose rows hold for a time: inserts, chains of retractions, some that cannot be, in any order."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, timedelta
from typing import Any

from case import Feed
from hypothesis import strategies as st

#: From a small number to a moment, by the type of moments.
MOMENTS: dict[str, Callable[[int], Any]] = {
    "int": lambda n: n,
    "date": lambda n: date(2026, 1, 1) + timedelta(days=n),
    "timestamp": lambda n: datetime(2026, 1, 1) + timedelta(microseconds=n),
}


def schema(kind: str) -> str:
    return f"id int, k string, v int, a {kind}, b {kind}, op string, n {kind}"


@st.composite
def lasting(
    draw: st.DrawFn, name: str, kind: str, most: int = 12, keys: tuple[str | None, ...] = ("x", "y", None)
) -> Feed:
    """Rows that begin before 12 and hold for less than 10, or for ever; lifetimes in moments of the given type."""
    made: list[dict[str, Any]] = []
    live: list[dict[str, Any]] = []
    for number in range(draw(st.integers(most // 2, most) | st.integers(0, most))):
        choice, x, y, z = (draw(st.integers(0, 9)) for _ in range(4))
        if choice < 6 or not live:
            row = {"id": number, "k": keys[z % len(keys)], "v": y % 4 - 1, "a": x, "op": "c"}
            row |= {"b": None if y == 9 else x + y % 7 + (choice > 0)}
            made.append(row)
            if row["b"] is None or row["b"] > row["a"]:
                live.append(row)
        else:
            row = live.pop(x % len(live))
            new = row["a"] + min(y, 20 if row["b"] is None else row["b"] - row["a"] - (choice < 9))
            made.append({**row, "op": "d", "n": None if new == row["a"] and z < 5 else new})
            if row["a"] < new and (row["b"] is None or new < row["b"]):
                live.append({**row, "b": new})
    if draw(st.booleans()):
        made = draw(st.permutations(made))
    to = MOMENTS[kind]
    items = [{n: to(v) if n in ("a", "b", "n") and v is not None else v for n, v in row.items()} for row in made]
    slack = draw(st.integers(0, 8))
    within = {"int": f"{slack}", "date": f"'{slack} d'", "timestamp": f"'{slack} us'"}[kind]
    promises = draw(st.sampled_from((".ends()", *[f".disorder({within}).ends()"] * 2, ".punctuated().ends()")))
    if "punctuated" in promises and items:
        # A punctuation of its own: nothing that matters before it comes any more.
        at = draw(st.integers(0, len(items)))
        bound = to(draw(st.integers(0, 12)))
        said = f"[*, *, *, *, *, *, *, < {bound if kind == 'int' else repr(str(bound))}]"
        stream = [*items[:at], said, *items[at:]]
    else:
        stream = list(items)
    return Feed(name, tuple(("", i) for i in stream), promises, schema=schema(kind), lifetime=("a", "b"))
