"""Restrictions on one type of integers, of values of another."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from penstock.pattern.fit import fitted
from penstock.pattern.pattern import Pattern
from penstock.pattern.restriction import Restriction, between, equal, greater, less, one_of
from penstock.pattern.schema import Schema

HUGE = 1 << 40

_values = st.sampled_from([-HUGE, -129, -128, -5, 0, 5, 127, 128, HUGE])
_restrictions = st.one_of(
    _values.map(equal),
    st.lists(_values, min_size=1, max_size=4).map(one_of),
    _values.map(less),
    _values.map(greater),
    st.builds(between, _values, _values, st.booleans(), st.booleans()),
)


@given(_restrictions)
def test_a_restriction_fitted_to_a_type_matches_the_same_values_of_it(restriction: Restriction) -> None:
    found = Pattern.by_name(Schema.parse("k tinyint"), {"k": fitted(restriction, pa.int8())})
    for value in range(-128, 128):
        assert found.matches_row({"k": value}) == restriction.matches(value)
    assert not found.matches_row({"k": None})
