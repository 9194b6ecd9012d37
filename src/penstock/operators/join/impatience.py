"""What an impatient join would like to come first: partners of the rows that wait for one."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from penstock.kernels.stateful import Fresh
from penstock.operators.join.operator import Joined
from penstock.pattern.feedback import Feedback, Intent
from penstock.pattern.fit import fitted
from penstock.pattern.pattern import Pattern
from penstock.pattern.restriction import one_of

#: Keys that are named in one epoch and bucket.
WISHES = 256


def wishes(join: Joined, added: Sequence[Fresh]) -> tuple[tuple[int, Feedback], ...]:
    """For the rows that begin to wait: a list of keys, as a wish to the other input."""
    found: list[tuple[int, Feedback]] = []
    for port, name in enumerate(join.keys[0]):
        stored = [run.rows[name] for run in added if run.port == port and name in run.rows.column_names]
        values = pc.unique(pa.chunked_array(stored)).drop_null()[:WISHES].to_pylist() if stored else []
        values = [v for v in values if v == v]
        if values:
            other, key = join.inputs[1 - port].schema, join.keys[0][1 - port]
            wish = Pattern.by_name(other, {key: fitted(one_of(values), other.type_of(key))})
            found += [(1 - port, Feedback(Intent.DESIRED, wish))] if not wish.is_empty else []
    return tuple(found)
