"""Named points of the commit protocol at which a test may pull the plug.

Production code calls `reach("commit.written")`; nothing happens unless a test has installed a hook. The hook may
raise, kill the process, or count. Points inside tasks travel in the task's own arguments, since a hook of the
driver does not exist in a worker.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

_hook: Callable[[str], None] | None = None


class Crash(BaseException):
    """An injected crash. Not an `Exception`: no handler on the way may mistake it for an error it can handle."""


def reach(point: str) -> None:
    """Say that `point` has been reached."""
    if _hook is not None:
        _hook(point)


@contextmanager
def hooked(hook: Callable[[str], None]) -> Iterator[None]:
    """Call `hook` at every point reached within the block."""
    global _hook
    before, _hook = _hook, hook
    try:
        yield
    finally:
        _hook = before
