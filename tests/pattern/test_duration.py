"""Durations."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import UserError
from penstock.pattern.duration import format_duration, parse_duration


@pytest.mark.parametrize(
    ("text", "micros"),
    [
        ("250 us", 250), ("500 ms", 500_000), ("30 s", 30_000_000), ("30s", 30_000_000), ("2 min", 120_000_000),
        ("2 MINUTES", 120_000_000), ("1 h", 3_600_000_000), ("1 day", 86_400_000_000), ("1.5 s", 1_500_000),
        ("0.1 s", 100_000), ("1 h 30 min", 5_400_000_000), ("0 s", 0), (" 1 week ", 604_800_000_000), ("3 µs", 3),
        (timedelta(seconds=1.5), 1_500_000), (42, 42),
    ],
)  # fmt: skip
def test_durations_are_read(text: str | timedelta | int, micros: int) -> None:
    assert parse_duration(text) == micros


@pytest.mark.parametrize(
    "text",
    ["", "s", "30", "-3 s", "3 parsecs", "1 s x", "nan s", "0.1 us", "1e9 s", -1, True, 3.5, None, "9" * 30 + " day"],
)
def test_nonsense_is_a_one_line_user_error(text: object) -> None:
    with pytest.raises(UserError) as caught:
        parse_duration(text, where="disorder")  # type: ignore[arg-type]
    assert str(caught.value).startswith("disorder: ")
    assert "\n" not in str(caught.value)
    assert caught.value.hint


def test_zero_is_refused_where_it_makes_no_sense() -> None:
    with pytest.raises(UserError, match="slide: '0 s' is not positive"):
        parse_duration("0 s", where="slide", allow_zero=False)


@given(st.integers(0, 2**62))
def test_durations_print_as_they_are_read(micros: int) -> None:
    assert parse_duration(format_duration(micros)) == micros


@pytest.mark.parametrize(("text", "write"), [("1 month", "30 days"), ("2 months", "30 days"), ("1 Year", "365 days")])
def test_what_has_no_fixed_length_is_no_duration(text: str, write: str) -> None:
    with pytest.raises(UserError, match="has no fixed length") as caught:
        parse_duration(text)
    assert write in str(caught.value) and "minute" not in str(caught.value)
