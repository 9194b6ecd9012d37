"""The operators, as rows of the documentation and as expressions that are compared with Spark."""

# ruff: noqa: E501 - a row of a table or a template of SQL reads best as one line.
from __future__ import annotations

from tried import TRIED

from penstock.sql.function import Function

_NUMBERS = ("t", "h", "i", "l", "x", "m", "n", "f")
_CASTS = ("tinyint", "smallint", "int", "bigint", "double", "decimal(10,2)", "decimal(38,10)", "string", "boolean")


def _row(name: str, *tried: str, note: str = "") -> Function:
    TRIED[name] = tried
    return Function(name, "operators", (), note)


def _pairs(operator: str, pairs: str) -> tuple[str, ...]:
    return tuple(f"{a} {operator} {b}" for a, b in (p.split("/") for p in pairs.split()))


_ALL = "i/j l/k t/t i/l t/i x/y x/i m/n m/i m/l x/m z/m i/z f/f f/i f/x f/m"
_READ = "a text beside another type is read as by cast, and raises as that does, also where the other side is null"
_SAME = "i/j l/k x/y m/n s/r d/e ts/us d/ts ok/no i/l x/i m/i x/m b/b t/l f/x"

OPERATORS: tuple[Function, ...] = (
    _row("+", *_pairs("+", _ALL), "w + m", "w + n", "i + 1", "x + 1.5", "m + 1", "m + 1.25", "i + 1.5", "1 + 1", "l + 1", "t + 1", "d + 1", "d + t", note="of decimals, raises where the exact sum has more than 38 digits, though Spark rounds it"),
    _row("-", *_pairs("-", _ALL), "-i", "-l", "-t", "-x", "-m", "i - 1", "d - 1", "- -i", "- + -i", "+i", "-(9223372036854775808)", "+9223372036854775808", "-9223372036854775808", "-2147483648 - i", note="whole numbers raise when they overflow; of decimals as with +"),
    _row("*", *_pairs("*", _ALL), "x * 1.5", "m * 2", "m * 1.25", "i * 1.5", "m * 5Y", "m * 5S", "m * 1L", "m * -1", "m * -(1)", "m * +1", "m * - +1", "m * (+1L)", "m * cast(1 as int)", "m * bigint(1)", "m * round(1)", "w * m", "n * n", note="of decimals, raises where the exact product has more than 38 digits, though Spark rounds it"),
    _row("/", *_pairs("/", "i/j l/k t/h x/y x/i m/i z/m m/z x/m i/m f/f m/n n/m w/m"), "1.0 / 3", "i / 2", "m / 3", "m / 7.5", "x / 2", "5 / 2", "i / 0", note="raises for a divisor of zero; of decimals it is a decimal, and raises where it is computed in more than 38 digits"),
    _row("%", *_pairs("%", "i/j l/k t/t x/y m/n m/i i/l x/i"), "i % 3", "i % -1", "x % 1", "m % 2", "7 % l", "mod(7, l)", "mod(-2, y)"),
    _row("div", *_pairs("div", "i/j l/k t/t i/l"), "i div 2", note="a bigint"),
    _row("=, ==, <>, !=", *_pairs("=", _SAME), *_pairs("<>", "i/j x/y s/r"), "x = 0", "s = 'a'", "i = 1", "d = '2020-02-29'", "ts = '2020-02-29'", "s = 'O''Brien'", "i = '1'", "x = '1.5'", "ok = 'true'", "i = g", "d = q", note=_READ),
    _row("<, <=, >, >=", *_pairs("<", _SAME), *_pairs(">=", "i/j x/y m/n"), "x > 1.5", "m > 1.5", "x >= 0", "i > 1.5", "i < 2147483648", "t < 1000", "ts > '2020-01-31 12:20:30+02:00'", "ts >= timestamp '2020-02-29 00:00:00'", "d < ts", "i + 1 > 5", "5 < 1 + i", "1 - i < 0", "i * 2 >= 6", "-l > 0", "l + (1 + 1) < 5", "l * -1 <= 7", "cast(k - 1 as boolean)", "case k * 3 when 6 then 1 else 2 end", "x < u", "ts > q", note=_READ),
    _row("<=>, is distinct from", *_pairs("<=>", "i/j x/y s/r"), "i <=> null", "i is distinct from j", "i is not distinct from j"),
    _row("between", "i between j and 5", "i between 0 and 5", "x between 0 and 1.5", "d between '2020-01-01' and e", "s between 'a' and 'b'", "i not between 0 and 5", "x between i and 2", "i between j and g", "i between g and j", "i not between 1 and i div j", "cast(g as int) between 1 and u", "d between q and e", note=_READ),
    _row("in", "i in (1, 0)", "i in (1, null)", "s in ('a', 'b')", "x in (1, 1.5)", "d in (date '2020-02-29')", "i not in (0, 1)", "l in (1, i)", "ts in ('2020-02-29')", "d in (q, e)", "i in (i, g)", "i not in (1, i div j)", "cast(g as int) in (1, 12)", "l in (k + 1, 1)", "i + j in (1, 1 / j, null)", "d in ('2020-02-29', q)", "i in (null, g)", note=_READ),
    _row("is null, is true", "i is null", "s is not null", "ok is true", "ok is not true", "ok is false", "(i > 0) is true"),
    _row("and, or, not", "ok and no", "ok or no", "not ok", "!ok", "ok and null", "ok or i > 0 and not no", "not (i > 0 or x > 0)"),
    _row("case", "case when i > 0 then s when i < 0 then r else 'zero' end", "case i when 0 then 'none' when 1 then 'one' end", "case when ok then i else x end", "case when ok then m else 1 end", "case s when 'a' then 1 else 2L end"),
    _row("||", "s || r", "s || i", "s || 'x' || r", "'a' || null"),
    _row("&, |, ^, ~", "i & j", "i | j", "i ^ j", "~i", "l & i", "t | i", note="of whole numbers"),
    _row("interval", "ts + interval 1 hour", "ts - interval 1 month", "d + interval 1 day", "d + interval 1 month", "d - interval 1 hour", "ts + interval 2 weeks", "ts + interval '3' day", "interval 1 year + d", "ts + interval '1 day'", note="a whole number of one unit, added to a date or a timestamp"),
    _row("literals", r"'a\tb\n\\ \u00e9\'\"'", r"'\ud83d\ude00'", "'O''Brien'", '"it\'s"', "r'a\\n'", "'a' 'b'", "1", "1L", "1.5D", "1.50", "1e3", "1.5BD", "2147483648", "12345678901234567890", "0.001", ".5", "5.", "date '2020-02-29'", "timestamp '2020-02-29 01:02:03.5'", "x'0aff'", "true", "-1.5", "00.10"),
    _row("cast", *(f"cast({c} as {t})" for c in _NUMBERS for t in _CASTS if not (c == "f" and t == "string")),
         *(f"cast({c} as {t})" for c in ("g", "s", "u", "o") for t in (*_CASTS, "float", "binary")),
         *(f"cast({c} as {t})" for c in "qo" for t in ("date", "timestamp", "string")),
         *(f"cast(ts as {t})" for t in ("bigint", "int", "double", "decimal(20,6)", "string", "date")),
         *(f"cast(d as {t})" for t in ("string", "timestamp")), "cast(d + t as string)", "cast(date_add(d, i) as string)", "cast(ts + interval 3 years as string)", "cast(ts - interval 5000 years as string)", "cast(timestamp_millis(l) as string)", *(f"cast(ok as {t})" for t in ("int", "string", "double", "decimal(5,2)")),
         "cast(-0.05 as string)", "cast(0.5 as string)", "cast(cast(m % 1 as decimal(2,2)) as string)", "cast(y as timestamp)", "cast(ok as decimal(3,3))", "cast(i as timestamp)", "cast(l as timestamp)", "cast(n as timestamp)", "cast(1.5D as timestamp)", "cast(m as timestamp)", "cast(x as float)", "cast(encode(s, 'utf-8') as string)", "int(x)", "string(i)", "double(i)", "i::bigint", "cast(m as decimal(5,1))", "cast(n as decimal(10,2))", "cast(x as decimal(5,1))",
         note="raises for what does not fit; also for texts with years of other than four digits, zones by name, hexadecimal doubles and digits beyond ASCII, which Spark reads, for numbers as times beyond the year 294246, and for doubles below 1e-320 as texts; a double has the fewest digits that tell it apart, as a string and as a decimal, as with Java 19 and later: Spark on an older Java may give it more; int(x), string(x) and so on are the same"),
    _row("try_cast", *(f"try_cast({c} as {t})" for c in "uo" for t in ("int", "bigint", "double", "decimal(10,2)", "boolean")), *(f"try_cast({c} as {t})" for c in "qo" for t in ("date", "timestamp")), "try_cast(x as int)", "try_cast(l as int)", "try_cast(1 / j as int)", "try_cast(cast(g as int) as boolean)", *(f"try_cast({c} as timestamp)" for c in ("t", "i", "l", "x", "m", "n", "w", "f")), note="null where Spark's cast raises; raises for the texts that only Spark reads, and for whole numbers and decimals as times beyond the year 294246"),
)  # fmt: skip
