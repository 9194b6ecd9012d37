"""On `PYTHONPATH` of a contestant whose workers are to say where their CPU time goes.

A worker is a fork of Spark's daemon. In each a thread looks every millisecond at what the main thread is doing and puts
down to it the CPU seconds of the process since it last looked. So a long call into DuckDB counts for its caller.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from types import FrameType

PERIOD, TELL = 0.001, 0.25
FOLDER = os.environ.get("PENSTOCK_PROFILE", "")

#: Part of a path, name of a function ("" for any), phase; the first that matches the innermost frame it can.
PLACES = (
    ("penstock/engine/source/promises/", "", "check"),
    ("penstock/engine/source/", "", "read"),
    ("penstock/engine/sink/", "", "write"),
    ("penstock/engine/tasks/send.py", "_write", "write"),
    ("penstock/engine/tasks/worker.py", "settle", "write"),
    ("penstock/checkpoint/", "read*", "read state"),
    ("penstock/checkpoint/", "", "write"),
    ("penstock/engine/tasks/exchange.py", "", "exchange"),
    ("penstock/engine/tasks/send.py", "", "exchange"),
)
#: Whatever calls these computes; who called the kernel says what for.
COMPUTING = ("penstock/kernels/", "penstock/operators/", "penstock/engine/tasks/pipeline.py")
NOT_COMPUTING = ("penstock/kernels/hash.py",)
ROOTS = (
    ("penstock/engine/tasks/scan.py", "pre-aggregate"),
    ("penstock/engine/tasks/merge.py", "merge"),
    ("penstock/engine/tasks/", "exchange"),
    ("pyspark/", "exchange"),
    ("multiprocessing/", "exchange"),
)


def phase(frame: FrameType | None) -> str:
    """What a stack is about."""
    computing = False
    while frame is not None:
        path, name = frame.f_code.co_filename, frame.f_code.co_name
        if any(part in path for part in COMPUTING) and not any(part in path for part in NOT_COMPUTING):
            computing = True
        if not computing:
            for part, function, told in PLACES:
                if part in path and (
                    not function or name == function or (function[-1] == "*" and name.startswith("read"))
                ):
                    return told
        for part, told in ROOTS:
            if part in path and not (computing and told == "exchange"):
                return told
        frame = frame.f_back
    return "rest"


def _watch(main: int) -> None:
    seconds: dict[str, float] = {}
    before, own, told = time.process_time(), time.thread_time(), time.monotonic()
    path = os.path.join(FOLDER, f"{os.getpid()}.json")
    while True:
        time.sleep(PERIOD)
        now, mine = time.process_time(), time.thread_time()
        spent = (now - before) - (mine - own)
        before, own = now, mine
        if spent > 0:
            at = phase(sys._current_frames().get(main))
            seconds[at] = seconds.get(at, 0.0) + spent
        if time.monotonic() - told > TELL:
            told = time.monotonic()
            with open(f"{path}.part", "w") as out:
                json.dump(seconds, out)
            os.replace(f"{path}.part", path)


def _start() -> None:
    threading.Thread(target=_watch, args=(threading.get_ident(),), daemon=True).start()


if FOLDER:
    os.register_at_fork(after_in_child=_start)
