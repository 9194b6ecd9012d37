"""What tasks do with the events of this operator."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from penstock.kernels.step import Keeping, Rows
from penstock.kernels.weights import net
from penstock.operators.aggregate.folding import grouping_kernel
from penstock.operators.aggregate.kernel import AggregateKernel
from penstock.operators.aggregate.step import GroupKeeping
from penstock.operators.revised_aggregate.kernel import AddingKernel, ChangingKernel, GrowingKernel
from penstock.operators.revised_aggregate.operator import RevisedAggregate
from penstock.operators.revised_aggregate.weighing import WeighingKernel
from penstock.plan.weight import without_weight
from penstock.sql.fallible import Fallible


class ChangesKeeping(Keeping):
    """Rows that may be taken back travel as they are; those that cancel each other out stay at home."""

    kernel: ChangingKernel

    @property
    def tried(self) -> tuple[Fallible, ...]:
        return self.kernel.groups.tried

    def sent(self, port: int, rows: Rows, careful: bool) -> pa.Table:
        found = net([super().sent(port, rows, careful)])
        if not careful:
            self.kernel.groups.try_all(found)
        return found

    def together(self, tables: Sequence[pa.Table]) -> pa.Table:
        return net(tables)


def step_of(operator: RevisedAggregate, node_id: str) -> Keeping:
    """What tasks do: see `penstock.kernels.step`."""
    if not operator.of_changes:
        groups = grouping_kernel(operator, node_id, AggregateKernel)
        return GroupKeeping(GrowingKernel(groups, groups.keys or groups.grouping))
    (below,) = operator.inputs
    if operator.by_parts:
        adding = WeighingKernel(below.schema, operator.keys, operator.aggregations, node_id)
        return GroupKeeping(AddingKernel(adding, operator.without_label or operator.keys))
    groups = AggregateKernel(without_weight(below.schema), operator.keys, operator.aggregations, operator_id=node_id)
    return ChangesKeeping(ChangingKernel(groups, operator.without_label or operator.keys), [below.schema])
