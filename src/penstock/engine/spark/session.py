"""The Spark session Penstock runs on, started quietly and tuned for many short jobs.

An epoch is a job of a few tasks that hand large byte arrays to Python. What matters is therefore the fixed cost per
task and per stage, not the settings Spark is usually tuned by. `spark_session` takes an existing session as it is;
only one it starts itself is tuned. Whatever the caller passes in `conf` wins, then what `spark-submit` was given or
`spark-defaults.conf` says, and our tuning comes last.
"""

from __future__ import annotations

import atexit
import os
import re
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.engine.spark.gateway import forget_dead, hush, is_gone
from penstock.engine.spark.java import find_java, launcher_home
from penstock.engine.spark.pack import packed_conf
from penstock.engine.spark.quiet import StandardError
from penstock.errors import UserError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DEFAULT_MASTER = "local[*]"
_GIB = 1 << 30
_DEFAULT = re.compile(r"\s*(spark\.[^\s=:]+)\s*[\s=:]\s*(.*)")
_LOCAL = re.compile(r"local(?:\[(\d+|\*)(,\d+)?\])?")
_MASTER = re.compile(r"local(-cluster)?(\[[^\]]*\])?|spark://.+|yarn|k8s://.+")


def spark_session(
    master: str | None = None,
    app: str = "penstock",
    conf: Mapping[str, object] | None = None,
    memory: str | None = None,
    packed: str | Path | None = None,
) -> SparkSession:
    """The active Spark session, unchanged, or a new one tuned for short Python stages.

    `master` defaults to that of `spark-submit` or `spark-defaults.conf`, else to all local cores; `memory` is that of
    the driver, such as "4g"; `conf` are Spark settings, which win over ours; `packed` is an archive written by
    `penstock.engine.spark.pack.pack`, for workers that have no Penstock.
    """
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    forget_dead()
    if (active := SparkSession.getActiveSession()) is not None:
        return active
    if SparkContext._active_spark_context is not None:
        # Another thread made the session. A builder without settings returns it and changes nothing.
        return SparkSession.builder.getOrCreate()

    given = submitted() if is_submitted() else defaults()
    master = master or given.get("spark.master") or DEFAULT_MASTER
    wanted = settings(master, {**packed_conf(packed), **(conf or {})} if packed else conf, memory, given)
    _prepare_environment(master, packed=packed is not None)
    builder = SparkSession.builder.master(roomy(master)).appName(app)
    for key, value in wanted.items():
        builder = builder.config(key, value)
    errors = StandardError()
    with errors.lent(), _own_interrupt():
        session = builder.getOrCreate()
    # A JVM that just dies with us closes sockets under its Python workers, which then print a stack trace.
    atexit.register(_stop, session, errors)
    hush(session)
    return session


@contextmanager
def _own_interrupt() -> Iterator[None]:
    """Keep what a program does on Ctrl-C, if it does anything: PySpark puts its own handler in its place."""
    before = signal.getsignal(signal.SIGINT)
    yield
    if threading.current_thread() is threading.main_thread() and before not in (None, signal.default_int_handler):
        signal.signal(signal.SIGINT, before)


def _stop(session: SparkSession, errors: StandardError) -> None:
    errors.open = False
    # One whose JVM has died needs no stop, and one that was forgotten has had it.
    if session.sparkContext._jsc is not None and not is_gone():
        session.stop()


def settings(
    master: str = DEFAULT_MASTER,
    conf: Mapping[str, object] | None = None,
    memory: str | None = None,
    given: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """The Spark settings of a session that Penstock starts; pure, so that they can be looked at and tested.

    `given` is what Spark knows already, from its command line or `spark-defaults.conf`: left alone.

    >>> settings("local[2]", {"spark.ui.enabled": True})["spark.ui.enabled"]
    'true'
    >>> settings("local[2]")["spark.locality.wait"]
    '0'
    >>> "spark.locality.wait" in settings("local[2]", given={"spark.locality.wait": "3s"})
    False
    """
    check_master(master)
    given = given or {}
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
        "spark.driver.memory": default_memory(),
    }
    if unix_sockets_work():
        # Cheaper per task than TCP. Only a JVM and the Python beside it talk this way, so it works on clusters too.
        tuned["spark.python.unix.domain.socket.enabled"] = "true"
    if is_local(master):
        tuned["spark.driver.host"] = "127.0.0.1"
        tuned["spark.driver.bindAddress"] = "127.0.0.1"
        # What is shuffled on one machine crosses no network.
        tuned["spark.shuffle.compress"] = "false"
    if (found := _LOCAL.fullmatch(master)) is not None:
        # There are more slots than that, see `roomy`; work is for as many tasks as there are cores.
        tuned["spark.default.parallelism"] = str(_cores(found[1]))
    if master.startswith("local-cluster"):
        # Its executors get what the third number says (MiB), and refuse to start when Spark's default is more.
        tuned["spark.executor.memory"] = f"{master.rstrip(']').rsplit(',', 1)[-1].strip()}m"
    merged = {key: value for key, value in tuned.items() if key not in given}
    if memory is not None:
        merged["spark.driver.memory"] = memory
    merged |= own
    options = own.get("spark.driver.extraJavaOptions", given.get("spark.driver.extraJavaOptions", ""))
    merged["spark.driver.extraJavaOptions"] = " ".join([*_java_options(options), options]).strip()
    return merged


