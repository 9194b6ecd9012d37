"""Storage and records: whole or not at all, and damage is noticed."""

from __future__ import annotations

import contextlib
import errno
import os
import pickle
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import fs

from penstock.checkpoint.disk import Disk, on_disk
from penstock.checkpoint.fault import Crash, hooked
from penstock.checkpoint.storage import Storage, seal, unseal
from penstock.errors import CheckpointError, UserError

bodies = st.dictionaries(
    st.text(max_size=5),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
        max_leaves=8,
    ),
    max_size=4,
)


@given(bodies)
def test_what_is_sealed_comes_back(body: dict[str, object]) -> None:
    assert unseal(seal(body), "record") == body


@given(bodies, st.data())
def test_a_record_that_was_cut_is_noticed(body: dict[str, object], data: st.DataObject) -> None:
    whole = seal(body)
    cut = data.draw(st.integers(0, len(whole) - 2))  # Without its last byte, a line end, it is still whole.
    with pytest.raises(CheckpointError, match="record"):
        unseal(whole[:cut], "record")


@given(st.integers(0, 10**6), st.data())
def test_a_flipped_byte_is_noticed(epoch: int, data: st.DataObject) -> None:
    whole = bytearray(seal({"epoch": epoch, "units": {"a": [1, 2, 3]}}))
    at = data.draw(st.integers(0, len(whole) - 2))
    whole[at] ^= 1 << data.draw(st.integers(0, 6))
    with contextlib.suppress(CheckpointError):  # Anything but another body.
        assert unseal(bytes(whole), "record") == {"epoch": epoch, "units": {"a": [1, 2, 3]}}


@pytest.mark.parametrize(
    "text", [b"", b"[]", b"null", b'"x"', b"{}", b'{"body":1}', b"\xff\xfe", b'{"sha256":"","body":{}}']
)
def test_what_is_no_record_is_refused(text: bytes) -> None:
    with pytest.raises(CheckpointError, match=r"some\.json"):
        unseal(text, "some.json")


def test_a_crash_leaves_the_old_record_or_the_new_one(tmp_path: Path) -> None:
    storage = Storage.at(str(tmp_path))
    for point in ("write", "flush", "rename", "written"):
        storage.write("a/record", b"old")

        def hook(reached: str, point: str = point) -> None:
            if reached == f"{point} a/record":
                raise Crash

        with pytest.raises(Crash), hooked(hook):
            storage.write("a/record", b"new")
        assert storage.read("a/record") == (b"new" if point == "written" else b"old")


def test_a_full_disk_is_told_and_leaves_the_old_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    storage = Storage.at(str(tmp_path))
    storage.write("record", b"old")

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    told = pytest.raises(CheckpointError, match=r"cannot write .*record.*No space left.*Hint: free space")
    with on_disk(Disk()), told:
        storage.write("record", b"new")
    assert storage.read("record") == b"old"


def test_who_does_not_need_it_does_not_wait_for_the_disk(tmp_path: Path) -> None:
    class Counting(Disk):
        waits = 0

        def sync(self, path: str) -> None:
            self.waits += 1

        sync_folder = sync

    for durable, expected in ((False, 0), (True, 2)):
        storage = Storage.at(str(tmp_path / str(durable)), durable)
        storage.make("a")
        disk = Counting()
        with on_disk(disk):
            storage.write("a/first", b"")
            disk.waits = 0  # The first time, folders are waited for up to the root.
            pickle.loads(pickle.dumps(storage)).within("a").write("record", b"")
            assert disk.waits == expected


def test_storage_on_another_file_system(tmp_path: Path) -> None:
    """A file system that is not known to be local gets no temporary names and no rename."""
    storage = Storage("mine://base", fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem()), "base")
    storage.make("epochs")
    storage.write("epochs/1.json", seal({"epoch": 1}))
    assert not storage.local
    assert storage.names("epochs") == ["1.json"] and storage.tree() == ["epochs/1.json"]
    assert unseal(storage.read("epochs/1.json"), "x") == {"epoch": 1}
    storage.move("epochs/1.json", "epochs/2.json")
    assert storage.exists("epochs/2.json") and not storage.exists("epochs/1.json")
    storage.delete("epochs/2.json")
    storage.delete("epochs/2.json")
    assert storage.names("epochs") == storage.names("nowhere") == []


def test_storage_travels_to_tasks_by_its_absolute_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    sent = pickle.dumps(Storage.at("here"))
    monkeypatch.chdir("/")
    assert pickle.loads(sent).base == str(tmp_path / "here")


def test_an_unknown_kind_of_url_is_a_user_error() -> None:
    with pytest.raises(UserError, match="nosuch"):
        Storage.at("nosuch://bucket/folder")
