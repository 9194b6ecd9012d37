"""What Spark says when a job fails, in one line.

Spark hands over the stack traces of a Python worker, an executor and the driver in one text. What the user can act on
is one line of it: the last of the worker's traceback, or the first cause on the Java side.
"""

from __future__ import annotations

import os
import re

from penstock.engine.spark.gateway import is_gone
from penstock.errors import PenstockError, UserError

_LONGEST = 500

_MODULE = re.compile(r"(?:\w+\.)*(?:ModuleNotFoundError|ImportError): (.*)")
_MODULE_NAME = re.compile(r"No module named '([^']+)'")
_VERSIONS = re.compile(r"Python in worker has different version: (\S+) than that in driver: ([\d.]+)")
_NO_PROGRAM = re.compile(r'Cannot run program "([^"]+)"')
_STRANGER = re.compile(r"AttributeError: (.*\bon <module 'penstock[^']*'.*)")
_STOPPED = re.compile(r"stopped SparkContext|SparkContext was shut down|SparkContext has been shutdown", re.I)
_NOT_STARTED = re.compile(r"Error from python worker:\n(.*?)\nPYTHONPATH was:", re.S)
_CRASHED = re.compile(r"Python worker exited unexpectedly|ExecutorLostFailure[^\n]*")
_FRAME = re.compile(r'^ +File "([^"]+)", line (\d+), in (\S+)')
_CAUSE = re.compile(r"^Caused by: (.*)$", re.M)
_MOST_RECENT = re.compile(r"Lost task [^\n]*?\): ([^\n]*)")
_TRACEBACK = "Traceback (most recent call last):"

_PACK = "install Penstock there in the driver's version, or ship it: see docs/deploy.md, packed environment"


def explain_failure(error: BaseException) -> PenstockError:
    """The error to raise instead of `error`, which should become its cause.

    >>> said = "Traceback (most recent call last):\\nModuleNotFoundError: No module named 'duckdb'"
    >>> print(explain_failure(RuntimeError(said)))
    the Python of Spark's workers has no module 'duckdb'. Hint: install Penstock there in the driver's version, ...
    """
    text = _text(error)
    mistake = _mistake(text)
    if mistake is not None:
        return mistake
    if is_spark_failure(error) and is_gone(error):
        return PenstockError(
            "Spark's Java process died while the query ran",
            hint="most often the system ended it for want of memory: lower max_rows or spark.driver.memory, then start "
            "again; nothing is lost",
        )
    if (crashed := _CRASHED.search(text)) is not None and _TRACEBACK not in text:
        return PenstockError(
            f"a Spark worker died while it worked on a task: {_short(crashed[0])}",
            hint="most often it had too little memory: lower max_rows or memory, or give executors more; then start "
            "again, nothing is lost",
        )
    raised, place = _raised(text)
    return PenstockError(f"a Spark job failed: {_short(raised or _java_cause(text))}{place}")


def worth_retrying(error: BaseException) -> bool:
    """Whether the same job may succeed the next time; not so if the workers lack something.

    >>> worth_retrying(RuntimeError("Python worker exited unexpectedly (crashed)"))
    True
    """
    return _mistake(_text(error)) is None and not (is_spark_failure(error) and is_gone(error))


def is_spark_failure(error: BaseException) -> bool:
    """Whether an error comes out of Spark; anything else is a defect of ours, whose stack trace matters."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    return isinstance(error, Py4JError | PySparkException | ConnectionError)


def _mistake(text: str) -> PenstockError | None:
    """What is wrong with how the workers are set up, if that is what the text is about."""
    if (found := _VERSIONS.search(text)) is not None:
        return UserError(
            f"Spark's workers run Python {found[1]}, the driver runs Python {found[2]}",
            hint=f"name a Python {found[2]} that all workers have in PYSPARK_PYTHON",
        )
    if (found := _NO_PROGRAM.search(text)) is not None:
        return UserError(
            f"Spark's workers have no '{found[1]}' to run Python with",
            hint="name a Python of the driver's version that all workers have in PYSPARK_PYTHON",
        )
    if (found := _NOT_STARTED.search(text)) is not None:
        said = [line.strip() for line in found[1].splitlines() if line.strip()]
        own = [f for f in re.findall(r'File "([^"]+)"', found[1]) if os.path.dirname(f) == os.getcwd()]
        return UserError(
            f"the Python of Spark's workers did not start: {_short(said[-1] if said else 'it did not say why')}",
            hint=f"'{os.path.basename(own[-1])}' has the name of a module of Python, which it hides from the workers: "
            "rename it"
            if own
            else "a file in the folder you are in may have the name of a module of Python: rename it, or go elsewhere",
        )
    raised, _ = _raised(text)
    if (found := _MODULE.match(raised)) is not None:
        name = _MODULE_NAME.search(found[1])
        what = f"has no module '{name[1]}'" if name else f"cannot import what the query needs: {_short(found[1])}"
        return UserError(f"the Python of Spark's workers {what}", hint=_PACK)
    if (found := _STRANGER.match(raised)) is not None:
        return UserError(f"Spark's workers have another version of Penstock: {_short(found[1])}", hint=_PACK)
    if _STOPPED.search(text):
        return UserError(
            "the Spark session was stopped while the query ran", hint="stop the run first, then the session"
        )
    return None


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # a Java error asks the JVM for its text, and the JVM may be gone
        return type(error).__name__


def _raised(text: str) -> tuple[str, str]:
    """The last line of the last Python traceback in a text, and the place it came from; empty if there is none.

    Not just any line that looks like an error: one that was caught on the way says nothing.
    """
    place = ""
    _, found, after = text.rpartition(_TRACEBACK)
    for line in after.splitlines() if found else ():
        if (frame := _FRAME.match(line)) is not None:
            if "/pyspark" not in frame[1]:
                place = f" (line {frame[2]} of {frame[1].rsplit('/', 1)[-1]}, in {frame[3]})"
        elif line.strip() and not line.startswith((" ", "\t")):
            return line.strip(), place
    return "", ""


def _java_cause(text: str) -> str:
    causes = _CAUSE.findall(text)
    if causes:
        return str(causes[-1])
    if (recent := _MOST_RECENT.search(text)) is not None:
        return recent[1]
    lines = [line.strip(" :") for line in text.splitlines() if line.strip(" :")]
    # Py4J begins with which method it called, which says nothing to anybody.
    telling = [line for line in lines if not line.startswith(("An error occurred while calling", "at "))]
    return (telling or lines or ["Spark did not say why"])[0]


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"
