"""Which blocks of ``smelt`` each row of a table runs, kept in ``build/mutants`` between runs."""

from __future__ import annotations

import ast
import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache

import numpy as np
from mutants.blocks import block_of, marked
from mutants.nearest import ROOT
from mutants.sites import Site

KEPT = ROOT / "build" / "mutants" / "records.npz"


@cache
def blocks() -> dict[str, tuple[str, int, int]]:
    """Return the digest of each module, the place of its first block among all, and their count."""
    found, place = {}, 0
    for path in sorted((ROOT / "src").rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        count = marked(ast.parse(text))[1]
        module = Site(str(path.relative_to(ROOT)), 0, 0, (0, 0), "").module
        found[module] = (hashlib.sha256(text.encode()).hexdigest(), place, count)
        place += count
    return found


@dataclass
class Records:
    """Seconds of CPU of each test that passes, and one row of bits: the blocks that it runs."""

    seconds: dict[str, float] = field(default_factory=dict)
    rows: dict[str, np.ndarray] = field(default_factory=dict)
    failed: set[str] = field(default_factory=set)
    collected: set[str] = field(default_factory=set)

    def add(self, lines: Iterable[str]) -> None:
        """Add the lines that the processes of one test file wrote.

        What a fixture ran is noted for the file, and counts for each of its tests.
        """
        noted = [json.loads(line) for line in lines]
        shared: dict[str, np.ndarray] = {}
        for each in noted:
            row = _row(each["ran"])
            shared[each["test"]] = shared.get(each["test"], 0) | row
        for each in noted:
            if "failed" in each:
                test = each["test"]
                self.seconds[test] = each["seconds"]
                self.rows[test] = shared[test] | shared.get(file_of(test), np.uint8(0))
                self.failed |= {test} if each["failed"] else set()

    def reaching(self, site: Site) -> list[str]:
        """Return the tests that run the block of ``site``, the quickest first.

        A line outside of functions runs at import: tests that run any block of the module count.
        """
        block = block_of(ast.parse((ROOT / site.path).read_text(encoding="utf-8")), site.line)
        _, first, count = blocks()[site.module]
        wanted = range(first, first + count) if block is None else [first + block]
        bits = _row({site.module: [place - first for place in wanted]})
        found = [
            test
            for test in self.collected - self.failed
            if test in self.rows and (self.rows[test] & bits).any()
        ]
        return sorted(found, key=self.seconds.__getitem__)

    def save(self) -> None:
        """Write all records to ``KEPT``."""
        KEPT.parent.mkdir(parents=True, exist_ok=True)
        tests = list(self.rows)
        facts = [tests, self.seconds, sorted(self.failed), blocks()]
        rows = (
            np.stack([self.rows[test] for test in tests]) if tests else np.zeros((0, 0), np.uint8)
        )
        with KEPT.open("wb") as file:
            np.savez_compressed(file, rows=rows, facts=np.array(json.dumps(facts)))


def load() -> Records:
    """Return what ``KEPT`` holds; a module that changed since counts as run in all its blocks."""
    records = Records()
    if not KEPT.is_file():
        return records
    kept = np.load(KEPT)
    tests, seconds, failed, former = json.loads(str(kept["facts"]))
    bits = np.unpackbits(kept["rows"], axis=1)
    columns = np.zeros((len(tests), sum(count for *_, count in blocks().values())), np.uint8)
    for module, (digest, first, count) in blocks().items():
        was, begin, many = former.get(module, ("", 0, 0))
        part = bits[:, begin : begin + many]
        is_same = was == digest
        columns[:, first : first + count] = part if is_same else part.any(axis=1, keepdims=True)
    records.rows = dict(zip(tests, np.packbits(columns, axis=1), strict=True))
    records.seconds, records.failed = seconds, set(failed)
    return records


def file_of(test: str) -> str:
    """Return the file that a test stands in."""
    return test.partition("::")[0]


def _row(ran: dict[str, list[int]]) -> np.ndarray:
    """Return one bit a block, set for those in ``ran``."""
    bits = np.zeros(sum(count for *_, count in blocks().values()), np.uint8)
    for module, places in ran.items():
        if module in blocks():
            bits[[blocks()[module][1] + place for place in places]] = 1
    return np.packbits(bits)
