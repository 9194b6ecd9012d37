"""The functions of dates and times. All times are UTC."""

# ruff: noqa: E501 - a row of a table or a template of SQL reads best as one line.
from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from penstock.pattern.types import TIMESTAMP
from penstock.sql.cast import cast, try_cast
from penstock.sql.datetime_pattern import leniently, reading, writing
from penstock.sql.function import Function, function
from penstock.sql.term import (
    BIG,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    INTEGERS,
    MONTHS,
    SPAN,
    STRING,
    Term,
    Unfit,
    attempted,
    fill,
    forced,
    is_decimal,
    raising,
    text,
)

_MICROS = {
    "MICROSECOND": 1, "MILLISECOND": 1_000, "SECOND": 1_000_000, "MINUTE": 60_000_000, "HOUR": 3_600_000_000,
    "DAY": 86_400_000_000, "WEEK": 604_800_000_000,
}  # fmt: skip
_MONTHS = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}
#: Functions whose first argument may be a bare unit.
UNIT_FUNCTIONS = frozenset(["dateadd", "date_add", "timestampadd", "datediff", "date_diff", "timestampdiff"])
_PARTS = {
    "YEAR": "year", "YEARS": "year", "Y": "year", "YR": "year", "YRS": "year", "QUARTER": "quarter", "QTR": "quarter",
    "MONTH": "month", "MONTHS": "month", "MON": "month", "MONS": "month", "WEEK": "weekofyear", "WEEKS": "weekofyear",
    "W": "weekofyear", "DAY": "day", "DAYS": "day", "D": "day", "DAYOFWEEK": "dayofweek", "DOW": "dayofweek",
    "DAYOFWEEK_ISO": "isodow", "DOW_ISO": "isodow", "DOY": "dayofyear", "HOUR": "hour", "HOURS": "hour", "H": "hour",
    "HR": "hour", "HRS": "hour", "MINUTE": "minute", "MINUTES": "minute", "MIN": "minute", "MINS": "minute",
    "YEAROFWEEK": "isoyear",
}  # fmt: skip
_SECONDS = ("SECOND", "SECONDS", "S", "SEC", "SECS")
_TRUNCATED = {
    "YEAR": "year", "YYYY": "year", "YY": "year", "QUARTER": "quarter", "MONTH": "month", "MON": "month", "MM": "month",
    "WEEK": "week", "DAY": "day", "DD": "day", "HOUR": "hour", "MINUTE": "minute", "SECOND": "second",
    "MILLISECOND": "milliseconds", "MICROSECOND": "microseconds",
}  # fmt: skip
_DATES_CUT = ("YEAR", "YYYY", "YY", "QUARTER", "MONTH", "MON", "MM", "WEEK")
_WEEKDAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")


def _part(name: str) -> Callable[[Term], Term]:
    template = {"dayofweek": "CAST(dayofweek({0}) + 1 AS INTEGER)", "weekday": "CAST(isodow({0}) - 1 AS INTEGER)"}.get(
        name, f"CAST({name}({{0}}) AS INTEGER)"
    )
    return lambda a: fill(template, a, type=INT)


def extract(field: str, a: Term) -> Term:
    """`extract(field from a)`."""
    if a.type == STRING:
        a = cast(a, TIMESTAMP)
    if a.type not in (DATE, TIMESTAMP):
        raise Unfit(f"extract({field} from …) needs a date or a timestamp")
    if field in _SECONDS:
        t = pa.decimal128(8, 6)
        us = fill(
            "CAST(epoch_us({0}) - epoch_us(date_trunc('minute', {0})) AS DECIMAL(8,0))", cast(a, TIMESTAMP), type=BIG
        )
        return Term(f"CAST({us.sql} * CAST(0.000001 AS DECIMAL(7,6)) AS DECIMAL(8,6))", t, closed=True)
    if field not in _PARTS:
        raise Unfit(
            f"'{field}' cannot be extracted", f"there are: {', '.join(sorted({*_PARTS, 'SECOND'}, key=len)[:30])}"
        )
    return _part(_PARTS[field])(a)


def _date_part(field: Term, a: Term) -> Term:
    return extract(field.value.upper(), a)


def unit_of(name: str) -> str:
    """The unit behind a word such as `days`, in Spark's spelling.

    >>> unit_of("hours")
    'HOUR'
    """
    unit = name.upper()
    singular = unit[:-1] if unit.endswith("S") else unit
    singular = {"DAYOFYEAR": "DAY"}.get(singular, singular)
    if singular not in _MICROS and singular not in _MONTHS:
        raise Unfit(f"'{name}' is not a unit of time", f"there are: {', '.join([*_MICROS, *_MONTHS])}")
    return singular


