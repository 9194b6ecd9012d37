"""Tables on the driver and in tasks: read when they change, kept as snapshots that epochs name.

Before an epoch is planned the driver looks whether the files of a table have changed. If so it reads and checks them
and writes what it got to the checkpoint, under a name made of its content. The plan of the epoch names that snapshot,
so the epoch has the same table however often it is run. A table that has become unreadable stays as it was, with a
warning.

    tables/prices/3f9a….arrow   a snapshot: the prepared rows of table `prices`
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa

from penstock.checkpoint.intact import DamagedError
from penstock.checkpoint.names import is_ours
from penstock.checkpoint.storage import Storage
from penstock.engine.source.files import FilesReader
from penstock.engine.source.folder import Folder
from penstock.engine.source.formats.fit import Fit, convert, fit
from penstock.engine.source.formats.read import read
from penstock.engine.source.place import first_line
from penstock.errors import PenstockError, SchemaError, SourceError, UserError, counted, did_you_mean
from penstock.operators.lookup.kernel import prepare
from penstock.operators.source.operator import Source
from penstock.pattern.types import type_text
from penstock.plan.promise import Files
from penstock.plan.table import Framed, Table

#: Snapshots that a worker keeps open.
OPEN = 16
#: How often a table is read again that changes while it is read, before a first run gives up.
TRIES = 5

#: What tells one state of a table from another: the names, sizes and times of its files.
Look = tuple[tuple[str, int, int], ...]


class ChangingError(SourceError):
    """The files of a table changed while they were read."""


@dataclass(frozen=True)
class KeptTable:
    """Where the keeper stands with one table: its snapshot, what it was read from, and when."""

    snapshot: str | None = None
    look: Look | None = None
    pending: tuple[Look, float] | None = None
    read_at: float | None = None
    complaint: str | None = None


class TableKeeper:
    """The driver's side of the tables of one query.

    `refresh` before an epoch is planned, and its answer into the plan; `restore` with the answer of an earlier plan
    after a start. `warnings` tells of tables that were left as they were, each trouble once.
    """

    def __init__(self, tables: Mapping[str, Table], warnings: list[str] | None = None, salt: str = "") -> None:
        self.tables = dict(tables)
        #: What goes into the names of snapshots besides their content.
        self.salt = salt
        self.warnings: list[str] = [] if warnings is None else warnings
        self._kept = {name: KeptTable() for name in self.tables}

    def refresh(self, storage: Storage, settled: bool = False) -> dict[str, str]:
        """The snapshot of each table as it is now, by the table's name.

        With `settled`, nobody is writing any more: a bounded run takes files as they are, as it does with streams.
        """
        for name, table in self.tables.items():
            kept = self._kept[name]
            try:
                kept = self._refreshed(storage, table, kept, settled)
            except PenstockError as error:
                if kept.snapshot is None:
                    raise
                kept = self._complain(table, kept, error)
            self._kept[name] = kept
        return self._names()

    def restore(self, names: Mapping[str, str]) -> None:
        """Take up the snapshots of an earlier epoch: they stand until the tables are read again."""
        for name, snapshot in names.items():
            if name in self._kept:
                self._kept[name] = KeptTable(snapshot)

    def mend(self, storage: Storage, snapshot: str) -> bool:
        """Whether a damaged snapshot could be written again, because its table still is what it was."""
        table = self.tables[snapshot.split("/")[1]]
        reader = table.reader
        assert reader is not None
        try:
            rows = collect(table, reader) if isinstance(reader, Framed) else read_files(table, reader)[0]
            if write_snapshot(storage, table, prepare(table, rows), self.salt) != snapshot:
                return False
        except PenstockError:
            return False
        self.warnings.append(f"table '{table.name}': its snapshot {snapshot} was damaged; it was read again")
        return True

    def live(self, named: Iterable[Mapping[str, str]]) -> set[str]:
        """The files that must stay: snapshots named by the given plans, and those of now."""
        return {s for names in named for s in names.values()} | set(self._names().values())

    def sweep(
        self, storage: Storage, named: Iterable[Mapping[str, str]], guard: Callable[[], None] = lambda: None
    ) -> list[str]:
        """Delete the snapshots that none of the given plans names; returns their names."""
        live = self.live(named)
        gone = [n for n in storage.tree("tables") if n not in live and is_ours(n)]
        guard()
        for name in gone:
            storage.delete(name)
        return gone

    def _names(self) -> dict[str, str]:
        return {name: kept.snapshot for name, kept in self._kept.items() if kept.snapshot is not None}

    def _refreshed(self, storage: Storage, table: Table, kept: KeptTable, settled: bool) -> KeptTable:
        if isinstance(table.reader, Framed):
            every, now = table.reader.every, time.monotonic()
            if kept.read_at is not None and (every is None or now - kept.read_at < every / 1e6):
                return kept
            # Noted first: a frame that cannot be collected is not asked again at once.
            self._kept[table.name] = replace(kept, read_at=now)
            rows = collect(table, table.reader)
            return KeptTable(write_snapshot(storage, table, prepare(table, rows), self.salt), read_at=now)
        assert table.reader is not None
        look = look_at(table, table.reader)
        if look == kept.look and kept.snapshot is not None:
            return replace(kept, pending=None)
        if kept.snapshot is not None and not settled:
            since = kept.pending[1] if kept.pending is not None and kept.pending[0] == look else time.monotonic()
            if not _settled(table.reader, look, since):
                return replace(kept, pending=(look, since))
        # Noted first: what cannot be read is not read again until it changes.
        self._kept[table.name] = replace(kept, look=look, pending=None)
        for attempt in range(1, TRIES + 1):
            try:
                rows, look = read_files(table, table.reader)
                break
            except ChangingError:
                if kept.snapshot is not None:
                    self._kept[table.name] = kept
                    return kept
                if attempt == TRIES:
                    raise
        return KeptTable(write_snapshot(storage, table, prepare(table, rows), self.salt), look)

    def _complain(self, table: Table, kept: KeptTable, error: PenstockError) -> KeptTable:
        said = f"{_about(table, error)}: it stays as it was"
        if said != kept.complaint:
            self.warnings.append(said)
        return replace(self._kept[table.name], complaint=said)


def look_at(table: Table, files: Files) -> Look:
    """What the files of a table look like now."""
    try:
        found = Folder(table.name, files).candidates()
    except PenstockError as error:
        raise _retold(table, error) from None
    return tuple((c.name, c.size, c.mtime_ns) for c in found)


def _settled(files: Files, look: Look, since: float) -> bool:
    """Whether nobody is writing any more: text does not show where it ends, and one file may come after another."""
    settle = float(dict(files.options).get("settle", 0.0 if files.format == "parquet" else 1.0))
    newest = max((mtime for _, _, mtime in look), default=0)
    return time.monotonic() - since >= settle or time.time() - newest / 1e9 >= settle


def read_files(table: Table, files: Files) -> tuple[pa.Table, Look]:
    """All rows of a table and what its files looked like; a row that does not fit spoils the whole table."""
    look = look_at(table, files)
    source = Source((), table.schema, name=table.name, reader=files)
    headed = files.format == "csv" and dict(files.options).get("header", True)
    for name, size, _ in look:
        if headed and size == 0:
            raise SourceError(f"table '{table.name}': file '{name}' is empty", hint="it needs a line with column names")
    parts = [table.schema.arrow.empty_table()]
    try:
        reader = FilesReader(source, files)
        splits = reader.plan(None, None, 1, settled=True)
        for address, why in reader.waiting:
            raise SourceError(f"table '{table.name}': file '{address}' is not whole: {why}")
        for split in splits:
            batch = read(split, table.schema, options=dict(files.options))
            if batch.malformed.num_rows:
                first = batch.malformed.slice(0, 1).to_pylist()[0]
                misfits = counted(batch.malformed.num_rows, "row does", "rows do")
                raise SchemaError(
                    f"table '{table.name}': {misfits} not fit in '{split.path}', "
                    f"for example {first['event']}: {first['detail']}",
                    hint="fix the file; a table is taken whole or not at all",
                )
            parts.append(batch.table)
    except PenstockError as error:
        if look_at(table, files) != look:
            raise _changing(table, files) from None
        raise _retold(table, error) from None
    if look_at(table, files) != look:
        raise _changing(table, files)
    return pa.concat_tables(parts), look


def _changing(table: Table, files: Files) -> ChangingError:
    return ChangingError(
        f"table '{table.name}': '{files.path}' changes while it is read",
        hint="write to another name and rename the file when it is whole",
    )


def collect(table: Table, framed: Framed) -> pa.Table:
    """The rows of a Spark DataFrame in the declared types."""
    try:
        frame = framed.frame if hasattr(framed.frame, "toArrow") else framed.frame()
        found: pa.Table = frame.toArrow()
    except PenstockError:
        raise
    except Exception as error:  # Whatever Spark raises, the table is what could not be read.
        raise SourceError(f"table '{table.name}': Spark could not collect it: {first_line(error)}") from error
    columns = []
    for attribute in table.schema:
        name, wanted = attribute.name, attribute.type
        if name not in found.column_names:
            raise SchemaError(
                f"table '{table.name}': the DataFrame has no column '{name}'",
                hint=did_you_mean(name, found.column_names),
            )
        column = found.column(name)
        misfits = None
        if (match := fit(column.type, wanted)) is not Fit.NEVER:
            column, misfits = convert(column, wanted)
        if match is Fit.NEVER or misfits is not None:
            raise SchemaError(
                f"table '{table.name}': column '{name}' of the DataFrame is {found.column(name).type}, "
                f"declared {type_text(wanted)}{'' if misfits is None else ', and a value does not fit'}",
                hint="correct the declaration, or cast the column in the DataFrame",
            )
        columns.append(column)
    return pa.table(columns, schema=table.schema.arrow)


def _retold(table: Table, error: PenstockError) -> PenstockError:
    """The same error about a table: the readers of files speak of streams."""
    kind = type(error) if isinstance(error, UserError | SourceError) else SourceError
    return kind(_about(table, error), hint=error.hint)


def _about(table: Table, error: PenstockError) -> str:
    said = error.message.replace(f"stream '{table.name}'", f"table '{table.name}'")
    return said if said.startswith(f"table '{table.name}'") else f"table '{table.name}': {said}"


# --- snapshots ------------------------------------------------------------------------------------------------------

_open: OrderedDict[tuple[str, str], pa.Table] = OrderedDict()
_lock = threading.Lock()


def write_snapshot(storage: Storage, table: Table, prepared: pa.Table, salt: str = "") -> str:
    """Store prepared rows under a name made of their content; the same content is stored once."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, prepared.schema) as writer:
        writer.write_table(prepared.combine_chunks(), max_chunksize=1 << 20)
    data = sink.getvalue()
    name = f"tables/{table.name}/{_digest(data)}{hashlib.sha256(salt.encode()).hexdigest()[:8]}.arrow"
    if not storage.exists(name) or not _is_whole(name, storage.read(name)):
        storage.write(name, data.to_pybytes())
    return name


