"""Import ``smelt`` with one mutant in it, or with a record of the blocks that run.

No file of the working tree changes: a loader compiles other code from the same text. The settings
are environment variables, so processes that a test starts follow them, too; each begins with
``sitecustomize.py``, which ``environment`` writes into a folder. Their names do not begin with
``SMELT_``: smelt warns of such names that it does not know, which fails tests of its output.
"""

from __future__ import annotations

import ast
import atexit
import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import ModuleType

from mutants.blocks import RECORD, marked
from mutants.sites import Site, mutated

MUTANT = "MUTANTS_SITE"
RECORDS = "MUTANTS_RECORDS"
RECORDED = "MUTANTS_RECORDED"
TESTS = Path(__file__).parents[1]

reached: dict[str, bytearray] = {}
"""Module to one byte a block, which is 1 once the block has run."""


_finders: list[_Finder] = []


class _Finder(MetaPathFinder):
    """Finds modules of smelt that are to be compiled in another way."""

    def __init__(self, site: Site | None, prefixes: tuple[str, ...]) -> None:
        self.site = site
        self.prefixes = prefixes

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name.partition(".")[0] != "smelt":
            return None
        is_mutant = self.site is not None and name == self.site.module
        is_recorded = "smelt" in self.prefixes
        spec = PathFinder.find_spec(name, path, target) if is_mutant or is_recorded else None
        if spec is not None and isinstance(spec.loader, SourceFileLoader):
            spec.loader = _Loader(name, spec.loader.path, self.site if is_mutant else None)
        return spec


class _Loader(SourceFileLoader):
    """Compiles the text of a module with a mistake, or with marks of its blocks."""

    def __init__(self, name: str, path: str, site: Site | None) -> None:
        super().__init__(name, path)
        self.site = site

    def exec_module(self, module: ModuleType) -> None:
        source = Path(self.path).read_text(encoding="utf-8")
        if self.site is None:
            tree, count = marked(ast.parse(source))
            reached[self.name] = module.__dict__[RECORD] = bytearray(count)
        else:
            tree = mutated(source, self.site)
        exec(compile(tree, self.path, "exec", dont_inherit=True), module.__dict__)


def install() -> None:
    """Follow the environment: what is imported from now on is mutated or recorded."""
    site = os.environ.get(MUTANT)
    prefixes = tuple(os.environ.get(RECORDED, "").split())
    found = None
    if site:
        fields = json.loads(site)
        found = Site(**{**fields, "end": tuple(fields["end"])})
    if found is not None or prefixes:
        _finders.append(_Finder(found, prefixes))
        sys.meta_path.insert(0, _finders[-1])
    if prefixes and "PYTEST_CURRENT_TEST" in os.environ:
        test = os.environ["PYTEST_CURRENT_TEST"].rpartition(" (")[0]
        atexit.register(lambda: note(test))


def mutate(site: Site) -> None:
    """Compile ``site`` into its module if it is imported later, here or in a child process."""
    os.environ[MUTANT] = json.dumps(asdict(site))
    for finder in _finders:
        finder.site = site


def unrecord() -> None:
    """Record nothing from here on, neither here nor in child processes."""
    os.environ.pop(RECORDED, None)
    for finder in _finders:
        finder.prefixes = ()


def taken() -> set[tuple[str, int]]:
    """Return the blocks that have run so far, and forget them."""
    found = set()
    for module, marks in reached.items():
        found |= {(module, place) for place, mark in enumerate(marks) if mark}
        marks[:] = bytes(len(marks))
    return found


def note(test: str, **more: object) -> None:
    """Append what has run since the last note to the records, as of ``test``."""
    ran = {}
    for module, marks in reached.items():
        if 1 in marks:
            ran[module] = [place for place, mark in enumerate(marks) if mark]
            marks[:] = bytes(len(marks))
    line = json.dumps({"test": test, **more, "ran": ran})
    with Path(os.environ[RECORDS], str(os.getpid())).open("a", encoding="utf-8") as file:
        file.write(line + "\n")


def environment(folder: Path, **settings: str) -> Mapping[str, str]:
    """The environment of a process in which ``settings`` hold; writes into ``folder``."""
    folder.mkdir(exist_ok=True)
    (folder / "sitecustomize.py").write_text(
        f"import sys\nsys.path.insert(0, {str(TESTS)!r})\nfrom mutants import importing\n"
        "sys.path.pop(0)\nimporting.install()\n",
        encoding="utf-8",
    )
    path = os.pathsep.join([str(folder), str(TESTS.parent / "src")])
    return {**os.environ, **settings, "PYTHONPATH": path}
