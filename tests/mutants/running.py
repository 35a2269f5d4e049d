"""A run of pytest that collects tests once, and tries mutants on them in forked children."""

from __future__ import annotations

import ast
import json
import os
import resource
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TypeAlias

import pytest
from mutants import forking, guarding, importing, plugin, records
from mutants.blocks import block_of
from mutants.nearest import FILES, ROOT, TABLES, nearest, of_room
from mutants.sites import Site

NEAR, ROOM = 60.0, 300.0
"""Seconds of CPU that the tests near a mutant may take, and those of its room."""

CHUNK = 60
"""Rows of tables that one process records."""

START = 30
"""Seconds of CPU that a process of pytest may take beside its tests."""

PYTEST = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not slow"]


class Verdict(StrEnum):
    """Which tests notice a mutant; UNKNOWN if its process ends before the first of them."""

    NEAR = "near"
    ROOM = "room"
    SURVIVES = "SURVIVES"
    UNKNOWN = "UNKNOWN"


Stage: TypeAlias = tuple[Verdict, Sequence[str], float]
"""A verdict, the tests or whole files that may give it, and the seconds of CPU for them."""


class Trials:
    """A plugin of pytest: records what tests run, then tries each site on the tests that run it."""

    def __init__(
        self,
        sites: Sequence[Site],
        tell: Callable[[Site, Verdict, str], None],
        *,
        workers: int,
        near: float,
        with_room: bool,
    ) -> None:
        self.sites, self.tell = sites, tell
        self.workers, self.near, self.with_room = workers, near, with_room
        self.unsure: set[str] = set()
        """Tests that fail without a mutant, too, after those that ran before them."""
        self.uncollected: set[str] = set()
        """Files that this process cannot collect; a process of pytest runs them for each mutant."""

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.uncollected.add(report.nodeid)
            print(f"run in processes of their own: {report.nodeid}", flush=True)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Do all work here, in place of the tests."""
        for each in session.config.pluginmanager.get_plugins():
            if isinstance(each, guarding.Guarding):
                session.config.pluginmanager.unregister(each)
        allow_backends()
        self.items = {item.nodeid: item for item in session.items}
        self.tests: dict[str, list[str]] = defaultdict(list)
        for test in self.items:
            self.tests[records.file_of(test)].append(test)
        self.at_import = importing.taken()
        self.live = forking.functions()
        with tempfile.TemporaryDirectory() as name:
            self.jobs = forking.Jobs(self.workers, Path(name), session)
            self._record()
            for site in self.sites:
                self._try(site, self._stages(site))
            self.jobs.run()
        return True

    def _record(self) -> None:
        """Note what rows of tables run that ``records.KEPT`` does not hold."""
        self.kept = records.load()
        rows = [test for table in TABLES for test in self.tests[table]]
        self.kept.collected = set(rows)
        new = [self.items[test] for test in rows if test not in self.kept.rows]
        for chunk in chunks(new):
            self.jobs.add(partial(recorded, chunk), self._keep)
        self.jobs.run()
        if new:
            self.kept.save()

    def _stages(self, site: Site) -> list[Stage]:
        """Return what is tried in turn: rows of tables that run ``site``, near files, the room.

        All mutants are tried on rows before the first is tried on files.
        """
        files = nearest(site.module)[:FILES]
        stages = [
            (Verdict.NEAR, self.kept.reaching(site), self.near),
            *self._stages_of(Verdict.NEAR, files, self.near),
        ]
        if self.with_room:
            further = [file for file in of_room(site.module) if file not in files]
            stages += self._stages_of(Verdict.ROOM, further, ROOM)
        return stages

    def _stages_of(self, verdict: Verdict, files: Sequence[str], spend: float) -> list[Stage]:
        """Return the stages of ``files``: the collected, then the others, with shares of time."""
        tests = [test for file in files for test in self._tests_of(file)]
        others = [file for file in files if file in self.uncollected]
        share = spend * len(others) / max(1, len(files))
        return [(verdict, tests, spend - share), (verdict, others, share)]

    def _tests_of(self, file: str) -> list[str]:
        """Return the tests of ``file``, unless it is a table, whose rows are chosen by record."""
        return [] if file in TABLES else self.tests[file]

    def _keep(self, answer: forking.Answer) -> None:
        folder = Path(str(answer["folder"]))
        for path in sorted(folder.glob("[0-9]*")):
            self.kept.add(path.read_text(encoding="utf-8").splitlines())
            path.unlink()

    def _try(self, site: Site, stages: list[Stage]) -> None:
        """Run the tests of the first stage in a child until one fails, then the next stage.

        A test that fails runs without the mutant, too, after the tests that ran before it.
        """
        if not stages:
            self.tell(site, Verdict.SURVIVES, "")
            return
        (verdict, all_tests, spend), *later = stages
        tests = [test for test in all_tests if test not in self.unsure]
        if not tests:
            self._try(site, later)
            return

        def judge(answer: forking.Answer) -> None:
            test = str(answer.get("failed") or answer.get("died") or "")
            if "died" in answer and not test:
                self.tell(site, Verdict.UNKNOWN, str(answer))
            elif not test:
                self._try(site, later)
            else:
                ran, is_alone = tests[: tests.index(test) + 1], "alone" in answer
                again = partial(self._run, None, ran, ROOM, is_alone=is_alone)
                self.jobs.add(again, partial(sure, test), soon=True)

        def sure(test: str, answer: forking.Answer) -> None:
            if answer.get("failed") or "died" in answer:
                self.unsure.add(str(answer.get("failed") or test))
                self._try(site, stages)
            else:
                self.tell(site, verdict, test)

        self.jobs.add(partial(self._run, site, tests, spend), judge)

    def _run(
        self, site: Site | None, tests: Sequence[str], spend: float, *, is_alone: bool = False
    ) -> forking.Answer:
        """Run ``tests`` with the mutant in this process, or in a new one if it does not fit in."""
        importing.unrecord()
        if is_alone or not self.uncollected.isdisjoint(tests):
            return alone(site, tests, spend)
        if site is not None:
            source = (ROOT / site.path).read_text(encoding="utf-8")
            block = block_of(ast.parse(source), site.line)
            try:
                if block is None or (site.module, block) in self.at_import:
                    raise forking.Unswappable(site)
                forking.swap(site, self.live)
            except forking.Unswappable:
                return alone(site, tests, spend)
        return forking.run([self.items[test] for test in tests], spend)


def recorded(items: Sequence[pytest.Item]) -> forking.Answer:
    """Run ``items`` and note what each of them runs."""
    os.environ[importing.RECORDS] = str(Path(os.environ[forking.AT]).parent)
    items[0].config.pluginmanager.register(plugin.Recorder())
    for item, following in zip(items, [*items[1:], None], strict=True):
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
    return {}


def alone(site: Site | None, tests: Sequence[str], spend: float) -> forking.Answer:
    """Run ``tests`` in a process of pytest that imports the mutant, if there is one."""
    folder = Path(os.environ[forking.AT]).parent
    chosen = folder / "tests"
    chosen.write_text("\n".join(tests), encoding="utf-8")
    mutant = json.dumps(asdict(site)) if site is not None else ""
    settings = {importing.MUTANT: mutant, plugin.CHOSEN: str(chosen)}
    done = subprocess.run(
        [*PYTEST, "-x", "-p", "mutants.plugin", *dict.fromkeys(map(records.file_of, tests))],
        cwd=ROOT,
        env=importing.environment(folder / "start", **settings),
        preexec_fn=partial(_limit, int(spend) + START),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode <= 0:
        return {"failed": None}
    return {"failed": failed(done.stdout, tests), "alone": True}


def failed(said: str, tests: Sequence[str]) -> str:
    """Return the first of ``tests`` that the output of pytest calls failed, or its file.

    It is the first test if the output names none, because no test could run.
    """
    for line in said.splitlines():
        if line.startswith(("FAILED ", "ERROR ")):
            name = line.partition(" ")[2]
            return max((test for test in tests if name.startswith(test)), key=len, default=tests[0])
    return tests[0]


def _limit(seconds: int) -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))


def chunks(items: Sequence[pytest.Item]) -> Iterator[Sequence[pytest.Item]]:
    """Yield ``items`` in parts of ``CHUNK``."""
    for place in range(0, len(items), CHUNK):
        yield items[place : place + CHUNK]


def files_for(sites: Sequence[Site], *, with_room: bool) -> list[str]:
    """Return the test files near ``sites``, and those of their rooms."""
    found = [*TABLES, *(file for site in sites for file in nearest(site.module)[:FILES])]
    for site in sites if with_room else []:
        found += of_room(site.module)
    return list(dict.fromkeys(found))


def forbid_backends() -> None:
    """Let a test file fail that computes with JAX while it is collected.

    JAX starts threads then, and a process with threads must not be forked. The test file runs in
    processes of its own.
    """
    with suppress(ImportError):
        from jax._src import xla_bridge

        def refused() -> None:
            raise RuntimeError("this test file computes while it is collected")

        xla_bridge.backends, xla_bridge.smelt_backends = refused, xla_bridge.backends


def allow_backends() -> None:
    """Let JAX compute from here on."""
    with suppress(ImportError):
        from jax._src import xla_bridge

        xla_bridge.backends = xla_bridge.smelt_backends
