"""The functions that choose between values and ask whether they are there."""

from __future__ import annotations

from collections.abc import Callable

from penstock.sql.compare import chosen, compared, condition, meeting, unified
from penstock.sql.function import Function, function
from penstock.sql.term import BOOLEAN, DOUBLE, FLOAT, INT, NULL, Term, Unfit


def _if(c: Term, a: Term, b: Term) -> Term:
    return chosen([(condition(c), a)], b)


def _coalesce(*terms: Term) -> Term:
    same = unified(terms)
    return Term(f"coalesce({', '.join(t.sql for t in same)})", same[0].type, closed=True)


def _nullif(a: Term, b: Term) -> Term:
    test = compared("=", a, b)
    if a.type == NULL:
        return a
    return Term(f"CASE WHEN {test.sql} THEN NULL ELSE {a.sql} END", a.type, closed=True)


def _extreme(name: str) -> Callable[..., Term]:
    def made(*terms: Term) -> Term:
        if len(terms) < 2:
            raise Unfit(f"{name}(…) has one value", "it needs two or more")
        same = unified(terms)
        t = same[0].type
        if t == NULL:
            return same[0]
        if t in (DOUBLE, FLOAT):
            # NaN is the greatest here and in Spark; DuckDB's own function agrees.
            pass
        return Term(f"{name}({', '.join(s.sql for s in same)})", t, closed=True)

    return made


def _is_null(a: Term) -> Term:
    return Term(f"{a.inner} IS NULL", BOOLEAN)


def _is_not_null(a: Term) -> Term:
    return Term(f"{a.inner} IS NOT NULL", BOOLEAN)


def same(a: Term, b: Term) -> Term:
    """Equal, or both null."""
    a, b = meeting(a, b)
    return Term(f"{a.inner} IS NOT DISTINCT FROM {b.inner}", BOOLEAN)


def _null_if_zero(a: Term) -> Term:
    return _nullif(a, Term("0", INT, 0))


def _zero_if_null(a: Term) -> Term:
    return _coalesce(a, Term("0", INT, 0))


CONDITIONS: tuple[Function, ...] = (
    *function("if", "conditions", ("any, any, any", DOUBLE, _if)),
    *function("coalesce", "conditions", ("any*", DOUBLE, _coalesce)),
    *function("nvl ifnull", "conditions", ("any, any", DOUBLE, _coalesce)),
    *function("nvl2", "conditions", ("any, any, any", DOUBLE, lambda a, b, c: chosen([(_is_not_null(a), b)], c))),
    *function("nullif", "conditions", ("any, any", DOUBLE, _nullif)),
    *function("nullifzero", "conditions", ("number", DOUBLE, _null_if_zero)),
    *function("zeroifnull", "conditions", ("number", DOUBLE, _zero_if_null)),
    *function("greatest", "conditions", ("any*", DOUBLE, _extreme("greatest"))),
    *function("least", "conditions", ("any*", DOUBLE, _extreme("least"))),
    *function("isnull", "conditions", ("any", BOOLEAN, _is_null)),
    *function("isnotnull", "conditions", ("any", BOOLEAN, _is_not_null)),
    *function("equal_null", "conditions", ("any, any", BOOLEAN, same)),
)
