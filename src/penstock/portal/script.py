"""Query files: a Python file that defines a stream under the name `query`, and optionally a sink and settings.

>>> import tempfile, pathlib
>>> file = pathlib.Path(tempfile.mkdtemp()) / "slow.py"
>>> _ = file.write_text('import penstock as ps\\nquery = ps.stream("s", "ts timestamp, v int", time="ts")')
>>> load(str(file)).query
<Stream source (ts timestamp, v int)>
"""

from __future__ import annotations

import importlib.util
import sys
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import cloudpickle

from penstock.checkpoint.generation import records_of
from penstock.checkpoint.storage import Storage
from penstock.engine.query import Queries
from penstock.engine.sink import Target
from penstock.engine.source.folder import Folder
from penstock.engine.source.formats.read import read
from penstock.engine.source.listing import open_reader, reader_options
from penstock.engine.stream import Stream
from penstock.errors import PenstockError, UnreadableError, UserError, a, did_you_mean, nearest, shortly
from penstock.operators.source.operator import Source
from penstock.plan.promise import Files, Inbox
from penstock.shedding.qos import QoS

EXAMPLE = "query = ps.stream('traffic', 'ts timestamp, speed double', time='ts').read_parquet('data')"


@dataclass(frozen=True)
class Script:
    """What a query file defines."""

    path: Path
    name: str
    query: Stream | Queries
    sink: Target | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    qos: QoS | None = None

    @property
    def title(self) -> str:
        return self.path.name if self.name in ("query", "queries") else f"{self.path.name}:{self.name}"


def load(spec: str) -> Script:
    """Run a query file, given as `file.py` or `file.py:name`, and take what it defines."""
    path, chosen = parse_spec(spec)
    module = _execute(path)
    defined = vars(module)
    name = chosen or ("queries" if "queries" in defined and "query" not in defined else "query")
    streams = [n for n, v in defined.items() if isinstance(v, Stream)]
    found = defined.get(name)
    if name == "queries" and not isinstance(found, Stream):
        found = _together(path, found, defined)
    if not isinstance(found, Stream | Queries):
        hint = f"write for example: {EXAMPLE}"
        if streams:
            near = nearest(name, streams) or streams[-1]
            hint = f"name a stream of the file, such as {path.name}:{near}; there are: {', '.join(streams)}"
        if found is None:
            raise UserError(f"{path.name} defines no variable '{name}'", hint=hint)
        raise UserError(f"{path.name}: '{name}' is {a(type(found).__name__)}, not a stream", hint=hint)
    sink, settings = defined.get("sink"), defined.get("settings", {})
    if isinstance(sink, list | tuple | set) and sink:
        raise UserError(
            f"{path.name}: sink = {shortly(sink)} names {len(sink)} sinks, but a query has one",
            hint="write, instead of query and sink: queries = [query.to(sink), query.to(another)]",
        )
    if sink is not None and not isinstance(sink, Target):
        raise UserError(f"{path.name}: sink = {sink!r} is not a sink", hint="sink = ps.parquet('out'), for example")
    if not isinstance(settings, Mapping):
        raise UserError(f"{path.name}: settings = {settings!r} is not a dict", hint="settings = {'max_rows': 100_000}")
    if "shedding" in defined:
        settings = {"shedding": defined["shedding"], **settings}
    worth = defined.get("qos")
    if worth is not None and not isinstance(worth, QoS):
        raise UserError(f"{path.name}: qos = {shortly(worth)} is no quality of service", hint="qos = ps.QoS(gap=10)")
    if worth is not None and isinstance(found, Queries):
        raise UserError(
            f"{path.name} defines both queries and qos", hint="each of queries has its own: query.to(sink, qos=…)"
        )
    return Script(path, name, found, sink, dict(settings), worth)


def _together(path: Path, found: object, defined: Mapping[str, Any]) -> Queries:
    """What a file calls `queries`."""
    if "sink" in defined:
        raise UserError(
            f"{path.name} defines both queries and sink", hint="each of queries has its own: queries = [a.to(sink), …]"
        )
    try:
        return Queries.of(found)
    except UserError as error:
        raise UserError(f"{path.name}: queries: {error.message.partition(': ')[2]}", hint=error.hint) from None


