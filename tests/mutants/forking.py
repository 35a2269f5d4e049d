"""Jobs in forked children of a process that has collected the tests: each runs tests and says how.

A fork takes milliseconds where a process of pytest takes seconds to import and to collect. In a
child, the functions of the mutated module get the code of the mutant.
"""

from __future__ import annotations

import ast
import gc
import json
import os
import resource
import sys
import time
import traceback
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from types import CodeType, FunctionType
from typing import TypeAlias

import pytest
from mutants import importing, plugin
from mutants.blocks import marked
from mutants.nearest import ROOT
from mutants.sites import Site, mutated

AT = "MUTANTS_AT"
"""The file that a child writes the test into that it runs."""

SLOW = 40
"""Seconds of CPU after which a test is taken for one that does not end."""

WALL = 900
"""Seconds after which a child is stopped that waits for something."""

MEMORY = 12 << 30
Place: TypeAlias = tuple[str, int]
Answer: TypeAlias = dict[str, object]


class Unswappable(Exception):
    """The mutant cannot be put into a running process: it needs one of its own."""


def functions() -> dict[str, dict[Place, list[FunctionType]]]:
    """Return the functions of ``smelt`` in this process, by file, name and first line."""
    found: dict[str, dict[Place, list[FunctionType]]] = defaultdict(lambda: defaultdict(list))
    gc.unfreeze()
    for each in gc.get_objects():
        if type(each) is FunctionType and "/smelt/" in each.__code__.co_filename:
            code = each.__code__
            found[code.co_filename][code.co_qualname, code.co_firstlineno].append(each)
    gc.freeze()
    return found


def swap(site: Site, live: dict[str, dict[Place, list[FunctionType]]]) -> None:
    """Put the mutant of ``site`` into its module, imported or not."""
    importing.mutate(site)
    if site.module not in sys.modules:
        return
    path = ROOT / site.path
    source = path.read_text(encoding="utf-8")
    before, after = (
        _codes(marked(tree)[0], path) for tree in (ast.parse(source), mutated(source, site))
    )
    for place, functions_there in live[str(path)].items():
        if before[place] == after[place]:
            continue
        if len(before[place]) != 1 or len(after[place]) != 1:
            raise Unswappable(site)
        for function in functions_there:
            try:
                (function.__code__,) = after[place]
            except ValueError as error:
                raise Unswappable(site) from error


def _codes(tree: ast.Module, path: Path) -> dict[Place, list[CodeType]]:
    """Return the codes of all functions of a module, by name and first line."""
    found = [compile(tree, str(path), "exec", dont_inherit=True)]
    places: dict[Place, list[CodeType]] = defaultdict(list)
    for code in found:
        found += [part for part in code.co_consts if isinstance(part, CodeType)]
        places[code.co_qualname, code.co_firstlineno].append(code)
    return places


def run(items: Sequence[pytest.Item], spend: float) -> Answer:
    """Run ``items`` until one fails or ``spend`` seconds of CPU are spent; say which one fails.

    A test that takes more than ``SLOW`` seconds ends the process.
    """
    before = plugin.spent()
    for item, following in zip(items, [*items[1:], None], strict=True):
        if plugin.spent() - before > spend:
            break
        bound = int(sum(os.times()[:2]) + SLOW) + 1
        resource.setrlimit(resource.RLIMIT_CPU, (bound, resource.getrlimit(resource.RLIMIT_CPU)[1]))
        Path(os.environ[AT]).write_text(item.nodeid, encoding="utf-8")
        failed = item.session.testsfailed  # files that could not be collected count, too
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if item.session.testsfailed > failed:
            return {"failed": item.nodeid}
    return {"failed": None}


class Jobs:
    """Runs functions in forked children, ``workers`` at a time."""

    def __init__(self, workers: int, folder: Path, session: pytest.Session) -> None:
        self.workers, self.folder, self.session = workers, folder, session
        self.count = 0
        self.waiting: list[tuple[Callable[[], Answer], Callable[[Answer], None]]] = []
        self.running: dict[int, tuple[Path, float, Callable[[Answer], None]]] = {}

    def add(
        self, job: Callable[[], Answer], then: Callable[[Answer], None], *, soon: bool = False
    ) -> None:
        """Run ``job`` in a child once there is room, and ``then`` here with its answer.

        A child that dies answers ``{"died": the test that it ran}``.
        """
        self.waiting.insert(0 if soon else len(self.waiting), (job, then))

    def run(self) -> None:
        """Return when all jobs are done."""
        while self.waiting or self.running:
            while self.waiting and len(self.running) < self.workers:
                self._start(*self.waiting.pop(0))
            pid, _ = os.waitpid(-1, os.WNOHANG)
            if pid in self.running:
                folder, _, then = self.running.pop(pid)
                then(self._answer(folder))
            elif not pid:
                self._stop_late()
                time.sleep(0.01)

    def _start(self, job: Callable[[], Answer], then: Callable[[Answer], None]) -> None:
        self.count += 1
        folder = self.folder / str(self.count)
        folder.mkdir()
        pid = os.fork()
        if not pid:
            _child(job, folder, self.session)
        self.running[pid] = (folder, time.monotonic(), then)

    def _answer(self, folder: Path) -> Answer:
        answer: Answer = {"folder": str(folder)}
        if (said := folder / "answer").is_file():
            return answer | json.loads(said.read_text(encoding="utf-8"))
        at = folder / "at"
        return answer | {"died": at.read_text(encoding="utf-8") if at.is_file() else ""}

    def _stop_late(self) -> None:
        for pid, (folder, start, _) in self.running.items():
            if time.monotonic() - start > WALL:
                (folder / "answer").write_text(json.dumps({"failed": None, "late": True}))
                os.kill(pid, 9)


def _child(job: Callable[[], Answer], folder: Path, session: pytest.Session) -> None:
    """Run ``job`` in this process, write its answer and exit."""
    try:
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(nothing, stream)
        os.setpgid(0, 0)
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        os.environ[AT] = str(folder / "at")
        (folder / "tmp").mkdir()
        session.config._tmp_path_factory._basetemp = folder / "tmp"
        answer = job()
        (folder / "part").write_text(json.dumps(answer), encoding="utf-8")
        (folder / "part").rename(folder / "answer")
    finally:
        if sys.exc_info()[0]:
            (folder / "error").write_text(traceback.format_exc(), encoding="utf-8")
        os._exit(0)
