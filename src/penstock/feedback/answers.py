"""What a run leaves for those who asked it something: partial results, by the id of the demand, or why there are none.

partials/ID.parquet         the answer to a demand
partials/ID.refused.json    a message, of any kind, that was not taken up, and why
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.checkpoint.storage import Storage, seal, unseal
from penstock.errors import PenstockError, UserError

#: Answers that stay in the checkpoint.
KEEP = 100
#: The marks of a partial result.
PARTIAL, AS_OF = "partial", "as_of_epoch"


#: The sink whose results an answer holds, noted in its file.
_SINK = b"penstock.sink"


def marked(table: pa.Table, epoch: int) -> pa.Table:
    """Results with the marks of partial ones: they are not final, and as of which epoch.

    >>> marked(pa.table({"n": [1]}), 7).to_pylist()
    [{'n': 1, 'partial': True, 'as_of_epoch': 7}]
    """
    count = table.num_rows
    table = table.append_column(PARTIAL, pa.repeat(True, count))
    return table.append_column(AS_OF, pa.repeat(pa.scalar(epoch, pa.int64()), count))


def store_answers(storage: Storage, tables: Mapping[str, pa.Table], sinks: Mapping[str, str] | None = None) -> None:
    """Leave the answers to demands, by their ids, where whoever asked will look for them.

    `sinks` are those whose results each holds.
    """
    storage.make("partials")
    for name, table in tables.items():
        if sinks is not None:
            table = table.replace_schema_metadata({_SINK: sinks[name].encode()})
        path = f"partials/{name}.parquet"
        with storage.filesystem.open_output_stream(storage.path(f"{path}.partial")) as stream:
            pq.write_table(table, stream)
        storage.move(f"{path}.partial", path)
    _forget(storage, tables)


def refuse(storage: Storage, names: Collection[str], error: PenstockError) -> None:
    """Leave word that messages were not taken up, or not answered, and why."""
    for name in names:
        storage.write(f"partials/{name}.refused.json", seal({"why": error.message, "hint": error.hint}), sync=False)
    _forget(storage, names)


def _forget(storage: Storage, just_now: Collection[str]) -> None:
    """Answers are kept for a while: somebody may not have looked yet."""
    old = [n for n in storage.oldest_first("partials") if n.partition(".")[0] not in just_now]
    for name in old[: max(0, len(old) + len(just_now) - KEEP)]:
        storage.delete(f"partials/{name}")


def refusal(storage: Storage, name: str) -> UserError | None:
    """Why a message was refused; None if it was not."""
    refused = f"partials/{name}.refused.json"
    if not storage.exists(refused):
        return None
    body = unseal(storage.read(refused), refused)
    return UserError(str(body["why"]), hint=body["hint"])


def answer(storage: Storage, name: str) -> pa.Table | None:
    """The answer to a demand, None as long as there is none. That there will be none is an error."""
    path = f"partials/{name}.parquet"
    if not storage.exists(path):
        if (refused := refusal(storage, name)) is not None:
            raise refused
        return None
    return _read(storage, path)[1]


def answers(storage: Storage, sink: str = "") -> list[pa.Table]:
    """All answers there are, oldest first; those with results of a sink, if one is named."""
    names = [n for n in storage.oldest_first("partials") if n.endswith(".parquet")]
    found = (_read(storage, f"partials/{n}") for n in names)
    return [table for of, table in found if not sink or of == sink]


def _read(storage: Storage, path: str) -> tuple[str, pa.Table]:
    table = pq.read_table(storage.path(path), filesystem=storage.filesystem)
    told = dict(table.schema.metadata or {})
    sink = told.pop(_SINK, b"").decode()
    return sink, table.replace_schema_metadata(told or None)
