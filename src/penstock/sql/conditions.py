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
    *function(
        "if",
        "conditions",
        ("any, any, any", DOUBLE, _if),
        tried=("if(i > 0, s, r)", "if(ok, i, l)", "if(ok, i, x)", "if(ok, m, i)", "if(ok, null, d)", "if(null, 1, 2)"),
    ),
    *function(
        "coalesce",
        "conditions",
        ("any*", DOUBLE, _coalesce),
        tried=(
            "coalesce(i, l)",
            "coalesce(s, r, 'x')",
            "coalesce(m, n)",
            "coalesce(i, 1.5)",
            "coalesce(null, d)",
            "coalesce(d, ts)",
            "coalesce(x, i)",
            "coalesce(m, 0)",
        ),
    ),
    *function(
        "nvl ifnull",
        "conditions",
        ("any, any", DOUBLE, _coalesce),
        tried=("nvl(i, j)", "nvl(s, 'none')", "ifnull(x, 0)"),
    ),
    *function(
        "nvl2",
        "conditions",
        ("any, any, any", DOUBLE, lambda a, b, c: chosen([(_is_not_null(a), b)], c)),
        tried=("nvl2(i, s, 'none')", "nvl2(s, i, l)"),
    ),
    *function(
        "nullif",
        "conditions",
        ("any, any", DOUBLE, _nullif),
        tried=("nullif(i, j)", "nullif(s, 'a')", "nullif(x, 0)", "nullif(i, 0)"),
    ),
    *function(
        "nullifzero",
        "conditions",
        ("number", DOUBLE, _null_if_zero),
        tried=("nullifzero(i)", "nullifzero(x)", "nullifzero(m)"),
    ),
    *function(
        "zeroifnull",
        "conditions",
        ("number", DOUBLE, _zero_if_null),
        tried=("zeroifnull(i)", "zeroifnull(x)", "zeroifnull(m)"),
    ),
    *function(
        "greatest",
        "conditions",
        ("any*", DOUBLE, _extreme("greatest")),
        tried=(
            "greatest(i, j)",
            "greatest(i, l, t)",
            "greatest(x, y)",
            "greatest(s, r)",
            "greatest(d, ts)",
            "greatest(m, n)",
            "greatest(i, 1.5)",
            "greatest(ok, no)",
        ),
    ),
    *function(
        "least",
        "conditions",
        ("any*", DOUBLE, _extreme("least")),
        tried=(
            "least(i, j)",
            "least(i, l, t)",
            "least(x, y)",
            "least(s, r)",
            "least(d, ts)",
            "least(m, n)",
            "least(i, 1.5)",
        ),
    ),
    *function("isnull", "conditions", ("any", BOOLEAN, _is_null), tried=("isnull(i)", "isnull(s)", "isnull(x)")),
    *function("isnotnull", "conditions", ("any", BOOLEAN, _is_not_null), tried=("isnotnull(i)", "isnotnull(ts)")),
    *function(
        "equal_null",
        "conditions",
        ("any, any", BOOLEAN, same),
        tried=("equal_null(i, j)", "equal_null(s, r)", "equal_null(x, y)"),
    ),
)
