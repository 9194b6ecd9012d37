"""What sinks ask for that take results which may be corrected in another form than change by change."""

from __future__ import annotations

from penstock.operators.fold.operator import Fold
from penstock.operators.project.operator import Project
from penstock.operators.settle.operator import Settle
from penstock.pattern.schema import SYNC
from penstock.plan.operator import Operator
from penstock.sql.expression import Expression


def settled(told: Operator, keys: tuple[str, ...] | None) -> Operator:
    """Only results that can no longer change; `keys` tell them apart."""
    return _without_sync(Settle.over(told, keys))


def folded(told: Operator, keys: tuple[str, ...] | None, by: tuple[str, ...]) -> Operator:
    """The table as it is now, laid out by some attributes."""
    return _without_sync(Fold.over(told, keys, by))


def _without_sync(held: Operator) -> Operator:
    """Rows that hold for a time without the moment at which a change begins to matter: it is of changes alone."""
    if SYNC not in held.schema:
        return held
    schema = held.schema.select([n for n in held.schema.names if n != SYNC])
    columns = tuple((n, Expression.parse(f"`{n.replace('`', '``')}`", held.schema)) for n in schema.names)
    return Project((held,), schema, columns=columns)
