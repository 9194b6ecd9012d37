"""Two runs never share a checkpoint."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from pyarrow import fs

from penstock.checkpoint import lock as lock_module
from penstock.checkpoint.lock import Lock, is_held
from penstock.checkpoint.storage import Storage
from penstock.errors import CheckpointError


def remote(path: Path) -> Storage:
    storage = Storage("mine://base", fs.SubTreeFileSystem(str(path), fs.LocalFileSystem()), "base")
    storage.make()
    return storage


def test_the_second_is_refused_and_told_who_holds_it(tmp_path: Path) -> None:
    first, second = Lock(Storage.at(str(tmp_path))), Lock(Storage.at(str(tmp_path)))
    first.acquire()
    with pytest.raises(
        CheckpointError, match=rf"in use by another run \(process {os.getpid()} on .*Hint: stop that run"
    ):
        second.acquire()
    first.check()
    first.release()
    second.acquire()
    second.release()
    second.release()


def test_the_lock_dies_with_its_process(tmp_path: Path) -> None:
    code = (
        "import sys, time; from penstock.checkpoint.lock import Lock; from penstock.checkpoint.storage import Storage\n"
        "lock = Lock(Storage.at(sys.argv[1])); lock.acquire(); print('held', flush=True); time.sleep(600)"
    )
    holder = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None and holder.stdout.readline() == "held\n"
    mine = Lock(Storage.at(str(tmp_path)))
    with pytest.raises(CheckpointError, match=str(holder.pid)):
        mine.acquire()
    assert is_held(mine.storage)
    holder.send_signal(signal.SIGKILL)
    holder.communicate()
    assert not is_held(mine.storage), "its record is still there, but it is not"
    mine.acquire()
    mine.release()


def test_a_lease_is_held_renewed_and_given_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock_module, "TERM", 0.4)
    storage = remote(tmp_path)
    first, second = Lock(storage), Lock(storage)
    first.acquire()
    time.sleep(1.0)  # Longer than its term: the lease lives because it is renewed, not because epochs are short.
    with pytest.raises(CheckpointError, match="in use"):
        second.acquire()
    assert is_held(storage)
    first.release()
    assert not storage.exists("lease.json") and not is_held(storage)
    second.acquire()
    second.release()


def test_a_lease_that_is_void_or_torn_is_taken_over(tmp_path: Path) -> None:
    storage = remote(tmp_path)
    asleep, heir = Lock(storage), Lock(storage)
    asleep.acquire()
    asleep.check()
    storage.write("lease.json", json.dumps({**asleep.owner, "renewed": time.time() - 3600}).encode())
    assert not is_held(storage)
    heir.acquire()
    with pytest.raises(CheckpointError, match=rf"taken over by another run \(process {os.getpid()} on .*Hint: let"):
        asleep.check()
    asleep._write_lease()  # It had looked before it fell asleep, and writes now: the heir stays the heir.
    heir.check()
    heir._write_lease()
    asleep.release()
    assert json.loads(storage.read("lease.json"))["token"] == heir.owner["token"]
    heir.release()
    storage.write("lease.json", b'{"token": "')
    heir = Lock(storage)
    heir.acquire()
    heir.check()
    heir.release()


def test_asking_whether_a_run_is_there_keeps_none_from_starting(tmp_path: Path) -> None:
    storage = Storage.at(str(tmp_path))
    assert not is_held(storage) and not storage.exists("lock"), "asking leaves nothing behind"
    (tmp_path / "lock").touch()
    with (tmp_path / "lock").open() as asking:
        fcntl.flock(asking, fcntl.LOCK_SH)
        threading.Timer(lock_module.MOMENT / 5, asking.close).start()
        lock = Lock(storage)
        lock.acquire()
    assert is_held(storage)
    lock.release()
