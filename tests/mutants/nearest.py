"""Which tests stand near a module: those that mirror or import it, then those of its room."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Mapping
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
TESTS = ROOT / "tests"
HOPS = 2
"""Readers of readers of a module are near it, if no test is nearer."""

WIDE = ("frontends", "targets")
"""Folders whose rooms are the folders in them."""


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
    """The test files of the room of ``module``: first those of its own folder, then those that
    mirror its readers, then those that mirror readers of these, and so on."""
    folder, seen, latest = room(module), {module}, {module}
    own = TESTS.joinpath(*module.split(".")[1:-1])
    found = dict.fromkeys(sorted(own.rglob("test_*.py")) if own != folder else [])
    while latest:
        latest = {reader for name in latest for reader in _readers()[name]} - seen
        seen |= latest
        near = (path for name in sorted(latest) for path in mirrors(name))
        found |= dict.fromkeys(path for path in near if path.is_relative_to(folder))
    found |= dict.fromkeys(sorted(folder.rglob("test_*.py")))
    return [str(path.relative_to(ROOT)) for path in found]


@cache
def nearest(module: str) -> tuple[str, ...]:
    """Test files that mirror or import ``module``; of a module without any, those near its readers.

    The file that mirrors it comes first.
    """
    found = mirrors(module) + [path for path, text in _texts().items() if imports(text, module)]
    readers = [module]
    for _ in range(HOPS if not found else 0):
        readers = [n for n, text in _sources().items() if any(imports(text, r) for r in readers)]
        found += [path for reader in readers for path in mirrors(reader)]
    return tuple(dict.fromkeys(str(path.relative_to(ROOT)) for path in found))


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
