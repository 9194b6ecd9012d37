"""The control log: what was decided from outside the data, version by version, and messages that wait to be taken up.

    control/000007.json        a version: the guards that hold under it, and what brought them about
    control/requests/….json    messages to a run, from its own process or any other

An epoch's plan names the version it runs under, so an epoch that is run again runs under the same guards. A request is
deleted when a version that lists it is named by a written plan; until then it is taken up again after a crash.
"""

from __future__ import annotations

import contextlib
import time
import uuid
from collections.abc import Iterable, Mapping
from typing import Any

from penstock.engine.storage import Storage, seal, unseal
from penstock.errors import CheckpointError

#: Requests taken up by one epoch; further ones wait for the next.
PER_EPOCH = 256


class ControlLog:
    """Reads and writes the control folder of a checkpoint."""

    def __init__(self, storage: Storage) -> None:
        self.storage = storage

    def submit(self, body: Mapping[str, Any]) -> str:
        """Leave a message for the run; returns its id. Ids sort in the order of their making."""
        name = f"{time.time_ns():020d}-{uuid.uuid4().hex[:8]}"
        self.storage.make("control/requests")
        # Whoever has said it is still there if the machine goes down now; what counts is written with a version.
        self.storage.write(f"control/requests/{name}.json", seal(dict(body)), sync=False)
        return name

    def requests(self) -> list[tuple[str, dict[str, Any]]]:
        """Messages that wait, oldest first. One that is damaged or half written is left alone."""
        found: list[tuple[str, dict[str, Any]]] = []
        for file in self.storage.names("control/requests"):
            if file.startswith(".") or not file.endswith(".json"):
                continue
            name = f"control/requests/{file}"
            with contextlib.suppress(CheckpointError, FileNotFoundError):
                found.append((file.removesuffix(".json"), unseal(self.storage.read(name), name)))
            if len(found) == PER_EPOCH:
                break
        return found

    def discard(self, names: Iterable[str]) -> None:
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                self.storage.delete(f"control/requests/{name}.json")

    def write(self, version: int, body: Mapping[str, Any]) -> None:
        self.storage.make("control")
        self.storage.write(f"control/{version:06d}.json", seal(dict(body)))

    def read(self, version: int) -> dict[str, Any]:
        if version == 0:
            return {}
        name = f"control/{version:06d}.json"
        try:
            return unseal(self.storage.read(name), f"{self.storage.url}/{name}")
        except (CheckpointError, FileNotFoundError):
            raise CheckpointError(
                f"checkpoint '{self.storage.url}': {name} is missing or damaged",
                hint="restore it from a backup; nothing has been changed",
            ) from None

    def versions(self) -> list[int]:
        names = (n.removesuffix(".json") for n in self.storage.names("control") if n.endswith(".json"))
        return sorted(int(n) for n in names if n.isdigit())

    def retire(self, before: int) -> None:
        """Delete versions that no plan within reach names."""
        for version in self.versions():
            if version < before:
                self.delete(version)

    def delete(self, version: int) -> None:
        self.storage.delete(f"control/{version:06d}.json")
