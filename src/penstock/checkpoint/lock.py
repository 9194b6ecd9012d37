"""One run per checkpoint.

On a local disk the lock is the operating system's: it vanishes with the process, however that dies. Elsewhere it is
a lease, a small record renewed while the run lives; a lease that has not been renewed for its term is void. A lease
keeps two runs from starting; that one which slept does no harm is the business of `generation`.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import socket
import threading
import time
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

from penstock.checkpoint.generation import Generation, TakenOverError, records_of, take
from penstock.checkpoint.storage import Storage
from penstock.errors import CheckpointError

TERM = 60.0
#: Who asks whether a run is there holds the lock for a moment: so long is waited for that.
MOMENT = 0.05
#: Two runs that start at once: so long the one that wrote first waits to see whether another one wrote after it.
MEETING = 0.2


class Lock:
    """Held from `acquire` to `release`."""

    def __init__(self, storage: Storage) -> None:
        self.storage = storage
        self.owner = {"host": socket.gethostname(), "process": os.getpid(), "token": uuid.uuid4().hex}
        self._file: IO[str] | None = None
        self._released = threading.Event()
        self._generation: Generation | None = None

    def acquire(self) -> None:
        if self.storage.local:
            self._acquire_local()
        else:
            self._acquire_lease()
        self._generation = take(self.storage)
        if not self.storage.local:
            # In a thread of its own: an epoch may take longer than the term.
            threading.Thread(target=self._keep_renewing, name="penstock-lease", daemon=True).start()

    @property
    def records(self) -> Storage:
        """Where the holder of the lock keeps its records."""
        return self._generation.records if self._generation is not None else records_of(self.storage)

    @property
    def generation(self) -> str:
        """The name of the holder's turn; empty where there are no turns."""
        return self._generation.name if self._generation is not None else ""

    def _acquire_local(self) -> None:
        path = Path(self.storage.path("lock"))
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            file = path.open("a+")
        except OSError as error:
            raise CheckpointError(
                f"cannot write to checkpoint '{self.storage.url}': {error}",
                hint="name a folder that can be written to: start(…, checkpoint=…) or --checkpoint",
            ) from error
        free = _flock(file, fcntl.LOCK_EX)
        if not free:
            time.sleep(MOMENT)
            free = _flock(file, fcntl.LOCK_EX)
        if not free:
            file.seek(0)
            holder = file.read().strip()
            file.close()
            raise self._taken(_holder(_parsed(holder)))
        file.truncate(0)
        file.write(json.dumps(self.owner))
        file.flush()
        self._file = file

    def _acquire_lease(self) -> None:
        lease = self._lease()
        if _is_fresh(lease):
            raise self._taken(_holder(lease))
        self._write_lease()
        time.sleep(MEETING)  # Two runs that both found a void lease: the later writer wins, the other one sees it here.
        if not self._holds():
            raise self._taken(" that started at the same moment")

    def _keep_renewing(self) -> None:
        while not self._released.wait(TERM / 4):
            try:
                self.check()
                self._write_lease()
            except TakenOverError:
                return
            except (CheckpointError, OSError):
                continue  # The network, perhaps: there is time until the term is over.

    def _write_lease(self) -> None:
        self.storage.write("lease.json", json.dumps({**self.owner, "renewed": time.time()}).encode())

    def _holds(self) -> bool:
        return bool(self._lease().get("token") == self.owner["token"])

    def _lease(self) -> dict[str, Any]:
        return _read_lease(self.storage)

    def check(self) -> None:
        """Called before and after whatever counts: a run that was asleep for longer than the term may be replaced."""
        if self._generation is not None:
            self._generation.check()

    def cause_of(self, error: BaseException) -> BaseException:
        """What fails after another run has taken over fails because of that, whatever it looks like."""
        if isinstance(error, Exception):
            try:
                self.check()
            except TakenOverError as taken:
                return taken
            except Exception:
                return error
        return error

    def release(self) -> None:
        self._released.set()
        if self._file is not None:
            with contextlib.suppress(OSError):
                fcntl.flock(self._file, fcntl.LOCK_UN)
            self._file.close()
            self._file = None
        elif not self.storage.local and self._holds():
            self.storage.delete("lease.json")

    def _taken(self, holder: str) -> CheckpointError:
        return CheckpointError(
            f"checkpoint '{self.storage.url}' is in use by another run{holder}",
            hint="stop that run first, or give this one a checkpoint of its own",
        )


def is_held(storage: Storage) -> bool:
    """Whether a run is there that would take messages up. What a run that was killed has left is no sign of life.

    >>> import tempfile
    >>> storage = Storage.at(tempfile.mkdtemp())
    >>> lock = Lock(storage)
    >>> lock.acquire(); is_held(storage)
    True
    >>> lock.release(); is_held(storage)
    False
    """
    if not storage.local:
        return _is_fresh(_read_lease(storage))
    try:
        with Path(storage.path("lock")).open() as file:
            return not _flock(file, fcntl.LOCK_SH)
    except FileNotFoundError:
        return False


def _flock(file: IO[str], how: int) -> bool:
    """Whether the lock could be had. It goes with the file."""
    try:
        fcntl.flock(file, how | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _read_lease(storage: Storage) -> dict[str, Any]:
    try:
        return _parsed(storage.read("lease.json"))
    except FileNotFoundError:
        return {}


def _parsed(text: str | bytes) -> dict[str, Any]:
    try:
        return dict(json.loads(text))
    except (ValueError, TypeError):
        return {}  # It is just being written.


def _holder(record: Mapping[str, Any]) -> str:
    """Who holds a lock, for people.

    >>> _holder({"host": "db3", "process": 4711}), _holder({})
    (' (process 4711 on db3)', '')
    """
    return f" (process {record['process']} on {record['host']})" if {"process", "host"} <= record.keys() else ""


def _is_fresh(lease: dict[str, Any]) -> bool:
    renewed = lease.get("renewed")
    return isinstance(renewed, int | float) and time.time() - renewed < TERM
