"""A driver in a process of its own, to be killed: `killed_driver.py scenario source home master settings point nth`.

It kills itself, as `kill -9` would, when it reaches the protocol step that starts with `point` for the nth time.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

from scenario import SCENARIOS, TOLD

import penstock as ps
from penstock.checkpoint.fault import hooked


def main(name: str, source: str, home: str, master: str, settings: str, point: str, nth: str) -> None:
    left = int(nth)

    def hook(reached: str) -> None:
        nonlocal left
        if left and reached.startswith(point):
            left -= 1
            if not left:
                os.kill(os.getpid(), signal.SIGKILL)

    spark = ps.spark_session(master, app="penstock-killed", memory="1g")
    print("started", flush=True)
    with hooked(hook):
        run = {**SCENARIOS, **TOLD}[name].start(Path(source), Path(home), spark, **json.loads(settings)).wait()
    print("done", len(run.history), flush=True)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
