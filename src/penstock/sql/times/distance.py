"""How far it is from one moment to another, and what lies so far away."""

from __future__ import annotations

from collections.abc import Callable

from penstock.pattern.types import TIMESTAMP
from penstock.sql.cast import cast
from penstock.sql.function import Function, function
from penstock.sql.term import BIG, DATE, DOUBLE, INT, MONTHS, SPAN, Term, Unfit, fill, forced

#: Functions whose first argument may be a bare unit.
UNIT_FUNCTIONS = frozenset(["dateadd", "date_add", "timestampadd", "datediff", "date_diff", "timestampdiff"])


def add_units(unit: Term, n: Term, a: Term) -> Term:
    """So many units later: always a timestamp."""
    name, a, n = unit_of(unit.value), cast(a, TIMESTAMP), forced(n, BIG)
    if name in MONTHS_OF:
        return fill(f"{{0}} + to_months(CAST({{1}} * {MONTHS_OF[name]} AS INTEGER))", a, n, type=TIMESTAMP)
    if name in ("DAY", "WEEK"):
        return fill(
            f"{{0}} + to_days(CAST({{1}} * {MICROSECONDS[name] // MICROSECONDS['DAY']} AS INTEGER))",
            a,
            n,
            type=TIMESTAMP,
        )
    return fill(f"{{0}} + to_microseconds({{1}} * {MICROSECONDS[name]})", a, n, type=TIMESTAMP)


_MONTH_DAY = "((year({0}) * 12 + month({0})) * 32 + day({0}))"


def units_between(unit: Term, a: Term, b: Term) -> Term:
    """How many whole units lie between two moments."""
    name, a, b = unit_of(unit.value), cast(a, TIMESTAMP), cast(b, TIMESTAMP)
    if name in MICROSECONDS:
        return fill(f"(epoch_us({{1}}) - epoch_us({{0}})) // {MICROSECONDS[name]}", a, b, type=BIG)
    # As Java counts: the end moves by a day where its time of day is not reached, then whole months by day of month.
    end = (
        "CASE WHEN CAST({1} AS DATE) > CAST({0} AS DATE) AND CAST({1} AS TIME) < CAST({0} AS TIME)"
        " THEN CAST({1} AS DATE) - 1 WHEN CAST({1} AS DATE) < CAST({0} AS DATE)"
        " AND CAST({1} AS TIME) > CAST({0} AS TIME) THEN CAST({1} AS DATE) + 1 ELSE CAST({1} AS DATE) END"
    )
    ending = fill(end, a, b, type=DATE)
    template = f"({_MONTH_DAY.replace('{0}', '{1}')} - {_MONTH_DAY}) // {32}"
    months = fill(template, a, ending, type=BIG)
    return months if name == "MONTH" else Term(f"{months.inner} // {MONTHS_OF[name]}", BIG)


def _later_days(sign: str) -> Callable[[Term, Term], Term]:
    return lambda d, n: fill(f"CAST({{0}} {sign} {{1}} AS DATE)", d, n, type=DATE)


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
    if name in MONTHS_OF:
        return Term(f"to_months({n * MONTHS_OF[name]})", MONTHS, closed=True)
    if name in ("DAY", "WEEK"):
        return Term(f"to_days({n * MICROSECONDS[name] // MICROSECONDS['DAY']})", SPAN, "days", closed=True)
    return Term(f"to_microseconds({n * MICROSECONDS[name]})", SPAN, "micros", closed=True)


DISTANCES: tuple[Function, ...] = (
    *function(
        "date_add", "times", ("date, int", DATE, _later_days("+")), note="raises for dates beyond the year 5881580"
    ),
    *function(
        "date_sub", "times", ("date, int", DATE, _later_days("-")), note="raises for dates beyond the year 5881580"
    ),
    *function(
        "dateadd",
        "times",
        ("date, int", DATE, _later_days("+")),
        ("unit!, bigint, timestamp", TIMESTAMP, add_units),
        note="raises for dates beyond the year 5881580, for times beyond 294246",
    ),
    *function(
        "timestampadd",
        "times",
        ("unit!, bigint, timestamp", TIMESTAMP, add_units),
        note="raises for times beyond the year 294246",
    ),
    *function(
        "add_months",
        "times",
        ("date, int", DATE, "CAST({0} + to_months({1}) AS DATE)"),
        note="raises for dates beyond the year 5881580",
    ),
    *function(
        "datediff date_diff",
        "times",
        ("date, date", INT, "CAST({0} - {1} AS INTEGER)"),
        ("unit!, timestamp, timestamp", BIG, units_between),
    ),
    *function("timestampdiff", "times", ("unit!, timestamp, timestamp", BIG, units_between)),
    *function("months_between", "times", ("timestamp, timestamp, boolean!?", DOUBLE, _months_between)),
)


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
