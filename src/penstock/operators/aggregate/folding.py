"""Aggregates with state: partial rows of groups, in runs that are sorted by what closes them.

Over windows of time that is the label of the window, otherwise the first key. A frontier takes a prefix of each run and
leaves the rest where it lies; a run that no closer can touch is not even read.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Self, TypeVar

import pyarrow as pa

from penstock.kernels.failing import Failed
from penstock.kernels.fold import fold, frontier_of, is_tickable, tick, ticks
from penstock.kernels.stateful import Circumstances, Fresh, Held, Orders, Stepped
from penstock.operators.aggregate.doomed import doomed_groups
from penstock.operators.aggregate.kernel import AggregateKernel
from penstock.operators.aggregate.operator import Aggregate
from penstock.pattern.schema import Schema

K = TypeVar("K", bound=AggregateKernel)

#: Windows per unit: enough that a query has few units, few enough that a unit is a useful thing to move or drop.
UNIT_WINDOWS = 1024


def grouping_kernel(operator: Aggregate, node_id: str, kind: type[K]) -> K:
    """What computes the groups of an aggregate: over windows, from the events that come to these."""
    (below,) = operator.inputs
    window = operator.window
    schema = below.schema if window is None else below.inputs[0].schema
    keys = tuple(k for k in operator.keys if window is None or k != window.label)
    return kind(schema, keys, operator.aggregations, window, operator_id=node_id)


class GroupKernel(ABC):
    """What all aggregates have in common: they close by the promises behind them, and note groups without an answer.

    Such a group (its sum is too large for its type) becomes a dead letter, and its state goes.
    """

    def __init__(self, groups: AggregateKernel, spread: tuple[str, ...]) -> None:
        self.groups = groups
        self.circumstances = Circumstances()
        self.output_schema = groups.output_schema
        self.closing: str | None = next(iter(groups.grouping), None)
        self.spread: tuple[tuple[str, ...], ...] = (spread,)
        self.needed: tuple[tuple[str, ...] | None, ...] = (groups.needed,)

    @abstractmethod
    def step(self, fresh: Sequence[pa.Table | None], held: Sequence[Sequence[Held]], orders: Orders) -> Stepped:
        """Take in what arrived, then close what the orders name."""

    def under(self, circumstances: Circumstances) -> Self:
        """The same kernel for an epoch and a bucket, with nothing noted yet."""
        other = copy.copy(self)
        other.groups, other.circumstances = self.groups.noting(), circumstances
        return other

    @property
    def failed(self) -> Sequence[Failed]:
        return self.groups.failed or ()

    @property
    def failed_schema(self) -> Schema:
        return self.output_schema

    @property
    def nothing(self) -> pa.Table:
        return self.output_schema.arrow.empty_table()


class FoldingKernel(GroupKernel):
    """The aggregates of groups that are complete when a punctuation says so, with or without windows of time."""

    def __init__(self, groups: AggregateKernel) -> None:
        # The label does not decide the bucket, so that a key's windows stay together.
        super().__init__(groups, groups.keys or groups.grouping)
        self.grouping = groups.grouping

    def step(self, fresh: Sequence[pa.Table | None], held: Sequence[Sequence[Held]], orders: Orders) -> Stepped:
        """Fold partial rows, one for each group, into state; close what is complete, keep the rest."""
        delta = [table for table in fresh if table is not None]
        stored = [(run.name, run.rows) for run in held[0]]
        folded = fold(self.groups, delta, stored, orders.release[0], self.closing)
        added = () if folded.rest is None else tuple(self._units(folded.rest))
        sweep = self.circumstances.told.sweep
        # A group that is doomed by what has arrived now alone is doomed; all of state is looked at once only.
        looked = [*delta, *(rows for _, rows in stored if self.circumstances.everywhere)] if sweep else []
        doomed = tuple(doomed_groups(self.groups, looked, sweep)) if looked else ()
        return Stepped(folded.output, folded.dropped, added=added, skipped=folded.skipped, doomed=doomed)

    def merge(self, tables: Sequence[pa.Table]) -> pa.Table:
        """The rows of several runs as those of one."""
        return self.groups.merge(tables)

    def touches(self, low: int | None, high: int | None, orders: Orders) -> bool:
        """Whether some closer can match a row of the run, judged by what the manifest says of it."""
        for closer in orders.release[0]:
            frontier = frontier_of(closer, self.closing)
            if frontier is None or low is None or self.closing is None:
                return True
            bound, inclusive = frontier
            at = tick(bound, self.output_schema.type_of(self.closing))
            if low < at or (inclusive and low == at):
                return True
        return False

    def _units(self, table: pa.Table) -> Iterator[Fresh]:
        """Rows, sorted by the closing attribute, as one run per group of windows."""
        column = table[self.closing] if self.closing is not None else None
        if column is None or not is_tickable(column.type) or column.null_count:
            yield Fresh(0, table)
            return
        values = ticks(column)
        window = self.groups.window
        slide = getattr(window, "slide", None)
        if slide is None:
            cuts, numbers = [0, len(values)], [0]
        else:
            group = (values - window.origin) // (slide * UNIT_WINDOWS)  # type: ignore[union-attr]
            starts = [0, *((group[1:] != group[:-1]).nonzero()[0] + 1).tolist()]
            cuts, numbers = [*starts, len(values)], [int(group[s]) for s in starts]
        for k, number in enumerate(numbers):
            part = table.slice(cuts[k], cuts[k + 1] - cuts[k])
            yield Fresh(0, part, number, int(values[cuts[k]]), int(values[cuts[k + 1] - 1]))
