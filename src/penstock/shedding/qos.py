"""Quality of service: what an answer is worth when not all of it can be given."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.errors import UserError, shortly
from penstock.pattern.duration import parse_duration
from penstock.shedding.graph import Graph, check_falling, number, plain, read_points
from penstock.shedding.value import ValueGraph

#: Whoever says nothing finds each result as good as the next.
EVEN = Graph(((100, 1), (0, 0)))


@dataclass(frozen=True, init=False, repr=False)
class QoS:
    """What an output is worth to whoever reads it. What is not said is even: each result counts as much as the next.

    `loss`: (percent of the results that are delivered, utility), from (100, 1) to (0, 0). `value`: what rows are worth
    by one attribute. `latency`: (seconds until a result is out, utility), or a length of time instead of seconds.
    `gap`: at most so many windows in a row may be missing; of other results, no larger share. `weight`: how much this
    output counts beside others.

    >>> QoS(loss=[(100, 1), (50, .7), (0, 0)], value={"speed": [((0, 50), .2), ((51, 100), 1)]}, gap=10)
    QoS(loss=[(100, 1), (50, 0.7), (0, 0)], value={'speed': [((0, 50), 0.2), ((51, 100), 1)]}, gap=10)
    >>> QoS(loss=[(100, 1), (50, .4), (0, 0)])
    Traceback (most recent call last):
    penstock.errors.UserError: QoS: loss: the piece from (50, 0.4) to (0, 0) falls by 0.008 per percent, and the piece \
before it by 0.012: a graph must fall ever faster (be concave), so that what is given up first costs least. Hint: \
raise (50, 0.4) to at least (50, 0.5)
    """

    loss: Graph
    value: ValueGraph | None
    latency: Graph | None
    gap: int | None
    weight: float

    def __init__(
        self, loss: object = None, value: object = None, latency: object = None, gap: object = None, weight: object = 1
    ) -> None:
        keep = object.__setattr__
        keep(self, "loss", EVEN if loss is None else _loss(loss))
        keep(self, "value", None if value is None else ValueGraph.of(value))
        keep(self, "latency", None if latency is None else _latency(latency))
        keep(self, "gap", None if gap is None else _gap(gap))
        keep(self, "weight", _weight(weight))

    @property
    def most(self) -> float:
        """The largest share of the results that may be dropped in the long run, whatever the load.

        >>> QoS().most, QoS(gap=4).most
        (1.0, 0.8)
        """
        return 1.0 if self.gap is None else self.gap / (self.gap + 1)

    def utility(self, delivered: float) -> float:
        """What the output is worth when so many percent of it are delivered."""
        return self.weight * self.loss.at(delivered)

    def __repr__(self) -> str:
        said = [
            *([f"loss={self.loss}"] if self.loss != EVEN else []),
            *([f"value={self.value!r}"] if self.value else []),
            *([f"latency={self.latency}"] if self.latency else []),
            *([f"gap={self.gap}"] if self.gap is not None else []),
            *([f"weight={plain(self.weight)}"] if self.weight != 1 else []),
        ]
        return f"QoS({', '.join(said)})"


def _loss(given: object) -> Graph:
    what = "QoS: loss"
    points = read_points(given, what, "[(100, 1), (50, .7), (0, 0)]")
    for end, needed, means in ((points[0], (100, 1), "all is delivered"), (points[-1], (0, 0), "nothing is delivered")):
        if end != needed:
            raise UserError(
                f"{what}: {'begins' if needed[0] else 'ends'} with ({plain(end[0])}, {plain(end[1])})",
                hint=f"where {means}, write {needed}; what an output counts beside others is its weight",
            )
    check_falling(points, what, rising_x=False, unit="percent")
    return Graph(points)


def _latency(given: object) -> Graph:
    what, example = "QoS: latency", '[(0, 1), ("10 s", .9), ("1 min", 0)]'
    if not isinstance(given, Graph) and isinstance(given, list | tuple):
        given = [_in_seconds(point, what) for point in given]
    points = read_points(given, what, example)
    x, utility = points[0]
    if x != 0 or utility != 1:
        raise UserError(
            f"{what}: begins with ({plain(x)}, {plain(utility)})", hint=f"an answer at once is (0, 1): {example}"
        )
    check_falling(points, what, rising_x=True, unit="second")
    return Graph(points)


def _in_seconds(point: object, what: str) -> object:
    if isinstance(point, list | tuple) and len(point) == 2 and isinstance(point[0], str):
        return (parse_duration(point[0], where=what) / 1_000_000, point[1])
    return point


def _gap(given: object) -> int:
    if isinstance(given, bool) or not isinstance(given, int) or given < 1:
        raise UserError(
            f"QoS: gap={shortly(given)}",
            hint="how many results in a row may be missing, at least 1; leave the QoS out if none may",
        )
    return given


def _weight(given: object) -> float:
    weight = number(given, "QoS: weight", "how much it counts beside others, such as 2")
    if weight <= 0:
        raise UserError(
            f"QoS: weight={plain(weight)}", hint="it must be positive: an output that counts nothing is left out"
        )
    return weight
