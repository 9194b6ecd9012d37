"""The Spark session Penstock runs on, started quietly and tuned for many short jobs.

An epoch is a job of a few tasks that hand large byte arrays to Python. What matters is therefore the fixed cost per
task and per stage, not the settings Spark is usually tuned by. `spark_session` takes an existing session as it is;
only one it starts itself is tuned, and whatever the caller passes in `conf` wins.
"""

from __future__ import annotations

import atexit
import os
import re
import sys
import tempfile
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.engine.java import find_java, launcher_home
from penstock.errors import UserError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DEFAULT_MASTER = "local[*]"
_GIB = 1 << 30
_MASTER = re.compile(r"local(-cluster)?(\[[^\]]*\])?|spark://.+|yarn|k8s://.+")


def spark_session(
    master: str | None = None,
    app: str = "penstock",
    conf: Mapping[str, object] | None = None,
    memory: str | None = None,
) -> SparkSession:
    """The active Spark session, unchanged, or a new one tuned for short Python stages.

    `master` defaults to all local cores; `memory` is that of the driver, such as "4g"; `conf` are Spark settings,
    which win over ours.
    """
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    if (active := SparkSession.getActiveSession()) is not None:
        return active
    if SparkContext._active_spark_context is not None:
        # Another thread made the session. A builder without settings returns it and changes nothing.
        return SparkSession.builder.getOrCreate()

    master = master or DEFAULT_MASTER
    wanted = settings(master, conf, memory)
    _prepare_environment(master)
    builder = SparkSession.builder.master(master).appName(app)
    for key, value in wanted.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    # A JVM that just dies with us closes sockets under its Python workers, which then print a stack trace.
    atexit.register(session.stop)
    return session


def settings(
    master: str = DEFAULT_MASTER, conf: Mapping[str, object] | None = None, memory: str | None = None
) -> dict[str, str]:
    """The Spark settings of a session that Penstock starts; pure, so that they can be looked at and tested.

    >>> settings("local[2]", {"spark.ui.enabled": True})["spark.ui.enabled"]
    'true'
    >>> settings("local[2]")["spark.locality.wait"]
    '0'
    """
    check_master(master)
    own = {key: _text(value) for key, value in (conf or {}).items()}
    tuned = {
        # Every epoch is a job: nobody looks at a page per job, and keeping its history costs memory for ever.
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # State is read from files by name, so no task is better off on one executor than on another.
        "spark.locality.wait": "0",
        # Otherwise every task forks a worker of its own, which imports Arrow and DuckDB again.
        "spark.python.worker.reuse": "true",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.driver.memory": memory or default_memory(),
    }
    if unix_sockets_work():
        # Cheaper per task than TCP. Only a JVM and the Python beside it talk this way, so it works on clusters too.
        tuned["spark.python.unix.domain.socket.enabled"] = "true"
    if is_local(master):
        tuned["spark.driver.host"] = "127.0.0.1"
        tuned["spark.driver.bindAddress"] = "127.0.0.1"
        # What is shuffled on one machine crosses no network.
        tuned["spark.shuffle.compress"] = "false"
    if master.startswith("local-cluster"):
        # Its executors get what the third number says (MiB), and refuse to start when Spark's default is more.
        tuned["spark.executor.memory"] = f"{master.rstrip(']').rsplit(',', 1)[-1].strip()}m"
    merged = tuned | own
    merged["spark.driver.extraJavaOptions"] = " ".join(
        [*_java_options(own), own.get("spark.driver.extraJavaOptions", "")]
    ).strip()
    return merged


def check_master(master: str) -> None:
    """Refuse a master that Spark would refuse later, with a page of stack trace.

    >>> check_master("local[2]"); check_master("spark://host:7077")
    """
    if not _MASTER.fullmatch(master):
        raise UserError(
            f"master '{master}' is not one Penstock can start",
            hint="write local[*], local[4], local-cluster[2,1,1024], spark://host:7077, yarn or k8s://…",
        )


def is_local(master: str) -> bool:
    """Whether driver and executors share this machine.

    >>> is_local("local[*]"), is_local("local-cluster[2,1,1024]"), is_local("spark://host:7077")
    (True, True, False)
    """
    return master.startswith("local")


def machine_memory() -> int:
    """Bytes this process may use: physical memory, or the limit of its container if that is less."""
    total = 8 * _GIB  # where the system does not say
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for limit in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            total = min(total, int(Path(limit).read_text()))
        except (OSError, ValueError):  # no such group, or "max"
            continue
    return total


def default_memory(available: int | None = None) -> str:
    """Heap of the driver: 2 GiB, less on a small machine, where Python and DuckDB need the other half.

    >>> default_memory(64 << 30), default_memory(2 << 30)
    ('2048m', '1024m')
    """
    available = machine_memory() if available is None else available
    return f"{max(512, min(2 * _GIB, available // 2) >> 20)}m"


def unix_sockets_work(folder: str | None = None) -> bool:
    """Whether Spark can talk to Python through a socket in the temporary folder: its path may have 103 bytes.

    >>> unix_sockets_work("/" + "deep/" * 30)
    False
    """
    folder = tempfile.gettempdir() if folder is None else folder
    return os.name == "posix" and len(os.fsencode(folder)) + len("/.") + 36 + len(".sock") <= 103


def _java_options(own: Mapping[str, str]) -> list[str]:
    given = " ".join(
        [
            own.get("spark.driver.extraJavaOptions", ""),
            *(os.environ.get(name, "") for name in ("SPARK_SUBMIT_OPTS", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS")),
        ]
    )
    options = []
    if "log4j" not in given and "LOG4J_CONFIGURATION_FILE" not in os.environ and not _has_log_settings():
        quiet = resources.files("penstock.engine") / "log4j2.properties"
        # Quotes, since Spark splits the options at blanks.
        options.append(f'"-Dlog4j2.configurationFile={Path(str(quiet)).as_uri()}"')
    return options


def _has_log_settings() -> bool:
    folder = os.environ.get("SPARK_CONF_DIR") or os.path.join(os.environ.get("SPARK_HOME", ""), "conf")
    return any(os.path.exists(os.path.join(folder, f"log4j2.{kind}")) for kind in ("properties", "xml", "yaml", "json"))


def _prepare_environment(master: str) -> None:
    """What the JVM and the workers inherit. Set in this process, since Spark starts both from its environment."""
    os.environ["JAVA_HOME"] = str(launcher_home(find_java()))
    # Without it workers run whatever `python3` is first on PATH, with other packages or another version.
    if "PYSPARK_PYTHON" not in os.environ:
        os.environ["PYSPARK_PYTHON"] = sys.executable
        os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    if is_local(master):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
