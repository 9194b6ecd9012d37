"""A contestant's side of the contest: wait for a job, do it, answer. Needs nothing but Python.

A job says what to join (`kind`: pairs or trips; folders `left` and `right`; `band` in milliseconds or None), where
results go (`out`), and after how many seconds to give up (`limit`). The answer says how long it took, whether it is
`done`, and what each epoch cost.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from typing import Any

Job = dict[str, Any]
Answer = dict[str, Any]

DISORDER = "1 s"
"""How far out of order events of `workload` come."""


def take_turns(name: str, run: Callable[[Job], Answer]) -> None:
    """Answer one JSON job a line until there are no more."""
    # A JVM writes to standard output too; answers go to the real one, the rest to standard error.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    print(json.dumps({"ready": name}), file=answers, flush=True)
    for line in sys.stdin:
        print(json.dumps(run(json.loads(line))), file=answers, flush=True)
