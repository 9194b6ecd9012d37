"""Units of time, and how long each is."""

from __future__ import annotations

from penstock.sql.term import Unfit

MICROSECONDS = {
    "MICROSECOND": 1, "MILLISECOND": 1_000, "SECOND": 1_000_000, "MINUTE": 60_000_000, "HOUR": 3_600_000_000,
    "DAY": 86_400_000_000, "WEEK": 604_800_000_000,
}  # fmt: skip
MONTHS_OF = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}


def unit_of(name: str) -> str:
    """The unit behind a word such as `days`, in Spark's spelling.

    >>> unit_of("hours")
    'HOUR'
    """
    unit = name.upper()
    singular = unit[:-1] if unit.endswith("S") else unit
    singular = {"DAYOFYEAR": "DAY"}.get(singular, singular)
    if singular not in MICROSECONDS and singular not in MONTHS_OF:
        raise Unfit(f"'{name}' is not a unit of time", f"there are: {', '.join([*MICROSECONDS, *MONTHS_OF])}")
    return singular
