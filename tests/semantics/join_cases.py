"""Random cases for the operators that keep rows: joins of all kinds, distinct, order_by, intersect, difference."""

from __future__ import annotations

from case import Case
from hypothesis import strategies as st
from random_cases import AGGREGATES, feeds_named

HOW = ("inner", "inner", "left", "right", "full", "semi", "anti")
_RESIDUALS = ("v > v_right", "id_right % 2 = 0", "n is null or n_right >= n", "d = d_right or k = 'a'")
#: Aggregates that do not depend on which of two times is meant.
_TIMELESS = sorted(set(AGGREGATES) - {"first0", "last0", "by0"})


@st.composite
def limits(draw: st.DrawFn) -> str:
    """Windows of time, of any size and sign, or none."""
    low, high = draw(st.integers(-9, 6)), draw(st.integers(0, 9))
    choices = ("", f", within={high}", f", within=({high}, {-min(low, 0)})", f", between=({low}, {low + high})")
    return draw(st.sampled_from((*choices, f", between=({low}, None)", f", between=(None, {high})")))


@st.composite
def joins(draw: st.DrawFn, rows: bool = False) -> str:
    how = draw(st.sampled_from(HOW))
    on = draw(st.sampled_from(("'k'", "'k'", "'n'", "['k', 'n']", "{'n': 'id'}", "'ts'")))
    limit = draw(limits())
    if on == "'ts'":
        limit = ""
    if rows and on != "'ts'":
        n, m = draw(st.integers(1, 3)), draw(st.sampled_from((1, 2, 5, None)))
        limit = f", rows=({n}, {m})"
    residual = draw(st.sampled_from(("", "", "", *(f", where={r!r}" for r in _RESIDUALS))))
    other = draw(st.sampled_from(("t", "t", "t.where('id % 3 > 0')", "s", "s.union(t)")))
    return f"s.join({other}, {on}, {how!r}{limit}{residual})"


@st.composite
def behind(draw: st.DrawFn, text: str) -> str:
    """Something that listens to what a join promises."""
    which = draw(st.integers(0, 6))
    if which == 0:
        return f"{text}.distinct()"
    if which == 1:
        names = draw(st.lists(st.sampled_from(_TIMELESS), min_size=1, max_size=3, unique=True))
        chosen = ", ".join(f"{name}={AGGREGATES[name][0]!r}" for name in sorted(names))
        return f"{text}.group_by('k').agg({chosen})"
    if which == 2:
        return f"{text}.select('k', 'n', 'id').distinct()"
    if which == 3:
        return f"{text}.select('k', 'id').join(t.select('k', 'v'), 'k')"
    return text


@st.composite
def keeping(draw: st.DrawFn, rows: bool = False) -> str:
    which = draw(st.integers(0, 9))
    few = draw(st.sampled_from((".select('ts', 'k', 'n')", ".select('k')", ".select('n', 'k')")))
    if rows:
        return draw(joins(rows=True))
    if which == 0:
        return f"s{few}.distinct()"
    if which == 1:
        return f"s{few}.{draw(st.sampled_from(('intersect', 'difference')))}(t{few})"
    if which == 2:
        by = draw(st.sampled_from(("'ts'", "'ts', 'n desc'", "'k', 'ts'", "'ts desc'", "'n'")))
        return draw(st.sampled_from((f"s.order_by({by})", f"s.union(t).order_by({by})", "s.merge(t)")))
    if which == 4:
        inputs = draw(st.sampled_from(("s, t, s.where('v > 0')", "s, t", "t, s, t.where('id % 2 = 0'), s")))
        on = draw(st.sampled_from(("'k'", "['k', 'n']")))
        spans = draw(st.lists(st.sampled_from((2, 5, 9, None)), min_size=4, max_size=4))
        limit = draw(st.sampled_from(("", f", within={spans[0] or 4}", f", windows={spans[: inputs.count(', ') + 1]}")))
        strategy = draw(st.sampled_from(("mjoin", "mjoin", "tree")))
        return draw(behind(f"ps.join({inputs}, on={on}{limit}, strategy={strategy!r})"))
    if which == 3:
        return draw(behind(f"s.join(t, 'k'{draw(limits())}).join(s.where('v > 0'), 'k', suffix='_again')"))
    return draw(behind(draw(joins())))


@st.composite
def join_cases(draw: st.DrawFn, max_rows: int = 16, ends: bool = True, rows: bool = False) -> Case:
    text = draw(keeping(rows=rows))
    many = draw(st.integers(0, 3)) == 0
    promised = st.just(True) if ends else st.booleans()
    feeds = tuple(draw(feeds_named(name, 1, many, max_rows // 2, draw(promised))) for name in ("s", "t"))
    used = tuple(
        f for f in feeds if f.name == "s" or "t." in text.replace("distinct", "") or "(t" in text or " t" in text
    )
    return Case(text, used)
