"""The control log: what was decided from outside the data, version by version, and messages that wait to be taken up.

    epochs/000042.plan.json    holds the version that it is the first to name: its guards, and what brought them about
    control/000007.json        a version that a second plan names: it lives on when the first one is retired
    control/requests/….json    messages to a run, from its own process or any other

An epoch's plan names the version it runs under, so an epoch that is run again runs under the same guards. Who says
something in every epoch makes a version for every epoch; these cost no records of their own. A request is deleted when
a version that lists it is in a written plan; until then it is taken up again after a crash.
"""

from __future__ import annotations

import contextlib
import time
import uuid
from collections.abc import Iterable, Mapping
from typing import Any

from penstock.checkpoint.generation import records_of
from penstock.checkpoint.storage import Storage, seal, unseal
from penstock.errors import CheckpointError, UserError, encodable, shortly

#: Requests taken up by one epoch; further ones wait for the next.
PER_EPOCH = 256
#: Bytes of a message beyond which it is none: 10,000 values, the most that a guard keeps, take a quarter of it.
LARGEST = 1 << 20
#: The word with which a message begins that turns the dial.
DIAL = "consistency"
#: The word with which one begins that says how much is to be given up.
SHED = "shed"


def message(body: object) -> dict[str, Any]:
    """What counts of a message that anybody may have written.

    >>> message({"text": "not [1]", "node": ["x"]})
    Traceback (most recent call last):
    penstock.errors.UserError: the operator of the message is ['x'], not a name. Hint: leave 'node' out, or name...
    """
    if not isinstance(body, dict) or not isinstance(text := body.get("text"), str):
        raise UserError("the message has no 'text'", hint="write it with penstock feedback, or ps.consumer(…).feedback")
    node = body.get("node")
    if node is not None and not isinstance(node, str):
        raise UserError(
            f"the operator of the message is {shortly(node)}, not a name", hint="leave 'node' out, or name an operator"
        )
    if not encodable(text + (node or "")):
        raise UserError(f"the message {shortly(text)} has characters that cannot be written", hint="write it again")
    return {"text": text, "node": node}


class ControlLog:
    """Reads and writes the control folder of a checkpoint."""

    def __init__(self, storage: Storage, records: Storage | None = None) -> None:
        self.storage = storage
        #: Where versions are; messages wait in the checkpoint itself, whoever will read them.
        self.records = records_of(storage) if records is None else records
        #: The messages that could not be read the last time.
        self.damaged: frozenset[str] = frozenset()
        #: Those that are whole, and no messages.
        self.odd: dict[str, UserError] = {}
        #: What was said through this handle, which need not be read again.
        self._mine: dict[str, dict[str, Any]] = {}

    def submit(self, body: Mapping[str, Any]) -> str:
        """Leave a message for the run; returns its id. Ids sort in the order of their making."""
        name = f"{time.time_ns():020d}-{uuid.uuid4().hex[:8]}"
        if not self.storage.local:
            self.storage.make("control/requests")
        self.put(name, body)
        return name

    def put(self, name: str, body: Mapping[str, Any]) -> None:
        """Leave a message under its id: again, if what had taken it up is not to happen."""
        # Whoever has said it is still there if the machine goes down now; what counts is written with a version.
        self._mine[name] = dict(body)
        self.storage.write(f"control/requests/{name}.json", seal(dict(body)), sync=False)

    def requests(self) -> list[tuple[str, dict[str, Any]]]:
        """Messages that wait, oldest first. One that is damaged or half written is left alone."""
        found: list[tuple[str, dict[str, Any]]] = []
        damaged: list[str] = []
        odd: dict[str, UserError] = {}
        files = self.storage.names("control/requests")
        for name in set(self._mine) - {f.removesuffix(".json") for f in files}:
            self._mine.pop(name, None)  # Taken back by somebody else.
        for file in files:
            if file.startswith(".") or not file.endswith(".json"):
                continue
            name, path = file.removesuffix(".json"), f"control/requests/{file}"
            try:
                body = self._mine.get(name) or message(self._read(path))
            except FileNotFoundError:
                continue  # Taken back just now.
            except UserError as error:
                odd[name] = error
                continue
            except (CheckpointError, OSError):
                damaged.append(name)
                continue
            found.append((name, body))
            if len(found) == PER_EPOCH:
                break
        self.odd = odd
        self.damaged = frozenset(damaged)
        return found

    def _read(self, path: str) -> object:
        if (size := self.storage.size(path)) > LARGEST:
            raise UserError(
                f"the message is too long: {size:,} bytes", hint=f"at most {LARGEST:,}: say less, or say it in parts"
            )
        return unseal(self.storage.read(path), path)

    def discard(self, names: Iterable[str]) -> None:
        for name in names:
            self._mine.pop(name, None)
            with contextlib.suppress(FileNotFoundError):
                self.storage.delete(f"control/requests/{name}.json")

    def write(self, version: int, body: Mapping[str, Any]) -> None:
        self.records.make("control")
        self.records.write(f"control/{version:06d}.json", seal(dict(body)))

    def read(self, version: int) -> dict[str, Any]:
        """A version, from its own record or from the plan that was the first to name it."""
        if version == 0:
            return {}
        name = f"control/{version:06d}.json"
        try:
            return unseal(self.records.read(name), f"{self.storage.url}/{name}")
        except (CheckpointError, FileNotFoundError):
            held = self._in_a_plan(version)
        if held is None:
            raise CheckpointError(
                f"checkpoint '{self.storage.url}': {name} is missing or damaged, and no plan in epochs/ holds it",
                hint="restore it from a backup; nothing has been changed",
            )
        return held

    def _in_a_plan(self, version: int) -> dict[str, Any] | None:
        for file in reversed(self.records.names("epochs")):
            if file.endswith(".plan.json") and not file.startswith("."):
                with contextlib.suppress(CheckpointError, FileNotFoundError):
                    plan = unseal(self.records.read(f"epochs/{file}"), file)
                    if plan["control"] == version and plan.get("heard"):
                        held: dict[str, Any] = plan["heard"]
                        return held
        return None

    def versions(self) -> list[int]:
        names = (n.removesuffix(".json") for n in self.records.names("control") if n.endswith(".json"))
        return sorted(int(n) for n in names if n.isdigit())

    def delete(self, version: int) -> None:
        self.records.delete(f"control/{version:06d}.json")
