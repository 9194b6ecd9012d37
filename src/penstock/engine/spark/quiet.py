"""What the JVM writes to standard error, until it is told to stop.

PySpark's workers sometimes lose their socket while the JVM shuts down and print a stack trace about it, long after
everything is done. So the JVM that Penstock starts writes into a pipe; its lines are passed on, and once the session
is being stopped they are not.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class StandardError:
    """The standard error of a child process, passed on line by line while `open`."""

    def __init__(self) -> None:
        self.open = True

    @contextmanager
    def lent(self) -> Iterator[None]:
        """Within the block, processes started get a pipe for standard error instead of ours."""
        try:
            ours = os.dup(2)
        except OSError:  # no standard error at all
            yield
            return
        read, write = os.pipe()
        sys.stderr.flush()
        os.dup2(write, 2)
        os.close(write)
        threading.Thread(target=self._pass_on, args=(read,), name="penstock-stderr", daemon=True).start()
        try:
            with _ours(ours):
                yield
        finally:
            sys.stderr.flush()
            os.dup2(ours, 2)
            os.close(ours)

    def _pass_on(self, read: int) -> None:
        with os.fdopen(read, "r", errors="replace") as lines:
            for line in lines:
                if self.open:
                    sys.stderr.write(line)
                    sys.stderr.flush()


@contextmanager
def _ours(descriptor: int) -> Iterator[None]:
    """What this process itself writes goes where it always goes: it may have to say that it ends."""
    before = sys.stderr
    try:
        lent = before.fileno() == 2
    except (OSError, ValueError):  # not a file at all, as in notebooks
        lent = False
    if not lent:
        yield
        return
    with os.fdopen(os.dup(descriptor), "w", buffering=1, errors="backslashreplace") as own:
        sys.stderr = own
        try:
            yield
        finally:
            sys.stderr = before
