"""Plain PySpark scripts: run one without starting its streaming queries, and see what it would have started.

The script runs as it is, under the name `__main__`, on a local session whatever master it names; what it does outside
streaming queries (reading a table, creating a view) happens. Only `writeStream…start()` and `toTable()` do nothing but
note the DataFrame and its output mode, and waiting for a query returns at once.
"""

from __future__ import annotations

import contextlib
import runpy
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any
from unittest import mock

from penstock.errors import UserError, did_you_mean
from penstock.portal.script import complaining_about, parse_spec

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter

#: Plans are only looked at, so one core does, and no cluster is asked.
MASTER = "local[1]"
#: Settings of a script that decide where it runs, which is not where it is looked at.
_ELSEWHERE = ("spark.master", "spark.remote", "spark.api.mode", "spark.submit.deployMode")


@dataclass(frozen=True)
class Found:
    """A streaming DataFrame of a script, under its name there."""

    name: str
    frame: DataFrame
    output_mode: str
    line: int | None = None

    @property
    def place(self) -> str:
        return self.name if self.line is None else f"{self.name} (line {self.line})"


class NotStarted:
    """What `start()` returns instead of a running query: one that is over."""

    id = runId = "00000000-0000-0000-0000-000000000000"  # noqa: N815 - the name in Spark
    isActive = False  # noqa: N815
    lastProgress = None  # noqa: N815
    status: dict[str, Any] = {"message": "not started", "isDataAvailable": False, "isTriggerActive": False}  # noqa: RUF012

    def __init__(self, name: str | None) -> None:
        self.name = name
        self.recentProgress: list[Any] = []

    def awaitTermination(self, timeout: float | None = None) -> bool:  # noqa: N802
        return True

    def processAllAvailable(self) -> None:  # noqa: N802
        pass

    def stop(self) -> None:
        pass

    def explain(self, extended: bool = False) -> None:
        pass

    def exception(self) -> None:
        return None


def find(spec: str, arguments: Sequence[str] = (), output_mode: str = "append") -> list[Found]:
    """The streaming queries of a script, given as `script.py` or `script.py:name`.

    Those that it starts. If it starts none, the streaming DataFrames among its variables, taken as they would be with
    `output_mode`.
    """
    path, name = parse_spec(spec)
    started, variables = _run(path, arguments)
    named = {id(v): n for n, v in reversed(variables.items())}
    found = [_named(f, named) for f in started]
    if not found or name is not None:
        known = {id(f.frame) for f in found}
        found += [Found(n, v, output_mode) for n, v in variables.items() if id(v) not in known and named[id(v)] == n]
    if name is not None:
        chosen = [f for f in found if f.name == name]
        if not chosen:
            hint = did_you_mean(name, [f.name for f in found]) if found else "define one with spark.readStream"
            raise UserError(f"{path.name} has no streaming DataFrame '{name}'", hint=hint)
        return chosen
    if not found:
        raise UserError(
            f"{path.name} starts no streaming query, and no variable of it is a streaming DataFrame",
            hint="without --spark, if it is a Penstock query",
        )
    return found


def _named(started: Found, named: dict[int, str]) -> Found:
    """By its query name; else by the variable that holds it."""
    name = started.name or named.get(id(started.frame)) or "query"
    return Found(name, started.frame, started.output_mode, started.line)


def _run(path: Path, arguments: Sequence[str]) -> tuple[list[Found], dict[str, DataFrame]]:
    from pyspark.sql import DataFrame

    started: list[Found] = []
    with (
        complaining_about(path),
        mock.patch.object(sys, "argv", [str(path), *arguments]),
        mock.patch.object(sys, "path", [str(path.parent), *sys.path]),
        contextlib.redirect_stdout(sys.stderr),  # What it prints is not our answer.
        _not_starting(path, started),
    ):
        defined = _globals(path, started)
    frames = {n: v for n, v in defined.items() if isinstance(v, DataFrame) and v.isStreaming}
    return started, frames


