"""Ctrl-C at any moment of the command line, and the death of the JVM: a short text, and the next start goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

QUERY = """import penstock as ps
query = ps.generate(rate=100, rows=200, seed=1).window("1 s").group_by("key").agg(n="count(*)")
sink = ps.parquet(r"{out}")
"""


def interrupted(home: Path, line: str | None, delay: float) -> tuple[int, str, str]:
    """Run a query, press Ctrl-C so long after a line has appeared: the exit code, and what was printed."""
    (home / "query.py").write_text(QUERY.format(out=home / "out"))
    command = [sys.executable, "-m", "penstock_command", "run", "query.py", "--master", "local[1]"]
    command += ["--trigger", "available_now"]
    said = ""
    with subprocess.Popen(
        command,
        cwd=home,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # Where the tests run in the background of a shell they ignore Ctrl-C, and so would all they start.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as process:
        assert process.stdout is not None
        while line is not None and line not in said:
            more = process.stdout.readline()
            assert more, process.stderr
            said += more
        time.sleep(delay)
        os.killpg(process.pid, signal.SIGINT)
        rest, errors = process.communicate(timeout=200)
    return process.returncode, said + rest, errors


@pytest.mark.parametrize("delay", [0.3, 0.7])
def test_while_it_is_imported(tmp_path: Path, delay: float) -> None:
    code, _, errors = interrupted(tmp_path, None, delay)
    assert (code, errors) == (130, "stopped\n")


@pytest.mark.spark
def test_while_spark_starts(tmp_path: Path) -> None:
    code, _, errors = interrupted(tmp_path, "starting Spark", 1.0)
    assert (code, errors) == (130, "stopped\n")


@pytest.mark.spark
def test_when_all_is_over(tmp_path: Path) -> None:
    code, said, errors = interrupted(tmp_path, "query.py: ", 0)
    assert code in (0, 130) and errors in ("", "stopped\n")  # 0: it was faster
    assert "200 rows in" in said


DIES = """
import os, signal, sys
import penstock as ps

home = sys.argv[1]
query = ps.generate(rate=1000, rows=20_000, seed=1).ends().window("1 s").group_by("key").agg(n="count(*)")
spark = ps.spark_session("local[1]", memory="512m")

def kill(progress):
    if progress.epoch == 2:
        java = spark.sparkContext._gateway.proc
        os.kill(java.pid, signal.SIGKILL)
        java.wait()

options = {"trigger": "available_now", "max_rows": 200, "checkpoint": home + "/kept"}
for more in ({"spark": spark, "listener": kill}, {"spark": spark}, {"master": "local[1]"}):
    try:
        run = query.start(ps.parquet(home + "/out"), **more, **options).wait()
    except ps.PenstockError as error:
        print(type(error).__name__, error)
print(run.resumed.epoch, run.driver.manifest.epoch)
"""


@pytest.mark.spark
def test_the_jvm_dies_and_a_later_start_in_the_same_process_goes_on(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    done = subprocess.run([sys.executable, "-c", DIES, str(tmp_path)], capture_output=True, text=True, timeout=280)
    died, gone, epochs = done.stdout.splitlines()
    assert died.startswith("PenstockError Spark's Java process died") and "nothing is lost" in died
    assert gone.startswith("UserError") and "session" in gone
    resumed, last = map(int, epochs.split())
    assert 2 <= resumed < 50 and last >= 100  # tasks that stay may get on a little before Spark's end ends them
    assert done.returncode == 0 and "Traceback" not in done.stderr, done.stderr
    assert sum(pq.read_table(tmp_path / "out", columns=["n"])["n"].to_pylist()) == 20_000
