"""A query in a process of its own, on any master: `cluster_query.py source home master conf [packed]`.

The last line says what happened, as JSON: the epochs, or the error in the words the user gets.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from scenario import SCENARIOS

import penstock as ps


def main(source: str, home: str, master: str, conf: str, packed: str | None = None) -> None:
    began = time.monotonic()
    spark = ps.spark_session(master or None, "penstock-cluster", json.loads(conf), memory="512m", packed=packed)
    started = time.monotonic()
    told: dict[str, object] = {"start": round(started - began, 1)}
    try:
        run = SCENARIOS["windows"].start(Path(source), Path(home), spark, buckets=2).wait(timeout=150)
        told |= {"active": run.active, "epochs": [p.epoch for p in run.history], "paths": [p.path for p in run.history]}
    except ps.PenstockError as error:
        told |= {"error": str(error), "kind": type(error).__name__}
    told |= {"run": round(time.monotonic() - started, 1), "master": spark.sparkContext.master}
    print(json.dumps(told), flush=True)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
