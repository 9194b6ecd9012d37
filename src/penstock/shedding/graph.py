"""Graphs of what something is worth: straight pieces between points, falling ever faster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import isfinite

from penstock.errors import UserError, shortly

Point = tuple[float, float]
#: Two numbers that differ by less are the same; sums of shares do not end in a round 1.
CLOSE = 1e-9


@dataclass(frozen=True)
class Graph:
    """Points (x, utility) in the order in which utility falls; between two of them it falls evenly.

    A loss graph begins with 100 percent and ends with 0, a latency graph begins with no latency at all.

    >>> loss = Graph(((100, 1), (50, 0.7), (0, 0)))
    >>> loss.at(75), loss.at(25), [round(piece.slope, 3) for piece in loss.pieces()]
    (0.85, 0.35, [0.006, 0.014])
    """

    points: tuple[Point, ...]

    def at(self, x: float) -> float:
        """The utility at x; beyond the ends, that of the end."""
        for piece in self.pieces():
            if min(piece.start, piece.stop) <= x <= max(piece.start, piece.stop):
                return piece.utility - piece.slope * abs(x - piece.start)
        first, last = self.points[0], self.points[-1]
        return first[1] if abs(x - first[0]) < abs(x - last[0]) else last[1]

    def pieces(self) -> Iterator[Slope]:
        for (x0, u0), (x1, u1) in pairwise(self.points):
            yield Slope(x0, x1, u0, (u0 - u1) / abs(x1 - x0))

    def concave(self) -> Graph:
        """The least concave graph that is nowhere below this one: points that are given up together are left out.

        >>> Graph(((100, 1), (60, 0.4), (0, 0))).concave().points
        ((100, 1), (0, 0))
        """
        kept: list[Point] = []
        for point in self.points:
            while len(kept) > 1 and _slope(kept[-1], point) < _slope(kept[-2], kept[-1]) - CLOSE:
                kept.pop()
            kept.append(point)
        return Graph(tuple(kept))

    def rounded(self, digits: int) -> Graph:
        """The same to so many digits, to be shown."""
        return Graph(tuple((round(x, digits), round(u, digits)) for x, u in self.points))

    def __str__(self) -> str:
        return f"[{', '.join(f'({plain(x)}, {plain(u)})' for x, u in self.points)}]"


@dataclass(frozen=True)
class Slope:
    """A straight piece of a graph: where it starts and stops, its utility at the start, and what is lost per unit."""

    start: float
    stop: float
    utility: float
    slope: float

    @property
    def length(self) -> float:
        return abs(self.stop - self.start)


def _slope(first: Point, second: Point) -> float:
    return (first[1] - second[1]) / abs(second[0] - first[0])


def plain(number: float) -> str:
    """A number as short as it can be pasted back.

    >>> plain(100.0), plain(0.7)
    ('100', '0.7')
    """
    return str(int(number)) if float(number).is_integer() and abs(number) < 1e15 else repr(float(number))


def read_points(given: object, what: str, example: str) -> tuple[Point, ...]:
    """Points as a user writes them; `what` names the graph in errors."""
    hint = f"write points (x, utility) from the best to the worst: {example}"
    if isinstance(given, Graph):
        return given.points
    if isinstance(given, str) or not isinstance(given, Sequence) or len(given) < 2:
        raise UserError(f"{what}: {shortly(given)} is no graph", hint=hint)
    points = []
    for point in given:
        if isinstance(point, str) or not isinstance(point, Sequence) or len(point) != 2:
            raise UserError(f"{what}: {shortly(point)} is no point", hint=hint)
        x, utility = (number(n, what, hint) for n in point)
        if not 0 <= utility <= 1:
            raise UserError(f"{what}: utility {plain(utility)} at {plain(x)}", hint="utility is from 0 to 1")
        points.append((x, utility))
    return tuple(points)


def number(given: object, what: str, hint: str) -> float:
    """A finite number that a user wrote."""
    if isinstance(given, bool) or not isinstance(given, int | float) or not isfinite(given):
        raise UserError(f"{what}: {shortly(given)} is not a number", hint=hint)
    return given


def check_falling(points: Sequence[Point], what: str, *, rising_x: bool, unit: str) -> None:
    """Refuse a graph that goes back and forth, that rises, or whose marginal loss falls; say which piece does."""
    for (x0, u0), (x1, u1) in pairwise(points):
        named = f"the piece from ({plain(x0)}, {plain(u0)}) to ({plain(x1)}, {plain(u1)})"
        if x0 == x1 or (x1 > x0) != rising_x:
            units, order = ("seconds", "grow") if rising_x else ("percent", "fall")
            raise UserError(f"{what}: {named} is out of order", hint=f"{units} must {order} from point to point")
        if u1 > u0:
            raise UserError(f"{what}: {named} rises", hint=f"more loss is never worth more: at most {plain(u0)} there")
    for first, middle, last in zip(points, points[1:], points[2:]):
        before, behind = _slope(first, middle), _slope(middle, last)
        if behind < before - CLOSE:
            straight = first[1] - _slope(first, last) * abs(middle[0] - first[0])
            piece = f"({plain(middle[0])}, {plain(middle[1])}) to ({plain(last[0])}, {plain(last[1])})"
            raise UserError(
                f"{what}: the piece from {piece} falls by {behind:.4g} per {unit}, and the piece before it by "
                f"{before:.4g}: a graph must fall ever faster (be concave), so that what is given up first costs least",
                hint=f"raise ({plain(middle[0])}, {plain(middle[1])}) to at least "
                f"({plain(middle[0])}, {plain(round(straight + 5e-5, 4))})",
            )
