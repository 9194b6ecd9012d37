"""Times as texts, as numbers and as fields, and back."""

# ruff: noqa: E501 - a row of a table or a template of SQL reads best as one line.
from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from penstock.pattern.types import TIMESTAMP
from penstock.sql.cast import cast, try_cast
from penstock.sql.datetime_pattern import leniently, pieces, reading, writing
from penstock.sql.function import Function, function
from penstock.sql.term import (
    BIG,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    INTEGERS,
    STRING,
    Term,
    Unfit,
    attempted,
    fill,
    forced,
    is_decimal,
    is_number,
    one,
    raising,
    shown,
    text,
)


def _seconds(a: Term) -> Term:
    return fill("epoch_us(date_trunc('second', {0})) // 1000000", a, type=BIG)


def _from_seconds(a: Term) -> Term:
    if a.type in INTEGERS:
        return fill("make_timestamp(CAST({0} AS BIGINT) * 1000000)", a, type=TIMESTAMP)
    if a.type == FLOAT:
        a = forced(a, DOUBLE)
    if is_decimal(a.type):
        fails = raising("timestamp_seconds(…) of parts of a microsecond", TIMESTAMP)
        template = (
            f"CASE WHEN {{0}} * 1000000 = TRUNC({{0}} * 1000000) THEN make_timestamp(CAST({{0}} * 1000000 AS BIGINT))"
            f" WHEN {{0}} IS NOT NULL THEN {fails} END"
        )
        return fill(template, a, type=TIMESTAMP)
    return fill(
        "CASE WHEN isfinite({0}) THEN make_timestamp(CAST(TRUNC({0} * 1000000) AS BIGINT)) END", a, type=TIMESTAMP
    )


def _date_format(a: Term, pattern: Term) -> Term:
    template = writing(pattern.value)
    if any(kind == "letters" and what[0] in "yG" for kind, what in pieces(pattern.value)):
        fails = raising("a pattern with a year writes the years 1 to 9999", STRING)
        known = "{0} BETWEEN TIMESTAMP '0001-01-01' AND TIMESTAMP '9999-12-31 23:59:59.999999'"
        template = f"CASE WHEN {known} THEN {template} WHEN {{0}} IS NOT NULL THEN {fails} END"
    return fill(template, a, type=STRING)


def _parsed(s: Term, pattern: Term) -> Term:
    regex, duck_pattern = reading(pattern.value)
    fails = "CAST('!' || {0} || {3} AS TIMESTAMP)"
    template = (
        f"CASE WHEN regexp_full_match({{0}}, {{1}}) THEN strptime({{0}}, {{2}}) WHEN {{0}} IS NOT NULL THEN {fails} END"
    )
    return fill(
        template, s, text(regex), text(duck_pattern), text(f" is not written like {pattern.value}"), type=TIMESTAMP
    )


def _to_timestamp(a: Term, pattern: Term | None = None) -> Term:
    return cast(_read(a, pattern), TIMESTAMP)


def _to_date(a: Term, pattern: Term | None = None) -> Term:
    return cast(_read(a, pattern), DATE)


def _read(a: Term, pattern: Term | None) -> Term:
    if pattern is not None and is_number(a.type):
        raise Unfit(f"{one(a.type)} is not read with a pattern", "leave the pattern out, or cast it to string")
    return a if pattern is None or a.type != STRING else _parsed(a, pattern)


def _trying(make: Callable[..., Term], t: pa.DataType) -> Callable[..., Term]:
    """Null where Spark raises; what Spark may read and this does not still raises."""

    def made(a: Term, pattern: Term | None = None) -> Term:
        if a.type in (FLOAT, DOUBLE):
            raise Unfit(f"{one(a.type)} as an attempted {shown(t)} is not available", "use try_cast(x as timestamp)")
        if pattern is None or a.type != STRING:
            return try_cast(_read(a, pattern), t)
        regex, _ = reading(pattern.value)
        raised = make(a, pattern)
        tried = attempted(make, a, pattern)
        odd = "regexp_full_match({0}, {1}) AND NOT regexp_full_match({0}, {2})"
        return fill(
            f"CASE WHEN {odd} THEN {{3}} ELSE {{4}} END", a, text(leniently(regex)), text(regex), raised, tried, type=t
        )

    return made


def _unix_timestamp(a: Term, pattern: Term | None = None) -> Term:
    if a.type == STRING:
        return _seconds(_parsed(a, pattern or text("yyyy-MM-dd HH:mm:ss")))
    # Unlike unix_seconds, this one cuts off towards 1970.
    return fill("epoch_us({0}) // 1000000", a, type=BIG)


