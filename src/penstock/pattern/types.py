"""The value types of attributes: SQL text, Arrow type and exact JSON of single values.

One canonical Python value stands for each SQL value: `bool`, `int`, `float`, `Decimal`, `str`, `bytes`, `date` and
naive `datetime` (UTC, microseconds). `coerce_value` brings what a user wrote into that form or says why it cannot.
"""

from __future__ import annotations

import base64
import math
import re
import struct
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any

import pyarrow as pa

from penstock.errors import UserError, a, did_you_mean

#: A single SQL value in its canonical Python form.
Value = bool | int | float | Decimal | str | bytes | date | datetime

TIMESTAMP = pa.timestamp("us")
_MIDNIGHT = time()

_BY_NAME: dict[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": TIMESTAMP,
}
_ALIASES = {
    "bool": "boolean",
    "byte": "tinyint",
    "short": "smallint",
    "integer": "int",
    "long": "bigint",
    "real": "float",
    "varchar": "string",
    "text": "string",
    "timestamp_ntz": "timestamp",
    "numeric": "decimal",
}
_DUCKDB = {
    "boolean": "BOOLEAN",
    "tinyint": "TINYINT",
    "smallint": "SMALLINT",
    "int": "INTEGER",
    "bigint": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "string": "VARCHAR",
    "binary": "BLOB",
    "date": "DATE",
    "timestamp": "TIMESTAMP",
}
_SIGNED = {pa.uint8(): pa.int16(), pa.uint16(): pa.int32(), pa.uint32(): pa.int64(), pa.uint64(): pa.decimal128(20)}
_TEXT = {t: name for name, t in _BY_NAME.items()}
_TYPE = re.compile(r"\s*([A-Za-z_]\w*)\s*(?:\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\))?\s*\Z")
_TIMESTAMP = re.compile(
    r"(\d{4})-(\d{1,2})-(\d{1,2})(?:[ T](\d{1,2}):(\d{2})(?::(\d{2})(?:\.(\d{1,9}))?)?\s*(Z|[+-]\d{2}(?::?\d{2})?)?)?\Z"
)


def parse_type(text: str) -> pa.DataType:
    """The Arrow type of a SQL type.

    >>> parse_type("decimal(12, 2)")
    Decimal128Type(decimal128(12, 2))
    >>> parse_type("bigit")
    Traceback (most recent call last):
    penstock.errors.UserError: unknown type 'bigit'. Hint: did you mean 'bigint'? There are: boolean, tinyint, \
smallint, int, bigint, float, double, string, binary, date, timestamp, decimal(p,s)
    """
    parsed = _TYPE.match(text)
    name = parsed[1].lower() if parsed else text.strip().lower()
    name = _ALIASES.get(name, name)
    if parsed and name == "decimal":
        precision, scale = int(parsed[2] or 10), int(parsed[3] or 0)
        if not 1 <= precision <= 38 or scale > precision:
            raise UserError(f"type '{text.strip()}' is out of range", hint="decimal(p,s) needs 1 <= p <= 38 and s <= p")
        return pa.decimal128(precision, scale)
    # `varchar(20)` is accepted as Spark accepts it; the length is not enforced. Other types take no arguments.
    if name in _BY_NAME and parsed and (parsed[2] is None or name == "string"):
        return _BY_NAME[name]
    raise UserError(f"unknown type '{text.strip()}'", hint=did_you_mean(name, [*_BY_NAME, "decimal(p,s)"]))


def type_text(t: pa.DataType) -> str:
    """The SQL text of a type; `parse_type` reads it back.

    >>> type_text(pa.int64()), type_text(pa.decimal128(12, 2))
    ('bigint', 'decimal(12,2)')
    """
    if pa.types.is_decimal(t):
        return f"decimal({t.precision},{t.scale})"
    if t not in _TEXT:
        raise UserError(f"type '{t}' is not a type of an attribute", hint=f"cast it to one of: {', '.join(_BY_NAME)}")
    return _TEXT[t]


def duckdb_type(t: pa.DataType) -> str:
    """The name of a type in DuckDB.

    >>> duckdb_type(pa.float32())
    'FLOAT'
    """
    text = type_text(t)
    return text.upper() if pa.types.is_decimal(t) else _DUCKDB[text]


