"""Texts as Spark gives them, shortened in the middle, and the one line that is made of each."""

from __future__ import annotations

import os

import pytest

from penstock.engine.spark.failure import explain_failure, is_spark_failure, worth_retrying
from penstock.errors import PenstockError, UserError

MISSING = """
An exception was thrown from the Python worker:
Traceback (most recent call last):
  File "/opt/spark/python/lib/pyspark.zip/pyspark/worker_util.py", line 75, in read_command
    command = serializer.loads(file)
              ^^^^^^^^^^^^^^^^^^^^^^
  File "/opt/spark/python/lib/pyspark.zip/pyspark/serializers.py", line 483, in loads
    return cloudpickle.loads(obj, encoding=encoding)
ModuleNotFoundError: No module named 'penstock'
"""

NO_PYTHON = """An error occurred while calling z:org.apache.spark.api.python.PythonRDD.runJob.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 0.0 failed 4 times, most recent \
failure: Lost task 0.3 in stage 0.0 (TID 6) (127.0.0.1 executor 1): java.io.IOException: Cannot run program \
"/nonexistent/python": error=2, No such file or directory
\tat java.base/java.lang.ProcessBuilder.start(ProcessBuilder.java:1143)
Caused by: java.io.IOException: error=2, No such file or directory
\t... 24 more

Driver stacktrace:
\tat org.apache.spark.scheduler.DAGScheduler.abortStage(DAGScheduler.scala:4560)
Caused by: java.io.IOException: error=2, No such file or directory
\tat java.base/java.lang.ProcessImpl.forkAndExec(Native Method)
"""

#: What comes of a file `dis.py` in the folder from which a query is started.
HIDDEN = """Job aborted due to stage failure: Task 0 in stage 0.0 failed 1 times: org.apache.spark.SparkException:
Error from python worker:
  Traceback (most recent call last):
    File "<frozen runpy>", line 189, in _run_module_as_main
    File "/opt/python3.11/inspect.py", line 143, in <module>
      import dis
    File "HERE/dis.py", line 1, in <module>
      import penstock as ps
  AttributeError: partially initialized module 'inspect' has no attribute 'cleandoc'
PYTHONPATH was:
  /opt/spark/python/lib/pyspark.zip:/opt/spark/python/lib/py4j-0.10.9.9-src.zip
org.apache.spark.SparkException: EOFException occurred while reading the port number from pyspark.daemon's stdout.
"""

VERSIONS = """Traceback (most recent call last):
  File "/opt/spark/python/lib/pyspark.zip/pyspark/worker_util.py", line 93, in check_python_version
    raise PySparkRuntimeError(
pyspark.errors.exceptions.base.PySparkRuntimeError: [PYTHON_VERSION_MISMATCH] Python in worker has different version: \
3.12 than that in driver: 3.11, PySpark cannot run with different minor versions.
Please check environment variables PYSPARK_PYTHON and PYSPARK_DRIVER_PYTHON are correctly set.
"""

FUNCTION = """: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 0.0 failed 1 times
Traceback (most recent call last):
  File "/opt/app/query.py", line 12, in halve
    return 1 / n
           ~~^~~
ZeroDivisionError: division by zero

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/opt/spark/python/lib/pyspark.zip/pyspark/worker.py", line 4197, in main
    process()
  File "/opt/app/query.py", line 14, in halve
    raise ValueError("n is 0")
ValueError: n is 0

\tat org.apache.spark.api.python.BasePythonRunner$ReaderIterator.handlePythonException(PythonRunner.scala:645)
"""

JAVA = """An error occurred while calling o61.collectToPython.
: org.apache.spark.SparkException: Job aborted due to stage failure
\tat org.apache.spark.scheduler.DAGScheduler.abortStage(DAGScheduler.scala:4560)
Caused by: org.apache.spark.SparkException: wrapped
\tat a.b.C
Caused by: java.io.IOException: No space left on device
\tat java.base/java.io.FileOutputStream.writeBytes(Native Method)
"""

OTHER_VERSION = """Traceback (most recent call last):
  File "/opt/spark/python/lib/pyspark.zip/pyspark/serializers.py", line 483, in loads
AttributeError: Can't get attribute 'Job' on <module 'penstock.engine.tasks.task' from '/opt/penstock/engine/task.py'>
"""


@pytest.mark.parametrize(
    ("text", "said", "hint"),
    [
        (MISSING, "the Python of Spark's workers has no module 'penstock'", "docs/deploy.md"),
        (NO_PYTHON, "Spark's workers have no '/nonexistent/python' to run Python with", "PYSPARK_PYTHON"),
        (VERSIONS, "Spark's workers run Python 3.12, the driver runs Python 3.11", "a Python 3.11"),
        (OTHER_VERSION, "Spark's workers have another version of Penstock: Can't get attribute 'Job'", "deploy.md"),
        ("Cannot call methods on a stopped SparkContext.\nThis stopped...", "the Spark session was stopped", "first"),
    ],
)
def test_workers_that_are_set_up_wrong(text: str, said: str, hint: str) -> None:
    error = explain_failure(RuntimeError(text))
    assert isinstance(error, UserError)
    assert error.message.startswith(said)
    assert hint in str(error.hint)
    assert "\n" not in str(error)
    assert not worth_retrying(RuntimeError(text))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (FUNCTION, "a Spark job failed: ValueError: n is 0 (line 14 of query.py, in halve)"),
        (FUNCTION.replace("ZeroDivisionError", "ModuleNotFoundError"), "a Spark job failed: ValueError: n is 0"),
        (JAVA, "a Spark job failed: java.io.IOException: No space left on device"),
        (
            NO_PYTHON.split("\n\tat")[0].replace("Cannot run", "Did not run"),
            "a Spark job failed: java.io.IOException: Did",
        ),
        (
            "An error occurred while calling o1.x.\n: java.lang.E: e\n\tat a.b",
            "a Spark job failed: java.lang.E: e",
        ),
        ("Lost task: Python worker exited unexpectedly (crashed)", "a Spark worker died while it worked on a task"),
        ("", "a Spark job failed: Spark did not say why"),
    ],
)
def test_jobs_that_failed(text: str, said: str) -> None:
    error = explain_failure(RuntimeError(text))
    assert type(error) is PenstockError
    assert error.message.startswith(said)
    assert worth_retrying(RuntimeError(text))


def test_long_texts_are_cut() -> None:
    error = explain_failure(RuntimeError(f"Traceback (most recent call last):\nValueError: {'x' * 10_000}"))
    assert len(error.message) < 600


def test_an_error_that_cannot_say_what_it_is() -> None:
    class GoneError(Exception):
        def __str__(self) -> str:
            raise ConnectionRefusedError

    assert explain_failure(GoneError()).message == "a Spark job failed: GoneError"


def test_only_errors_of_spark_are_explained() -> None:
    from py4j.protocol import Py4JNetworkError
    from pyspark.errors import PythonException

    assert is_spark_failure(PythonException("x")) and is_spark_failure(Py4JNetworkError("x"))
    assert not is_spark_failure(KeyError("x"))


def test_a_file_that_hides_a_module_of_python_is_named() -> None:
    said = str(explain_failure(RuntimeError(HIDDEN.replace("HERE", os.getcwd()))))
    assert said.startswith("the Python of Spark's workers did not start: AttributeError: partially initialized module")
    assert "'dis.py' has the name of a module of Python" in said
    assert "a file in the folder you are in may have the name" in str(explain_failure(RuntimeError(HIDDEN)))
    assert not worth_retrying(RuntimeError(HIDDEN))
