"""Walks over all that is below one operator."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from penstock.plan.operator import Operator
from penstock.plan.spec import traits_of

T = TypeVar("T")


def upwards(operator: Operator, behind: Callable[[Operator, Sequence[T]], T]) -> T:
    """What holds behind an operator, if `behind` says what holds behind each given what holds behind its inputs.

    Iterative and once per operator, since plans may be deep and operators shared.

    >>> import penstock as ps
    >>> s = ps.stream("s", "a int")
    >>> upwards(s.where("a > 3").where("a < 9").operator, lambda operator, below: 1 + max(below, default=0))
    3
    """
    known: dict[int, T] = {}
    stack = [operator]
    while stack:
        top = stack[-1]
        if missing := [i for i in top.inputs if id(i) not in known]:
            stack.extend(missing)
            continue
        known[id(top)] = behind(top, [known[id(i)] for i in top.inputs])
        stack.pop()
    return known[id(operator)]


def below_and_itself(operator: Operator) -> Iterator[Operator]:
    """An operator and all that its events come from, each once."""
    stack, seen = [operator], {id(operator)}
    while stack:
        top = stack.pop()
        yield top
        stack += [i for i in top.inputs if id(i) not in seen]
        seen.update(map(id, top.inputs))


def passes_at_once(operator: Operator) -> bool:
    """Whether an event that comes to the operator leaves it in the same epoch, or never.

    >>> import penstock as ps
    >>> s = ps.stream("s", "a int")
    >>> passes_at_once(s.operator), passes_at_once(s.distinct().operator)
    (True, False)
    """
    return traits_of(operator).at_once


def comes_as_read(operator: Operator) -> bool:
    """Whether the events that leave an operator in an epoch were read in it.

    An operator that keeps events may give many at once, and a function may make whatever events it likes.
    """
    return all(traits.at_once and traits.makes != "any" for traits in map(traits_of, below_and_itself(operator)))


def finds_several(operator: Operator) -> bool:
    """Whether somewhere below, an event may find several rows of a table: one with versions gives one at most."""
    return any(traits_of(each).makes == "several" for each in below_and_itself(operator))
