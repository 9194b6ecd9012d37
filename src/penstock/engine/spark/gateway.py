"""The Java process behind a Spark session: whether it is still there, and how to do without one that is not.

PySpark keeps its session, its context and the way to the JVM in class variables, and goes on using them when the JVM
has died (killed for want of memory, most often). A later start in the same process then fails for ever. So a session
whose JVM is gone is forgotten first.
"""

from __future__ import annotations

import contextlib
import logging
import subprocess
from typing import TYPE_CHECKING, Any

from penstock.errors import UserError, shortly

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Seconds that a process has for its end, once its connections are closed.
_LINGERS = 2.0


def is_gone(error: BaseException | None = None) -> bool:
    """Whether the JVM that this process talked to is dead; an error that came from talking to it tells more."""
    from pyspark import SparkContext

    gateway = SparkContext._gateway
    if gateway is None:
        return False
    lost = any(_is_about_connection(e) for e in _chain(error))
    process = getattr(gateway, "proc", None)  # None: somebody else, such as spark-submit, has started it
    if process is None:
        return lost
    try:
        return process.wait(_LINGERS if lost else 0) is not None
    except subprocess.TimeoutExpired:
        return False


def _is_about_connection(error: BaseException) -> bool:
    from py4j.protocol import Py4JError, Py4JNetworkError

    # Without a Java error in it, a Py4JError is one of the connection.
    return isinstance(error, ConnectionError | Py4JNetworkError) or type(error) is Py4JError


def _chain(error: BaseException | None) -> list[BaseException]:
    found: list[BaseException] = []
    while error is not None and error not in found:
        found.append(error)
        error = error.__cause__ or error.__context__
    return found


def check_session(session: object) -> None:
    """Refuse what is no session, or one that cannot be used any more.

    >>> check_session("local[2]")
    Traceback (most recent call last):
    penstock.errors.UserError: start(spark='local[2]') is not a Spark session. Hint: leave it out, write master=…, or...
    """
    context = getattr(session, "sparkContext", None)
    if context is None:
        hint = "leave it out, write master=…, or pass ps.spark_session()"
        raise UserError(f"start(spark={shortly(session)}) is not a Spark session", hint=hint)
    if getattr(context, "_jsc", context) is None or (hasattr(context, "_jsc") and is_gone()):
        raise UserError(
            "the Spark session given as spark= is over: it was stopped, or its Java process died",
            hint="leave spark= out, or pass a new one: ps.spark_session()",
        )


def forget_dead() -> None:
    """Forget a session whose JVM is gone, so that a new one can be started."""
    if not is_gone():
        return
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    context: Any = SparkContext._active_spark_context
    if context is not None:
        context._jsc = None  # Its stop() would ask the JVM.
        with contextlib.suppress(Exception):
            context.stop()
    with contextlib.suppress(Exception):
        SparkContext._gateway.shutdown()  # type: ignore[union-attr]
    for held in (SparkSession, SparkContext):
        for name in ("_instantiatedSession", "_activeSession", "_active_spark_context", "_gateway", "_jvm"):
            if name in vars(held):
                setattr(held, name, None)


def hush(session: SparkSession) -> None:
    """Print no stack traces when the JVM of a session that we have started dies: what happened is told by the run."""
    server: Any = getattr(session.sparkContext, "_accumulatorServer", None)
    if server is not None:
        server.handle_error = lambda *_: None  # It waits for updates, and finds its connection closed.
    logging.getLogger().addFilter(_not_py4j)


def _not_py4j(record: logging.LogRecord) -> bool:
    """Py4J logs to the root logger whatever it raises as well."""
    return not (record.module == "java_gateway" and record.getMessage().startswith("Exception while sending command"))
