"""The parts of a date or a time: its year, its hour, the name of its day."""

# ruff: noqa: E501 - a row of a table or a template of SQL reads best as one line.
from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from penstock.pattern.types import TIMESTAMP
from penstock.sql.cast import cast
from penstock.sql.function import Function, function
from penstock.sql.term import BIG, DATE, INT, STRING, Term, Unfit, fill

_FIELDS = {
    "YEAR": "year", "YEARS": "year", "Y": "year", "YR": "year", "YRS": "year", "QUARTER": "quarter", "QTR": "quarter",
    "MONTH": "month", "MONTHS": "month", "MON": "month", "MONS": "month", "WEEK": "weekofyear", "WEEKS": "weekofyear",
    "W": "weekofyear", "DAY": "day", "DAYS": "day", "D": "day", "DAYOFWEEK": "dayofweek", "DOW": "dayofweek",
    "DAYOFWEEK_ISO": "isodow", "DOW_ISO": "isodow", "DOY": "dayofyear", "HOUR": "hour", "HOURS": "hour", "H": "hour",
    "HR": "hour", "HRS": "hour", "MINUTE": "minute", "MINUTES": "minute", "MIN": "minute", "MINS": "minute",
    "YEAROFWEEK": "isoyear",
}  # fmt: skip
_SECONDS = ("SECOND", "SECONDS", "S", "SEC", "SECS")


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
    if field not in _FIELDS:
        raise Unfit(
            f"'{field}' cannot be extracted", f"there are: {', '.join(sorted({*_FIELDS, 'SECOND'}, key=len)[:30])}"
        )
    return _part(_FIELDS[field])(a)


def _date_part(field: Term, a: Term) -> Term:
    return extract(field.value.upper(), a)


PARTS: tuple[Function, ...] = (
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
    ),
    *function("date_part datepart", "times", ("string!, timestamp", INT, _date_part)),
    *function("monthname", "times", ("date", STRING, "strftime({0}, '%b')")),
    *function("dayname", "times", ("date", STRING, "strftime({0}, '%a')")),
)
