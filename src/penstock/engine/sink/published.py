"""Which files this checkpoint has put into the folder of a sink, as far back as an epoch may be run again.

    published/sink-1.json    {"42": ["part-000042-b1000.parquet"], …}

If a manifest is damaged after its results were published, its epoch is run again, perhaps cut into other tasks. This
record then names what it left in the folder: it alone may be deleted there, whatever else looks like it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable

from penstock.checkpoint.checkpoint import KEEP
from penstock.checkpoint.names import check_results
from penstock.checkpoint.storage import Storage, seal, unseal
from penstock.errors import CheckpointError


class Published:
    """The names of results by epoch.

    >>> import tempfile
    >>> seen = Published(Storage.at(tempfile.mkdtemp()), "sink-1")
    >>> seen.note(7, ["part-000007-b1000.parquet"]); seen.after(6), seen.after(7)
    (['part-000007-b1000.parquet'], [])
    """

    def __init__(self, storage: Storage, sink: str) -> None:
        self.storage = storage
        self.record = f"published/{sink}.json"
        self.table = f"published/{sink}.parts.json"
        self._known: dict[int, list[str]] | None = None
        self._parts: frozenset[str] | None = None

    @property
    def known(self) -> dict[int, list[str]]:
        if self._known is None:
            self._known = {}
            # One that is torn says as much as none: then nothing is deleted.
            with contextlib.suppress(CheckpointError, FileNotFoundError, ValueError, AttributeError):
                stored = unseal(self.storage.read(self.record), self.record)
                self._known = {int(epoch): list(names) for epoch, names in stored.items()}
            for names in self._known.values():
                check_results(names, self.record)
        return self._known

    def note(self, epoch: int, names: Iterable[str]) -> None:
        """Say what an epoch is about to publish."""
        found = sorted(names)
        if self.known.get(epoch) == found:
            return
        self._known = {e: n for e, n in self.known.items() if e > epoch - KEEP and e < epoch} | {epoch: found}
        # Not flushed: it is needed only if the manifest, which was, is damaged later.
        self.storage.write(self.record, seal({str(e): n for e, n in self._known.items()}), sync=False)

    @property
    def parts(self) -> frozenset[str]:
        """The parts of a table that were published, which may be replaced."""
        if self._parts is None:
            self._parts = frozenset()
            with contextlib.suppress(CheckpointError, FileNotFoundError, KeyError, TypeError):
                found = frozenset(unseal(self.storage.read(self.table), self.table)["parts"])
                check_results(found, self.table)
                self._parts = found
        return self._parts

    def note_parts(self, names: Iterable[str]) -> None:
        """Say which parts are about to be published. It is on the disk before the first is replaced."""
        found = self.parts | frozenset(names)
        if found != self.parts:
            self.storage.write(self.table, seal({"parts": sorted(found)}))
            self._parts = found

    def after(self, epoch: int) -> list[str]:
        """What epochs behind this one have published."""
        return [name for e, names in sorted(self.known.items()) if e > epoch for name in names]
