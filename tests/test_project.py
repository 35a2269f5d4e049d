"""What the project says of itself: its license, the bounds of what it is bound to, its checks."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import smelt

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PINS = dict(re.findall(r"^([\w.-]+)==(\S+)$", (ROOT / "constraints.txt").read_text(), re.MULTILINE))
TESTED = {canonicalize_name(name): version for name, version in PINS.items()}
EXTRAS = PROJECT["optional-dependencies"]
OF_DEVELOPERS = ("dev", "bench", "wild")
"""Tools, which constraints.txt pins; nobody's results depend on them."""


LONGEST = {"src": 300, "tests": 500}
"""The most lines of a Python file, which CONTRIBUTING.md states."""


@pytest.mark.parametrize("folder", LONGEST)
def test_no_file_is_longer_than_the_style_allows(folder: str) -> None:
    files = {path: path.read_bytes().count(b"\n") for path in (ROOT / folder).rglob("*.py")}
    assert [str(path) for path, lines in files.items() if lines > LONGEST[folder]] == []


def required(*, extras: bool) -> list[Requirement]:
    """What an installation needs, or what the extras for users add to it."""
    if not extras:
        return [Requirement(text) for text in PROJECT["dependencies"]]
    listed = [texts for extra, texts in EXTRAS.items() if extra not in OF_DEVELOPERS]
    parsed = [Requirement(text) for texts in listed for text in texts]
    return [item for item in parsed if item.name != PROJECT["name"]]


@pytest.mark.parametrize(
    "requirement", [*required(extras=False), *required(extras=True)], ids=lambda item: item.name
)
def test_libraries_are_bounded_by_what_was_tested(requirement: Requirement) -> None:
    assert any(part.operator == "<" for part in requirement.specifier)
    assert TESTED[canonicalize_name(requirement.name)] in requirement.specifier


def test_the_version_is_the_one_that_the_package_says() -> None:
    assert PROJECT["version"] == smelt.__version__


def test_the_license_is_the_one_that_is_declared() -> None:
    assert PROJECT["license"] == "Apache-2.0"
    [text] = [(ROOT / name).read_text(encoding="utf-8") for name in PROJECT["license-files"]]
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    assert lines[:2] == ["Apache License", "Version 2.0, January 2004"]
    assert "END OF TERMS AND CONDITIONS" in lines


def test_a_commit_is_checked_as_the_makefile_says_and_nothing_is_fetched() -> None:
    config = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
    targets = re.findall(
        r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert {repository["repo"] for repository in config["repos"]} == {"local"}
    hooks = [hook for repository in config["repos"] for hook in repository["hooks"]]
    assert [hook["entry"] for hook in hooks] == ["make check"]
    assert "check" in targets
    assert all(hook["language"] == "system" and not hook["pass_filenames"] for hook in hooks)
