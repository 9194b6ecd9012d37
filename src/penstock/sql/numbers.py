"""The functions of numbers."""

# ruff: noqa: E501 - a row of a table or a template of SQL reads best as one line.
from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pyarrow as pa

from penstock.sql.arithmetic import arithmetic, negative, overflows
from penstock.sql.cast import cast
from penstock.sql.function import Function, function
from penstock.sql.term import (
    BIG,
    BOOLEAN,
    DOUBLE,
    FLOAT,
    INT,
    INTEGERS,
    STRING,
    Term,
    Unfit,
    as_decimal_type,
    attempted,
    common,
    duck,
    fill,
    forced,
    is_decimal,
    raising,
    real,
    shown,
)


def _abs(a: Term) -> Term:
    if a.type in INTEGERS:
        return fill(f"CASE WHEN {{0}} < 0 THEN CAST(0 AS {duck(a.type)}) - {{0}} ELSE {{0}} END", a, type=a.type)
    if is_decimal(a.type) and a.type.precision > 34:
        raise Unfit("abs(…) of more than 34 digits, which Spark rounds", "use if(x < 0, -x, x)")
    return fill("abs({0})", a, type=a.type)


def _whole(name: str) -> Callable[[Term], Term]:
    """Floor and ceiling: a bigint of doubles and integers, fewer digits of decimals."""

    def made(a: Term) -> Term:
        if a.type in INTEGERS:
            return forced(a, BIG) if a.type != BIG else a
        if is_decimal(a.type):
            whole = a.type.precision - a.type.scale
            t = pa.decimal128(min(38, whole + 1) if a.type.scale else a.type.precision, 0)
            return Term(f"CAST({name}({a.sql}) AS {duck(t)})", t, closed=True)
        # Java's conversion makes zero of what is not a number.
        return fill(f"CASE WHEN isnan({{0}}) THEN 0 ELSE CAST({name}({{0}}) AS BIGINT) END", a, type=BIG)

    return made


def _round(name: str) -> Callable[..., Term]:
    """Rounding, of doubles by the digits that are shown: 2.675 to two places is 2.68."""

    def made(a: Term, places: Term | None = None) -> Term:
        n = 0 if places is None else places.value
        if a.type in INTEGERS:
            if n < 0:
                raise Unfit(f"round(…, {n}) of whole numbers is not available", f"use {10**-n} * round(x / {10**-n}D)")
            return a
        if is_decimal(a.type):
            t = a.type
            if n < 0:
                raise Unfit(f"round(…, {n}) is not available", f"use {10**-n} * round(x / {10**-n})")
            kept = min(t.scale, n)
            result = pa.decimal128(min(38, t.precision - t.scale + 1 + kept), kept)
            if kept == t.scale:
                return Term(f"CAST({a.sql} AS {duck(result)})", result, closed=True)
            return Term(f"CAST({name}({a.sql}, {kept}) AS {duck(result)})", result, closed=True)
        if not 0 <= n <= 15:
            raise Unfit(
                f"round(…, {n}) of a double is not available",
                "0 to 15 places are; round(x / 100) * 100 rounds hundreds",
            )
        if a.type == FLOAT:
            raise Unfit("round(…) of a float is not available", "cast it to double or decimal first")
        digits = "CAST(CAST({0} AS VARCHAR) AS DECIMAL(38,%d))"
        template = (
            "CASE WHEN NOT isfinite({0}) OR abs({0}) >= 4503599627370496e0 THEN {0}"
            f" WHEN abs({{0}}) < 1 THEN CAST({name}({digits % 36}, {n}) AS DOUBLE)"
            f" ELSE CAST(CAST({name}({digits % 20}, {n}) AS VARCHAR) AS DOUBLE) END"
        )
        return fill(template, a, type=DOUBLE)

    return made


def _log(a: Term, b: Term | None = None) -> Term:
    if b is None:
        return fill("CASE WHEN {0} > 0 THEN ln({0}) END", a, type=DOUBLE)
    return fill("CASE WHEN {0} > 0 AND {1} > 0 THEN ln({1}) / ln({0}) END", a, b, type=DOUBLE)


