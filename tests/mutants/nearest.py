"""Which tests stand near a module: those that mirror or import it, then those of its room.

Other test files are ranked by the rare words that they share with the module: the names that it
defines, and its strings of one word, such as the operators that a kernel is registered for.
"""

from __future__ import annotations

import ast
import math
import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
TESTS = ROOT / "tests"
FILES = 6
"""Test files that are run for one module."""

HOPS = 2
"""Readers of readers of a module are near it, if no test is nearer."""

WORD = re.compile(r"[A-Za-z_]\w{3,}")
WIDE = ("frontends", "targets")
"""Folders whose rooms are the folders in them."""

TABLES = {
    "tests/native/test_emitted.py": ("native", "program", "targets.c", "targets.host"),
    "tests/program/test_emitted.py": ("native", "program"),
    "tests/operators/test_bodies.py": ("operators",),
    "tests/operators/test_neighbours.py": ("operators",),
    "tests/ir/test_graphs.py": ("ir", "frontends.onnx"),
    "tests/passes/test_graphs.py": ("passes", "ir"),
    "tests/frontends/jax/test_traced.py": ("frontends.jax",),
    "tests/frontends/stablehlo/test_read.py": ("frontends.stablehlo",),
    "tests/program/chips/test_staged.py": ("program.chips",),
    "tests/targets/test_graphs.py": ("targets.host", "targets.ort", "runtime"),
    "tests/native/test_graphs.py": ("native", "program", "loops", "targets.c"),
    "tests/check/report/test_shown.py": ("check",),
    "tests/merging/test_told.py": ("merging",),
    "tests/networks/test_told.py": ("networks", "operators"),
    "tests/cli/test_input_values.py": ("cli", "runtime"),
    "tests/program/test_told.py": ("program",),
    "tests/runtime/test_told.py": ("runtime",),
    "tests/sessions/test_told.py": ("sessions", "runtime"),
    "tests/inspection/test_graphs.py": ("inspection", "consumers", "check", "cli"),
    "tests/cli/test_said.py": (
        *("cli", "check", "inspection", "merging", "consumers", "runtime", "targets"),
        *("frontends.onnx", "frontends.weights"),
    ),
}
"""Test files and the packages whose output they compare with a recorded table."""


@cache
def _texts() -> dict[Path, str]:
    return {path: path.read_text(encoding="utf-8") for path in sorted(TESTS.rglob("test_*.py"))}


@cache
def _sources() -> dict[str, str]:
    """The text of each module of src/, by its dotted name."""
    paths = sorted((ROOT / "src" / "smelt").rglob("*.py"))
    return {dotted(path): path.read_text(encoding="utf-8") for path in paths}


def dotted(path: Path) -> str:
    """The name of the module at ``path``."""
    parts = path.relative_to(ROOT / "src").with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(text: str, module: str) -> bool:
    """Whether ``text`` imports ``module`` or names of it."""
    parent, _, name = module.rpartition(".")
    if parent not in text or name not in text:
        return False
    patterns = (
        rf"^\s*(from|import) {re.escape(module)}\b(?!\.)",
        rf"^\s*from {re.escape(parent)} import [^(\n]*\b{name}\b",
        rf"^\s*from {re.escape(parent)} import \([^)]*\b{name}\b",
    )
    return any(re.search(pattern, text, re.MULTILINE) for pattern in patterns)


@cache
def _readers() -> Mapping[str, set[str]]:
    """The modules of src/ that import a module, by its dotted name."""
    found: dict[str, set[str]] = defaultdict(set)
    for name, text in _sources().items():
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ImportFrom) and node.module:
                for each in (node.module, *(f"{node.module}.{a.name}" for a in node.names)):
                    found[each].add(name)
    return found


def of_room(module: str) -> list[str]:
    """Return the test files of the room of ``module``, the one most likely to run it first."""
    folder = room(module)
    return [name for name in _likeliest(module) if (ROOT / name).is_relative_to(folder)]


@cache
def _likeliest(module: str) -> list[str]:
    """Return all test files by the words that they share with ``module``.

    A file of its room, of its own folder, or one that mirrors a reader of it counts as if it shared
    a word that no other file has; one that mirrors a reader of a reader counts half as much.
    """
    whole = math.log(len(_texts()))
    scores = {path: _likeness(module, path) for path in _texts()}
    for folder in {room(module), TESTS.joinpath(*module.split(".")[1:-1])}:
        for path in scores:
            scores[path] += whole * path.is_relative_to(folder)
    seen, latest, level = {module}, {module}, 1
    while latest:
        latest = {reader for name in latest for reader in _readers()[name]} - seen
        seen |= latest
        for path in {path for name in latest for path in mirrors(name)}:
            scores[path] += whole / level
        level += 1
    ranked = sorted(scores, key=lambda path: (-scores[path], path))
    return [str(path.relative_to(ROOT)) for path in ranked]


def _likeness(module: str, path: Path) -> float:
    """Return the sum of the weights of the words that ``module`` and the test file share."""
    files, shared = _frequencies(), _words_of(module) & _words_in(path)
    return sum(math.log(len(_texts()) / files[word]) for word in shared)


@cache
def _frequencies() -> Counter[str]:
    """Return the number of test files that each word stands in."""
    return Counter(word for path in _texts() for word in _words_in(path))


@cache
def _words_in(path: Path) -> frozenset[str]:
    return frozenset(WORD.findall(_texts()[path]))


@cache
def _words_of(module: str) -> frozenset[str]:
    """Return the functions and classes that ``module`` defines, and its strings of one word."""
    found = set()
    for node in ast.walk(ast.parse(_sources()[module])):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found |= {node.value} if WORD.fullmatch(node.value) else set()
    return frozenset(found)


@cache
def nearest(module: str) -> tuple[str, ...]:
    """Return test files that mirror or import ``module``; if none, those near its readers.

    The file that mirrors it comes first, then ``TABLES`` of its package; all others follow, the
    likeliest to run it first.
    """
    own = mirrors(module)
    found = [path for path, text in _texts().items() if imports(text, module)]
    readers = [module]
    for _ in range(HOPS if not own + found else 0):
        readers = [n for n, text in _sources().items() if any(imports(text, r) for r in readers)]
        found += [path for reader in readers for path in mirrors(reader)]
    first, then = ([str(path.relative_to(ROOT)) for path in paths] for paths in (own, found))
    return tuple(dict.fromkeys([*first, *tables(module), *then, *_likeliest(module)]))


def tables(module: str) -> list[str]:
    """Return the files of ``TABLES`` that mirror the package of ``module``."""
    name = module.removeprefix("smelt.") + "."
    return [
        file
        for file, packages in TABLES.items()
        if any(name.startswith(f"{package}.") for package in packages)
    ]


def mirrors(module: str) -> list[Path]:
    """``tests/ir/test_index.py`` for ``smelt.ir.index``, also deeper in its room."""
    *_, name = parts = module.split(".")[1:] or [module]
    inside = TESTS.joinpath(*parts[:-1])
    found = [inside / f"test_{name}.py", TESTS.joinpath(*parts) / f"test_{name}.py"]
    deeper = room(module).rglob(f"test_{name}.py") if len(parts) > 1 else []
    return [path for path in dict.fromkeys([*found, *sorted(deeper)]) if path.is_file()]


def room(module: str) -> Path:
    """The folder of tests that mirrors the part of smelt that ``module`` belongs to."""
    parts = module.split(".")[1:-1]
    depth = 2 if parts[:1] and parts[0] in WIDE else 1
    folder = TESTS.joinpath(*parts[:depth])
    return folder if folder.is_dir() else folder.parent
