"""Top: the best events of each group."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from penstock.plan.operator import Operator
from penstock.plan.window import TimeWindow
from penstock.plan.window_behind import window_behind


@dataclass(frozen=True, eq=False)
class Top(Operator):
    """The best `count` events of each group of `per`, given out when punctuation says that the group is complete.

    `by` lists (attribute, descending); null comes last either way, NaN right before it. Events that are equal by it
    are told apart by their other attributes in the order of the schema, ascending, so the result is one bag.
    """

    count: int = field(kw_only=True)
    by: tuple[tuple[str, bool], ...] = field(kw_only=True)
    per: tuple[str, ...] = ()

    @property
    def order(self) -> tuple[tuple[str, bool], ...]:
        """What decides within a group, most significant first; the attributes of `per` are all the same there."""
        found: dict[str, bool] = {}
        for name, down in (*self.by, *((name, False) for name in self.schema.names)):
            found.setdefault(name, down)
        return tuple((name, down) for name, down in found.items() if name not in self.per)

    @property
    def detail(self) -> str:
        order = ", ".join(f"{name} desc" if down else name for name, down in self.by)
        per = f" per {', '.join(self.per)}" if self.per else ""
        return f"{self.count:,} by {order}{per}"


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
