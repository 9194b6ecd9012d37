"""What an epoch need not wait for: the disk that takes in its plan or its published results, files that are deleted.

The driver does it while its tasks work, or when there is nothing else to do, and in any case before the next manifest:
whoever finds that one may rely on it.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any


class Backstage:
    """Work that waits for a good moment.

    >>> stage, done = Backstage(), []
    >>> stage.later(done.append, 1); stage.later(done.append, 2); done
    []
    >>> stage.clear(); done
    [1, 2]
    """

    def __init__(self) -> None:
        self._waiting: deque[Callable[[], Any]] = deque()

    def later(self, work: Callable[..., Any], *given: Any) -> None:
        self._waiting.append(partial(work, *given))

    def clear(self) -> None:
        """Do all of it, in the order in which it came."""
        while self._waiting:
            self._waiting.popleft()()

    def settle(self) -> None:
        """Do it as far as possible; how it ends does not matter any more."""
        while self._waiting:
            with contextlib.suppress(Exception):
                self._waiting.popleft()()