def add_units(unit: Term, n: Term, a: Term) -> Term:
    """So many units later: always a timestamp."""
    name, a, n = unit_of(unit.value), cast(a, TIMESTAMP), forced(n, BIG)
    if name in _MONTHS:
        return fill(f"{{0}} + to_months(CAST({{1}} * {_MONTHS[name]} AS INTEGER))", a, n, type=TIMESTAMP)
    if name in ("DAY", "WEEK"):
        return fill(
            f"{{0}} + to_days(CAST({{1}} * {_MICROS[name] // _MICROS['DAY']} AS INTEGER))", a, n, type=TIMESTAMP
        )
    return fill(f"{{0}} + to_microseconds({{1}} * {_MICROS[name]})", a, n, type=TIMESTAMP)


_MONTH_DAY = "((year({0}) * 12 + month({0})) * 32 + day({0}))"


def units_between(unit: Term, a: Term, b: Term) -> Term:
    """How many whole units lie between two moments."""
    name, a, b = unit_of(unit.value), cast(a, TIMESTAMP), cast(b, TIMESTAMP)
    if name in _MICROS:
        return fill(f"(epoch_us({{1}}) - epoch_us({{0}})) // {_MICROS[name]}", a, b, type=BIG)
    # As Java counts: the end moves by a day where its time of day is not reached, then whole months by day of month.
    end = (
        "CASE WHEN CAST({1} AS DATE) > CAST({0} AS DATE) AND CAST({1} AS TIME) < CAST({0} AS TIME)"
        " THEN CAST({1} AS DATE) - 1 WHEN CAST({1} AS DATE) < CAST({0} AS DATE)"
        " AND CAST({1} AS TIME) > CAST({0} AS TIME) THEN CAST({1} AS DATE) + 1 ELSE CAST({1} AS DATE) END"
    )
    ending = fill(end, a, b, type=DATE)
    template = f"({_MONTH_DAY.replace('{0}', '{1}')} - {_MONTH_DAY}) // {32}"
    months = fill(template, a, ending, type=BIG)
    return months if name == "MONTH" else Term(f"{months.inner} // {_MONTHS[name]}", BIG)


def _later_days(sign: str) -> Callable[[Term, Term], Term]:
    return lambda d, n: fill(f"CAST({{0}} {sign} {{1}} AS DATE)", d, n, type=DATE)


def _date_trunc(unit: Term, a: Term) -> Term:
    name = unit.value.upper()
    if name not in _TRUNCATED:
        raise Unfit(f"'{unit.value}' is not a unit to cut at", f"there are: {', '.join(_TRUNCATED)}")
    return fill(f"CAST(date_trunc('{_TRUNCATED[name]}', {{0}}) AS TIMESTAMP)", cast(a, TIMESTAMP), type=TIMESTAMP)


def _trunc(a: Term, unit: Term) -> Term:
    name = unit.value.upper()
    if name not in _DATES_CUT:
        raise Unfit(f"'{unit.value}' is not a unit to cut a date at", f"there are: {', '.join(_DATES_CUT)}")
    return fill(f"CAST(date_trunc('{_TRUNCATED[name]}', {{0}}) AS DATE)", a, type=DATE)


def _next_day(d: Term, day: Term) -> Term:
    short = day.value.strip().upper()[:2]
    if short not in _WEEKDAYS or day.value.strip().upper() not in (short, *_day_names(short)):
        raise Unfit(f"'{day.value}' is not a day of the week", "write it like 'Mon' or 'Monday'")
    n = _WEEKDAYS.index(short) + 1
    return fill(f"CAST({{0}} + CAST(({n} - isodow({{0}}) + 6) % 7 + 1 AS INTEGER) AS DATE)", d, type=DATE)


def _day_names(short: str) -> tuple[str, ...]:
    names = ("MONDAY", "TUESDAY", "WEDNESDAY", "THURSDAY", "FRIDAY", "SATURDAY", "SUNDAY")
    full = next(n for n in names if n.startswith(short))
    return full[:3], full


