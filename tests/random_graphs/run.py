"""``python -m random_graphs.run START STOP [--fixpoint]``: try these seeds, print what fails.

Each model is optimized a second time, too. ``--fixpoint`` asks that this changes nothing.
"""

from __future__ import annotations

import argparse
import sys
import traceback

from random_graphs.trial import try_seed


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m random_graphs.run", description=__doc__)
    parser.add_argument("start", type=int)
    parser.add_argument("stop", type=int)
    parser.add_argument("--fixpoint", action="store_true")
    parser.add_argument("--focus", default="", help="a family of moves, such as types or edges")
    parser.add_argument("--forms", action="store_true", help="try functions and old IR versions")
    given = parser.parse_args()
    failed = invalid = 0
    for seed in range(given.start, given.stop):
        try:
            trial = try_seed(
                seed, given.focus, twice=True, fixpoint=given.fixpoint, forms=given.forms
            )
            problems, invalid = trial.problems, invalid + (not trial.valid)
        except Exception:  # noqa: BLE001 - a crash is what is looked for
            problems = [f"seed {seed}: {traceback.format_exc()}"]
        for problem in problems:
            print(problem, flush=True)
        failed += bool(problems)
    print(f"{given.stop - given.start} seeds: {failed} failed, {invalid} were no valid model")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
