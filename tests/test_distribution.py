"""The distribution: every message names ours, and what is built from the checkout installs and runs."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
import zipfile
from importlib import metadata
from pathlib import Path

import pytest

import smelt
from smelt.distribution import NAME, NEIGHBOUR, install, neighbour_warning, requirement
from smelt.errors import not_installed

ROOT = Path(__file__).parents[1]
FOREIGN = re.compile(
    r"(?:pip install|pip download)[^\n`]*[ '\"]smelt\b(?!-compiler)|\bsmelt\[[a-z]"
)
"""A requirement that another project's distribution would satisfy."""
PAGES = (
    "README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "SECURITY.md",
    "pyproject.toml",
    "Makefile",
)


def test_the_project_has_the_name_that_messages_give() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["name"] == NAME
    assert metadata.version(NAME) == smelt.__version__


def test_a_requirement_names_its_extras() -> None:
    assert (requirement(), requirement("jax", "ort")) == (NAME, f"{NAME}[jax,ort]")
    assert install("c") == f"pip install '{NAME}[c]'"
    assert not_installed("jax", "jax", "tracing").fix == install("jax")


@pytest.mark.parametrize("folder", ["src", "docs", "bench", "examples", "tests", "."])
def test_no_text_installs_the_package_of_another_project(folder: str) -> None:
    files = [
        path
        for suffix in ("py", "md", "toml", "sh", "j2", "html", "js")
        for path in (ROOT / folder).rglob(f"*.{suffix}")
        if folder != "."
    ] or [ROOT / page for page in PAGES]
    texts = {path: path.read_text(encoding="utf-8") for path in files if path != Path(__file__)}
    found = {str(path.relative_to(ROOT)): FOREIGN.findall(text) for path, text in texts.items()}
    assert {name: hits for name, hits in found.items() if hits} == {}


def test_the_neighbour_is_told_with_the_way_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert neighbour_warning() == ""
    info = tmp_path / f"{NEIGHBOUR}-0.7.5.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: smelt\nVersion: 0.7.5\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    told = neighbour_warning()
    assert "smelt 0.7.5 is another project" in told
    assert f"pip uninstall {NEIGHBOUR}" in told
    assert f"--force-reinstall --no-deps {NAME}" in told


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel and the sdist of this checkout."""
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=120)
    return folder


def test_the_wheel_holds_the_module_and_its_data(built: Path) -> None:
    [wheel] = built.glob("smelt_compiler-*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    sources = {
        path.relative_to(ROOT / "src").as_posix()
        for path in (ROOT / "src" / "smelt").rglob("*")
        if path.is_file() and path.suffix not in (".pyc",)
    }
    assert sources <= names


@pytest.mark.parametrize(
    "pattern",
    ["smelt_compiler-*.whl", pytest.param("smelt_compiler-*.tar.gz", marks=pytest.mark.slow)],
)
def test_built_packages_install_and_optimize(built: Path, tmp_path: Path, pattern: str) -> None:
    [archive] = built.glob(pattern)
    python = sys.executable
    place = tmp_path / "site"
    command = [python, "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation"]
    subprocess.run([*command, "--target", str(place), str(archive)], check=True, timeout=240)
    model = ROOT / "tests" / "models" / "jax2onnx_block.onnx"
    check = "import smelt, sys; assert smelt.__file__.startswith(sys.argv[1]), smelt.__file__; "
    check += "smelt.optimize(sys.argv[2])"
    run = [python, "-c", check, str(place), str(model)]
    subprocess.run(run, check=True, env={"PYTHONPATH": str(place)}, timeout=240)