def _from_unixtime(n: Term, pattern: Term | None = None) -> Term:
    moment = fill("make_timestamp({0} * 1000000)", forced(n, BIG), type=TIMESTAMP)
    return _date_format(moment, pattern or text("yyyy-MM-dd HH:mm:ss"))


def _make_timestamp(*parts: Term) -> Term:
    *whole, second = parts
    if is_decimal(second.type) and second.type.scale > 6:
        raise Unfit("the seconds have more than six digits", "cast them to decimal(8,6)")
    exact = Term(f"CAST({second.sql} AS DECIMAL(16,6))", pa.decimal128(16, 6), closed=True)
    fails = raising("a field of make_timestamp(…) is out of range", TIMESTAMP)
    template = (
        f"CASE WHEN {{3}} NOT BETWEEN 0 AND 23 OR {{4}} NOT BETWEEN 0 AND 59 OR {{5}} < 0 OR {{5}} > 60"
        f" OR ({{5}} > 59 AND {{5}} < 60 AND FALSE) OR {{0}} NOT BETWEEN 1 AND 9999 THEN {fails}"
        " ELSE CAST(make_date({0}, {1}, {2}) AS TIMESTAMP) + to_hours({3}) + to_minutes({4})"
        " + to_microseconds(CAST({5} * 1000000 AS BIGINT)) END"
    )
    return fill(template, *whole, exact, type=TIMESTAMP)


def _make_date(y: Term, m: Term, d: Term) -> Term:
    return fill("make_date({0}, {1}, {2})", y, m, d, type=DATE)


CONVERTED: tuple[Function, ...] = (
    *function(
        "date_format",
        "times",
        ("timestamp, string!", STRING, _date_format),
        note="all letters but the week-based Y, w, W, F, u, e, c; with y or G, raises outside of the years 1 to 9999",
    ),
    *function(
        "to_date",
        "times",
        ("any, string!?", DATE, _to_date),
        note="raises also for years of other than four digits and zones by name; patterns of yyyy, MM, dd, HH, mm, ss and S",
    ),
    *function(
        "to_timestamp",
        "times",
        ("any, string!?", TIMESTAMP, _to_timestamp),
        note="raises also for years of other than four digits and zones by name; patterns of yyyy, MM, dd, HH, mm, ss and S",
    ),
    *function(
        "try_to_date",
        "times",
        ("any, string!?", DATE, _trying(_to_date, DATE)),
        note="null where Spark raises; raises for texts that only Spark reads, such as years of five digits or zones by name",
    ),
    *function(
        "try_to_timestamp",
        "times",
        ("any, string!?", TIMESTAMP, _trying(_to_timestamp, TIMESTAMP)),
        note="null where Spark raises; raises for texts that only Spark reads, such as years of five digits or zones by name",
    ),
    *function(
        "unix_timestamp to_unix_timestamp",
        "times",
        ("text, string!?", BIG, _unix_timestamp),
        ("timestamp, string!?", BIG, _unix_timestamp),
    ),
    *function(
        "from_unixtime",
        "times",
        ("bigint, string!?", STRING, _from_unixtime),
        note="raises outside of the years 1 to 9999",
    ),
    *function("unix_seconds", "times", ("moment", BIG, _seconds), note="of a timestamp"),
    *function("unix_millis", "times", ("moment", BIG, "epoch_us(date_trunc('milliseconds', {0})) // 1000")),
    *function("unix_micros", "times", ("moment", BIG, "epoch_us({0})")),
    *function("unix_date", "times", ("day", INT, "CAST({0} - DATE '1970-01-01' AS INTEGER)")),
    *function(
        "date_from_unix_date",
        "times",
        ("int", DATE, "CAST(DATE '1970-01-01' + {0} AS DATE)"),
        note="raises for dates beyond the year 5881580",
    ),
    *function(
        "timestamp_seconds",
        "times",
        ("number", TIMESTAMP, _from_seconds),
        note="raises for times beyond the year 294246",
    ),
    *function(
        "timestamp_millis",
        "times",
        ("bigint", TIMESTAMP, "make_timestamp({0} * 1000)"),
        note="raises for times beyond the year 294246",
    ),
    *function(
        "timestamp_micros",
        "times",
        ("bigint", TIMESTAMP, "make_timestamp({0})"),
        note="raises for times beyond the year 294246",
    ),
    *function("make_date", "times", ("int, int, int", DATE, _make_date)),
    *function("make_timestamp", "times", ("int, int, int, int, int, number", TIMESTAMP, _make_timestamp)),
)
