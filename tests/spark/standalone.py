"""A standalone master and its workers from the pip package, for the length of a `with` block."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.request import ProxyHandler, build_opener

from penstock.engine.spark.java import find_java, launcher_home

_PATIENCE = 60.0


def spark_home(folder: Path) -> Path:
    """A Spark home of links to the installed one: clusters write their `work` into it."""
    import pyspark

    folder.mkdir(parents=True, exist_ok=True)
    for name in ("bin", "jars", "python"):
        (folder / name).symlink_to(Path(pyspark.__file__).parent / name)
    return folder


@contextlib.contextmanager
def standalone(folder: Path, workers: int = 2) -> Iterator[str]:
    """The URL of a master with `workers` workers of one core each. Ends them all, whatever happens."""
    home = spark_home(folder / "spark")
    port, page, *pages = _free_ports(2 + workers)
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PYSPARK_", "PYTHON", "SPARK_"))}
    environment |= {
        "SPARK_HOME": str(home),
        "JAVA_HOME": str(launcher_home(find_java())),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    }
    log = (folder / "cluster.log").open("w")
    started: list[subprocess.Popen[bytes]] = []

    def start(kind: str, *arguments: str) -> None:
        command = [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{kind}", *arguments]
        started.append(
            subprocess.Popen(
                command, env=environment, cwd=folder, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
            )
        )

    url = f"spark://127.0.0.1:{port}"
    try:
        start("master.Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", str(page))
        for i in range(workers):
            own = ["--work-dir", str(folder / f"work{i}"), "--webui-port", str(pages[i]), "--host", "127.0.0.1"]
            start("worker.Worker", url, "--cores", "1", "--memory", "1g", *own)
        _wait_for(f"http://127.0.0.1:{page}/json/", workers, folder / "cluster.log", started)
        yield url
    finally:
        _end(started)
        log.close()
        shutil.rmtree(home, ignore_errors=True)


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [int(each.getsockname()[1]) for each in sockets]


def _wait_for(page: str, workers: int, log: Path, started: list[subprocess.Popen[bytes]]) -> None:
    """Until the master says that its workers are there."""
    ask = build_opener(ProxyHandler({}))  # A proxy has no business between two ends of one machine.
    deadline = time.monotonic() + _PATIENCE
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError), ask.open(page, timeout=5) as answer:
            if re.search(rb'"aliveworkers"\s*:\s*%d\b' % workers, answer.read()):
                return
        if any(process.poll() is not None for process in started):
            break
        time.sleep(0.2)
    raise RuntimeError(f"no standalone cluster within {_PATIENCE:.0f} s:\n{log.read_text()[-4000:]}")


def _end(started: list[subprocess.Popen[bytes]]) -> None:
    """Workers first and gently, since they end their executors; then by force."""
    for process in reversed(started):
        process.terminate()
    for process in reversed(started):
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(10)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # An executor is in the group of its worker.
        process.wait(10)
