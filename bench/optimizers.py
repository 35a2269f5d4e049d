"""Speed of the compiler, in CPU microseconds a node, beside other ONNX optimizers in one run.

    python -m bench.optimizers [--sizes 1000,5000,20000,100000] [--json FILE]

Each measurement runs in a process of its own, forked from one that has everything imported, so
no tool pays for another's heap. Peers stop after two minutes.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import onnx
import onnx_ir as ir
from rich.console import Console
from rich.table import Table

from bench.process import in_own_process
from bench.synthetic import transformer_like

PEER_SIZES = (1_000, 5_000, 20_000)
Figures: TypeAlias = dict[str, float]
"""CPU seconds by what they were spent on; ``nodes`` counts the nodes that are left."""


def smelt_figures(proto: onnx.ModelProto) -> Figures:
    import smelt
    from smelt.compiler import optimize_model

    started = time.process_time()
    model = smelt.load(proto)
    loaded = time.process_time()
    reports = optimize_model(model)
    done = time.process_time()
    figures: Figures = {"load": loaded - started, "pipeline": done - loaded}
    for report in reports:
        key = f"pass {report.name}"
        figures[key] = figures.get(key, 0.0) + report.seconds
    figures["nodes"] = len(model.graph)
    return figures


Simplify: TypeAlias = Callable[[onnx.ModelProto], onnx.ModelProto]


def _peer(run: Simplify) -> Callable[[onnx.ModelProto], Figures]:
    def figures(proto: onnx.ModelProto) -> Figures:
        started = time.process_time()
        result = run(proto)
        return {"pipeline": time.process_time() - started, "nodes": len(result.graph.node)}

    return figures


def _onnxsim(proto: onnx.ModelProto) -> onnx.ModelProto:
    import onnxsim

    return onnxsim.simplify(proto)[0]


def _onnxslim(proto: onnx.ModelProto) -> onnx.ModelProto:
    import onnxslim

    return onnxslim.slim(proto)


def _onnxscript(proto: onnx.ModelProto) -> onnx.ModelProto:
    import onnxscript.optimizer

    return onnxscript.optimizer.optimize(proto)


PEERS: dict[str, Simplify] = {
    "onnxsim": _onnxsim,
    "onnxslim": _onnxslim,
    "onnxscript": _onnxscript,
}

TOOLS: dict[str, Callable[[onnx.ModelProto], Figures]] = {
    "smelt": smelt_figures,
    **{name: _peer(run) for name, run in PEERS.items()},
}


def measure(tool: str, proto: onnx.ModelProto) -> Figures | str:
    """The figures of one tool in a fresh process, or why there are none."""
    answer: Figures | str = in_own_process(TOOLS[tool], proto)
    return answer


def run(sizes: list[int]) -> dict[str, dict[int, Figures | str]]:
    """Every tool at every size; peers only up to the largest of ``PEER_SIZES``."""
    results: dict[str, dict[int, Figures | str]] = {tool: {} for tool in TOOLS}
    for size in sizes:
        proto = ir.to_proto(transformer_like(size))
        for tool in TOOLS:
            given_up = any(isinstance(answer, str) for answer in results[tool].values())
            if tool == "smelt" or (size <= max(PEER_SIZES) and not given_up):
                results[tool][size] = measure(tool, proto)
    return results


def show(results: dict[str, dict[int, Figures | str]], sizes: list[int]) -> None:
    """One table: microseconds of CPU a node, and the factor against smelt for peers."""
    table = Table("", *(f"{size:,} nodes" for size in sizes), title="CPU microseconds a node")
    ours = results["smelt"]
    keys = [key for key in next(iter(ours.values())) if key != "nodes"]
    for key in keys:
        table.add_row(f"smelt {key}", *(_cell(ours[size], key, size) for size in sizes))
    for tool, answers in results.items():
        if tool != "smelt":
            cells = []
            for size in sizes:
                answer = answers.get(size, "")
                cells.append(_cell(answer, "pipeline", size) + _factor(answer, ours[size]))
            table.add_row(tool, *cells)
    for tool, answers in results.items():
        table.add_row(f"nodes left by {tool}", *(_left(answers.get(size)) for size in sizes))
    Console().print(table)


def _left(answer: Figures | str | None) -> str:
    return str(int(answer["nodes"])) if isinstance(answer, dict) else ""


def _cell(answer: Figures | str, key: str, size: int) -> str:
    return answer if isinstance(answer, str) else f"{1e6 * answer.get(key, 0.0) / size:.1f}"


def _factor(answer: Figures | str, ours: Figures | str) -> str:
    if isinstance(answer, str) or isinstance(ours, str):
        return ""
    return f" ({answer['pipeline'] / (ours['load'] + ours['pipeline']):.1f}x)"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default="1000,5000,20000,100000")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    sizes = [int(size) for size in arguments.sizes.split(",")]
    # Imported before the forks, so that no figure holds an import.
    for name in ("smelt.compiler", "onnxsim", "onnxslim", "onnxscript.optimizer"):
        try:
            __import__(name)
        except ImportError:
            print(f"{name} is not installed: `make bench` installs it")
    results = run(sizes)
    show(results, sizes)
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
