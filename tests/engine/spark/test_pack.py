"""What is in a packed environment, and which archives are refused. That it works is tested on a cluster."""

from __future__ import annotations

import json
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from penstock.engine.spark import pack as packing
from penstock.engine.spark.pack import ArchiveLabel, pack, packed_conf, read_label
from penstock.engine.spark.session import settings
from penstock.errors import UserError


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrow and DuckDB take seconds to pack and are packed like any other."""
    monkeypatch.setattr(packing, "TASKS_IMPORT", ("cloudpickle",))


def names(archive: Path) -> list[str]:
    with tarfile.open(archive) as opened:
        return opened.getnames()


@pytest.mark.usefixtures("small")
def test_contents(tmp_path: Path) -> None:
    archive = pack(str(tmp_path / "new" / "env.tar.gz"))
    found = names(archive)
    assert found[0] == "penstock-env.json"
    assert {"penstock/__init__.py", "penstock/engine/tasks/scan.py", "cloudpickle/__init__.py"} <= set(found)
    assert {name.split("/")[0].split("-")[0] for name in found} == {"penstock", "cloudpickle"}
    assert not [n for n in found if n.endswith(".pyc") or n.startswith(("/", ".."))]
    assert [p.name for p in archive.parent.iterdir()] == ["env.tar.gz"]
    conf = packed_conf(archive)
    assert conf == {
        "spark.archives": f"{archive.as_uri()}#penstock-env",
        "spark.executorEnv.PYTHONPATH": "penstock-env",
    }
    assert settings("spark://host:7077", conf)["spark.archives"] == conf["spark.archives"]


@pytest.mark.usefixtures("small")
def test_own_modules_and_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pricing").mkdir()
    (tmp_path / "pricing" / "__init__.py").write_text("")
    (tmp_path / "pricing" / "tax.py").write_text("RATE = 0.19\n")
    (tmp_path / "single.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    found = names(pack(str(tmp_path / "env.tar.gz"), also=["pricing", "single", "rich"]))
    # Rich needs Pygments; PySpark never goes along.
    assert {"pricing/tax.py", "single.py", "rich/__init__.py", "pygments/__init__.py"} <= set(found)
    assert not [n for n in found if n.startswith(("pyspark", "py4j"))]


@pytest.mark.usefixtures("small")
def test_unpacked_it_imports_in_an_isolated_python(tmp_path: Path) -> None:
    with tarfile.open(pack(str(tmp_path / "env.tar.gz"))) as archive:
        archive.extractall(tmp_path / "env", filter="data")
    script = f"import sys; sys.path[:0] = [{str(tmp_path / 'env')!r}]; import cloudpickle; print(cloudpickle.__file__)"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.startswith(str(tmp_path))


def test_names_that_cannot_be(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"does not end in \.tar\.gz"):
        pack(str(tmp_path / "env.zip"))
    with pytest.raises(UserError, match="neither an installed package nor a module"):
        pack(str(tmp_path / "env.tar.gz"), also=["no_such_module"])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("changed", "said"),
    [({"python": "3.9"}, "packed with Python 3.9"), ({"packages": {"penstock": "0.0.1"}}, "has penstock 0.0.1")],
)
def test_archives_of_other_versions(tmp_path: Path, changed: dict[str, object], said: str) -> None:
    label = {**vars(ArchiveLabel.here({})), **changed}
    text = tmp_path / "penstock-env.json"
    text.write_text(json.dumps(label))
    with tarfile.open(tmp_path / "env.tar.gz", "w:gz") as archive:
        archive.add(text, text.name)
    with pytest.raises(UserError, match=said):
        packed_conf(tmp_path / "env.tar.gz")


def test_what_is_no_archive(tmp_path: Path) -> None:
    (tmp_path / "env.tar.gz").write_bytes(b"not compressed")
    with pytest.raises(UserError, match="cannot be read as a packed environment"):
        read_label(tmp_path / "env.tar.gz")
    with pytest.raises(UserError, match="cannot be read"):
        packed_conf(tmp_path / "missing.tar.gz")
    with tarfile.open(tmp_path / "other.tar.gz", "w:gz") as archive:
        archive.add(__file__, "other.py")
    with pytest.raises(UserError, match="is not a packed environment"):
        packed_conf(tmp_path / "other.tar.gz")


def test_settings_given_to_spark_are_left_alone() -> None:
    given = {"spark.driver.memory": "9g", "spark.driver.extraJavaOptions": "-Dlog4j2.x=y", "spark.ui.enabled": "true"}
    found = settings("spark://host:7077", given=given)
    assert "spark.driver.memory" not in found and "spark.ui.enabled" not in found
    assert found["spark.driver.extraJavaOptions"] == "-Dlog4j2.x=y"
    assert settings("local[1]", {"spark.ui.enabled": False}, "3g", given)["spark.driver.memory"] == "3g"