def _pmod(a: Term, b: Term) -> Term:
    t = common(a, b)
    if t not in INTEGERS:
        raise Unfit("pmod(…) is available for whole numbers only", "use a - b * floor(a / b)")
    a, b = forced(a, t), forced(b, t)
    wide = Term(f"CAST({a.sql} AS HUGEINT)", t, closed=True)
    template = (
        f"CASE WHEN {{1}} = 0 THEN CASE WHEN {{0}} IS NOT NULL THEN {raising('remainder by zero', t)} END"
        # Java's sum wraps around below the smallest number.
        f" WHEN {{0}} % {{1}} + {{1}} < {-(1 << (t.bit_width - 1))}"
        f" THEN CAST(({{0}} % {{1}} + {{1}} + {1 << t.bit_width}) % {{1}} AS {duck(t)})"
        f" WHEN {{0}} % {{1}} < 0 THEN CAST(({{0}} % {{1}} + {{1}}) % {{1}} AS {duck(t)})"
        f" ELSE CAST({{0}} % {{1}} AS {duck(t)}) END"
    )
    return fill(template, wide, b, type=t)


def _mod(a: Term, b: Term) -> Term:
    return arithmetic("%", a, b)


def _trying(operator: str) -> Callable[[Term, Term], Term]:
    def made(a: Term, b: Term) -> Term:
        raised = arithmetic(operator, a, b)
        if is_decimal(raised.type) and overflows(operator, as_decimal_type(a), as_decimal_type(b)):
            raise Unfit(
                f"{operator} of a {shown(a.type)} and a {shown(b.type)} may need more than 38 digits",
                "cast one of them to fewer digits, or to double",
            )
        return attempted(partial(arithmetic, operator), a, b)

    return made


def _trig(name: str, *, finite: bool = False) -> str:
    """DuckDB raises for infinity where Java says that it is not a number."""
    return (
        f"CASE WHEN isfinite({{0}}) THEN {name}({{0}}) WHEN {{0}} IS NOT NULL THEN CAST('nan' AS DOUBLE) END"
        if finite
        else f"{name}({{0}})"
    )


def _inside(name: str, low: str, high: str) -> str:
    return f"CASE WHEN {{0}} >= {low} AND {{0}} <= {high} THEN {name}({{0}}) WHEN {{0}} IS NOT NULL THEN CAST('nan' AS DOUBLE) END"


def _nanvl(a: Term, b: Term) -> Term:
    return fill("CASE WHEN isnan({0}) THEN {1} ELSE {0} END", a, b, type=DOUBLE)


def _sign(a: Term) -> Term:
    return fill(
        "CASE WHEN isnan({0}) OR {0} = 0 THEN {0} ELSE CAST(sign({0}) AS DOUBLE) END", cast(a, DOUBLE), type=DOUBLE
    )


def _hex(a: Term) -> Term:
    return fill(
        "CASE WHEN {0} >= 0 THEN upper(to_hex({0})) ELSE upper(to_hex(CAST({0} AS HUGEINT) + 18446744073709551616)) END",
        forced(a, BIG),
        type=STRING,
    )


def _bits(operator: str) -> Callable[[Term, Term], Term]:
    def made(a: Term, b: Term) -> Term:
        t = common(a, b)
        if t not in INTEGERS:
            raise Unfit(f"{operator} needs whole numbers", "cast both sides: cast(… as bigint)")
        a, b = forced(a, t), forced(b, t)
        if operator == "^":
            return Term(f"xor({a.sql}, {b.sql})", t, closed=True)
        return Term(f"{a.inner} {operator} {b.inner}", t)

    return made


BITS = {"&": _bits("&"), "|": _bits("|"), "^": _bits("^")}


def bit_not(a: Term) -> Term:
    if a.type not in INTEGERS:
        raise Unfit("~ needs a whole number", "cast it: cast(… as bigint)")
    return Term(f"~{a.inner}", a.type)


