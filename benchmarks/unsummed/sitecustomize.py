"""On `PYTHONPATH` of a contestant that is to do without checksums: the time that it saves is what they cost."""

from __future__ import annotations

import importlib.abc
import importlib.util
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType, SimpleNamespace
from typing import Any


class _Unsummed(importlib.abc.MetaPathFinder):
    """Gives the module that computes checksums a `zlib` that computes none. Others, who read archives, need theirs."""

    def find_spec(self, fullname: str, path: Any, target: ModuleType | None = None) -> ModuleSpec | None:
        if fullname != "penstock.checkpoint.intact":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        assert spec is not None and spec.loader is not None
        load = spec.loader.exec_module

        def execute(module: ModuleType) -> None:
            load(module)
            module.zlib = SimpleNamespace(crc32=lambda data, value=0: 0)  # type: ignore[attr-defined]

        spec.loader.exec_module = execute  # type: ignore[method-assign]
        return spec


sys.meta_path.insert(0, _Unsummed())
