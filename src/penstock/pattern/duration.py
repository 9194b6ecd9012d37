"""Lengths of time, written as people write them and kept as whole microseconds."""

from __future__ import annotations

import re
from datetime import timedelta
from fractions import Fraction

from penstock.errors import UserError, nearest

_UNITS = {"us": 1, "ms": 1_000, "s": 1_000_000, "min": 60_000_000, "h": 3_600_000_000, "day": 86_400_000_000}
_WEEK = 7 * _UNITS["day"]
_NAMES = {
    "us": ("us", "µs", "μs", "usec", "microsecond", "microseconds"),
    "ms": ("ms", "msec", "millisecond", "milliseconds"),
    "s": ("s", "sec", "secs", "second", "seconds"),
    "min": ("m", "min", "mins", "minute", "minutes"),
    "h": ("h", "hr", "hrs", "hour", "hours"),
    "day": ("d", "day", "days"),
}
_FACTORS = {name: _UNITS[unit] for unit, names in _NAMES.items() for name in names} | {"week": _WEEK, "weeks": _WEEK}
#: What people call a length of time though it has none, and about how many days it has.
_UNEVEN = {"month": 30, "quarter": 91, "year": 365, "decade": 3652, "century": 36_525}
_PART = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-zµμ]+)")
_LONGEST = 2**62  # Twice that still fits in 64 bits, so sums of a timestamp and a duration can be checked.


def parse_duration(text: str | timedelta | int, *, where: str = "duration", allow_zero: bool = True) -> int:
    """Microseconds of a duration: text such as "30 s", a timedelta, or whole microseconds.

    >>> parse_duration("2 min"), parse_duration("1 h 30 min"), parse_duration(timedelta(milliseconds=500))
    (120000000, 5400000000, 500000)
    >>> parse_duration("30 sconds", where="disorder")
    Traceback (most recent call last):
    penstock.errors.UserError: disorder: unknown unit 'sconds' in '30 sconds'. Hint: did you mean 'seconds'? Units are \
us, ms, s, min, h, day
    """
    if isinstance(text, timedelta):
        micros = text // timedelta(microseconds=1)
    elif isinstance(text, int) and not isinstance(text, bool):
        micros = text
    elif isinstance(text, str):
        micros = _parse(text, where)
    else:
        raise UserError(f"{where}: {text!r} is not a duration", hint="write it like '30 s', '2 min' or '500 ms'")
    if micros < 0 or (micros == 0 and not allow_zero):
        raise UserError(f"{where}: '{text}' is not positive", hint="write a positive duration such as '30 s'")
    if micros > _LONGEST:
        raise UserError(f"{where}: '{text}' is too long", hint="durations reach up to about 146,000 years")
    return micros


def _parse(text: str, where: str) -> int:
    total, position = Fraction(0), 0
    stripped = text.strip()
    while position < len(stripped):
        part = _PART.match(stripped, position)
        if not part:
            break
        unit = part[2] if part[2] in _FACTORS else part[2].lower()
        if unit not in _FACTORS:
            if (days := _UNEVEN.get(unit.removesuffix("s"))) is not None:
                raise UserError(
                    f"{where}: '{text}' is not a duration: a {unit.removesuffix('s')} has no fixed length",
                    hint=f"write days, such as '{days} days'; for calendar {unit.removesuffix('s')}s group by "
                    f"date_trunc('{unit.removesuffix('s')}', ts) instead",
                )
            near = nearest(unit, _FACTORS)
            guess = f"did you mean '{near}'? " if near else ""
            raise UserError(
                f"{where}: unknown unit '{part[2]}' in '{text}'", hint=f"{guess}Units are {', '.join(_UNITS)}"
            )
        total += Fraction(part[1]) * _FACTORS[unit]
        position = part.end()
    if position == 0 or position < len(stripped):
        negative = stripped.startswith("-")
        what = "is not positive" if negative else "is not a duration"
        raise UserError(f"{where}: '{text}' {what}", hint="write it like '30 s', '2 min', '500 ms' or '1 day'")
    if total.denominator != 1:
        raise UserError(f"{where}: '{text}' is finer than a microsecond", hint="the shortest duration is '1 us'")
    return int(total)


def format_duration(micros: int) -> str:
    """A duration as text that `parse_duration` reads back.

    >>> format_duration(5_400_000_000), format_duration(30_000_000), format_duration(0)
    ('1 h 30 min', '30 s', '0 s')
    """
    if micros < 0:
        return "-" + format_duration(-micros)
    parts = []
    for unit, size in reversed(_UNITS.items()):
        count, micros = divmod(micros, size)
        if count:
            parts.append(f"{count} {unit}")
    return " ".join(parts) or "0 s"