def _shift(side: str) -> Callable[[Term, Term], Term]:
    """Java's shifts: by the last five or six bits of the count; what leaves on the left is gone."""

    def made(a: Term, n: Term) -> Term:
        a = a if a.type == BIG else forced(a, INT)
        bits = a.type.bit_width
        if side == "right":
            return fill(f"{{0}} >> CAST({{1}} & {bits - 1} AS {duck(a.type)})", a, n, type=a.type)
        half, all_ = 1 << (bits - 1), 1 << bits
        # In 128 bits, without those that leave, and back into the range with a sign.
        kept = f"((({{0}} & CAST((CAST(1 AS HUGEINT) << ({bits} - ({{1}} & {bits - 1}))) - 1 AS HUGEINT)) * (CAST(1 AS HUGEINT) << ({{1}} & {bits - 1})) + {half}) % {all_}) - {half}"
        wide = Term(f"CAST({a.sql} AS HUGEINT)", a.type, closed=True)
        return fill(
            f"CAST({kept} AS {duck(a.type)})", wide, Term(f"CAST({n.sql} AS HUGEINT)", BIG, closed=True), type=a.type
        )

    return made


def _same(a: Term) -> Term:
    return a


_D = "double"
#: Near zero by their series: the plain difference would lose its digits.
_EXPM1 = (
    "CASE WHEN abs({0}) < 1e-5 THEN {0} + {0} * {0} / 2e0 + {0} * {0} * {0} / 6e0"
    " WHEN abs({0}) < 0.5e0 THEN 2e0 * sinh({0} / 2e0) * exp({0} / 2e0) ELSE exp({0}) - 1e0 END"
)
_LOG1P = (
    "CASE WHEN {0} <= -1 THEN NULL WHEN abs({0}) < 1e-5 THEN {0} - {0} * {0} / 2e0 + {0} * {0} * {0} / 3e0"
    " WHEN abs({0}) < 0.5e0 THEN 2e0 * atanh({0} / (2e0 + {0})) ELSE ln(1e0 + {0}) END"
)
#: With one of Newton's steps: the C library may be four units in the last place away, Java is one at most.
_CBRT = (
    "CASE WHEN {0} = 0 OR NOT isfinite({0}) THEN cbrt({0})"
    " ELSE cbrt({0}) - (cbrt({0}) - {0} / (cbrt({0}) * cbrt({0}))) / 3e0 END"
)
NUMBERS: tuple[Function, ...] = (
    *function("abs", "numbers", ("number", DOUBLE, _abs)),
    *function("negative", "numbers", ("number", DOUBLE, negative)),
    *function("positive", "numbers", ("number", DOUBLE, _same)),
    *function("sign signum", "numbers", ("number", DOUBLE, _sign)),
    *function("floor", "numbers", ("number", BIG, _whole("floor"))),
    *function("ceil ceiling", "numbers", ("number", BIG, _whole("ceil"))),
    *function(
        "round", "numbers", ("number, int!?", DOUBLE, _round("round")), note="halves away from zero; 0 to 15 places"
    ),
    *function(
        "bround",
        "numbers",
        ("number, int!?", DOUBLE, _round("round_even")),
        note="halves to the even side; 0 to 15 places",
    ),
    *function(
        "rint",
        "numbers",
        (_D, DOUBLE, "CASE WHEN isfinite({0}) AND abs({0}) < 4503599627370496e0 THEN round_even({0}, 0) ELSE {0} END"),
    ),
    *function("sqrt", "numbers", (_D, DOUBLE, "CASE WHEN {0} < 0 THEN CAST('nan' AS DOUBLE) ELSE sqrt({0}) END")),
    *function("cbrt", "numbers", (_D, DOUBLE, _CBRT), close=2),
    *function("exp", "numbers", (_D, DOUBLE, "exp({0})"), close=2),
    *function("expm1", "numbers", (_D, DOUBLE, _EXPM1), close=16),
    *function("log1p", "numbers", (_D, DOUBLE, _LOG1P), close=16),
    *function("ln", "numbers", (_D, DOUBLE, _log), close=2),
    *function("log", "numbers", ("double, double?", DOUBLE, _log), close=5),
    *function("log2", "numbers", (_D, DOUBLE, "CASE WHEN {0} > 0 THEN log2({0}) END"), close=2),
    *function("log10", "numbers", (_D, DOUBLE, "CASE WHEN {0} > 0 THEN log10({0}) END"), close=2),
    *function("pow power", "numbers", ("double, double", DOUBLE, "pow({0}, {1})"), close=2),
    *function("sin", "numbers", (_D, DOUBLE, _trig("sin", finite=True)), close=2),
    *function("cos", "numbers", (_D, DOUBLE, _trig("cos", finite=True)), close=2),
    *function("tan", "numbers", (_D, DOUBLE, _trig("tan", finite=True)), close=2),
    *function("asin", "numbers", (_D, DOUBLE, _inside("asin", "-1", "1")), close=2),
    *function("acos", "numbers", (_D, DOUBLE, _inside("acos", "-1", "1")), close=2),
    *function("atan", "numbers", (_D, DOUBLE, "atan({0})"), close=2),
    *function(
        "atan2",
        "numbers",
        ("double, double", DOUBLE, "CASE WHEN {0} = 0 THEN atan2(0e0, {1}) ELSE atan2({0}, {1}) END"),
        close=2,
    ),
    *function("sinh", "numbers", (_D, DOUBLE, "sinh({0})"), close=4),
    *function("cosh", "numbers", (_D, DOUBLE, "cosh({0})"), close=4),
    *function("tanh", "numbers", (_D, DOUBLE, "tanh({0})"), close=4),
    *function("degrees", "numbers", (_D, DOUBLE, "degrees({0})"), close=2),
    *function("radians", "numbers", (_D, DOUBLE, "radians({0})"), close=2),
    *function("pi", "numbers", ("", DOUBLE, lambda: real(3.141592653589793))),
    *function("e", "numbers", ("", DOUBLE, lambda: real(2.718281828459045))),
    *function(
        "hypot",
        "numbers",
        (
            "double, double",
            DOUBLE,
            "CASE WHEN isinf({0}) OR isinf({1}) THEN CASE WHEN {0} IS NOT NULL AND {1} IS NOT NULL THEN CAST('inf' AS DOUBLE) END WHEN abs({0}) > 1e150 OR abs({1}) > 1e150 THEN sqrt(({0} / 1e160) * ({0} / 1e160) + ({1} / 1e160) * ({1} / 1e160)) * 1e160 WHEN abs({0}) < 1e-140 AND abs({1}) < 1e-140 THEN sqrt(({0} * 1e160) * ({0} * 1e160) + ({1} * 1e160) * ({1} * 1e160)) / 1e160 ELSE sqrt({0} * {0} + {1} * {1}) END",
        ),
        close=4,
    ),
    *function(
        "factorial", "numbers", ("int", BIG, "CASE WHEN {0} BETWEEN 0 AND 20 THEN CAST(factorial({0}) AS BIGINT) END")
    ),
    *function("mod", "numbers", ("number, number", DOUBLE, _mod), note="raises for a divisor of zero"),
    *function("pmod", "numbers", ("integral, integral", BIG, _pmod), note="of whole numbers"),
    *function(
        "bin",
        "numbers",
        (
            "integral",
            STRING,
            lambda a: fill(
                "CASE WHEN {0} >= 0 THEN to_binary({0}) ELSE to_binary(CAST({0} AS HUGEINT) + 18446744073709551616) END",
                forced(a, BIG),
                type=STRING,
            ),
        ),
    ),
    *function(
        "bit_count",
        "numbers",
        ("integral", INT, lambda a: Term(f"CAST(bit_count({forced(a, BIG).sql}) AS INTEGER)", INT, closed=True)),
    ),
    *function("shiftleft", "numbers", ("integral, int", BIG, _shift("left"))),
    *function("shiftright", "numbers", ("integral, int", BIG, _shift("right"))),
    *function("isnan", "numbers", (_D, BOOLEAN, "coalesce(isnan({0}), FALSE)")),
    *function("nanvl", "numbers", ("double, double", DOUBLE, _nanvl)),
    *function("try_add", "numbers", ("number, number", DOUBLE, _trying("+")), note="null where + raises"),
    *function("try_subtract", "numbers", ("number, number", DOUBLE, _trying("-")), note="null where - raises"),
    *function(
        "try_multiply",
        "numbers",
        ("number, number", DOUBLE, _trying("*")),
        note="null where * raises; of decimals with up to 38 digits together",
    ),
    *function(
        "try_divide",
        "numbers",
        ("number, number", DOUBLE, _trying("/")),
        note="null where / raises; of decimals whose quotient needs up to 38 digits",
    ),
    *function("try_mod", "numbers", ("number, number", DOUBLE, _trying("%")), note="null where % raises"),
)
#: `hex` of a number; of texts and bytes it is among the hashes.
HEX = _hex
