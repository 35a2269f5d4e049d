"""Where the time goes from ModelProto to ModelProto, in CPU microseconds a node by part.

    python -m bench.parts [--sizes 20000,100000] [--runs 5] [--passes]

The graph is dense in rewrites (``bench.synthetic.dense_in_rewrites``). Each figure is the best of
``--runs`` processes, because other work on the machine only ever adds to one.
"""

from __future__ import annotations

import argparse
import itertools
import time

import onnx
import onnx_ir as ir
from rich.console import Console
from rich.table import Table

from bench.process import in_own_process
from bench.synthetic import dense_in_rewrites

PARTS = ("reading", "shapes", "passes", "clone", "writing")
OPTIMIZE = ("shapes", "passes", "clone")
"""What ``smelt.optimize`` of an ``ir.Model`` does."""


def seconds_by_part(proto: onnx.ModelProto) -> dict[str, float]:
    """CPU seconds of each part; the passes apart under ``pass NAME``."""
    from smelt.compiler import load, optimize_model
    from smelt.frontends.onnx import clone, to_proto
    from smelt.ir.collector import paused_collector

    with paused_collector():
        marks = [time.process_time()]
        model = load(proto)
        marks.append(time.process_time())
        clone(model)
        marks.append(time.process_time())
        reports = optimize_model(model)
        marks.append(time.process_time())
        to_proto(model, spent=True)
        marks.append(time.process_time())
    reading, cloning, optimizing, writing = (b - a for a, b in itertools.pairwise(marks))
    found = {f"pass {report.name}": 0.0 for report in reports}
    for report in reports:
        found[f"pass {report.name}"] += report.seconds
    passes = sum(found.values())
    # What is not a pass is inference: before them, and its names taken back after them.
    found |= {"reading": reading, "shapes": optimizing - passes, "passes": passes}
    return found | {"clone": cloning, "writing": writing}


def best_of(runs: int, proto: onnx.ModelProto) -> dict[str, float]:
    """The least of ``runs`` runs, part by part, each in a process of its own."""
    answers = [in_own_process(seconds_by_part, proto) for _ in range(runs)]
    for answer in answers:
        if isinstance(answer, str):
            raise SystemExit(answer)
    return {part: min(answer[part] for answer in answers) for part in answers[0]}


def show(figures: dict[int, dict[str, float]], with_passes: bool) -> None:
    """One table: parts down, sizes across."""
    table = Table("", *(f"{size:,} nodes" for size in figures), title="CPU microseconds a node")

    def row(name: str, parts: tuple[str, ...]) -> None:
        sums = (sum(found[part] for part in parts) / size for size, found in figures.items())
        table.add_row(name, *(f"{1e6 * each:.1f}" for each in sums))

    for part in PARTS:
        row(part, (part,))
    row("all", PARTS)
    row("optimize of an ir.Model", OPTIMIZE)
    first = next(iter(figures.values()))
    named = sorted((part for part in first if part not in PARTS), key=lambda part: -first[part])
    for part in named if with_passes else ():
        row(part, (part,))
    Console().print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default="20000,100000")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--passes", action="store_true", help="each pass, too")
    arguments = parser.parse_args()
    import smelt.compiler  # noqa: F401 - before the forks, so that no figure holds an import

    sizes = [int(size) for size in arguments.sizes.split(",")]
    protos = {size: ir.to_proto(dense_in_rewrites(size)) for size in sizes}
    seconds_by_part(ir.to_proto(dense_in_rewrites(100)))  # what is imported or compiled once
    show({size: best_of(arguments.runs, proto) for size, proto in protos.items()}, arguments.passes)


if __name__ == "__main__":
    main()
