"""Feedback as people write it."""

from __future__ import annotations

import pytest

from penstock.errors import UserError
from penstock.pattern.feedback import Feedback
from penstock.pattern.schema import Schema

SCHEMA = Schema.parse("ts int, v double")


@pytest.mark.parametrize(
    "pattern", ["[(3, 4), *]", "[{}, *]", "[[5, 1], *]", "[*, (2, 2)]", "[5, [3, 1]]", "[> 2147483647, *]"]
)
@pytest.mark.parametrize("intent", ["not", "prefer", "now"])
def test_what_can_match_nothing_is_refused_by_its_attribute(intent: str, pattern: str) -> None:
    with pytest.raises(UserError, match=f"no value of '{'ts' if pattern.endswith('*]') else 'v'}' matches"):
        Feedback.parse(f"{intent} {pattern}", SCHEMA)


@pytest.mark.parametrize("pattern", ["[(3, 5), *]", "[*, (3, 4)]", "[*, > inf]", "[*, *]"])
def test_what_can_match_is_accepted(pattern: str) -> None:
    assert str(Feedback.parse(f"not {pattern}", SCHEMA))