def canonical_type(t: pa.DataType) -> pa.DataType:
    """The attribute type that holds every value of an Arrow type: the narrowest one, timestamps in microseconds UTC.

    >>> canonical_type(pa.timestamp("ns", tz="Europe/Berlin")), canonical_type(pa.uint32())
    (TimestampType(timestamp[us]), DataType(int64))
    """
    if pa.types.is_timestamp(t):
        return TIMESTAMP
    if pa.types.is_dictionary(t):
        return canonical_type(t.value_type)
    if pa.types.is_large_string(t) or pa.types.is_string_view(t):
        return pa.string()
    if pa.types.is_large_binary(t) or pa.types.is_fixed_size_binary(t) or pa.types.is_binary_view(t):
        return pa.binary()
    if pa.types.is_date(t):
        return pa.date32()
    if pa.types.is_float16(t):
        return pa.float32()
    if pa.types.is_decimal(t) and t.precision <= 38 and 0 <= t.scale <= t.precision:
        return pa.decimal128(t.precision, t.scale)
    found = _SIGNED.get(t, t)
    type_text(found)
    return found


def integer_range(t: pa.DataType) -> tuple[int, int]:
    """The smallest and the largest value of an integer type.

    >>> integer_range(pa.int8())
    (-128, 127)
    """
    half = 1 << (t.bit_width - 1)
    return -half, half - 1


def coerce_value(value: object, t: pa.DataType) -> Any:
    """The canonical form of a value for a type: never null, never rounded except to the nearest binary float.

    >>> coerce_value("2010-04-01 9:00:00", TIMESTAMP)
    datetime.datetime(2010, 4, 1, 9, 0)
    >>> coerce_value("hot", pa.float64())
    Traceback (most recent call last):
    penstock.errors.UserError: 'hot' is not of type double
    """
    item = getattr(value, "as_py", None) or (getattr(value, "item", None) if not isinstance(value, datetime) else None)
    plain = item() if callable(item) else value
    try:
        result = _coerce(plain, t)
    except (ValueError, OverflowError, InvalidOperation, UnicodeError):
        result = None
    if result is None:
        raise UserError(f"{plain!r} is not of type {type_text(t)}", hint=_hint(plain, t))
    return result


def _hint(value: object, t: pa.DataType) -> str | None:
    if value is None:
        return "null is matched by * alone"
    if t == TIMESTAMP:
        return "write it like '2026-01-31 10:00:00'"
    if t == pa.date32():
        return "write it like '2026-01-31'"
    if pa.types.is_integer(t) and isinstance(value, int):
        return "{} lies between {:,} and {:,}".format(a(type_text(t)), *integer_range(t))
    return None


def _coerce(value: object, t: pa.DataType) -> Value | None:
    number = isinstance(value, int | float | Decimal) and not isinstance(value, bool)
    if t == pa.bool_():
        return value if isinstance(value, bool) else None
    if pa.types.is_integer(t):
        if not number or value != int(value):  # type: ignore[call-overload]
            return None
        low, high = integer_range(t)
        whole = int(value)  # type: ignore[call-overload]
        return whole if low <= whole <= high else None
    if pa.types.is_floating(t):
        if not number:
            return None
        wide = float(value)  # type: ignore[arg-type]
        return wide if t == pa.float64() else float(struct.unpack("<f", struct.pack("<f", wide))[0])
    if pa.types.is_decimal(t):
        return _coerce_decimal(value, t) if number else None
    if t == pa.string():
        # Lone surrogates are not text: Arrow could not store them.
        return value if isinstance(value, str) and value.encode() is not None else None
    if t == pa.binary():
        return bytes(value) if isinstance(value, bytes | bytearray | memoryview) else None
    if t == pa.date32():
        if isinstance(value, str):
            value = parse_timestamp(value)
            return value.date() if value.time() == _MIDNIGHT else None
        return value if isinstance(value, date) and not isinstance(value, datetime) else None
    if t == TIMESTAMP:
        if isinstance(value, str):
            return parse_timestamp(value)
        if isinstance(value, datetime):
            if getattr(value, "nanosecond", 0):
                return None
            naive = value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
            # Rebuilt, so that subclasses (pandas) and `fold` cannot make equal moments differ.
            return datetime(*naive.timetuple()[:6], naive.microsecond)
        return datetime.combine(value, _MIDNIGHT) if isinstance(value, date) else None
    raise UserError(f"type '{t}' is not a type of an attribute")


