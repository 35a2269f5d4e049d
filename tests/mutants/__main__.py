"""``make mutants``: draw mutants by a seed, and print which tests notice them.

::

    make mutants                                     40 mutants in what differs from main
    make mutants SEED=7                              40 mutants in all of src/
    make mutants SEED=7 COUNT=10 IN=src/smelt/ir     10 mutants in one part
    make mutants SEED=7 ROOM=1                       survivors are tried on their room, too

Rows of tables that run the line of a mutant come first, then the six test files nearest to its
module: files that mirror the module, files that import it, and files that share rare words with it.
The room of a module is the folder of tests that mirrors its part of ``smelt``; its tests get five
minutes a mutant.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import pytest
from mutants import importing, running
from mutants.drawing import changed, draw
from mutants.nearest import ROOT
from mutants.running import Verdict
from mutants.sites import Site, shown

WORKERS = 2


def main() -> int:
    """Print one line a mutant; the status is 1 if one survives."""
    parser = argparse.ArgumentParser(
        prog="make mutants", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--seed", type=int, help="draw from all of src/, not from what changed")
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--inside", default="src", help="a folder or a file of src/")
    parser.add_argument("--room", action="store_true", help="try survivors on their room, too")
    parser.add_argument("--near", type=float, default=running.NEAR, help="seconds for near files")
    parser.add_argument("--workers", type=int, default=WORKERS)
    parser.add_argument("--tests", nargs="*", help="these test files, not those near the mutants")
    given = parser.parse_args()
    begin = time.time()
    every = sorted((ROOT / "src").rglob("*.py")) if given.seed is not None else changed()
    paths = [path for path in every if path.is_relative_to(ROOT / given.inside)]
    sites = draw(paths, given.count, given.seed or 0)
    verdicts: Counter[Verdict] = Counter()

    def tell(site: Site, verdict: Verdict, why: str) -> None:
        verdicts[verdict] += 1
        text = shown((ROOT / site.path).read_text(encoding="utf-8"), site)
        seconds = f"{time.time() - begin:4.0f} s"
        print(
            f"{seconds} {verdict:9} {site.path}:{site.line}: {site.kind}: {text}  [{why}]",
            flush=True,
        )

    with tempfile.TemporaryDirectory() as name:
        os.environ.update(
            importing.environment(Path(name, "start"), **{importing.RECORDED: "smelt"})
        )
        importing.install()
        running.forbid_backends()
        trials = running.Trials(
            sites, tell, workers=given.workers, near=given.near, with_room=given.room
        )
        files = given.tests or running.files_for(sites, with_room=given.room)
        options = [
            "-qqq",
            "-s",
            "-p",
            "no:cacheprovider",
            "-m",
            "not slow",
            "--continue-on-collection-errors",
        ]
        pytest.main([*options, *files], plugins=[trials])
    print(f"{dict(verdicts)}; {time.time() - begin:.0f} s")
    return int(bool(verdicts[Verdict.SURVIVES] + verdicts[Verdict.UNKNOWN]))


if __name__ == "__main__":
    sys.exit(main())