def _globals(path: Path, started: list[Found]) -> dict[str, Any]:
    try:
        return runpy.run_path(str(path), run_name="__main__")
    except SystemExit as ended:
        if ended.code in (None, 0) and started:
            return {}  # The usual last line of a program; what it would have started is known.
        raise
    except NameError as error:
        if error.name != "spark":
            raise
        raise UserError(
            f"{path.name}: name 'spark' is not defined",
            hint="add spark = SparkSession.builder.getOrCreate(): only a shell or a notebook has it from the start",
        ) from None


@contextlib.contextmanager
def _not_starting(path: Path, started: list[Found]) -> Iterator[None]:
    """Within the block, streaming queries of this process are noted, not started, and sessions not stopped."""
    from pyspark import SparkContext
    from pyspark.logger import PySparkLogger
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQueryManager
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    set_mode, set_name, build = (
        DataStreamWriter.outputMode,
        DataStreamWriter.queryName,
        SparkSession.Builder.getOrCreate,
    )
    modes: dict[int, str] = {}
    names: dict[int, str] = {}
    writers: list[DataStreamWriter] = []  # Kept, so that no other object gets the id of one.

    def output_mode(writer: DataStreamWriter, outputMode: str) -> DataStreamWriter:  # noqa: N803
        writers.append(writer)
        modes[id(writer)] = outputMode
        return set_mode(writer, outputMode)  # Spark complains about one that does not exist.

    def query_name(writer: DataStreamWriter, queryName: str) -> DataStreamWriter:  # noqa: N803
        writers.append(writer)
        names[id(writer)] = queryName
        return set_name(writer, queryName)

    def start(
        writer: DataStreamWriter,
        target: str | None = None,
        format: str | None = None,
        outputMode: str | None = None,  # noqa: N803
        partitionBy: str | list[str] | None = None,  # noqa: N803
        queryName: str | None = None,  # noqa: N803
        **options: Any,
    ) -> NotStarted:
        mode, name = outputMode or modes.get(id(writer), "append"), queryName or names.get(id(writer))
        started.append(Found(name or "", writer._df, mode.lower(), _line(path)))
        return NotStarted(name)

    def start_at(writer: DataStreamWriter, path: str | None = None, *args: Any, **options: Any) -> NotStarted:
        return start(writer, path, *args, **options)

    def to_table(writer: DataStreamWriter, tableName: str, *args: Any, **options: Any) -> NotStarted:  # noqa: N803
        return start(writer, tableName, *args, **options)

    building = False

    def get_or_create(builder: SparkSession.Builder) -> SparkSession:
        nonlocal building
        if building or SparkContext._active_spark_context is not None:
            return build(builder)
        from penstock.engine.spark.session import spark_session

        building = True
        try:
            wanted = {k: v for k, v in builder._options.items() if k not in _ELSEWHERE}
            return spark_session(MASTER, app="penstock check", conf=wanted)
        finally:
            building = False

    stubs: list[tuple[object, str, Any]] = [
        # Spark logs a mistake in the script with its stack trace; we say it in a line.
        (PySparkLogger.getLogger("DataFrameQueryContextLogger"), "disabled", True),
        (DataStreamWriter, "outputMode", output_mode),
        (DataStreamWriter, "queryName", query_name),
        (DataStreamWriter, "start", start_at),
        (DataStreamWriter, "toTable", to_table),
        (StreamingQueryManager, "awaitAnyTermination", lambda manager, timeout=None: True),
        (SparkSession.Builder, "getOrCreate", get_or_create),
        # Its plans are looked at after the script has ended.
        (SparkSession, "stop", lambda session: None),
        (SparkContext, "stop", lambda context: None),
    ]
    with contextlib.ExitStack() as stack:
        for owner, name, stub in stubs:
            stack.enter_context(mock.patch.object(owner, name, stub))
        yield


def _line(path: Path) -> int | None:
    """Where in the script we are called from."""
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        if Path(frame.f_code.co_filename) == path:
            return frame.f_lineno
        frame = frame.f_back
    return None
