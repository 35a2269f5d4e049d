"""Runs tests on ``smelt`` with a mistake in it, after one run that notes which tests run what."""

from __future__ import annotations

import ast
import json
import resource
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from functools import partial
from pathlib import Path

from mutants import importing, plugin
from mutants.blocks import block_of
from mutants.nearest import ROOT, nearest, of_room
from mutants.sites import Site

FILES = 6
"""Test files that are run for one module."""

RECORDING, MORE = 200.0, 5.0
"""Seconds of CPU that each worker may take to note what tests run, at least and for each mistake."""

NEAR, ROOM = 60.0, 300.0
"""Seconds of CPU that the tests near a mistake may take, and those of its room."""

START = 30
"""Seconds of CPU that a process of pytest may take beside its tests."""

MEMORY = 12 << 30
PYTEST = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not slow"]


class Verdict(StrEnum):
    """What tests say to a mistake: UNREACHED if none of them runs its line."""

    KILLED = "killed"
    SURVIVES = "SURVIVES"
    UNREACHED = "UNREACHED"


@dataclass
class Records:
    """Seconds of CPU of each test, and the tests that run each block of a module."""

    seconds: dict[str, float] = field(default_factory=dict)
    reached: dict[tuple[str, int | None], set[str]] = field(
        default_factory=lambda: defaultdict(set)
    )

    def read(self, path: Path) -> None:
        """Add the lines that one process wrote."""
        for line in path.read_text(encoding="utf-8").splitlines():
            noted = json.loads(line)
            if not noted.get("failed", True):
                self.seconds[noted["test"]] = noted["seconds"]
            for module, blocks in noted["ran"].items():
                for block in blocks:
                    self.reached[module, block].add(noted["test"])

    def near(self, site: Site) -> list[str]:
        """Return the recorded tests that run the block of ``site``, within ``NEAR`` seconds.

        Tests of the nearest file come first, the quickest of a file first, and tests recorded for
        other modules last. A line outside of functions runs as its module is imported: for it, all
        tests of near files count. What a fixture ran is noted for its file, and counts for all
        tests of the file.
        """
        files = {file: place for place, file in enumerate(nearest(site.module)[:FILES])}
        block = block_of(ast.parse((ROOT / site.path).read_text(encoding="utf-8")), site.line)
        ran = self.reached[site.module, block]
        places = {test: files.get(file_of(test), FILES) for test in self.seconds}
        found, spent = [], 0.0
        for test in sorted(places, key=lambda test: (places[test], self.seconds[test])):
            is_near = block is None and places[test] < FILES
            if is_near or test in ran or file_of(test) in ran:
                spent += self.seconds[test]
                found += [test] if spent <= NEAR or not found else []
        return found


def file_of(test: str) -> str:
    """The file that a test stands in."""
    return test.partition("::")[0]


def record(sites: Sequence[Site], workers: int) -> Records:
    """Run the tests near ``sites`` once; what they run of the modules of ``sites``."""
    ranked = [
        (rank, file) for site in sites for rank, file in enumerate(nearest(site.module)[:FILES])
    ]
    files = list(dict.fromkeys(file for _, file in sorted(ranked)))
    records = Records()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        settings = {
            importing.RECORDS: name,
            importing.RECORDED: " ".join(sorted({site.module for site in sites})),
            plugin.SECONDS: str(max(RECORDING, MORE * len(sites))),
        }
        environment = importing.environment(folder / "start", **settings)
        command = [*PYTEST, "-p", "mutants.plugin", "-n", str(workers), *files]
        subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, check=False)
        for path in folder.glob("[0-9]*"):
            records.read(path)
    return records


def tried(site: Site, records: Records, *, with_room: bool) -> Verdict:
    """Run tests near ``site`` with the mistake in place until one fails, then those of its room."""
    tests = records.near(site)
    if tests and _fails(site, tests, sum(records.seconds[test] for test in tests) * 3 + START):
        return Verdict.KILLED
    if with_room and _fails(site, of_room(site.module), ROOM, ends=True):
        return Verdict.KILLED
    return Verdict.SURVIVES if tests else Verdict.UNREACHED


def _fails(site: Site, tests: Sequence[str], seconds: float, *, ends: bool = False) -> bool:
    """Whether one of ``tests`` fails, or does not end: unless ``ends``, where time is a limit."""
    with tempfile.TemporaryDirectory() as name:
        chosen = Path(name, "tests")
        chosen.write_text("\n".join(tests), encoding="utf-8")
        settings = {importing.MUTANT: json.dumps(asdict(site)), plugin.CHOSEN: str(chosen)}
        files = list(dict.fromkeys(map(file_of, tests)))
        done = subprocess.run(
            [*PYTEST, "-x", "-p", "mutants.plugin", *files],
            cwd=ROOT,
            env=importing.environment(Path(name), **settings),
            preexec_fn=partial(_limit, int(seconds)),
            capture_output=True,
            check=False,
        )
    return done.returncode != 0 and not (ends and done.returncode < 0)


def _limit(seconds: int) -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