def roomy(master: str) -> str:
    """The same with twice the slots, half of them for tasks that stay: those wait for orders most of the time.

    >>> roomy("local[2]"), roomy("local[2,3]"), roomy("spark://host:7077")
    ('local[4]', 'local[4,3]', 'spark://host:7077')
    """
    found = _LOCAL.fullmatch(master)
    return master if found is None else f"local[{2 * _cores(found[1])}{found[2] or ''}]"


def _cores(said: str | None) -> int:
    return (os.cpu_count() or 1) if said == "*" else int(said or 1)


def is_submitted() -> bool:
    """Whether `spark-submit` started this program: then its JVM runs already, with the settings it was given."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def submitted() -> dict[str, str]:
    """The settings of the `spark-submit` that started this program, `spark-defaults.conf` among them."""
    from pyspark import SparkConf, SparkContext

    SparkContext._ensure_initialized()
    return dict(SparkConf().getAll())


def defaults(folder: Path | None = None) -> dict[str, str]:
    """What `spark-defaults.conf` says: `key value` or `key=value` per line.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "spark-defaults.conf").write_text("# ours\\nspark.master  spark://a:7077\\nspark.ui.enabled=true\\n")
    >>> defaults(folder)
    {'spark.master': 'spark://a:7077', 'spark.ui.enabled': 'true'}
    """
    try:
        text = ((folder or _conf_folder()) / "spark-defaults.conf").read_text()
    except (OSError, UnicodeDecodeError):
        return {}
    found = (_DEFAULT.match(line) for line in text.splitlines())
    return {line[1]: line[2].strip() for line in found if line is not None}


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


def _java_options(options: str) -> list[str]:
    given = " ".join(
        [
            options,
            *(os.environ.get(name, "") for name in ("SPARK_SUBMIT_OPTS", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS")),
        ]
    )
    if "log4j" in given or "LOG4J_CONFIGURATION_FILE" in os.environ or _has_log_settings():
        return []
    quiet = resources.files("penstock.engine.spark") / "log4j2.properties"
    # Quotes, since Spark splits the options at blanks.
    return [f'"-Dlog4j2.configurationFile={Path(str(quiet)).as_uri()}"']


def _conf_folder() -> Path:
    """Where Spark looks for its settings."""
    if folder := os.environ.get("SPARK_CONF_DIR"):
        return Path(folder)
    if home := os.environ.get("SPARK_HOME"):
        return Path(home) / "conf"
    import pyspark

    return Path(pyspark.__file__).parent / "conf"


def _has_log_settings() -> bool:
    return any((_conf_folder() / f"log4j2.{kind}").exists() for kind in ("properties", "xml", "yaml", "json"))


def _prepare_environment(master: str, *, packed: bool) -> None:
    """What the JVM and the workers inherit. Set in this process, since Spark starts both from its environment."""
    if not is_submitted():
        os.environ["JAVA_HOME"] = str(launcher_home(find_java()))
    # Without it workers run whatever `python3` is first on PATH, with other packages or another version.
    if "PYSPARK_PYTHON" not in os.environ:
        # Workers that get their packages from an archive have a Python of their own, hardly in the folder of ours.
        theirs = packed and not is_local(master)
        os.environ["PYSPARK_PYTHON"] = "python{}.{}".format(*sys.version_info[:2]) if theirs else sys.executable
        os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    if is_local(master):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
