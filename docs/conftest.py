"""The examples of a page write files: each page runs in an empty folder of its own.

Where a page builds something in blocks that are no examples, its examples know what these define.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

_BUILDING = ("add-an-operator.md",)
_PYTHON = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.fixture(autouse=True)
def _own_folder(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
    doctest_namespace: dict[str, Any],
) -> None:
    monkeypatch.chdir(tmp_path)
    doctest_namespace.clear()
    if request.node.path.name in _BUILDING:
        doctest_namespace["__name__"] = "__main__"
        for block in _PYTHON.findall(request.node.path.read_text()):
            if ">>>" not in block:
                exec(compile(block, request.node.path.name, "exec"), doctest_namespace)
