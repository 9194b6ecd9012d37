"""The disorder that is measured: exact where it is said to be, and the same in any pieces."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from penstock.engine.source.promises import disorder as monitor
from penstock.engine.source.promises.disorder import Lateness, Seen


def measured(values: list[int], cuts: list[int] | None = None) -> Lateness:
    seen, tally = Seen(), Lateness()
    for a, b in itertools.pairwise([0, *sorted(cuts or []), len(values)]):
        seen, more = seen.watch(np.array(values[a:b], np.int64))
        tally = Lateness.from_json((tally + more).to_json())
    return tally


def test_the_disorder_of_a_known_list() -> None:
    for cuts in ([], [5], [8], [1, 2, 3, 4, 5, 6, 7, 8, 9]):
        found = measured([1, 2, 3, 5, 4, 6, 7, 9, 10, 8], cuts).summary
        assert (found.k, found.epsilon, found.events, found.out_of_order) == (2, 2, 10, 2)
        assert (found.p50, found.p99, found.max) == (1, 2, 2)
    assert measured([1, 1, 2, 9]).summary.out_of_order == 0
    assert measured([]).summary.k == 0
    # One event far too early makes others late by one place only.
    assert measured([9, 1, 2, 3, 4]).summary.k == 1


values = st.lists(st.one_of(st.integers(0, 30), st.integers(-(2**63), 2**63 - 1)), max_size=40)


@given(values, st.data())
def test_it_is_what_a_count_one_by_one_gives(listed: list[int], data: Any) -> None:
    cuts = data.draw(st.lists(st.integers(0, len(listed)), max_size=4))
    tally = measured(listed, cuts)
    lateness = [max(listed[:i]) - v for i, v in enumerate(listed) if i and max(listed[:i]) > v]
    assert tally.k == max((sum(b > v for b in listed[:i]) for i, v in enumerate(listed)), default=0)
    assert (tally.events, tally.late, tally.epsilon) == (len(listed), len(lateness), max(lateness, default=0))
    for share in (0.5, 0.9, 0.99, 1.0):
        exact = sorted(lateness)[math.ceil(share * len(lateness)) - 1] if lateness else 0
        assert exact <= tally.quantile(share) <= exact * 17 // 16
        of_all = sorted([0] * (len(listed) - len(lateness)) + lateness)
        exact = of_all[math.ceil(share * len(of_all)) - 1] if of_all else 0
        assert exact <= tally.quantile(share, of_all=True) <= exact * 17 // 16


def test_places_beyond_what_is_kept_are_counted_up_to_there() -> None:
    many = list(range(3 * monitor._KEPT))
    assert measured([*many, -1]).k == len(many)
    assert measured([*many, -1], [len(many)]).k == monitor._KEPT
