"""All functions that expressions may call, by name, and what to say of those they may not."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from penstock.errors import UserError, nearest
from penstock.sql.conditions import CONDITIONS
from penstock.sql.function import Function, Signature
from penstock.sql.numbers import HEX, NUMBERS
from penstock.sql.strings import STRINGS
from penstock.sql.term import STRING
from penstock.sql.times import TIMES

#: What gives another value each time, so that a replay would differ.
VOLATILE = frozenset(
    [
        "now", "today", "curdate", "current_date", "current_time", "current_timestamp", "localtime", "localtimestamp",
        "rand", "randn", "random", "randstr", "uniform", "uuid", "shuffle", "monotonically_increasing_id",
        "spark_partition_id", "input_file_name", "current_user", "user", "session_user", "current_timezone",
        "current_catalog", "current_schema", "current_database", "version", "gen_random_uuid", "age", "nextval",
        "currval", "current_setting", "get_current_timestamp", "transaction_timestamp", "uuidv4", "uuidv7",
        "txid_current", "getvariable", "sleep", "setseed", "current_query", "input_file_block_start",
    ]
)  # fmt: skip
#: Aggregates, by all their names: they belong in `agg`.
AGGREGATES = frozenset(
    [
        "any",
        "any_value",
        "approx_count_distinct",
        "approx_percentile",
        "approx_top_k",
        "arg_max",
        "arg_min",
        "array_agg",
        "avg",
        "bit_and",
        "bit_or",
        "bit_xor",
        "bool_and",
        "bool_or",
        "collect_list",
        "collect_set",
        "corr",
        "count",
        "count_if",
        "count_min_sketch",
        "covar_pop",
        "covar_samp",
        "every",
        "first",
        "first_value",
        "grouping",
        "histogram_numeric",
        "kurtosis",
        "last",
        "last_value",
        "listagg",
        "max",
        "max_by",
        "mean",
        "median",
        "min",
        "min_by",
        "mode",
        "percentile",
        "percentile_approx",
        "percentile_cont",
        "percentile_disc",
        "product",
        "quantile",
        "regr_slope",
        "regr_r2",
        "skewness",
        "some",
        "std",
        "stddev",
        "stddev_pop",
        "stddev_samp",
        "string_agg",
        "sum",
        "try_avg",
        "try_sum",
        "var_pop",
        "var_samp",
        "variance",
        "histogram",
    ]
)
_ROWS = frozenset(
    ["explode", "explode_outer", "posexplode", "posexplode_outer", "inline", "inline_outer", "stack", "unnest"]
)
#: What to write in place of functions that Spark has and this does not.
INSTEAD = {
    "hash": "md5(…) or sha2(…, 256)",
    "xxhash64": "md5(…) or sha2(…, 256)",
    "murmur_hash": "md5(…)",
    "crc32": "md5(…)",
    "soundex": "levenshtein(a, b)",
    "iff": "if(c, a, b)",
    "to_char": "format_string('%05d', n) or date_format(ts, 'yyyy')",
    "format_number": "cast(round(m, 2) as string)",
    "from_json": 'get the field with regexp_extract(s, \'"field":"([^"]*)"\')',
    "get_json_object": 'regexp_extract(s, \'"field":"([^"]*)"\')',
    "array_contains": "x in (a, b)",
    "element_at": "split(s, ',')[0]",
    "find_in_set": "contains(',' || list || ',', ',' || x || ',')",
    "to_number": "cast(s as decimal(10,2))",
    "url_decode": "replace(s, '%20', ' ')",
    "strftime": "date_format(ts, 'yyyy-MM-dd')",
    "strptime": "to_timestamp(s, 'yyyy-MM-dd')",
    "epoch": "unix_seconds(ts)",
    "epoch_ms": "unix_millis(ts)",
    "strlen": "octet_length(s)",
    "strpos": "instr(s, part)",
    "list_contains": "x in (a, b)",
    "conv": "hex(n) or bin(n)",
    "date_bin": "date_trunc('hour', ts)",
    "from_utc_timestamp": "ts + interval 2 hours: times are UTC",
    "to_utc_timestamp": "ts - interval 2 hours: times are UTC",
    "convert_timezone": "ts + interval 2 hours: times are UTC",
}


@cache
def functions() -> Mapping[str, Function]:
    """Every function by its name.

    >>> functions()["nvl"].calls()
    ['nvl(any, any)']
    """
    found = {f.name: f for f in (*STRINGS, *NUMBERS, *TIMES, *CONDITIONS)}
    hex_ = found["hex"]
    # Numbers first: as a text, 255 would be three characters.
    forms = (Signature(("integral",), STRING, HEX), *hex_.forms)
    found["hex"] = Function("hex", hex_.family, forms, hex_.note)
    return found


def refusal(name: str, text: str, where: str, *, bare: bool = False) -> UserError:
    """Why a function cannot be called."""
    if name == "window":
        return UserError(f"{where}: '{text}' is a window, not an expression", hint="use .window(…)")
    if name in VOLATILE:
        return UserError(
            f"{where}: '{name}' in '{text}' gives another value each time",
            hint="a replay must be exact; use an attribute of the event instead",
        )
    if name in AGGREGATES:
        return UserError(
            f"{where}: aggregate function '{name}' in '{text}' has no place here", hint="aggregates belong in .agg(…)"
        )
    if name in _ROWS:
        return UserError(f"{where}: '{text}' makes several rows of one", hint="use .map(…) with a Python function")
    if name in INSTEAD:
        return UserError(f"{where}: function '{name}' in '{text}' is not available", hint=f"write {INSTEAD[name]}")
    match = nearest(name, [n for n in functions() if n != name])
    hint = f"did you mean '{match}'? " if match else ""
    return UserError(
        f"{where}: function '{name}' in '{text}' is not available", hint=f"{hint}docs/functions.md lists what there is"
    )
