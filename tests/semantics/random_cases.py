"""Random cases: any operator over any input, with punctuation in awkward places, under any cut."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

from batch import AGGREGATES
from case import Case, Cut, Feed
from hypothesis import strategies as st

KEYS = ("a", "b", "it's ü", None)
_VALUES = (0.1, 0.2, 0.3, -0.5, 7.25, 1e15, -1e15, 1e-9, 0.0, None)
_NUMBERS = (0, 1, 2, -1, 2**57, -(2**57), None)
_DECIMALS = (Decimal("0.10"), Decimal("-3.33"), Decimal("9999999.99"), None)


@st.composite
def cases(draw: st.DrawFn, max_rows: int = 14, ends: bool = True) -> Case:
    grain = draw(st.sampled_from((1, 1, 1, 5)))
    many = draw(st.booleans())
    two = draw(st.booleans())
    by_count = not two and not many and draw(st.integers(0, 5)) == 0
    text = draw(counted()) if by_count else draw(queries(grain, two))
    names = ("s", "t") if ".union(t)" in text else ("s",)
    promised = st.booleans() if not ends else st.just(True)
    feeds = tuple(draw(feeds_named(name, grain, many, max_rows // len(names), draw(promised))) for name in names)
    return Case(text, feeds)


@st.composite
def feeds_named(draw: st.DrawFn, name: str, grain: int, many: bool, max_rows: int, ends: bool) -> Feed:
    promises = draw(promise_texts(grain, many))
    in_band = "punctuated" in promises
    wandering = draw(st.integers(0, 3)) == 0
    items: list[tuple[str, Any]] = []
    for number in range(draw(st.sampled_from((max_rows, max_rows, max_rows // 2, 1, 0)))):
        partition = draw(st.sampled_from(("p", "q"))) if many else ""
        if in_band and draw(st.integers(0, 3)) == 0:
            items.append((partition, draw(patterns(grain))))
            continue
        tick = draw(st.integers(-12, 30)) if wandering else number * 2 - 6 + draw(st.integers(-4, 4))
        row = {
            "ts": None if draw(st.integers(0, 30)) == 0 else tick * grain,
            "k": draw(st.sampled_from(KEYS)),
            "id": number,
            "v": draw(st.sampled_from(_VALUES)),
            "n": draw(st.sampled_from(_NUMBERS)),
            "d": draw(st.sampled_from(_DECIMALS)),
        }
        items.append((partition, row))
        if draw(st.integers(0, 9)) == 0:
            items.append((partition, {**row, "id": 100 + number}))
    form = draw(st.sampled_from(("parquet", "parquet", "json")))
    return Feed(name, tuple(items), promises + (".ends()" if ends else ""), form)


def promise_texts(grain: int, many: bool) -> st.SearchStrategy[str]:
    parts = [
        st.sampled_from(
            (
                "",
                *(f".disorder({slack * grain})" for slack in (0, 3, 5, 8)),
                *(f".disorder({slack * grain}, ahead={most * grain})" for slack, most in ((0, 9), (3, 0), (5, 4))),
            )
        ),
        st.sampled_from(("", "", "", ".bounds('n', 0)", f".bounds('ts', {-5 * grain}, {20 * grain})")),
        st.sampled_from(("", ".punctuated()", ".punctuated()")),
    ]
    if not many:  # Whose turn it is among partitions depends on the files, and with it who is late.
        keys = "['a', 'b']", "['a', 'b', \"it's ü\"]"
        parts.append(st.sampled_from(("", "", *(f".complete_when({k}, on='k', slack={2 * grain})" for k in keys))))
    return st.tuples(*parts).map("".join)


@st.composite
def patterns(draw: st.DrawFn, grain: int) -> str:
    tick = draw(st.integers(-8, 30)) * grain
    until = tick + draw(st.integers(1, 12)) * grain
    times = ("*", f"< {tick}", f"<= {tick}", f"[{tick}, {until})", f"> {until}", str(tick), f"{{{tick}, {until}}}")
    time = draw(st.sampled_from((*times, f"< {tick}", f"< {tick}")))
    key = draw(st.sampled_from(("*", "*", "'a'", "{'a', 'b'}", "'it''s ü'")))
    number = draw(st.sampled_from(("*", "*", "*", "1", ">= 0")))
    if (time, key, number) == ("*", "*", "*"):
        key = "'b'"  # Not everything: nothing could follow it.
    return f"[{time}, {key}, *, *, {number}, *]"


_STEPS = (
    ".where('v > 0')",
    ".where(\"k = 'a' or k is null\")",
    ".with_columns(v='v * 2')",
    ".rename(k='key').rename(key='k')",
    ".with_columns(k='upper(k)')",
    ".select('n', 'k', 'ts', 'id', 'd', v='coalesce(v, 1)')",
    ".map(twice, keeps=['ts', 'k'])",
    ".map(odd_only, keeps=['ts', 'k', 'id', 'v', 'n', 'd'])",
)


@st.composite
def queries(draw: st.DrawFn, grain: int, two: bool) -> str:
    steps = "".join(draw(st.lists(st.sampled_from(_STEPS), max_size=2)))
    text = f"s{steps}"
    shape = draw(st.integers(0, 3))
    if two:
        text = f"{text}.union(t)" if "select" not in text else f"t.union({text}).union(t)"
    elif shape == 0:
        text = f"(x := {text}).where('id % 2 = 0').union(x.with_columns(v='v + 1'))"
    ending = draw(st.integers(0, 9))
    if ending == 0:
        return text
    keys = draw(st.sampled_from(((), ("k",), ("k",), ("n",), ("k", "n"))))
    by = f".group_by({', '.join(map(repr, keys))})" if keys else ""
    if ending == 1:
        return f"{text}{by}.agg({draw(aggregates())})"
    if ending == 2 and draw(st.booleans()):
        return f"{text}{draw(sessions(grain))}{by}.agg({draw(aggregates())})"
    if ending == 2:
        window = f".window(landmark={draw(st.integers(3, 12)) * grain}, origin={draw(st.integers(-7, 7)) * grain})"
        return f"{text}{window}{by}.agg({draw(aggregates())})"
    windowed = f"{text}{draw(windows(grain))}{by}"
    if ending == 3:
        coarse = f".rename(window_start='w').window({12 * grain}, on='w')"
        outer = draw(st.sampled_from((by, ".group_by('k')" if "k" in keys else "")))
        again = "most='max(x)', c='sum(c)', groups='count(*)'"
        return f"{windowed}.agg(x='sum(v)', c='count(*)'){coarse}{outer}.agg({again})"
    return f"{windowed}.agg({draw(aggregates())})"


@st.composite
def counted(draw: st.DrawFn) -> str:
    size, slide = draw(st.integers(1, 4)), draw(st.integers(1, 5))
    by = draw(st.sampled_from(("", ".group_by('k')", ".group_by('k', 'n')")))
    return f"s.window(rows={size}, slide_rows={slide}){by}.agg({draw(aggregates())})"


@st.composite
def windows(draw: st.DrawFn, grain: int) -> str:
    size, slide = draw(st.integers(1, 10)) * grain, draw(st.integers(1, 10)) * grain
    origin = draw(st.sampled_from((0, 0, 3, -7)))
    rest = f", granularity={grain}" if grain > 1 else ""
    slides = draw(st.sampled_from(("", f", slide={slide}")))
    return f".window({size}{slides}, origin={origin}{rest})"


@st.composite
def sessions(draw: st.DrawFn, grain: int = 1) -> str:
    rest = f", granularity={grain}" if grain > 1 and draw(st.booleans()) else ""
    return f".window(session={draw(st.integers(1, 6)) * grain}{rest})"


def aggregates() -> st.SearchStrategy[str]:
    chosen = st.lists(st.sampled_from(sorted(AGGREGATES)), min_size=1, max_size=4, unique=True)
    return chosen.map(lambda names: ", ".join(f"{name}={AGGREGATES[name][0]!r}" for name in sorted(names)))


def cuts(max_rows: tuple[int | None, ...] = (1, 2, 3, 5, 8, None)) -> st.SearchStrategy[Cut]:
    build: Callable[..., Cut] = Cut
    return st.builds(
        build,
        file_rows=st.integers(1, 9),
        group_rows=st.integers(1, 5),
        max_rows=st.sampled_from(max_rows),
        buckets=st.integers(1, 5),
        parallelism=st.integers(1, 3),
        overlap=st.booleans(),
        restart=st.booleans(),
        batch_rows=st.sampled_from((1, 3, 1000)),
        empty_file=st.booleans(),
        as_if_large=st.booleans(),
        fuse_below=st.sampled_from((0, 4 << 20)),
        rewrite_above=st.sampled_from((0.0, 0.5, 1.0)),
        merge_above=st.sampled_from((1, 2, 8)),
    )
