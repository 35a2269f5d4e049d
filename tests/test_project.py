"""What the project says of itself: its license, the bounds of what it is bound to, its checks."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from functools import cache
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


SHORT = 8
"""The most lines of a private or nested function that needs no docstring."""


def test_functions_have_docstrings() -> None:
    """Each public function, method of a public class and function of over eight lines has one.

    The last includes private functions, and functions inside of functions. Exempt are dunder
    methods, overloads, setters, and methods that override a documented one of a base class in the
    same file.
    """
    files = sorted((ROOT / "src" / "smelt").rglob("*.py"))
    found = [(path, name) for path in files for name in undocumented(path.read_text("utf-8"))]
    assert [f"{path.relative_to(ROOT)}: {name}" for path, name in found] == []


def test_no_docstring_repeats_a_sentence() -> None:
    """A sentence that stands twice is left over from an edit."""
    for path in sorted((ROOT / "src" / "smelt").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Module):
                text = " ".join((ast.get_docstring(node) or "").split())
                sentences = [each for each in text.split(". ") if len(each) > 25]
                assert len({each.rstrip(".") for each in sentences}) == len(sentences), path


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("def f(): pass", ["f"]),
        ("def f():\n    'Return.'", []),
        ("def _f(): pass", []),
        ("def _f():" + "\n    pass" * SHORT, ["_f"]),
        ("async def f(): pass", ["f"]),
        ("if x:\n    def f(): pass", ["f"]),
        ("def f():\n    'Return.'\n    def g(): pass", []),
        ("def f():\n    'Return.'\n    def g():" + "\n        pass" * SHORT, ["f.g"]),
        ("@overload\ndef f(): ...", []),
        ("@typing.overload\ndef f(): ...", []),
        ("class A:\n    def f(self): pass\n    def __len__(self): pass", ["A.f"]),
        ("class A:\n    @f.setter\n    def f(self, x): pass", []),
        ("class _A:\n    def f(self): pass", []),
        ("class _A:\n    def f(self):" + "\n        pass" * SHORT, ["_A.f"]),
        (
            "class A:\n    def f(self): 'Do.'\nclass B(A[int]): pass\nclass C(B):\n    def f(self): pass",
            [],
        ),
        ("class A:\n    def f(self): pass\nclass B(A):\n    def f(self): 'Do.'", ["A.f"]),
    ],
)
def test_functions_without_a_docstring_are_found(text: str, found: list[str]) -> None:
    assert list(undocumented(text)) == found


Function = ast.FunctionDef | ast.AsyncFunctionDef


def undocumented(text: str) -> Iterator[str]:
    """Yield the names of functions and methods without a docstring; the test states the rule."""
    tree = ast.parse(text)
    classes = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
    for outer, function in functions_of(tree, ()):
        owner = outer[-1] if outer and isinstance(outer[-1], ast.ClassDef) else None
        names = [*(node.name for node in outer), function.name]
        is_nested = any(isinstance(node, Function) for node in outer)
        is_public = not is_nested and not any(name.startswith("_") for name in names)
        lines = (function.end_lineno or 0) - function.lineno + 1
        if (is_public or lines > SHORT) and not (
            is_exempt(function) or (owner and is_documented_in_base(names[-1], owner, classes))
        ):
            yield ".".join(names)


def functions_of(
    node: ast.AST, outer: tuple[ast.ClassDef | Function, ...]
) -> Iterator[tuple[tuple[ast.ClassDef | Function, ...], Function]]:
    """Yield the functions and methods in ``node``, each with the classes and functions around it."""
    for inner in ast.iter_child_nodes(node):
        if isinstance(inner, Function):
            yield outer, inner
        around = (*outer, inner) if isinstance(inner, ast.ClassDef | Function) else outer
        yield from functions_of(inner, around)


def is_exempt(function: Function) -> bool:
    """True if ``function`` has a docstring, or is a dunder method, an overload or a setter."""
    ends = {ast.unparse(decorator).rpartition(".")[2] for decorator in function.decorator_list}
    dunder = function.name.startswith("__") and function.name.endswith("__")
    return bool(ast.get_docstring(function)) or dunder or bool(ends & {"overload", "setter"})


def is_documented_in_base(name: str, owner: ast.ClassDef, classes: dict[str, ast.ClassDef]) -> bool:
    """True if a base class of ``owner``, in the same file, has a method ``name`` with docstring."""
    named = (ast.unparse(base).partition("[")[0] for base in owner.bases)
    return any(
        any(isinstance(f, Function) and f.name == name and is_exempt(f) for f in base.body)
        or is_documented_in_base(name, base, classes)
        for base in (classes[text] for text in named if text in classes)
        if base is not owner
    )


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


@cache
def module_names(module: str) -> set[str]:
    """The names that a module of smelt defines or imports, and those of its modules."""
    path = ROOT / "src" / Path(*module.split("."))
    source = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    found = {each.stem for each in path.glob("*")}
    for node in ast.walk(ast.parse(source.read_text())):
        if isinstance(node, ast.Import | ast.ImportFrom):
            found |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
    return found


@pytest.mark.parametrize("folder", ["bench", "examples"])
def test_what_benches_and_examples_import_exists(folder: str) -> None:
    missing = [
        f"{path.name}: {node.module}.{alias.name}"
        for path in sorted((ROOT / folder).rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "smelt"
        for alias in node.names
        if alias.name not in module_names(node.module)
        and "__getattr__" not in module_names(node.module)
    ]
    assert missing == []
