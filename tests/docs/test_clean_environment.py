"""README and the pages that are followed step by step work with exactly the extras that they name.

A wheel of this checkout is installed into a new environment for each set of extras, and every block
runs there. That takes minutes and a package index, so it is no part of CI.
"""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from functools import cache
from pathlib import Path

import page_in_order
import pytest
from walked_pages import DOCS, WALKED

ROOT = DOCS.parent
PAGES = [ROOT / "README.md", *WALKED]
SOURCES = ("tests", "examples", "docs")
"""Folders of the checkout that a page may read."""


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory):
    """The Python of a new environment that has smelt and the given extras."""
    built = tmp_path_factory.mktemp("dist")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(built)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True, timeout=300)
    [wheel] = built.glob("*.whl")

    @cache
    def made(extras: str) -> Path:
        folder = tmp_path_factory.mktemp("venv")
        venv.create(folder, with_pip=True)
        python = folder / "bin" / "python"
        pins = ["-c", str(ROOT / "constraints.txt")]
        command = [str(python), "-m", "pip", "install", "-q", *pins, f"{wheel}[{extras}]"]
        subprocess.run(command, check=True, timeout=1800)
        return python

    return made


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_names_its_extras_before_its_first_command(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert page_in_order.extras(page)
    install = "pip install '.["
    assert text.index(install) < text.index("smelt ", text.index("```sh"))


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_runs_with_the_extras_that_it_names(page: Path, environment, tmp_path: Path) -> None:
    for name in SOURCES:
        (tmp_path / name).symlink_to(ROOT / name)
    python = environment(page_in_order.extras(page))
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [str(python), page_in_order.__file__, str(page)],
        cwd=tmp_path,
        env=clean,
        capture_output=True,
        text=True,
        check=False,
        timeout=1800,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