def _digest(data: bytes | pa.Buffer) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


def _is_whole(snapshot: str, data: bytes | pa.Buffer) -> bool:
    """Whether this is what gave the snapshot its name."""
    return snapshot.rpartition("/")[2].startswith(_digest(data))


def load(storage: Storage, snapshot: str) -> pa.Table:
    """A snapshot in a task: mapped from local disks, and kept open between tasks of one worker."""
    key = (storage.url, snapshot)
    with _lock:
        if key in _open:
            _open.move_to_end(key)
            return _open[key]
    path = storage.path(snapshot)
    try:
        source = pa.memory_map(path) if storage.local else storage.filesystem.open_input_file(path)
        data = source.read_buffer()
        if not _is_whole(snapshot, data):
            raise DamagedError("its contents do not match their checksum")
        table = pa.ipc.open_file(pa.BufferReader(data)).read_all()
    except (OSError, pa.ArrowInvalid, DamagedError) as error:
        raise DamagedError(
            f"snapshot {path} of a table is missing or damaged: {first_line(error)}",
            name=snapshot,
            hint="restore the file from a backup of the checkpoint; the checkpoint itself is unchanged",
        ) from error
    with _lock:
        _open[key] = table
        while len(_open) > OPEN:
            _open.popitem(last=False)
    return table


def load_all(storage: Storage | None, names: Mapping[str, str]) -> dict[str, pa.Table]:
    """The tables of an epoch by name, for its tasks."""
    return {} if storage is None else {name: load(storage, snapshot) for name, snapshot in names.items()}
