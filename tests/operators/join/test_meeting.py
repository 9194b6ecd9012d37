"""How a promise of one input of a join speaks of the other's rows, and of results."""

from __future__ import annotations

import pytest

from penstock.builder.combine import join_operator
from penstock.operators.join.meeting import meeting_of
from penstock.operators.source.operator import Source
from penstock.pattern.pattern import Pattern
from penstock.pattern.restriction import at_least, less
from penstock.pattern.schema import Schema

NARROW, WIDE = (
    Schema.parse("k tinyint, t tinyint, a int", time="t"),
    Schema.parse("k bigint, t tinyint, b int", time="t"),
)
HUGE = 1 << 40


@pytest.mark.parametrize("how", ["inner", "left", "right", "full", "semi", "anti"])
@pytest.mark.parametrize(
    ("promised", "settled"),
    [(f"[{HUGE}, *, *]", None), (f"[{{7, {HUGE}}}, *, *]", [7]), (f"[< {HUGE}, *, *]", [-128, 0, 127])],
)
def test_a_wider_key_may_be_promised_that_a_narrower_one_cannot_have(
    how: str, promised: str, settled: list[int] | None
) -> None:
    meeting = meeting_of(join_operator(Source((), NARROW), Source((), WIDE), "k", how))
    pattern = Pattern.parse(promised, WIDE)
    moved = meeting.translate(pattern, 1, 0)
    lifted = meeting.sides[1].lift(pattern, meeting.output)
    if settled is None:
        assert moved is None
    else:
        assert moved is not None
        assert all(moved.matches_row({"k": k, "t": 0, "a": 0}) for k in settled)
        assert not moved.matches_row({"k": None, "t": 0, "a": 0})
    assert how not in ("right", "full") or (lifted is not None and lifted["k"] == pattern["k"])


def test_a_window_may_reach_beyond_what_time_can_be() -> None:
    meeting = meeting_of(join_operator(Source((), NARROW), Source((), WIDE), "k", between=(-9, -5)))
    row = {"k": 1, "t": 127, "a": 0}
    moved = meeting.translate(Pattern.by_name(WIDE, {"t": less(125)}), 1, 0)
    assert moved is not None and moved.matches_row(row)
    assert meeting.translate(Pattern.by_name(WIDE, {"t": at_least(120)}), 1, 0) is None
