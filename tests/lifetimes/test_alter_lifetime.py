"""AlterLifetime and Deletes: definitions, CTIs, and lifetimes that may not be altered so."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from random_streams import ctis, often, retractions, streams
from speculative.alter_lifetime import AlterLifetime, Deletes, from_start_on, hop, window
from speculative.operator import feed

from penstock.errors import UserError
from penstock.reference.lifetimes.event import INFINITY, Cti, StreamEvent, Time, events
from penstock.reference.lifetimes.history import fold
from penstock.reference.lifetimes.oracle import alter_lifetime, deletes

ADMISSIBLE: dict[str, tuple[Callable[[Time], Time], Callable[[Time, Time], Time]]] = {
    "as it is": (lambda vs: vs, lambda vs, ve: ve - vs),
    "window": (lambda vs: vs, lambda vs, ve: 5),
    "hop": (lambda vs: vs // 4 * 4, lambda vs, ve: 8),
    "inserts": (lambda vs: vs, lambda vs, ve: INFINITY),
    "longer": (lambda vs: vs, lambda vs, ve: ve - vs + 3),
    "doubled": (lambda vs: vs, lambda vs, ve: 2 * (ve - vs)),
    "later": (lambda vs: 2 * vs, lambda vs, ve: 2 * (ve - vs)),
    "minus": (lambda vs: -vs, lambda vs, ve: vs - ve),
    "nothing": (lambda vs: vs, lambda vs, ve: 0),
}


@pytest.mark.parametrize("name", ADMISSIBLE)
@often
@given(stream=streams())
def test_the_definition_holds(name: str, stream: list[StreamEvent]) -> None:
    start, length = ADMISSIBLE[name]
    said = feed(AlterLifetime(start, length), stream)
    assert fold(said) == alter_lifetime(fold(stream), start, length)
    told = ctis(said)
    assert told == sorted(set(told))
    times = [abs(start(t)) if t < INFINITY else t for t in ctis(stream)]
    assert told == sorted({t for t in times if t > 0})


@pytest.mark.parametrize("operator", [window(5), hop(length=8, every=4), from_start_on()], ids=["window", "hop", "on"])
@often
@given(stream=streams())
def test_of_windows_only_full_retractions_are_left(operator: AlterLifetime, stream: list[StreamEvent]) -> None:
    """Defect 9: the new end of a window does not move with the end of what is in it."""
    operator.cti = 0
    said = feed(operator, stream)
    assert all(r.full for r in retractions(said))
    assert len(retractions(said)) == sum(r.full for r in retractions(stream))


def test_defect_10_half_as_long_would_break_a_cti() -> None:
    halved = AlterLifetime(lambda vs: vs, lambda vs, ve: (ve - vs) // 2)
    with pytest.raises(UserError, match=r"R\(4,9,6,7\).*before the new start 6"):
        feed(halved, events("I(4,9,7) C(6) R(4,9,6,7)"))


def test_what_else_may_not_be() -> None:
    with pytest.raises(UserError, match="never fall"):
        feed(AlterLifetime(lambda vs: 20 - vs, lambda vs, ve: 1), events("C(4) I(5,9,1)"))
    with pytest.raises(UserError, match="never fall"):
        feed(AlterLifetime(lambda vs: 20 - vs, lambda vs, ve: 1), events("C(4) C(5)"))
    with pytest.raises(UserError, match="would grow from 5 to 7"):
        feed(AlterLifetime(lambda vs: vs, lambda vs, ve: 10 - ve), events("I(1,6,1) R(1,6,4,1)"))


@often
@given(streams())
def test_deletes(stream: list[StreamEvent]) -> None:
    """Defect 11: as an AlterLifetime whose start is the old end it would break its CTIs."""
    said = feed(Deletes(), stream)
    assert fold(said) == deletes(fold(stream))
    assert [e for e in said if isinstance(e, Cti)] == [e for e in stream if isinstance(e, Cti)]