def parse_spec(spec: str) -> tuple[Path, str | None]:
    """The file, and the name if there is one, of `file.py:name`."""
    head, colon, name = spec.rpartition(":")
    if colon and name.isidentifier() and head.endswith(".py"):
        return _existing(Path(head)), name
    return _existing(Path(spec)), None


def _existing(path: Path) -> Path:
    if path.is_dir():
        raise UserError(f"'{path}' is a folder", hint="name the Python file that defines the query")
    if not path.exists():
        folder = path.parent
        near = sorted(p.name for p in folder.glob("*.py"))[:20] if folder.is_dir() else []
        raise UserError(
            f"no such file: '{path}'",
            hint=did_you_mean(path.name, near) if near else "check the path of the query file",
        )
    return path.resolve()


def _execute(path: Path) -> ModuleType:
    """Run the file as `python file.py` would: its own folder comes first where modules are looked for."""
    folder = str(path.parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    name = f"penstock_query_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise UserError(f"'{path.name}' is not a Python file", hint="its name must end in .py")
    module = importlib.util.module_from_spec(spec)
    before = set(sys.modules)
    sys.modules[name] = module
    with complaining_about(path):
        spec.loader.exec_module(module)
    _ship_with_query(set(sys.modules) - before, path.parent)
    return module


@contextmanager
def complaining_about(path: Path) -> Iterator[None]:
    """What goes wrong within the block is a mistake in this file: said with its line, without a stack trace."""
    try:
        yield
    except SyntaxError as error:
        where = Path(error.filename or path).name
        text = f": {error.text.strip()}" if error.text else ""
        raise UserError(f"{where}, line {error.lineno}: {error.msg}{text}", hint="fix the syntax there") from None
    except PenstockError as error:
        # What is wrong is known; where, too.
        raise type(error)(f"{_place(path, error)}: {error.message}", hint=error.hint) from None
    except UnicodeDecodeError:
        raise UserError(f"'{path.name}' is not Python source in UTF-8", hint="name a query file") from None
    except (Exception, SystemExit) as error:
        # What comes from Spark has plans and stack traces in its text, behind its first line.
        of_spark = type(error).__module__.split(".")[0] in ("pyspark", "py4j")
        first = str(error).strip().partition("\n")[0].rstrip(";") if of_spark else str(error)
        said = f"{type(error).__name__}: {first}" if first else type(error).__name__
        raise UserError(
            f"{_place(path, error)}: {said}", hint=f"the query file must run by itself: python {path.name}"
        ) from None


def _place(path: Path, error: BaseException) -> str:
    lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if Path(f.filename) == path]
    return f"{path.name}, line {lines[-1]}" if lines else path.name


def _ship_with_query(names: set[str], folder: Path) -> None:
    """Functions of the query file, and of modules beside it, travel to the tasks whole: workers cannot import them."""
    for name in names:
        module = sys.modules.get(name)
        file = getattr(module, "__file__", None)
        if module is not None and file is not None and folder in Path(file).parents and "site-packages" not in file:
            cloudpickle.register_pickle_by_value(module)


def check_sources(query: Stream | Queries, checkpoint: str | None = None, *, bounded: bool = True) -> None:
    """Look at the first row of every source, so that a wrong path is reported now and not after Spark has started."""
    if checkpoint is not None and records_of(Storage.at(checkpoint)).exists("meta.json"):
        return  # What has been read already may be gone by now, rightly.
    for node in query.plan.sources:
        source = node.operator
        assert isinstance(source, Source)
        if isinstance(source.reader, Inbox):
            continue
        reader = open_reader(source)
        try:
            splits = reader.plan(1, None, 1, True)
            if splits and splits[0].format != "generated" and not splits[0].unreadable:
                read(splits[0], source.schema, None, source.promises, reader_options(source))
            elif not splits and reader.unreadable is not None and reader.waiting:
                raise reader.unreadable.error(*reader.waiting[0])
        except UnreadableError:
            # Among several by time it is for the run to tell, which notes where it belongs once it is mended.
            if bounded and reader_options(source).get("on_unreadable") != "skip" and _alone(source):
                raise


def _alone(source: Source) -> bool:
    """Whether a file of a source comes where it does whenever it was written."""
    files = source.reader
    return not isinstance(files, Files) or files.order == "name" or len(Folder(source.name, files).candidates()) == 1
