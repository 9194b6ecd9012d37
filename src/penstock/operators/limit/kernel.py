"""The first n rows, in order of arrival.

State is one row with one number: how many have been let through. All rows go to one bucket, so "first" has a meaning:
rows come in the order of sources, splits and rows of an epoch, epoch after epoch. When the number is n, every further
row is dropped, so those upstream are told once that none is wanted: `not [*, …]`. They may take notice or not, with
the same results. For that to hold, it does not matter which rows they drop.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from penstock.kernels.stateful import Answer, Fresh, Held, Orders, Stepped
from penstock.operators.limit.operator import Limit
from penstock.pattern.feedback import Feedback, Intent
from penstock.pattern.pattern import Pattern

#: The one column of the state.
TAKEN = "taken"


class LimitKernel:
    """The first rows. An asked question is answered with the number let through, which is all there is to know.

    >>> from penstock.pattern.punctuation import PunctuationSet
    >>> from penstock.pattern.schema import Schema
    >>> schema = Schema.parse("n int")
    >>> kernel = LimitKernel(Limit((), schema, count=3), "limit-1")
    >>> rows = pa.table({"n": [5, 6]}, schema=schema.arrow)
    >>> nothing = Orders(release=((),), settled=(PunctuationSet(schema),))
    >>> first = kernel.step([rows], [[]], nothing)
    >>> second = kernel.step([rows], [[Held("run", first.added[0].rows)]], nothing)
    >>> first.output["n"].to_pylist(), second.output["n"].to_pylist(), *map(str, second.issued)
    ([5, 6], [5], 'not [*]')
    """

    def __init__(self, operator: Limit, operator_id: str) -> None:
        self.operator_id = operator_id
        self.schema, self.count = operator.schema, operator.count
        self.talks = operator.switches.propagate
        self.spread: tuple[tuple[str, ...], ...] = ((),)
        self.needed: tuple[tuple[str, ...] | None, ...] = (None,)

    def shrink(self, rows: pa.Table) -> pa.Table:
        """Of what arrives together, no more than the first n can be among the first n."""
        return rows.slice(0, self.count)

    def step(self, fresh: Sequence[pa.Table | None], held: Sequence[Sequence[Held]], orders: Orders) -> Stepped:
        """Let through what there is room for."""
        rows = fresh[0] if fresh[0] is not None else self.schema.arrow.empty_table()
        before = sum(pc.sum(run.rows[TAKEN]).as_py() or 0 for run in held[0])
        output = rows.slice(0, max(self.count - before, 0)).select(self.schema.names)
        taken = before + output.num_rows
        over = any(not p.restricted for p in orders.release[0])
        changed = taken != before
        full = changed and taken == self.count and self.talks
        return Stepped(
            output=output,
            dropped=tuple(run.name for run in held[0]) if changed or over else (),
            added=(Fresh(0, pa.table({TAKEN: pa.array([taken], pa.int64())})),) if changed and not over else (),
            answers=(tuple(Answer(taken) for _ in orders.ask[0]) if orders.ask else (),),
            counts={"beyond": rows.num_rows - output.num_rows},
            issued=(Feedback(Intent.ASSUMED, Pattern.all(self.schema)),) if full and not over else (),
        )
