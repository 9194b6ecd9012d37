"""Which window an attribute is the label of."""

from __future__ import annotations

from penstock.plan.operator import Operator
from penstock.plan.spec import spec_of
from penstock.plan.window import TimeWindow


def window_behind(operator: Operator, name: str) -> TimeWindow | None:
    """The window of time whose label an attribute is, if it is one.

    >>> import penstock as ps
    >>> cars = ps.stream("cars", "ts int, k int", time="ts").window(10)
    >>> window_behind(cars.rename(window_start="w").operator, "w")
    Window.tumbling(10, on='ts')
    """
    while True:
        spec = spec_of(operator)
        if (fact := spec.facts(operator).get(name)) is not None:
            return fact.label_of
        carried = spec.lineage(operator).get(name)
        if carried is None or len(operator.inputs) != 1:
            return None
        ((_, name),) = carried.origins
        (operator,) = operator.inputs
