"""``python -m random_graphs.on_targets START STOP --target c``: drawn models, compiled and held
against ONNX Runtime.

A refusal with a code is no failure; it is counted by its code and operator. ``c`` is compiled by
the compiler of this machine, for each size of the symbolic dims, or with ``--ranges`` once for all
sizes from 1 to 16.
"""

from __future__ import annotations

import argparse
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import onnx_ir as ir
from random_graphs.drawing import draw
from random_graphs.judging import Judge

import smelt
from smelt.check.comparison_inputs import ComparisonInputs
from smelt.errors import ErrorList, SmeltError, Unsupported
from smelt.runtime.interface import Value

UNDEFINED = ("Cast", "QuantizeLinear")
"""What integer a NaN becomes, or an infinity, ONNX leaves open."""

RANGE = (1, 16)
"""The sizes of symbolic dims that one library is compiled for."""


@dataclass(frozen=True)
class Compiled:
    """What came of one seed on one target: problems, or why the target does not take it."""

    valid: bool = True
    refused: str = ""
    problems: list[str] = field(default_factory=list)


def try_target(
    seed: int, target: str, focus: str = "", *, ranges: bool = False, **options: Any
) -> Compiled:
    """Draw a model, compile it for ``target`` and run it on all that its source can run."""
    source = draw(seed, focus)
    try:
        smelt.load(source)
        judge = Judge(source, seed, UNDEFINED)
    except SmeltError:
        return Compiled(valid=False)
    if judge.may_lose_nan():
        return Compiled(valid=False)
    try:
        problems = judge.differences(_runs(source, target, options, ranges=ranges))
    except (ErrorList, Unsupported) as error:
        refusal = error.errors[0] if isinstance(error, ErrorList) else error
        if not isinstance(refusal, Unsupported):
            raise
        return Compiled(refused=f"{refusal.code} {refusal.what} ({refusal.why})")
    return Compiled(problems=[f"seed {seed}, {target}: {problem}" for problem in problems])


def _runs(
    source: ir.Model, target: str, options: dict[str, Any], *, ranges: bool
) -> Callable[[ComparisonInputs], Sequence[Value]]:
    """A function that runs a case, compiled once for each combination of sizes, or for ``ranges``
    of them."""
    artifacts: dict[tuple[tuple[str, int | tuple[int, int]], ...], smelt.Artifact] = {}

    def run(case: ComparisonInputs) -> Sequence[Value]:
        sizes = tuple((name, RANGE if ranges else n) for name, n in sorted(case.sizes.items()))
        if sizes not in artifacts:
            model = source.clone()
            artifacts[sizes] = smelt.compile(model, target=target, dims=dict(sizes), **options)
        return artifacts[sizes](*case.values)

    return run


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m random_graphs.on_targets", description=__doc__)
    parser.add_argument("start", type=int)
    parser.add_argument("stop", type=int)
    parser.add_argument("--target", default="c")
    parser.add_argument("--engine", help="of host")
    parser.add_argument("--focus", default="", help="a family of operators, such as structure")
    parser.add_argument("--ranges", action="store_true", help="of sizes, which c takes")
    given = parser.parse_args(arguments)
    options = {"engine": given.engine} if given.engine else {}
    failed, invalid, refused = 0, 0, Counter[str]()
    for seed in range(given.start, given.stop):
        try:
            result = try_target(seed, given.target, given.focus, ranges=given.ranges, **options)
        except Exception:  # noqa: BLE001 - a crash is what is looked for
            result = Compiled(problems=[f"seed {seed}: {traceback.format_exc()}"])
        for problem in result.problems:
            print(problem, flush=True)
        failed += bool(result.problems)
        invalid += not result.valid
        refused[result.refused] += bool(result.refused)
    seeds = given.stop - given.start
    print(f"{seeds} seeds: {failed} failed, {invalid} no valid model, {refused.total()} refused")
    for reason, count in refused.most_common(20):
        print(f"{count:6} {reason}" if count else "", end="\n" if count else "")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
