"""Which window the groups of `top` end with."""

from __future__ import annotations

from typing import NamedTuple

from penstock.operators.top.operator import Top
from penstock.plan.window import TimeWindow
from penstock.plan.window_behind import window_behind


class Label(NamedTuple):
    """An attribute by which events are grouped, and the window that it is the label of."""

    name: str
    window: TimeWindow


def window_label(operator: Top) -> Label | None:
    """The label among the grouping attributes; of several, that of the window put on last.

    >>> import penstock as ps
    >>> cars = ps.stream("cars", "ts int, speed int", time="ts")
    >>> window_label(cars.window(10).rename(window_start="w").top(3, by="speed", per="w").operator)
    Label(name='w', window=Window.tumbling(10, on='ts'))
    """
    (below,) = operator.inputs
    labels = [Label(n, w) for n in operator.per if (w := window_behind(below, n)) is not None]
    return max(labels, key=lambda label: below.schema.index(label.name), default=None)


def awaited(operator: Top) -> list[str]:
    """What sources would have to promise for groups to be complete: for the label of a window, its time."""
    (below,) = operator.inputs
    found = ((n, window_behind(below, n)) for n in operator.per)
    times = (n if window is None else window.on for n, window in found)
    return [n for n in times if n is not None]
