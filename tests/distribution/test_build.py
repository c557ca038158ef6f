"""The source distribution and the wheel: built, looked into, installed apart from this checkout, and used."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

from mixope.version import __version__

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[2]


def run(*command: object, folder: Path) -> str:
    """What a program prints, started away from the checkout and without its paths."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "COV_"))}
    words = [str(word) for word in command]
    done = subprocess.run(words, cwd=folder, env=clean, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> dict[str, Path]:
    """Both, the wheel from the source distribution as an index would build it."""
    pytest.importorskip("build")
    pytest.importorskip("hatchling")
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT, folder=folder)
    (source,), (wheel,) = folder.glob("*.tar.gz"), folder.glob("*.whl")
    return {"source": source, "wheel": wheel}


@pytest.fixture(scope="module")
def installed(built, tmp_path_factory) -> Path:
    """An environment with the wheel alone; its dependencies are those of the environment that runs the tests."""
    folder = tmp_path_factory.mktemp("installed")
    venv.create(folder, with_pip=False)
    python = folder / "bin" / "python"
    pip = (sys.executable, "-m", "pip", "--python", python, "install", "-q", "--no-deps", "--no-index")
    run(*pip, "--disable-pip-version-check", built["wheel"], folder=folder)
    inside = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", folder=folder).strip())
    (inside / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    return folder


def test_the_wheel_has_the_package_and_nothing_else(built):
    names = zipfile.ZipFile(built["wheel"]).namelist()
    assert {name.partition("/")[0] for name in names} == {"mixope", f"mixope-{__version__}.dist-info"}
    assert "mixope/py.typed" in names
    here = {
        path.relative_to(ROOT / "src").as_posix() for path in (ROOT / "src" / "mixope").rglob("*") if path.is_file()
    }
    assert {name for name in here if "__pycache__" not in name} == {
        name for name in names if name.startswith("mixope/")
    }


def test_the_source_distribution_has_what_a_reader_wants(built):
    with tarfile.open(built["source"]) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    wanted = {"pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "CITATION.cff", "SECURITY.md", "docs/index.md"}
    assert wanted | {"tests/conftest.py", "src/mixope/py.typed"} <= names
    assert not [name for name in names if "__pycache__" in name or name.startswith((".git/", ".venv", "site/"))]


def test_an_index_would_take_both(built):
    pytest.importorskip("twine")
    said = run(sys.executable, "-m", "twine", "check", "--strict", *built.values(), folder=built["wheel"].parent)
    assert said.count("PASSED") == 2


def test_the_package_is_imported_from_the_wheel(installed):
    code = "import mixope; print(mixope.__version__, mixope.__file__)"
    version, _, place = run(installed / "bin" / "python", "-c", code, folder=installed).strip().partition(" ")
    assert version == __version__
    assert Path(place).is_relative_to(installed)


def test_the_command_of_the_wheel_answers(installed):
    command = installed / "bin" / "mixope"
    assert run(command, "--version", folder=installed) == f"mixope {__version__}\n"
    assert run(command, "demo", "--help", folder=installed).startswith("Usage: mixope demo")


def test_the_command_of_the_wheel_writes_a_report(installed, tmp_path):
    """The templates and styles of the pages are files of the package."""
    command = installed / "bin" / "mixope"
    run(command, "simulate", "walk", "--episodes", "20", "-o", "walk", folder=tmp_path)
    asked = ("evaluate", "walk/logs.parquet", "--target", "walk/target.csv", "--html", "report.html")
    assert "TRUSTWORTHY" in run(command, *asked, folder=tmp_path)
    assert "<style" in (tmp_path / "report.html").read_text(encoding="utf-8")
