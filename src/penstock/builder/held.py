"""What sinks ask for that take results which may be corrected in another form than change by change."""

from __future__ import annotations

from penstock.operators.fold.operator import Fold
from penstock.operators.settle.operator import Settle
from penstock.plan.operator import Operator


def settled(told: Operator, keys: tuple[str, ...] | None) -> Operator:
    """Only results that can no longer change; `keys` tell them apart."""
    return Settle.over(told, keys)


def folded(told: Operator, keys: tuple[str, ...] | None, by: tuple[str, ...]) -> Operator:
    """The table as it is now, laid out by some attributes."""
    return Fold.over(told, keys, by)