def _coerce_decimal(value: object, t: pa.DataType) -> Decimal | None:
    exact = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)  # type: ignore[arg-type]
    if not exact.is_finite():
        return None
    # Scaled by hand: Decimal.quantize would round to the context's 28 digits.
    sign, digits, exponent = exact.as_tuple()
    assert isinstance(exponent, int)
    shift = exponent + t.scale
    unscaled = int("".join(map(str, digits)))
    if shift < 0:
        unscaled, lost = divmod(unscaled, 10**-shift)
        if lost:
            return None
    elif shift < 40:
        unscaled *= 10**shift
    elif unscaled:
        return None
    if unscaled >= 10**t.precision:
        return None
    return Decimal((sign if unscaled else 0, tuple(map(int, str(unscaled))), -t.scale))


def parse_timestamp(text: str) -> datetime:
    """A date and time as text, in UTC unless it names an offset; ValueError if it is none.

    >>> parse_timestamp("2026-01-01T10:00:00.5+02:00")
    datetime.datetime(2026, 1, 1, 8, 0, 0, 500000)
    """
    found = _TIMESTAMP.match(text.strip())
    if not found:
        raise ValueError(f"not a timestamp: {text!r}")
    year, month, day, hour, minute, second, fraction, zone = found.groups()
    if fraction and fraction[6:].strip("0"):
        raise ValueError(f"finer than a microsecond: {text!r}")
    micros = int((fraction or "0")[:6].ljust(6, "0"))
    moment = datetime.combine(
        date(int(year), int(month), int(day)), time(int(hour or 0), int(minute or 0), int(second or 0), micros)
    )
    if zone and zone != "Z":
        digits = zone[1:].replace(":", "").ljust(4, "0")
        offset = timedelta(hours=int(digits[:2]), minutes=int(digits[2:]))
        moment = moment - offset if zone[0] == "+" else moment + offset
    return moment


def value_to_json(value: Value | None) -> Any:
    """A JSON value from which `value_from_json`, given the type, restores exactly the same value.

    >>> value_to_json(datetime(2026, 1, 1, 10)), value_to_json(float("inf")), value_to_json(Decimal("1.50"))
    ('2026-01-01T10:00:00', 'inf', '1.50')
    """
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    return value


def value_from_json(stored: Any, t: pa.DataType) -> Any:
    """The value that `value_to_json` stored.

    >>> value_from_json("1.50", pa.decimal128(10, 2))
    Decimal('1.50')
    """
    if stored is None:
        return None
    if pa.types.is_floating(t):
        return float(stored)
    if pa.types.is_decimal(t):
        return Decimal(stored)
    if t == pa.binary():
        return base64.b64decode(stored)
    if t == pa.date32():
        return date.fromisoformat(stored)
    if t == TIMESTAMP:
        return datetime.fromisoformat(stored)
    return stored


def value_text(value: Any) -> str:
    """A value as written in a pattern; None is an open end, hence empty."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes):
        return f"x'{value.hex()}'"
    if isinstance(value, datetime):
        return f"'{value.isoformat(sep=' ')}'"
    if isinstance(value, date):
        return f"'{value.isoformat()}'"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return str(value)


def sql_literal(value: Any, t: pa.DataType) -> str:
    """A value as a DuckDB literal of a type.

    >>> sql_literal(-3, pa.int64()), sql_literal("it's", pa.string()), sql_literal(0.1, pa.float64())
    ('CAST(-3 AS BIGINT)', "'it''s'", "CAST('0.1' AS DOUBLE)")
    """
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, str):
        quoted = "'" + value.replace("'", "''") + "'"
        # The parser stops at a NUL character.
        return "(" + quoted.replace("\0", "' || chr(0) || '") + ")" if "\0" in value else quoted
    if isinstance(value, bytes):
        return "CAST('" + "".join(f"\\x{b:02X}" for b in value) + "' AS BLOB)"
    if isinstance(value, int):
        return f"CAST({value} AS {duckdb_type(t)})"
    shown = value.isoformat(sep=" ") if isinstance(value, datetime) else str(value)
    return f"CAST('{shown}' AS {duckdb_type(t)})"
