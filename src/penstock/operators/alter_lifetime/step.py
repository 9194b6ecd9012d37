"""What tasks do with the events of this operator."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from penstock.kernels.step import Noting, TableStep
from penstock.kernels.weights import synced
from penstock.operators.alter_lifetime.operator import AlterLifetime
from penstock.operators.shared.stock import FOREVER, ends_of, moments, starts_of
from penstock.pattern.schema import SYNC
from penstock.plan.weight import WEIGHT


class AlterLifetimeStep(TableStep):
    """New lifetimes from old ones; a retraction that ends nothing any sooner says nothing."""

    def __init__(self, operator: AlterLifetime) -> None:
        self.operator = operator
        self.takes = self.given = operator.inputs[0].schema
        self.start, self.end = self.given.lifetime

    def run(self, rows: pa.Table, noting: Noting) -> pa.Table:
        operator = self.operator
        start, end = starts_of(rows[self.start]), ends_of(rows[self.end])
        begin = start // operator.every * operator.every if operator.every else start
        lasting = end == FOREVER
        match operator.rule:
            case "length":
                stop = begin + operator.ticks
            case "extend":
                stop = begin + np.where(lasting, 0, end - start) + operator.ticks
                stop = np.where(lasting, FOREVER, stop)
            case "at_most":
                held = np.where(lasting, operator.ticks, end - np.where(lasting, 0, start))
                stop = begin + np.minimum(held, operator.ticks)
            case "inserts":
                stop = np.full(len(begin), FOREVER)
            case "deletes":
                begin, stop = end, np.full(len(begin), FOREVER)
        kept = begin < stop
        kind = self.given.type_of(self.start)
        for name, at in ((self.start, begin), (self.end, stop)):
            rows = rows.set_column(rows.schema.get_field_index(name), name, moments(at, kind))
        rows = rows.drop_columns([SYNC]).filter(pa.array(kept))
        if WEIGHT in operator.schema:
            made = synced(rows, self.start, self.end)
        else:
            made = rows.append_column(SYNC, rows[self.start])
        return made.select(operator.schema.names).cast(operator.schema.arrow)
