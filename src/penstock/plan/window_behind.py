"""Which window an attribute is the label of."""

from __future__ import annotations

from penstock.operators.aggregate.operator import Aggregate
from penstock.operators.distinct.operator import Distinct
from penstock.operators.instrument.operator import Instrument
from penstock.operators.join.operator import Joined
from penstock.operators.limit.operator import Limit
from penstock.operators.lookup.operator import TableJoin
from penstock.operators.map.operator import Map
from penstock.operators.multijoin.operator import MultiJoin
from penstock.operators.order_by.operator import OrderBy
from penstock.operators.pace.operator import Pace
from penstock.operators.project.operator import Project
from penstock.operators.select.operator import Select
from penstock.operators.sink.operator import Sink
from penstock.operators.source.operator import Source
from penstock.operators.top.operator import Top
from penstock.operators.union.operator import Union
from penstock.operators.window.operator import Bucket
from penstock.plan.operator import Operator, unknown
from penstock.plan.window import TimeWindow


def window_behind(operator: Operator, name: str) -> TimeWindow | None:
    """The window whose label an attribute is, if it is one.

    >>> from penstock.operators.source.operator import Source
    >>> from penstock.pattern.schema import Schema
    >>> from penstock.builder.stream import Stream
    >>> cars = Stream(Source((), Schema.parse("ts int, k int", time="ts"), name="cars")).window(10)
    >>> window_behind(cars.rename(window_start="w").operator, "w")
    Window.tumbling(10, on='ts')
    """
    while True:
        match operator:
            case Bucket() if name == operator.window.label:
                return operator.window if isinstance(operator.window, TimeWindow) else None
            case Project():
                before = [old for old, names in operator.renames.items() if name in names]
                if not before:
                    return None
                name = before[0]
            case Aggregate() if name not in operator.keys:
                return None
            case Select() | Instrument() | Distinct() | OrderBy() | Limit() | Top() | Bucket() | Aggregate():
                pass
            case Source() | Map() | TableJoin() | Union() | Pace() | Joined() | MultiJoin() | Sink():
                return None
            case _:
                raise unknown(operator, "which window an attribute is the label of")
        (operator,) = operator.inputs
