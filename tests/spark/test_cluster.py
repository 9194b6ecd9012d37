"""The same query on `local[2]`, `local-cluster[2,1,1024]` and a standalone master: the same answers.

Every query runs in a process of its own, since a process has one Spark session. State and results lie in a folder that
all processes see. The standalone master also runs workers whose Python has nothing installed.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import venv
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pytest
from scenario import FILES, SCENARIOS, Outcome, orphans, outcome, same
from standalone import spark_home, standalone

from penstock.engine.spark.pack import pack

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.cluster

WINDOWS = SCENARIOS["windows"]
# Start-up is all there is to these queries. A second try of a task would fail as the first did.
QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
SMALL = {
    "spark.executor.memory": "512m",
    "spark.driver.extraJavaOptions": QUICK,
    "spark.executor.extraJavaOptions": QUICK,
    "spark.task.maxFailures": 1,
}

# Rows without a time, and those of 1970, which come after their punctuation, are dead letters.
BATCH = """
    with events as (select *, epoch_us(ts) // 5000000 as slide from read_parquet('{}') where ts > '1970-01-01'),
    placed as (select key, value, unnest(generate_series(slide - 3, slide)) * 5000000 as start from events)
    select make_timestamp(start), key, count(*), sum(value) from placed group by all
"""


def query(source: Path, home: Path, master: str, *packed: str, **environment: str) -> dict[str, Any]:
    """Run the query; what it says of itself in its last line."""
    script = Path(__file__).with_name("cluster_query.py")
    command = [sys.executable, str(script), str(source), str(home), master, json.dumps(SMALL), *packed]
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("PYSPARK_", "SPARK_"))}
    process = subprocess.Popen(
        command,
        env=clean | environment,
        start_new_session=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        text, complaints = process.communicate(timeout=200)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    assert process.returncode == 0, complaints[-4000:]
    told: dict[str, Any] = json.loads(text.splitlines()[-1])
    return told


@pytest.fixture(scope="module")
def local(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Outcome]:
    home = tmp_path_factory.mktemp("local")
    WINDOWS.prepare(home)
    WINDOWS.start(home, home, spark, buckets=2).wait()
    return home, outcome(home)


@pytest.fixture(scope="module")
def master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with standalone(tmp_path_factory.mktemp("standalone")) as url:
        yield url


@pytest.fixture(scope="module")
def bare_python(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A Python of our version with nothing installed."""
    folder = tmp_path_factory.mktemp("bare")
    venv.create(folder, with_pip=False, symlinks=True)
    return str(folder / "bin" / "python")


def test_local_is_the_batch_answer(local: tuple[Path, Outcome]) -> None:
    source, found = local
    batch = duckdb.sql(BATCH.format(f"{source}/in/*.parquet")).fetchall()
    assert found.rows == sorted(batch, key=repr)
    assert sum(found.totals["dead"].values()) > FILES  # there is something late to get wrong


def test_local_cluster(local: tuple[Path, Outcome], tmp_path: Path) -> None:
    source, expected = local
    home = spark_home(tmp_path / "spark")  # it would leave its executors' folders among the installed packages
    told = query(source, tmp_path / "run", "local-cluster[2,1,1024]", SPARK_HOME=str(home))
    assert told.get("epochs") == [1, 2, 3, 4], told
    assert set(told["paths"]) == {"resident"}
    assert same(outcome(tmp_path / "run"), expected)
    assert orphans(tmp_path / "run") == []


def test_standalone(local: tuple[Path, Outcome], master: str, tmp_path: Path) -> None:
    source, expected = local
    told = query(source, tmp_path, master)
    assert told.get("epochs") == [1, 2, 3, 4], told
    assert told["master"] == master
    assert set(told["paths"]) == {"resident"}, told  # Tasks that stay, one on each of two workers.
    assert same(outcome(tmp_path), expected)
    assert orphans(tmp_path) == []


def test_worker_python_that_lacks_everything(
    local: tuple[Path, Outcome], master: str, bare_python: str, tmp_path: Path
) -> None:
    """Without the packed environment: two lines that say what to do. With it: the answer, from the same checkpoint."""
    source, expected = local
    told = query(source, tmp_path / "run", master, PYSPARK_PYTHON=bare_python)
    assert told.get("kind") == "UserError", told
    assert told["error"].startswith("the Python of Spark's workers has no module 'penstock'. Hint: ")
    assert "docs/deploy.md" in told["error"]
    packed = pack(str(tmp_path / "penstock-env.tar.gz"))
    told = query(source, tmp_path / "run", master, str(packed), PYSPARK_PYTHON=bare_python)
    assert told.get("epochs") == [1, 2, 3, 4], told
    assert same(outcome(tmp_path / "run"), expected)
