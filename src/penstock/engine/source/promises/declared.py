"""Whether the promises of a source make sense together."""

from __future__ import annotations

from penstock.errors import UserError
from penstock.operators.source.operator import Source
from penstock.plan.promise import Adaptive, After, Disorder, Every, WhenAll, WithinRows


def check_declared(source: Source) -> None:
    """What only the declarations together can tell."""
    ordered = {p.attribute for p in source.promises if isinstance(p, Disorder | Adaptive)}
    known = {
        *ordered,
        *(p.attribute for p in source.promises if isinstance(p, WithinRows)),
        *(p.past for p in source.promises if isinstance(p, WhenAll)),
    }
    for promise in source.promises:
        needed = ordered if isinstance(promise, After) else known
        if isinstance(promise, After | Every) and promise.attribute not in needed:
            raise UserError(
                f"stream '{source.name}': {promise}, but nothing says how far '{promise.attribute}' is complete",
                hint=f"declare its order: disorder('5 s', on='{promise.attribute}')",
            )
