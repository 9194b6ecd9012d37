"""Parts of bounds that operators have in common: the least of what is known, and paces under other names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import product

from penstock.contract.flow import Tags
from penstock.contract.rates import Delay, Rates
from penstock.contract.size import Bound, said
from penstock.plan.domain import domains_behind
from penstock.plan.operator import Operator

#: Rows of one group that are kept until they are merged: the parts of as many epochs.
PARTS = 16


def least(
    below: Rates,
    term: Delay | None,
    by_rate: int | None,
    by_keys: int | None,
    many: str,
    missing: tuple[str, ...],
    width: int | None,
    delay: int | None,
) -> Bound:
    """The smaller of two bounds, if both are known. Parts of a group are merged now and then, so it is stored often."""
    ticks = None if term is None else term.ticks
    if by_keys is not None and (by_rate is None or by_keys <= by_rate):
        stored = by_keys * PARTS if by_rate is None else min(by_rate, by_keys * PARTS)
        return replace(sized(by_keys, width, delay, (), many), stored=stored)
    if by_rate is not None and ticks is not None:
        return sized(by_rate, width, delay, (), said(below, ticks))
    lacks = [term.lacks] if term is not None and term.lacks else [x for x in (below.lacks,) if x]
    if lacks and missing and ticks is not None:
        lacks = [f"{lacks[0]} or {' and '.join(missing)}"]
    return Bound(None, None, None, delay, lacks=tuple(lacks))


def sized(rows: int | None, width: int | None, delay: int | None, lacks: tuple[str, ...], why: str) -> Bound:
    if rows is None:
        return Bound(None, None, None, delay, lacks=lacks)
    return Bound(rows, rows, None if width is None else rows * width, delay, why=why)


def times(count: int | None, factor: int) -> int | None:
    return None if count is None else count * factor


def why(*parts: str) -> str:
    return " × ".join(p for p in parts if p)


def owner(pace: Rates) -> str:
    return " and ".join(sorted(pace.sources)) or "the stream"


def passing_rates(operator: Operator, below: Rates) -> Rates:
    """Behind an operator that lets events pass or drops them: filters are taken to let everything pass."""
    return replace(below, schema=operator.schema, finite=domains_behind(operator, [below.finite]))


def renamed(pace: Rates, operator: Operator, names: Mapping[str, tuple[str, ...]]) -> Rates:
    """What is known of attributes under other names; what is gone, is gone."""
    terms: dict[Tags, Delay] = {}
    for tags, term in pace.on(names).items():
        parts = sorted(tags)
        for chosen in product(*(names[n] for n, _ in parts)):
            terms[frozenset((new, c) for new, (_, c) in zip(chosen, parts, strict=True))] = term
    return replace(
        pace,
        schema=operator.schema,
        terms=terms,
        moment=frozenset(new for n in pace.moment for new in names.get(n, ())),
        values={new: count for n, count in pace.values.items() for new in names.get(n, ())},
        finite=domains_behind(operator, [pace.finite] * len(operator.inputs)),
        unique=frozenset(frozenset(names[n][0] for n in u) for u in pace.unique if all(n in names for n in u)),
    )
