"""The driver's side of a source: what to read next, and where the source stands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from penstock.engine.source.files import FilesReader
from penstock.engine.source.formats.generate import GeneratedReader
from penstock.engine.source.inbox import InboxReader
from penstock.engine.source.split import Split
from penstock.engine.source.unreadable import Unreadable
from penstock.errors import UserError
from penstock.operators.source.operator import Source
from penstock.pattern.pattern import Pattern
from penstock.plan.plan import Node
from penstock.plan.promise import Files, Generated
from penstock.statistics.figures import Backlog


def source_of(node: Node) -> Source:
    """The source that a node of a plan is."""
    assert isinstance(node.operator, Source)
    return node.operator


class SourceReader(Protocol):
    """A cursor over the events of one source.

    One epoch is `plan` (or, after a crash, `advance` with the splits of the write-ahead plan), then `position`, whose
    answer is written into the manifest. Now and then `snapshot`, taken at the same moment, replaces older positions.
    """

    waiting: tuple[tuple[str, str], ...]
    """Files that are not whole yet or cannot be read, each with the reason."""

    @property
    def unreadable(self) -> Unreadable | None:
        """What it does at files that cannot be read; None if it reads no files."""

    @property
    def partitions(self) -> tuple[str, ...]: ...
    @property
    def exhausted(self) -> bool: ...
    @property
    def concerned(self) -> tuple[Pattern, ...] | None:
        """The patterns of the last plan's guard that rows of its splits may match; None: that is not known."""

    def plan(
        self,
        max_rows: int | None,
        max_bytes: int | None,
        parallelism: int,
        settled: bool = False,
        guard: tuple[Pattern, ...] = (),
        prefer: tuple[Pattern, ...] = (),
        steady: bool = False,
    ) -> tuple[Split, ...]: ...
    def advance(self, splits: Sequence[Split]) -> None: ...
    def position(self) -> dict[str, Any]: ...
    def snapshot(self) -> dict[str, Any]: ...
    def fix(self) -> None: ...
    def backlog(self) -> Backlog:
        """What was there when it last planned, and was not planned."""

    def restore(self, snapshot: Mapping[str, Any] | None, deltas: Sequence[Mapping[str, Any]]) -> None: ...


def open_reader(source: Source, inbox_path: str | None = None, *, lenient: bool = False) -> SourceReader:
    """The reader of a source. A Spark stream is read from its inbox, a folder of complete batches.

    One that is `lenient` goes on where a file has changed after it was read.
    """
    reader = source.reader
    if reader is None:
        raise UserError(
            f"stream '{source.name}' has nothing to read from", hint="call .read_parquet(path) or another .read_…"
        )
    if isinstance(reader, Files):
        return FilesReader(source, reader, lenient=lenient)
    if isinstance(reader, Generated):
        return GeneratedReader(source, reader)
    if inbox_path is None:
        raise UserError(f"stream '{source.name}' comes from Spark and has no inbox", hint="start it with a checkpoint")
    return InboxReader(source, inbox_path)


def reader_options(source: Source) -> dict[str, Any]:
    """What `read` needs to know besides the split: format options, or the declaration of a generator."""
    reader = source.reader
    if isinstance(reader, Files):
        return dict(reader.options)
    return {"generated": reader} if isinstance(reader, Generated) else {}
