"""``make mutants``: draw mistakes by a seed, and print those that no test near them notices.

::

    make mutants                                     40 mistakes in what differs from main
    make mutants SEED=7                              40 mistakes in all of src/
    make mutants SEED=7 COUNT=10 IN=src/smelt/ir     10 mistakes in one part
    make mutants SEED=7 ROOM=1                       survivors are tried on their room, too

The six test files nearest to a module run once, with a record of the blocks that each test runs.
Nearest are files that mirror the module, tables of its package, files that import it, and files
that share rare words with it. Then each mistake is tried on the tests that run its block, the nearest and quickest first, until
one fails. The room of a module is the folder of tests that mirrors its part of
``smelt``; its tests get five minutes a mistake.
"""

from __future__ import annotations

import argparse
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from mutants.drawing import changed, draw
from mutants.nearest import ROOT
from mutants.running import Verdict, record, tried
from mutants.sites import shown

WORKERS = 2


def main() -> int:
    """Print one line a mistake; the status is 1 if one survives."""
    parser = argparse.ArgumentParser(
        prog="make mutants", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--seed", type=int, help="draw from all of src/, not from what changed")
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--inside", default="src", help="a folder or a file of src/")
    parser.add_argument("--room", action="store_true", help="try survivors on their room, too")
    given = parser.parse_args()
    begin = time.time()
    every = sorted((ROOT / "src").rglob("*.py")) if given.seed is not None else changed()
    paths = [path for path in every if path.is_relative_to(ROOT / given.inside)]
    sites = draw(paths, given.count, given.seed or 0)
    records = record(sites, WORKERS) if sites else None
    print(f"{len(sites)} mistakes; tests near them ran in {time.time() - begin:.0f} s", flush=True)
    left = 0
    with ThreadPoolExecutor(WORKERS) as pool:
        verdicts = pool.map(partial(tried, records=records, with_room=given.room), sites)
        for site, verdict in zip(sites, verdicts, strict=True):
            left += verdict is not Verdict.KILLED
            text = shown((ROOT / site.path).read_text(encoding="utf-8"), site)
            print(f"{verdict:9} {site.path}:{site.line}: {site.kind}: {text}", flush=True)
    print(f"{left} of {len(sites)} survive; {time.time() - begin:.0f} s")
    return min(left, 1)


if __name__ == "__main__":
    sys.exit(main())
