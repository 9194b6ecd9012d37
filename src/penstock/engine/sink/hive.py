"""Results in folders by value, as Hive lays them out and Spark, DuckDB and pyarrow read them.

    out/day=2026-01-01/part-000042-b1000.parquet

The attributes that name the folders are left out of the files. Their values are written as Spark writes them: as text
of its own casts, with what a path cannot hold as `%3A`, and null (or an empty text) as `__HIVE_DEFAULT_PARTITION__`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.errors import UserError, did_you_mean, shortly
from penstock.pattern.schema import Schema
from penstock.pattern.types import type_text
from penstock.sql.expression import Expression, evaluate

NOTHING = "__HIVE_DEFAULT_PARTITION__"
#: What Spark escapes in the names of folders, and the zero byte, which no path can hold.
_ESCAPED = re.compile("[\x00-\x1f\"#%'*/:=?\\\\\x7f{\\[\\]^]")
#: What a file system takes as one name.
LONGEST = 255


def escaped(text: str) -> str:
    """A name or a value as a part of a path.

    >>> escaped("2026-01-01 10:00:00"), escaped("a/b=50%")
    ('2026-01-01 10%3A00%3A00', 'a%2Fb%3D50%25')
    """
    return _ESCAPED.sub(lambda found: f"%{ord(found[0]):02X}", text)


def folder_of(column: str, value: str | None) -> str:
    """The folder of all rows with a value.

    >>> folder_of("day", "2026-01-01"), folder_of("city", None)
    ('day=2026-01-01', 'city=__HIVE_DEFAULT_PARTITION__')
    """
    return f"{escaped(column)}={escaped(value) if value else NOTHING}"


def fitted(columns: Sequence[str], schema: Schema, call: str) -> tuple[str, ...]:
    """The columns as the schema spells them, if results can be laid out by them."""
    found: list[str] = []
    for column in columns:
        name = schema.resolve(column)
        if name is None:
            raise UserError(f"{call}: the results have no column '{column}'", hint=did_you_mean(column, schema.names))
        if name in found:
            raise UserError(f"{call}: '{name}' is named twice", hint="name each column once, the outermost first")
        t = schema.type_of(name)
        if pa.types.is_binary(t) or pa.types.is_nested(t):
            raise UserError(
                f"{call}: '{name}' is {type_text(t)}, which cannot be the name of a folder",
                hint=f"with_columns(…) a text of it first, such as {name}_hex='hex({name})'",
            )
        found.append(name)
    if len(found) == len(schema.names):
        raise UserError(
            f"{call}: these are all columns of the results, and nothing would be left for the files",
            hint="leave one out",
        )
    return tuple(found)


def cut(table: pa.Table, columns: Sequence[str], sink: str) -> Iterator[tuple[str, pa.Table]]:
    """Folder by folder: its rows, in their order, without the columns that its name tells.

    >>> rows = pa.table({"day": ["b", None, "b"], "n": [1, 2, 3]})
    >>> [(folder, part.to_pydict()) for folder, part in cut(rows, ["day"], "sink-1")]
    [('day=__HIVE_DEFAULT_PARTITION__', {'n': [2]}), ('day=b', {'n': [1, 3]})]
    """
    if table.num_rows == 0:
        return
    folders = [""]
    place = np.zeros(table.num_rows, dtype=np.int64)
    for column in columns:
        texts = _as_text(table, column)
        values = pc.unique(texts)
        names = [_checked(folder_of(column, v), sink) for v in values.to_pylist()]
        both = place * len(names) + pc.index_in(texts, value_set=values).to_numpy()
        # Numbered anew after each column: only combinations that occur count.
        used, place = np.unique(both, return_inverse=True)
        folders = [f"{folders[u // len(names)]}/{names[u % len(names)]}".lstrip("/") for u in used.tolist()]
    rest = table.drop_columns(list(columns))
    # Null and an empty text are two values and one folder.
    order = sorted(set(folders))
    number = {folder: k for k, folder in enumerate(order)}
    place = np.array([number[f] for f in folders], dtype=np.int64)[place]
    ends = np.searchsorted(np.sort(place), np.arange(len(order) + 1))
    rest = rest.take(pa.array(np.argsort(place, kind="stable")))
    for k, folder in enumerate(order):
        yield folder, rest.slice(int(ends[k]), int(ends[k + 1] - ends[k]))


def namesakes(table: pa.Table, columns: Sequence[str]) -> Iterator[tuple[str, pa.Table]]:
    """Rows apart that a folder has for different values, and what is to tell their files apart.

    >>> rows = pa.table({"city": [None, "", "Rome"], "n": [1, 2, 3]})
    >>> [(mark, part["n"].to_pylist()) for mark, part in namesakes(rows, ["city"])]
    [('', [1, 3]), ('-1', [2])]
    """
    kind = np.zeros(table.num_rows, dtype=np.int64)
    for column in columns:
        if pa.types.is_string(table.schema.field(column).type):
            other = pc.fill_null(pc.index_in(table[column], value_set=pa.array(["", NOTHING])), -1)
            kind = 3 * kind + other.to_numpy() + 1
    for number in np.unique(kind).tolist():
        yield f"-{number}" if number else "", table.filter(pa.array(kind == number))


def _as_text(table: pa.Table, column: str) -> pa.ChunkedArray:
    if pa.types.is_string(table.schema.field(column).type):
        return table[column]
    # Under a plain name: the column's own may need quotes.
    return evaluate(_text_of(table.schema.field(column).type), pa.table({"v": table[column]}))


def _text_of(t: pa.DataType) -> Expression:
    return Expression.parse("CAST(v AS STRING)", Schema.parse(f"v {type_text(t)}"), where="partition_by")


def _checked(folder: str, sink: str) -> str:
    if len(folder.encode()) > LONGEST:
        raise UserError(
            f"sink {sink}: the folder {shortly(folder)} has a name that is too long",
            hint=f"names may have {LONGEST} bytes: lay results out by a column with shorter values",
        )
    return folder
