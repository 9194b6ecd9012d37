"""Random cases with operators that choose among events: the best of a group, and expensive functions with a queue."""

from __future__ import annotations

from case import Case
from hypothesis import strategies as st
from random_cases import feeds_named

_HEADS = (
    "s.top({n}, by='n desc, v', per=['k'])",
    "s.union(t).top({n}, by='v', per=['k', 'n'])",
    "s.window(6).top({n}, by='n', per=['k'])",
    "s.impute(twice, keeps=['ts', 'k'], budget={n})",
    "s.union(t.impute(odd_only, keeps=['ts', 'k', 'id', 'v', 'n', 'd'], budget={n}))",
    "s.impute(twice, keeps=['ts', 'k'], budget={n}).join(t, 'k')",
)
_TAILS = (
    "",
    "",
    ".where('v > 0')",
    ".group_by('k').agg(c='count(*)', most='max(n)')",
    ".select('k', 'n').distinct()",
)


@st.composite
def extra_cases(draw: st.DrawFn, max_rows: int = 16) -> Case:
    text = draw(st.sampled_from(_HEADS)).format(n=draw(st.integers(1, 3))) + draw(st.sampled_from(_TAILS))
    names = ("s", "t") if any(part in text for part in ("t.impute", "union(t", "join(t")) else ("s",)
    many = draw(st.booleans())
    feeds = tuple(draw(feeds_named(name, 1, many, max_rows // len(names), True)) for name in names)
    return Case(text, feeds)
