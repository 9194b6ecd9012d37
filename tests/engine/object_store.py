"""A file system that behaves like an object store: no locks, no folders needed, and a move is a copy and a deletion."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from pyarrow import fs

from penstock.checkpoint import storage as storage_module
from penstock.checkpoint.fault import reach
from penstock.engine.source import place as place_module

_LOCAL = fs.LocalFileSystem()


class Store(fs.FileSystemHandler):  # type: ignore[misc]
    """Keeps its objects below a local folder, so that tests can look at them."""

    def __init__(self, root: Path) -> None:
        self.root = str(root)

    def _at(self, path: str) -> str:
        return f"{self.root}/{path.strip('/')}"

    def _told(self, info: fs.FileInfo) -> fs.FileInfo:
        path = info.path[len(self.root) + 1 :]
        return fs.FileInfo(path, info.type, size=info.size, mtime_ns=info.mtime_ns)

    def get_type_name(self) -> str:
        return "store"

    def normalize_path(self, path: str) -> str:
        return path

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Store) and other.root == self.root

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self.root)

    def get_file_info(self, paths: list[str]) -> list[fs.FileInfo]:
        return [self._told(i) for i in _LOCAL.get_file_info([self._at(p) for p in paths])]

    def get_file_info_selector(self, selector: fs.FileSelector) -> list[fs.FileInfo]:
        inner = fs.FileSelector(self._at(selector.base_dir), recursive=selector.recursive, allow_not_found=True)
        return [self._told(i) for i in _LOCAL.get_file_info(inner)]

    def open_input_stream(self, path: str) -> Any:
        return _LOCAL.open_input_stream(self._at(path))

    def open_input_file(self, path: str) -> Any:
        return _LOCAL.open_input_file(self._at(path))

    def open_output_stream(self, path: str, metadata: Any) -> Any:
        os.makedirs(os.path.dirname(self._at(path)), exist_ok=True)
        return _LOCAL.open_output_stream(self._at(path))

    def open_append_stream(self, path: str, metadata: Any) -> Any:
        raise NotImplementedError

    def create_dir(self, path: str, recursive: bool) -> None:
        pass

    def delete_file(self, path: str) -> None:
        os.remove(self._at(path))

    def delete_dir(self, path: str) -> None:
        _LOCAL.delete_dir(self._at(path))

    def delete_dir_contents(self, path: str, missing_dir_ok: bool = False) -> None:
        raise NotImplementedError

    def delete_root_dir_contents(self) -> None:
        raise NotImplementedError

    def copy_file(self, source: str, target: str) -> None:
        os.makedirs(os.path.dirname(self._at(target)), exist_ok=True)
        _LOCAL.copy_file(self._at(source), self._at(target))

    def move(self, source: str, target: str) -> None:
        self.copy_file(source, target)
        reach(f"copied {target}")
        self.delete_file(source)


def mount(monkeypatch: pytest.MonkeyPatch, root: Path) -> None:
    """Let `store://…` be such a store below a folder."""
    made = fs.PyFileSystem(Store(root))
    split, locate = storage_module.split_url, place_module.locate

    def split_url(url: Any) -> tuple[fs.FileSystem, str]:
        text = os.fspath(url)
        return (made, text.removeprefix("store://")) if text.startswith("store://") else split(url)

    def located(address: str) -> place_module.Located:
        if not address.startswith("store://"):
            return locate(address)
        return place_module.Located(made, address.removeprefix("store://"), "store://")

    monkeypatch.setattr(storage_module, "split_url", split_url)
    monkeypatch.setattr(place_module, "locate", located)