def _months_between(a: Term, b: Term, rounded: Term | None = None) -> Term:
    if rounded is not None and rounded.value is not True:
        raise Unfit("months_between(…, false) is not available", "months_between(a, b) rounds to eight digits")
    months = "(year({0}) * 12 + month({0}) - year({1}) * 12 - month({1}))"
    seconds = "((epoch_us({%d}) - epoch_us(date_trunc('day', {%d}))) // 1000000)"
    diff = f"((day({{0}}) - day({{1}})) * 86400 + {seconds % (0, 0)} - {seconds % (1, 1)})"
    template = (
        "CASE WHEN day({0}) = day({1}) OR (CAST({0} AS DATE) = last_day({0}) AND CAST({1} AS DATE) = last_day({1}))"
        f" THEN CAST({months} AS DOUBLE)"
        f" ELSE floor(({months} + {diff} / 2678400e0) * 1e8 + 0.5e0) / 1e8 END"
    )
    return fill(template, a, b, type=DOUBLE)


def _seconds(a: Term) -> Term:
    return fill("epoch_us(date_trunc('second', {0})) // 1000000", a, type=BIG)


def _only(t: pa.DataType, make: Callable[[Term], Term], instead: str) -> Callable[[Term], Term]:
    """A function that does not cast its argument, as Spark's does not."""

    def made(a: Term) -> Term:
        if a.type != t:
            raise Unfit(f"this needs a {t}", instead)
        return make(a)

    return made


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
    return fill(writing(pattern.value), a, type=STRING)


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
    if pattern is None or a.type != STRING:
        return cast(a, TIMESTAMP)
    return _parsed(a, pattern)


def _to_date(a: Term, pattern: Term | None = None) -> Term:
    if pattern is None or a.type != STRING:
        return cast(a, DATE)
    return cast(_parsed(a, pattern), DATE)


def _trying(make: Callable[..., Term], t: pa.DataType) -> Callable[..., Term]:
    """Null where Spark raises; what Spark may read and this does not still raises."""

    def made(a: Term, pattern: Term | None = None) -> Term:
        if pattern is None or a.type != STRING:
            return try_cast(a, t)
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
    return fill("epoch_us({0}) // 1000000", cast(a, TIMESTAMP), type=BIG)


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


def interval(amount: str, unit: str) -> Term:
    """`interval 5 minutes` and the like: a span of months, or of days and less."""
    name = unit_of(unit)
    if name == "QUARTER":
        raise Unfit(f"interval '{amount}' {unit} is not there in Spark", "write interval 3 months")
    if not amount.strip().lstrip("+-").isdigit():
        raise Unfit(
            f"interval '{amount}' {unit} is not available", "write a whole number of one unit: interval 5 minutes"
        )
    n = int(amount)
    if name in _MONTHS:
        return Term(f"to_months({n * _MONTHS[name]})", MONTHS, closed=True)
    if name in ("DAY", "WEEK"):
        return Term(f"to_days({n * _MICROS[name] // _MICROS['DAY']})", SPAN, "days", closed=True)
    return Term(f"to_microseconds({n * _MICROS[name]})", SPAN, "micros", closed=True)


