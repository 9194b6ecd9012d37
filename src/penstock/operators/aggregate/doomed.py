"""Groups that are bound to match a feedback on their value, whatever is still to come.

A count only grows, so a group that has `n >= 50` already will have it when it is complete. Which values are of this
kind the algebra decides; here they are looked up.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from penstock.kernels.fold import matching
from penstock.pattern.pattern import Pattern
from penstock.pattern.restriction import equal, one_of

if TYPE_CHECKING:
    from penstock.operators.aggregate.kernel import AggregateKernel

#: As many groups are told at once; the others will be found again, or be complete before that.
GROUPS = 4_096
PATTERNS = 64


def doomed_groups(kernel: AggregateKernel, partials: Sequence[pa.Table], sweep: Sequence[Pattern]) -> list[Pattern]:
    """Patterns over the groups whose value, as it is now, matches one of `sweep`.

    Each of the partials has one row for a group.
    """
    asked = {n for p in sweep for n in p.restricted}
    some = [t for t in partials if t.num_rows]
    if not some:
        return []
    now = kernel.values(some[0] if len(some) == 1 else kernel.merge(some), sorted(asked))
    found = now.filter(matching(now, sweep)).select(list(kernel.grouping))
    # No pattern names a null, NaN or a group of everything: such groups are left alone.
    found = found.drop_null()
    for name in kernel.grouping:
        if pa.types.is_floating(found[name].type):
            found = found.filter(pc.invert(pc.is_nan(found[name])))
    found = found.slice(0, GROUPS)
    if not found.num_rows or not kernel.grouping:
        return []
    *first, last = kernel.grouping
    schema = kernel.output_schema
    if not first:
        return [Pattern.by_name(schema, {last: one_of(found[last].to_pylist())})]
    lists = found.group_by(first).aggregate([(last, "distinct")]).slice(0, PATTERNS)
    return [
        Pattern.by_name(schema, {**{n: equal(row[n]) for n in first}, last: one_of(row[f"{last}_distinct"])})
        for row in lists.to_pylist()
    ]
