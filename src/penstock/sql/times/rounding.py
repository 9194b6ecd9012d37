"""The beginning of the month, the end of it, the next Monday."""

from __future__ import annotations

from penstock.pattern.types import TIMESTAMP
from penstock.sql.cast import cast
from penstock.sql.function import Function, function
from penstock.sql.term import DATE, Term, Unfit, fill

_TRUNCATED = {
    "YEAR": "year", "YYYY": "year", "YY": "year", "QUARTER": "quarter", "MONTH": "month", "MON": "month", "MM": "month",
    "WEEK": "week", "DAY": "day", "DD": "day", "HOUR": "hour", "MINUTE": "minute", "SECOND": "second",
    "MILLISECOND": "milliseconds", "MICROSECOND": "microseconds",
}  # fmt: skip
_DATES_CUT = ("YEAR", "YYYY", "YY", "QUARTER", "MONTH", "MON", "MM", "WEEK")
_WEEKDAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")


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


ROUNDED: tuple[Function, ...] = (
    *function("last_day", "times", ("date", DATE, "last_day({0})")),
    *function("next_day", "times", ("date, string!", DATE, _next_day)),
    *function("trunc", "times", ("date, string!", DATE, _trunc)),
    *function("date_trunc", "times", ("string!, timestamp", TIMESTAMP, _date_trunc)),
)
