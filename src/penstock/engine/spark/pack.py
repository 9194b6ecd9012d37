"""Penstock and what its tasks import, in one archive that Spark carries to its workers.

Workers need Penstock, Arrow, DuckDB and a few more, in the driver's versions. `pack` writes them into a `tar.gz` that
Spark unpacks beside every executor (`spark.archives`), where `PYTHONPATH` finds them; the workers then need nothing but
a Python of the same minor version. Unlike a packed virtual environment it contains no interpreter, so nothing in it
depends on where it is unpacked.
"""

from __future__ import annotations

import importlib.util
import io
import json
import re
import sys
import sysconfig
import tarfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path, PurePosixPath

from penstock.errors import UserError
from penstock.version import __version__

FOLDER = "penstock-env"
"""What the archive is called on the workers."""

TASKS_IMPORT = ("pyarrow", "numpy", "duckdb", "sqlglot", "cloudpickle")
"""What tasks import besides Penstock. Spark brings PySpark; the command line's packages stay with the driver."""

_LABEL = "penstock-env.json"

# What no task reads: tests, sources and headers for compilers, and Arrow's network protocol, by far the largest part
# of Arrow that nothing else links to.
_LEFT_OUT = re.compile(
    r"(^|/)(tests|__pycache__|include|includes)/"
    r"|\.(pyc|pyi|pyx|pxd|pxi|h|hpp|a|lib)$"
    r"|^pyarrow/(src/|.*(flight|cpp_tests))"
    r"|^numpy/f2py/"
)


@dataclass(frozen=True)
class ArchiveLabel:
    """What an archive is for: only a driver with the same Python and the same Penstock may use it."""

    python: str
    platform: str
    packages: dict[str, str]

    @classmethod
    def here(cls, packages: dict[str, str]) -> ArchiveLabel:
        return cls("{}.{}".format(*sys.version_info[:2]), sysconfig.get_platform(), packages)


def pack(target: str, also: Sequence[str] = ()) -> Path:
    """Write Penstock and the packages its tasks import to `target`, a file that ends in `.tar.gz`.

    `also` names what functions of yours import: installed packages (with what they need) or modules.
    Compiled packages are taken as they are, so pack on the operating system and processor that the workers have.
    """
    path = Path(target).expanduser()
    if not path.name.endswith(".tar.gz"):
        raise UserError(f"pack('{target}') does not end in .tar.gz", hint="Spark tells by the name how to unpack it")
    names = _closure([*TASKS_IMPORT, *(n for n in also if _distribution(n) is not None)])
    modules = [n for n in also if _distribution(n) is None]
    packages = {name: metadata.version(name) for name in names}
    label = ArchiveLabel.here({"penstock": __version__, **packages})
    files = dict(_files_of_module("penstock"))
    for name in modules:
        files.update(_files_of_module(name))
    for name in ("penstock", *names):
        files.update(_files_of_distribution(name, only_metadata=name == "penstock"))
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.partial")
    try:
        # Level 1: higher ones take three times as long for a tenth less.
        with tarfile.open(partial, "w:gz", compresslevel=1) as archive:
            text = json.dumps(vars(label), indent=1).encode()
            info = tarfile.TarInfo(_LABEL)
            info.size = len(text)
            archive.addfile(info, io.BytesIO(text))
            for name in sorted(files):
                archive.add(files[name].resolve(), name, recursive=False, filter=_anonymous)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
    return path


def packed_conf(archive: str | Path) -> dict[str, str]:
    """The Spark settings that bring an archive to the workers; `archive` is a path, or a URL that executors can read.

    >>> packed_conf("hdfs://nn/penstock-env.tar.gz")["spark.archives"]
    'hdfs://nn/penstock-env.tar.gz#penstock-env'
    """
    where = str(archive)
    if "://" not in where:
        path = Path(where).expanduser().absolute()
        check(path)
        where = path.as_uri()
    return {"spark.archives": f"{where}#{FOLDER}", "spark.executorEnv.PYTHONPATH": FOLDER}


