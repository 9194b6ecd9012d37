"""What is worth least goes first: from the value of rows to what loss costs, and to which rows to drop.

The share of all worth that lies in a piece of a value graph is its utility times how often it occurs. Given up from the
least useful piece on, the pieces make a loss graph, which is concave by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import floor, isclose
from typing import Any

from penstock.pattern.restriction import Restriction, between, equal
from penstock.shedding.graph import CLOSE, Graph, Point
from penstock.shedding.histogram import Histogram
from penstock.shedding.value import Span, ValueGraph, Worth

#: Pieces whose worth is not the same all along are cut into so many.
CHUNKS = 10


@dataclass(frozen=True)
class ValuedPiece:
    """A piece of a value graph, how often it occurs, and its share of all worth."""

    worth: Worth
    frequency: float
    share: float


def valued(graph: ValueGraph, histogram: Histogram) -> tuple[ValuedPiece, ...]:
    """The pieces, the least useful first, and last what the graph does not speak of."""
    pieces = [chunk for piece in graph.pieces for chunk in piece.chunks(CHUNKS)]
    found = [(piece, histogram.share(piece.span)) for piece in pieces]
    rest = max(0.0, 1 - sum(f for _, f in found)) if histogram.total else 0.0
    weights = [piece.utility * f for piece, f in found]
    total = sum(weights) + rest
    order = sorted(range(len(found)), key=lambda i: (found[i][0].utility, i))
    # Where nothing is worth anything, each row is as good as the next.
    shares = [w / total for w in weights] if total else [f for _, f in found]
    return tuple(ValuedPiece(found[i][0], found[i][1], shares[i]) for i in order)


def loss_graph(graph: ValueGraph, histogram: Histogram) -> Graph:
    """What loss costs if the least useful rows go first.

    >>> values = ValueGraph.of({"x": [((0, 50), 0.2), ((51, 100), 1)]})
    >>> print(loss_graph(values, Histogram.of({(0, 50): 0.4, (51, 100): 0.6})).rounded(4))
    [(100, 1), (60, 0.8824), (0, 0)]
    """
    pieces = valued(graph, histogram)
    return _from_the_least(pieces, [p.frequency for p in pieces])


def input_loss_graph(graph: ValueGraph, output: Histogram, mine: Histogram) -> Graph:
    """What loss at one input of an equijoin costs: the worth of pieces is that at the output, their frequency its own.

    It may fall less steeply further down, as the order of the pieces is that of the output: `concave()` joins those.

    >>> values = ValueGraph.of({"x": [((0, 50), 0.25), ((51, 100), 1)]})
    >>> joined = Histogram.of({(0, 50): 0.1, (51, 100): 0.9})
    >>> print(input_loss_graph(values, joined, Histogram.of({(0, 50): 0.4, (51, 100): 0.6})).rounded(3))
    [(100, 1), (60, 0.973), (0, 0)]
    """
    pieces = valued(graph, output)
    return _from_the_least(pieces, [mine.share(p.worth.span) for p in pieces])


def _from_the_least(pieces: Sequence[ValuedPiece], frequencies: Sequence[float]) -> Graph:
    x, utility = 100.0, 1.0
    points: list[Point] = [(x, utility)]
    for piece, frequency in zip(pieces, frequencies, strict=True):
        if frequency > CLOSE:
            x, utility = x - 100 * frequency, utility - piece.share
            points.append((x, max(0.0, utility)))
        else:
            utility -= piece.share
    if isclose(points[-1][0], 0, abs_tol=1e-6):
        points[-1] = (0.0, 0.0)
    else:
        points.append((0.0, 0.0))
    return Graph(tuple(points))


@dataclass(frozen=True)
class Removal:
    """The values of an attribute that are given up: `[low, high]` each, or without its high end where `cut`."""

    attribute: str
    spans: tuple[Span, ...]
    cut: Span | None = None

    @property
    def restrictions(self) -> tuple[Restriction, ...]:
        """What to ignore, as patterns say it."""
        whole = [equal(s.low) if s.is_single else between(s.low, s.high, True, True) for s in self.spans]
        return tuple(whole) if self.cut is None else (*whole, between(self.cut.low, self.cut.high, True, False))

    def removes(self, value: Any) -> bool:
        return any(value in s for s in self.spans) or (
            self.cut is not None and value in self.cut and value != self.cut.high
        )


def removal(graph: ValueGraph, histogram: Histogram, share: float, *, whole_numbers: bool) -> Removal:
    """The least useful values that make up such a share of all rows.

    The piece that need not go whole is cut, and loses its low end. Ends are those of the reals: [51, 100] is halved at
    75.5. Where values are `whole_numbers`, the cut is made at the whole number below (75), so never more goes than was
    asked for. A single value cannot be cut: it goes whole or not at all, and so does nothing behind it.

    >>> values = ValueGraph.of({"x": [((0, 50), 0.2), ((51, 100), 1)]})
    >>> speeds = Histogram.of({(0, 50): 0.4, (51, 100): 0.6})
    >>> print(*removal(values, speeds, 0.2, whole_numbers=True).restrictions)
    [0, 25)
    >>> print(*removal(values, speeds, 0.7, whole_numbers=True).restrictions)
    [0, 50] [51, 75)
    >>> print(*removal(values, speeds, 0.7, whole_numbers=False).restrictions)
    [0, 50] [51, 75.5)
    """
    spans, left = [], share
    for piece in valued(graph, histogram):
        span = piece.worth.span
        if left <= CLOSE:
            break  # also nothing that was never seen
        if piece.frequency <= left + CLOSE:
            spans.append(span)
            left -= piece.frequency
            continue
        if span.is_single:
            break
        end = span.low + (span.high - span.low) * left / piece.frequency
        end = floor(end + CLOSE) if whole_numbers else end
        return Removal(graph.attribute, tuple(spans), Span(span.low, end) if end > span.low else None)
    return Removal(graph.attribute, tuple(spans))
