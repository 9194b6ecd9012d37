"""The practical test of overload, in its order, and its patience in both directions."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import UserError
from penstock.shedding.overload import Advice, LoadSample, OverloadMonitor, Pressure


def told(monitor: OverloadMonitor, samples: Sequence[LoadSample]) -> list[Pressure]:
    found, pressure = [], Pressure()
    for sample in samples:
        # Through the checkpoint and back, each time.
        pressure = Pressure.from_json(json.loads(json.dumps(monitor.after(pressure, sample).to_json())))
        found.append(pressure)
    return found


def growing(cpu: float, *places: str, n: int = 6) -> list[LoadSample]:
    return [LoadSample(cpu, dict.fromkeys(places, 100.0 * (k + 1))) for k in range(n)]


def test_cores_with_time_to_spare_are_not_overloaded_whatever_waits() -> None:
    assert not any(p.overloaded for p in told(OverloadMonitor(limit=0.9), growing(0.85, "in")))


def test_what_grows_again_and_again_is_overload() -> None:
    found = told(OverloadMonitor(limit=0.9, patience=3), growing(1.0, "in"))
    assert [p.overloaded for p in found] == [False, False, False, True, True, True]
    assert found[3].advice is Advice.SHED and "wait at in" in found[3].why


def test_busy_cores_alone_are_no_overload() -> None:
    found = told(OverloadMonitor(patience=1), [LoadSample(1.0, {"in": 500})] * 8)
    assert not any(p.overloaded for p in found)


def test_a_pause_in_growth_starts_the_count_anew() -> None:
    rows = [0, 10, 20, 20, 30, 40, 50]
    found = told(OverloadMonitor(patience=3), [LoadSample(1.0, {"in": n}) for n in rows])
    assert [p.overloaded for p in found] == [False] * 6 + [True]


def test_who_is_overloaded_need_not_be_patient_again() -> None:
    rows = [0, 10, 20, 30, 30, 40]
    found = told(OverloadMonitor(patience=3), [LoadSample(1.0, {"in": n}) for n in rows])
    assert [p.advice for p in found[3:]] == [Advice.SHED, Advice.HOLD, Advice.SHED]


def test_a_little_more_is_noise() -> None:
    samples = [LoadSample(1.0, {"in": 1000 * 1.01**k}) for k in range(8)]
    assert not any(p.overloaded for p in told(OverloadMonitor(patience=2, noise=0.02), samples))
    assert told(OverloadMonitor(patience=2, noise=0.005), samples)[-1].overloaded


def test_one_side_of_a_join_waits_for_the_other() -> None:
    monitor = OverloadMonitor(patience=2, joined=[frozenset({"a", "b"})])
    one = told(monitor, [LoadSample(1.0, {"a": 100.0 * k, "b": 7}) for k in range(6)])
    assert not any(p.overloaded for p in one) and "other side of a join" in one[-1].why
    assert told(monitor, growing(1.0, "a", "b"))[-1].overloaded
    # What stands alone counts beside it; and who is in a second join that is pressed counts too.
    assert told(monitor, [LoadSample(1.0, {"a": 0, "c": 100.0 * k}) for k in range(6)])[-1].overloaded
    both = OverloadMonitor(patience=2, joined=[frozenset({"a", "b"}), frozenset({"a", "c"})])
    assert told(both, [LoadSample(1.0, {"a": 90.0 * k, "b": 7, "c": 90.0 * k}) for k in range(6)])[-1].overloaded


def test_latency_is_a_hint_and_no_more() -> None:
    found = told(OverloadMonitor(patience=1), [LoadSample(1.0, {"in": 5}, {"out": 1.0 + k}) for k in range(6)])
    assert not any(p.overloaded for p in found)
    assert found[-1].hint == "out comes later than before"


def test_drops_are_given_back_late_and_only_when_it_fits() -> None:
    monitor = OverloadMonitor(limit=0.9, spare=0.7, patience=2)
    overloaded = told(monitor, growing(1.0, "in", n=4))[-1]
    assert overloaded.overloaded
    busy = monitor.after(overloaded, LoadSample(0.8, {}))
    assert busy.overloaded and busy.advice is Advice.HOLD  # between spare and limit nothing changes
    first = monitor.after(busy, LoadSample(0.5, {}))
    assert first.overloaded and first.advice is Advice.HOLD
    second = monitor.after(first, LoadSample(0.5, {}))
    assert not second.overloaded and second.advice is Advice.GIVE_BACK
    # Cores are idle because much is dropped: who knows that it would not fit, gives nothing back.
    full = [LoadSample(0.5, {}, load=0.95)] * 5
    state = overloaded
    for sample in full:
        state = monitor.after(state, sample)
        assert state.advice is Advice.HOLD


@given(st.lists(st.tuples(st.floats(0, 1), st.integers(0, 1000)), max_size=60), st.integers(1, 4))
def test_advice_never_jumps(samples: list[tuple[float, int]], patience: int) -> None:
    """Between shedding and giving back lie `patience` samples that say so, in both directions."""
    monitor = OverloadMonitor(limit=0.8, spare=0.6, patience=patience)
    states = told(monitor, [LoadSample(cpu, {"in": n}) for cpu, n in samples])
    for k, state in enumerate(states):
        recent = samples[max(0, k - patience + 1) : k + 1]
        if state.advice is Advice.GIVE_BACK:
            assert len(recent) == patience and all(cpu < 0.6 for cpu, _ in recent)
        if state.advice is Advice.SHED and not states[k - 1].overloaded:
            assert len(recent) == patience and all(cpu >= 0.8 for cpu, _ in recent)
            rows = [n for _, n in samples[k - patience : k + 1]]
            assert all(b > a for a, b in pairwise(rows)) and len(rows) == patience + 1


@pytest.mark.parametrize("given", [{"spare": 0.9, "limit": 0.9}, {"limit": 1.2}, {"patience": 0}, {"spare": 0}])
def test_limits_must_leave_room(given: dict[str, float]) -> None:
    with pytest.raises(UserError):
        OverloadMonitor(**given)  # type: ignore[arg-type]
