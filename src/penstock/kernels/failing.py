"""Events on which an expression fails, told from those on which it does not.

A statement over a batch fails as a whole. Only then is asked which events were to blame: `TRY(e IS NULL)` is null
exactly where `e` fails, so one statement for each expression tells them all, without a loop over events.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from penstock.errors import FailingError
from penstock.kernels.duck import query, to_the_letter
from penstock.sql.expression import Expression
from penstock.sql.fallible import Fallible

_AT = "__at"
Mask = npt.NDArray[np.bool_]

#: As many events are asked one by one what was wrong with them; of the others it is told that something was.
EXPLAINED = 100
#: What stands for `error(…)` inside TRY, which refuses it: of each type something that always fails.
_STAND_INS = ("chr(-5)", *(f"CAST('x' AS {t})" for t in ("BIGINT", "TIMESTAMP", "DATE", "BOOLEAN", "BLOB")))


@dataclass(frozen=True)
class Failed:
    """Events on which one expression fails, and for each the reason; without a text, for that reason alone."""

    rows: pa.Table
    text: str
    reasons: tuple[str, ...]


def sound(rows: pa.Table, tried: Sequence[Fallible]) -> tuple[pa.Table, list[Failed]]:
    """The rows on which no expression fails, and the others, each with the first that does.

    >>> rows = pa.table({"s": ["1", "x", None]})
    >>> kept, (failed,) = sound(rows, [Fallible("cast(s as int)", 'CAST("s" AS INTEGER)')])
    >>> kept["s"].to_pylist(), failed.rows["s"].to_pylist(), failed.reasons[0]
    (['1', None], ['x'], "Could not convert string 'x' to INT32")
    """
    found: list[Failed] = []
    with to_the_letter():
        for each in tried:
            mask = failing(rows, each.sql)
            if mask.any():
                fallen = rows.filter(pa.array(mask))
                found.append(Failed(fallen, each.text, _reasons(fallen, each.sql)))
                rows = rows.filter(pa.array(~mask))
    return rows, found


def ask(
    condition: Expression,
    rows: pa.Table,
    failed: list[Failed],
    shown: Callable[[npt.NDArray[np.int64]], pa.Table],
) -> Mask:
    """Where a condition is true. Where it fails it is not, and that is noted, with what is `shown` of these rows."""
    sql = f"SELECT coalesce({condition.sql}, FALSE) AS v FROM rows"
    try:
        return np.asarray(query(sql, rows=rows)["v"])
    except FailingError:
        kept, found = sound(rows.append_column(_AT, pa.array(np.arange(rows.num_rows))), condition.tried)
        if not found:
            raise
        failed += [Failed(shown(np.asarray(f.rows[_AT])), f.text, f.reasons) for f in found]
        true = np.zeros(rows.num_rows, dtype=np.bool_)
        with to_the_letter():
            true[np.asarray(kept[_AT])] = np.asarray(query(sql, rows=kept)["v"])
        return true


def failing(rows: pa.Table, sql: str) -> Mask:
    """Where an expression fails."""
    if not rows.num_rows:
        return np.zeros(0, dtype=np.bool_)
    for tried in _without_error(sql):
        try:
            answer = query(f"SELECT TRY(({tried}) IS NULL) IS NULL AS f FROM rows", rows=rows)
            return np.asarray(answer["f"])
        except (duckdb.BinderException, FailingError):
            continue
    # Neither TRY nor a stand-in will do: by halves.
    mask = np.zeros(rows.num_rows, dtype=np.bool_)
    waiting = [(0, rows.num_rows)]
    while waiting:
        first, last = waiting.pop()
        if _failure(rows.slice(first, last - first), sql) is None:
            continue
        if last - first == 1:
            mask[first] = True
        else:
            middle = (first + last) // 2
            waiting += [(first, middle), (middle, last)]
    return mask


def _failure(rows: pa.Table, sql: str) -> FailingError | None:
    try:
        query(f"SELECT count(({sql}) IS NULL) FROM rows", rows=rows)
    except FailingError as error:
        return error
    return None


def _reasons(rows: pa.Table, sql: str) -> tuple[str, ...]:
    said = []
    for i in range(min(rows.num_rows, EXPLAINED)):
        error = _failure(rows.slice(i, 1), sql)
        said.append("" if error is None else error.message)
    return (*said, *[""] * (rows.num_rows - len(said)))


def _without_error(sql: str) -> list[str]:
    """The expression with something else that fails in the place of `error(…)`; several ways, one of which may fit."""
    calls = _calls(sql)
    if not calls:
        return [sql]
    out = []
    for stand_in in _STAND_INS:
        text, last = "", 0
        for first, end in calls:
            text, last = text + sql[last:first] + stand_in, end
        out.append(text + sql[last:])
    return out


def _calls(sql: str) -> list[tuple[int, int]]:
    """Where `error(…)` begins and ends, quotes and parentheses heeded."""
    found: list[tuple[int, int]] = []
    quoted, depth, start, at = "", 0, -1, 0
    while at < len(sql):
        c = sql[at]
        if quoted:
            quoted = "" if c == quoted else quoted
        elif c in "'\"":
            quoted = c
        elif start < 0 and sql[at : at + 6].lower() == "error(" and (at == 0 or not sql[at - 1].isalnum()):
            start, depth, at = at, 1, at + 5
        elif start >= 0 and c in "()":
            depth += 1 if c == "(" else -1
            if not depth:
                found.append((start, at + 1))
                start = -1
        at += 1
    return found
