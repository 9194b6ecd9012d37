"""The inbox of a Spark stream: each micro-batch a folder of Parquet files, complete once its marker is there.

    inbox/batch-000000000007/part-00000-….parquet
    inbox/batch-000000000007/_COMPLETE.json        {"batch": 7, "files": ["part-00000-….parquet"]}

Spark may deliver a batch again after a crash, under the same id. A folder without a marker is then written anew; one
with a marker stays as it is, because its events may have been read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow.fs as fs

from penstock.checkpoint.storage import Storage
from penstock.engine.source.files import FilesReader
from penstock.engine.source.folder import FoundFile, Listing
from penstock.engine.source.place import Located, locate
from penstock.engine.source.split import Split
from penstock.errors import SourceError, UserError
from penstock.operators.source.operator import Source
from penstock.plan.promise import Files

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

MARKER = "_COMPLETE.json"
_BATCH = re.compile(r"batch-(\d+)\Z")


def batch_folder(batch: int) -> str:
    """The folder of a batch; padded, so that names sort like numbers.

    >>> batch_folder(7)
    'batch-000000000007'
    """
    return f"batch-{batch:012d}"


@dataclass
class InboxFolder:
    """The files of complete batches, in the order of batch ids."""

    stream: str
    path: str
    first: int = 0
    _complete: dict[int, tuple[FoundFile, ...]] = field(default_factory=dict)

    def listing(self) -> Listing:
        place = locate(self.path)
        infos = place.filesystem.get_file_info(fs.FileSelector(place.path, allow_not_found=True))
        ids = sorted(int(m[1]) for i in infos if (m := _BATCH.match(i.base_name)))
        found: list[FoundFile] = []
        for batch in ids:
            if batch < self.first:
                continue
            if batch not in self._complete:
                files = self._files(place, batch)
                if files is None:
                    break  # batches are complete in their order: what follows has to wait
                self._complete[batch] = files
            found += self._complete[batch]
        return Listing(tuple(found))

    def name_of(self, address: str) -> str:
        return "/".join(address.partition("?")[0].rsplit("/", 2)[-2:])

    def forget(self, before: int) -> None:
        """Look no more at batches with smaller ids."""
        self.first = max(self.first, before)
        self._complete = {b: files for b, files in self._complete.items() if b >= self.first}

    def _files(self, place: Located, batch: int) -> tuple[FoundFile, ...] | None:
        folder = f"{place.path}/{batch_folder(batch)}"
        try:
            with place.filesystem.open_input_stream(f"{folder}/{MARKER}") as stream:
                names = json.loads(bytes(stream.read()))["files"]
        except (FileNotFoundError, ValueError, KeyError):
            return None  # a marker that is cut off counts as none
        infos = place.filesystem.get_file_info([f"{folder}/{n}" for n in names]) if names else []
        for info in infos:
            if info.type != fs.FileType.File:
                raise SourceError(
                    f"stream '{self.stream}': inbox file '{info.path}' is gone", hint="restore the inbox from a backup"
                )
        return tuple(
            FoundFile(
                f"{batch_folder(batch)}/{i.base_name}", place.address(i.path), "", int(i.size), int(i.mtime_ns or 0)
            )
            for i in infos
        )


class InboxReader(FilesReader):
    """Reads complete batches in order, as one source partition. Batches read to the end are not looked at again."""

    def __init__(self, source: Source, path: str) -> None:
        super().__init__(source, Files(path, "parquet", options=(("wait", True),)), InboxFolder(source.name, path))
        self._inbox = path
        self._any_order = False  # what lies before a batch that is begun is not looked at again

    def advance(self, splits: Sequence[Split]) -> None:
        super().advance(splits)
        for split in splits:
            self._forget(split.path)

    def restore(self, snapshot: Mapping[str, Any] | None, deltas: Sequence[Mapping[str, Any]]) -> None:
        super().restore(snapshot, deltas)
        for name in [*self._done, *self._begun]:
            self._forget(name)

    def _forget(self, name: str) -> None:
        """Batches are read in order: when one is begun, those before it are done, and need no list of their files."""
        if isinstance(self._folder, InboxFolder) and (found := _BATCH.match(name.rsplit("/", 2)[-2])):
            self._folder.forget(int(found[1]))
            oldest = batch_folder(self._folder.first)
            self._done = {n: f for n, f in self._done.items() if n >= oldest}

    def fix(self) -> None:
        """Nothing to fix: a bounded run waits until Spark has delivered what there is, and then nothing follows."""

    def discard(self, before: Sequence[Split]) -> None:
        """Delete the batches in front of committed splits: they are read, and Spark does not deliver them again."""
        ids = [int(m[1]) for s in before if (m := _BATCH.match(s.path.rsplit("/", 2)[-2]))]
        if not ids:
            return
        place = locate(self._inbox)
        for info in place.filesystem.get_file_info(fs.FileSelector(place.path, allow_not_found=True)):
            found = _BATCH.match(info.base_name)
            if found and int(found[1]) < max(ids):
                place.filesystem.delete_dir(info.path)


@dataclass(frozen=True)
class InboxHandle:
    """The running Spark query that fills an inbox."""

    query: StreamingQuery

    @property
    def active(self) -> bool:
        return bool(self.query.isActive)

    def check(self) -> None:
        """Raise if the Spark query failed."""
        failure = self.query.exception()
        if failure is not None:
            text = str(failure).strip().splitlines()[0]
            raise SourceError(f"the Spark stream behind the inbox failed: {text}")

    def wait(self, seconds: int | None = None) -> bool:
        """Wait until the query ends; whether it did."""
        ended = self.query.awaitTermination() if seconds is None else self.query.awaitTermination(seconds)
        return True if ended is None else bool(ended)

    def stop(self) -> None:
        self.query.stop()


def start_inbox(
    frame: DataFrame, folder: str, checkpoint: str, trigger: str = "available_now", durable: bool = True
) -> InboxHandle:
    """Write the micro-batches of a streaming DataFrame to an inbox.

    `trigger` is "available_now", "once" or an interval such as "500 ms". A batch is on the disk before Spark hears that
    it was taken, if it is to be `durable`.
    """
    if not getattr(frame, "isStreaming", False):
        raise UserError("from_spark needs a streaming DataFrame", hint="make it with spark.readStream")
    place = locate(folder)
    place.filesystem.create_dir(place.path, recursive=True)
    writer = frame.writeStream.foreachBatch(lambda batch, n: write_batch(batch, n, folder, durable))
    writer = writer.option("checkpointLocation", checkpoint)
    if trigger in ("available_now", "once"):
        writer = writer.trigger(availableNow=True)
    else:
        writer = writer.trigger(processingTime=trigger)
    return InboxHandle(writer.start())


def write_batch(frame: DataFrame, batch: int, folder: str, durable: bool = True) -> None:
    """Write one batch, unless it is complete already."""
    place = locate(folder)
    target = f"{place.path}/{batch_folder(batch)}"
    marker = f"{target}/{MARKER}"
    if _is_complete(place, marker):
        return
    # The session of a micro-batch is a clone: this touches nobody else. INT96 timestamps would have no statistics.
    frame.sparkSession.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
    frame.write.mode("overwrite").parquet(_spark_path(place, target))
    infos = place.filesystem.get_file_info(fs.FileSelector(target))
    names = sorted(i.base_name for i in infos if i.type == fs.FileType.File and i.base_name.endswith(".parquet"))
    storage, within = Storage.at(folder, durable), batch_folder(batch)
    storage.sync(f"{within}/{name}" for name in names)
    storage.write(f"{within}/{MARKER}", json.dumps({"batch": batch, "files": names}).encode())


def _is_complete(place: Located, marker: str) -> bool:
    try:
        with place.filesystem.open_input_stream(marker) as stream:
            return "files" in json.loads(bytes(stream.read()))
    except (FileNotFoundError, ValueError):
        return False


def _spark_path(place: Located, path: str) -> str:
    # A bare path would mean the cluster's default file system, which need not be the local one.
    return f"file://{path}" if place.local else place.address(path).partition("?")[0]