TIMES: tuple[Function, ...] = (
    *(
        f
        for name in ("year", "month", "day", "quarter", "weekofyear", "dayofyear", "dayofweek", "weekday")
        for f in function("day dayofmonth" if name == "day" else name, "times", ("date", INT, _part(name)))
    ),
    *(f for name in ("hour", "minute", "second") for f in function(name, "times", ("timestamp", INT, _part(name)))),
    *function(
        "extract",
        "times",
        note="extract(field from x): year, quarter, month, week, day, dow, doy, hour, minute, second and their other names",
        tried=(
            *tuple(
                f"extract({f} from ts)"
                for f in (
                    "year",
                    "quarter",
                    "month",
                    "week",
                    "day",
                    "dow",
                    "dow_iso",
                    "doy",
                    "hour",
                    "minute",
                    "second",
                    "yearofweek",
                )
            ),
            "extract(day from d)",
            "extract(second from d)",
        ),
    ),
    *function(
        "date_part datepart",
        "times",
        ("string!, timestamp", INT, _date_part),
        tried=("date_part('dow', d)", "date_part('hour', ts)", "date_part('second', ts)"),
    ),
    *function("monthname", "times", ("date", STRING, "strftime({0}, '%b')")),
    *function("dayname", "times", ("date", STRING, "strftime({0}, '%a')")),
    *function(
        "date_add",
        "times",
        ("date, int", DATE, _later_days("+")),
        note="raises for dates beyond the year 5881580",
        tried=("date_add(d, 1)", "date_add(d, t)", "date_add(d, h)"),
    ),
    *function(
        "date_sub",
        "times",
        ("date, int", DATE, _later_days("-")),
        note="raises for dates beyond the year 5881580",
        tried=("date_sub(d, 1)", "date_sub(d, t)"),
    ),
    *function(
        "dateadd",
        "times",
        ("date, int", DATE, _later_days("+")),
        ("unit!, bigint, timestamp", TIMESTAMP, add_units),
        note="raises for dates beyond the year 5881580, for times beyond 294246",
        tried=(
            "dateadd(d, 1)",
            "dateadd(day, t, d)",
            "dateadd(month, t, ts)",
            "dateadd(hour, i, ts)",
            "dateadd(week, t, ts)",
        ),
    ),
    *function(
        "timestampadd",
        "times",
        ("unit!, bigint, timestamp", TIMESTAMP, add_units),
        note="raises for times beyond the year 294246",
        tried=tuple(
            f"timestampadd({u}, t, ts)" for u in ("microsecond", "millisecond", "second", "minute", "quarter", "year")
        ),
    ),
    *function(
        "add_months",
        "times",
        ("date, int", DATE, "CAST({0} + to_months({1}) AS DATE)"),
        note="raises for dates beyond the year 5881580",
        tried=("add_months(d, 1)", "add_months(d, t)", "add_months(d, -13)"),
    ),
    *function(
        "datediff date_diff",
        "times",
        ("date, date", INT, "CAST({0} - {1} AS INTEGER)"),
        ("unit!, timestamp, timestamp", BIG, units_between),
        tried=("datediff(d, e)", "date_diff(d, e)", "datediff(day, d, e)", "date_diff(month, d, ts)"),
    ),
    *function(
        "timestampdiff",
        "times",
        ("unit!, timestamp, timestamp", BIG, units_between),
        tried=tuple(
            f"timestampdiff({u}, ts, us)"
            for u in (
                "microsecond",
                "millisecond",
                "second",
                "minute",
                "hour",
                "day",
                "week",
                "month",
                "quarter",
                "year",
            )
        ),
    ),
    *function(
        "months_between",
        "times",
        ("timestamp, timestamp, boolean!?", DOUBLE, _months_between),
        tried=("months_between(ts, us)", "months_between(d, e)"),
    ),
    *function("last_day", "times", ("date", DATE, "last_day({0})")),
    *function(
        "next_day",
        "times",
        ("date, string!", DATE, _next_day),
        tried=("next_day(d, 'Mon')", "next_day(d, 'sunday')", "next_day(d, 'TH')"),
    ),
    *function(
        "trunc",
        "times",
        ("date, string!", DATE, _trunc),
        tried=tuple(f"trunc(d, '{u}')" for u in ("year", "quarter", "month", "week", "MM")),
    ),
    *function(
        "date_trunc",
        "times",
        ("string!, timestamp", TIMESTAMP, _date_trunc),
        tried=(
            *tuple(
                f"date_trunc('{u}', ts)"
                for u in (
                    "year",
                    "quarter",
                    "month",
                    "week",
                    "day",
                    "hour",
                    "minute",
                    "second",
                    "millisecond",
                    "microsecond",
                    "MM",
                    "DD",
                )
            ),
            "date_trunc('month', d)",
        ),
    ),
    *function(
        "date_format",
        "times",
        ("timestamp, string!", STRING, _date_format),
        note="all letters but the week-based Y, w, W, u, e, c",
        tried=(
            *tuple(
                f"date_format(ts, '{p}')"
                for p in (
                    "yyyy-MM-dd HH:mm:ss.SSS",
                    "y yy yyy",
                    "M MMM MMMM L LLL",
                    "d E EEEE D DD DDD",
                    "H h hh k kk K KK",
                    "m s S SS SSSS SSSSSS SSSSSSSSS",
                    "a",
                    "Q QQ QQQ QQQQ q",
                    "G GGGG",
                    "X XX XXX x xx xxx",
                    "Z ZZZZ z zzzz VV O",
                    "F",
                )
            ),
            r"date_format(ts, \"yyyy 'o''clock' %\")".replace('\\"', '"'),
            "date_format(d, 'dd.MM.yyyy')",
        ),
    ),
    *function(
        "to_date",
        "times",
        ("any, string!?", DATE, _to_date),
        note="raises also for years of other than four digits and zones by name; patterns of yyyy, MM, dd, HH, mm, ss and S",
        tried=(
            "to_date(ts)",
            "to_date(s)",
            "to_date(q)",
            "to_date(q, 'yyyy-MM-dd')",
            "to_date('05.01.2020', 'dd.MM.yyyy')",
        ),
    ),
    *function(
        "to_timestamp",
        "times",
        ("any, string!?", TIMESTAMP, _to_timestamp),
        note="raises also for years of other than four digits and zones by name; patterns of yyyy, MM, dd, HH, mm, ss and S",
        tried=(
            "to_timestamp(d)",
            "to_timestamp(q)",
            "to_timestamp(q, 'yyyy-MM-dd HH:mm:ss')",
            "to_timestamp(q, 'yyyy-MM-dd HH:mm:ss.SSS')",
        ),
    ),
    *function(
        "try_to_date",
        "times",
        ("any, string!?", DATE, _trying(_to_date, DATE)),
        note="null where Spark raises; raises for texts that only Spark reads, such as years of five digits or zones by name",
        tried=("try_to_date(q)", "try_to_date(o)", "try_to_date(q, 'yyyy-MM-dd')", "try_to_date(o, 'yyyy-MM-dd')"),
    ),
    *function(
        "try_to_timestamp",
        "times",
        ("any, string!?", TIMESTAMP, _trying(_to_timestamp, TIMESTAMP)),
        note="null where Spark raises; raises for texts that only Spark reads, such as years of five digits or zones by name",
        tried=(
            "try_to_timestamp(q)",
            "try_to_timestamp(o)",
            "try_to_timestamp(o, 'yyyy-MM-dd HH:mm:ss.SSS')",
            "try_to_timestamp(o, \"yyyy-MM-dd'T'HH:mm:ss\")",
            "try_to_timestamp(q, 'yyyy-MM-dd HH:mm:ss')",
        ),
    ),
    *function(
        "unix_timestamp to_unix_timestamp",
        "times",
        ("any, string!?", BIG, _unix_timestamp),
        tried=(
            "unix_timestamp(ts)",
            "unix_timestamp(d)",
            "unix_timestamp(q)",
            "unix_timestamp(q, 'yyyy-MM-dd')",
            "unix_timestamp(o)",
        ),
    ),
    *function(
        "from_unixtime",
        "times",
        ("bigint, string!?", STRING, _from_unixtime),
        note="raises for times beyond the year 294246",
        tried=("from_unixtime(i)", "from_unixtime(i, 'yyyy')"),
    ),
    *function("unix_seconds", "times", ("moment", BIG, _seconds), note="of a timestamp", tried=("unix_seconds(ts)",)),
    *function(
        "unix_millis",
        "times",
        ("moment", BIG, "epoch_us(date_trunc('milliseconds', {0})) // 1000"),
        tried=("unix_millis(ts)",),
    ),
    *function("unix_micros", "times", ("moment", BIG, "epoch_us({0})"), tried=("unix_micros(ts)",)),
    *function("unix_date", "times", ("day", INT, "CAST({0} - DATE '1970-01-01' AS INTEGER)"), tried=("unix_date(d)",)),
    *function(
        "date_from_unix_date",
        "times",
        ("int", DATE, "CAST(DATE '1970-01-01' + {0} AS DATE)"),
        note="raises for dates beyond the year 5881580",
        tried=("date_from_unix_date(h)",),
    ),
    *function(
        "timestamp_seconds",
        "times",
        ("number", TIMESTAMP, _from_seconds),
        note="raises for times beyond the year 294246",
        tried=(
            "timestamp_seconds(i)",
            "timestamp_seconds(1.5)",
            "timestamp_seconds(m)",
            "timestamp_seconds(1.5D)",
            "timestamp_seconds(-0.5D)",
        ),
    ),
    *function(
        "timestamp_millis",
        "times",
        ("bigint", TIMESTAMP, "make_timestamp({0} * 1000)"),
        note="raises for times beyond the year 294246",
        tried=("timestamp_millis(i)",),
    ),
    *function(
        "timestamp_micros",
        "times",
        ("bigint", TIMESTAMP, "make_timestamp({0})"),
        note="raises for times beyond the year 294246",
        tried=("timestamp_micros(i)",),
    ),
    *function(
        "make_date",
        "times",
        ("int, int, int", DATE, _make_date),
        tried=("make_date(2020, t, 1)", "make_date(2020, 2, t)", "make_date(h, 2, 29)"),
    ),
    *function(
        "make_timestamp",
        "times",
        ("int, int, int, int, int, number", TIMESTAMP, _make_timestamp),
        tried=(
            "make_timestamp(2020, 1, 2, 3, 4, 5.678901)",
            "make_timestamp(2020, 2, 30, 3, 4, 5)",
            "make_timestamp(2020, 1, 2, t, 4, 5)",
            "make_timestamp(2020, 1, 2, 3, t, 5)",
        ),
    ),
)