def read_label(path: Path) -> ArchiveLabel:
    """What an archive says of itself; it is the first thing in it, so this is quick."""
    try:
        with tarfile.open(path, "r:gz") as archive:
            first = archive.next()
            file = archive.extractfile(first) if first is not None and first.name == _LABEL else None
            if file is not None:
                return ArchiveLabel(**json.load(file))
    except (OSError, tarfile.TarError, ValueError, TypeError, EOFError) as error:
        raise UserError(
            f"'{path}' cannot be read as a packed environment: {error}", hint="write it again with pack"
        ) from error
    raise UserError(f"'{path}' is not a packed environment of Penstock", hint="write one with pack")


def check(path: Path) -> None:
    """Refuse an archive that would fail on the workers, or worse, compute with another version there."""
    label = read_label(path)
    here = ArchiveLabel.here({"penstock": __version__})
    packages = {name: metadata.version(name) for name in TASKS_IMPORT}
    if label.python != here.python:
        raise UserError(
            f"'{path}' was packed with Python {label.python}, and this is Python {here.python}",
            hint=f"pack again with Python {here.python}, or run the driver with {label.python}",
        )
    for name, version in {**here.packages, **packages}.items():
        if label.packages.get(name) != version:
            raise UserError(
                f"'{path}' has {name} {label.packages.get(name, 'missing')}, and this is {name} {version}",
                hint="pack again after every change of the installed packages",
            )


def _distribution(name: str) -> metadata.Distribution | None:
    try:
        return metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return None


def _closure(names: Sequence[str]) -> list[str]:
    """The packages and all they require here; extras are not followed. PySpark is at the workers already."""
    found: dict[str, None] = {}
    waiting = [_plain(n) for n in names]
    while waiting:
        name = waiting.pop()
        distribution = _distribution(name)
        if name in found or name in ("pyspark", "py4j", "penstock") or distribution is None:
            continue
        found[name] = None
        for requirement in distribution.requires or ():
            wanted, _, marker = requirement.partition(";")
            # Markers for other systems name packages that are not installed, and those are passed over anyway.
            if "extra" not in marker:
                waiting.append(_plain(re.split(r"[^\w.-]", wanted.strip(), maxsplit=1)[0]))
    return sorted(found)


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _files_of_distribution(name: str, *, only_metadata: bool = False) -> Iterator[tuple[str, Path]]:
    """The files of an installed package by their names in the archive; the metadata too, which tell its version."""
    distribution = _distribution(name)
    if distribution is None or distribution.files is None:
        if only_metadata:  # run from its sources, Penstock needs no installation
            return
        raise UserError(f"package '{name}' does not say which files belong to it", hint=f"install '{name}' with pip")
    for file in distribution.files:
        inside = PurePosixPath(file.as_posix())
        if ".." in inside.parts or _LEFT_OUT.search(str(inside)):
            continue
        if only_metadata and (".dist-info" not in inside.parts[0] or inside.name != "METADATA"):
            continue
        located = Path(str(distribution.locate_file(file)))
        if located.is_file():
            yield str(inside), located


def _files_of_module(name: str) -> Iterator[tuple[str, Path]]:
    """The files of a module or package as it is imported here, whether installed or not."""
    spec = importlib.util.find_spec(name) if name.isidentifier() else None
    if spec is None or spec.origin in (None, "built-in", "frozen"):
        raise UserError(f"pack(also='{name}'): neither an installed package nor a module", hint="check the name")
    if spec.submodule_search_locations is None:
        yield Path(str(spec.origin)).name, Path(str(spec.origin))
        return
    for location in spec.submodule_search_locations:
        for file in sorted(Path(location).rglob("*")):
            inside = f"{name}/{file.relative_to(location).as_posix()}"
            if file.is_file() and not _LEFT_OUT.search(inside):
                yield inside, file


def _anonymous(info: tarfile.TarInfo) -> tarfile.TarInfo:
    info.uid = info.gid = 0
    info.uname = info.gname = ""
    return info
