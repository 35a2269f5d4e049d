"""Which mistakes are tried: drawn by a seed, each line of code with the same chance."""

from __future__ import annotations

import random
import subprocess
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from mutants.nearest import ROOT
from mutants.sites import Site, sites


def draw(paths: Sequence[Path], count: int, seed: int) -> list[Site]:
    """At most ``count`` mistakes on different lines of ``paths``."""
    by_line: dict[tuple[str, int], list[Site]] = defaultdict(list)
    for path in paths:
        relative = str(path.relative_to(ROOT))
        for site in sites(path.read_text(encoding="utf-8"), relative):
            by_line[relative, site.line].append(site)
    chance = random.Random(seed)
    lines = chance.sample(sorted(by_line), min(count, len(by_line)))
    return [chance.choice(by_line[line]) for line in lines]


def changed(base: str = "main") -> list[Path]:
    """The modules of src/ that differ from where this branch left ``base``, or are new."""
    left = _git("merge-base", base, "HEAD").strip()
    listed = _git("diff", "--name-only", left) + _git("ls-files", "--others", "--exclude-standard")
    paths = {ROOT / line for line in listed.splitlines() if line.startswith("src/")}
    return sorted(path for path in paths if path.suffix == ".py" and path.is_file())


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True)
    return done.stdout
