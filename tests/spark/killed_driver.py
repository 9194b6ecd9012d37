"""A driver with Spark in a process of its own, to be killed: `killed_driver.py scenario source home master conf`.

Several scenarios, sources and homes, with commas between them, are run one after the other in one session.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from scenario import SCENARIOS

import penstock as ps


def spark_driver(
    source: Path | str, home: Path | str, master: str = "local[2]", name: str = "windows", **settings: Any
) -> Any:
    """Start one, in a process group of its own. It prints a line when Spark is there, and one when it is done."""
    command = [sys.executable, __file__, name, str(source), str(home), master, json.dumps(settings)]
    return subprocess.Popen(
        command, start_new_session=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def kill_group(process: Any) -> None:
    """Kill a driver with all that belongs to it: its Java process is in its group, and takes the workers with it."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def main(name: str, source: str, home: str, master: str, conf: str) -> None:
    spark = ps.spark_session(master, app="penstock-killed", memory="1g")
    print("started", flush=True)
    for each, given, place in zip(name.split(","), source.split(","), home.split(","), strict=True):
        run = SCENARIOS[each].start(Path(given), Path(place), spark, **json.loads(conf)).wait()
        print("done", len(run.history), flush=True)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
