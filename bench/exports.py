"""Exported models through the optimizers that people use: what is left, how fast, what is wrong.

    python -m bench.exports [--models FOLDER] [--seconds 2] [--save]

Each tool optimizes each model in a process of its own. Latencies are taken by turns in ONNX
Runtime, with all of its own optimizations, on one thread, as ratios to the model as it came; where
a tool fails, the model as it came counts. A result is wrong if ONNX Runtime does not load it, or
``smelt.verify`` tells it from its source. Prints the table of README.md; ``--save`` keeps its
figures in ``bench/figures.json``.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import geometric_mean
from typing import Any

import onnx

import smelt
from bench import figures
from bench.optimizers import PEERS
from bench.process import in_own_process
from smelt.errors import SmeltError
from smelt.ir import text
from smelt.runtime.inputs import random_inputs
from smelt.runtime.latency import interleaved_timings
from smelt.runtime.onnxruntime import OnnxRuntime

MODELS = Path(__file__).parent.parent / "tests" / "models"
SIZE = 4
"""Of every symbolic dim, while latencies are taken."""

DISTRIBUTIONS = {"smelt": "smelt-compiler"}

TOOLS: dict[str, Callable[[onnx.ModelProto], Any]] = {"smelt": smelt.optimize, **PEERS}


@dataclass
class Score:
    """What one tool made of the models: a number a model, and words for what went wrong."""

    nodes: list[int] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    latency: list[float] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)


def optimized(tool: str, data: bytes) -> tuple[bytes, float]:
    """The result of ``tool`` and its CPU seconds."""
    proto = onnx.ModelProto.FromString(data)
    started = time.process_time()
    result = TOOLS[tool](proto)
    return result.SerializeToString(), time.process_time() - started


def judge(path: Path, seconds: float, scores: dict[str, Score]) -> None:
    """Let every tool optimize the model at ``path``, and add to its score."""
    source = path.read_bytes()
    candidates = {"source": source}
    for tool, score in scores.items():
        answer = (source, 0.0) if tool == "source" else in_own_process(optimized, tool, source)
        if isinstance(answer, str):
            score.failed.append(f"{path.stem}: {answer}")
            answer = (source, 0.0)
        result, spent = answer
        score.nodes.append(len(onnx.ModelProto.FromString(result).graph.node))
        score.seconds.append(spent)
        problem = "" if tool == "source" else what_is_wrong(source, result)
        if problem:
            score.wrong.append(f"{path.stem}: {problem}")
        else:
            candidates[tool] = result
    ratios = latencies(candidates, seconds)
    for tool, score in scores.items():
        score.latency.append(ratios.get(tool, 1.0))


def what_is_wrong(source: bytes, result: bytes) -> str:
    """Why ``result`` is no stand-in for ``source``; empty if it is."""
    try:
        OnnxRuntime(smelt.load(result), optimized=True)
        report = smelt.verify(source, result)
    except SmeltError as error:
        return str(error).splitlines()[0]
    return "" if report.ok else "other numbers"


def latencies(candidates: dict[str, bytes], seconds: float) -> dict[str, float]:
    """The latency of each as a ratio to the first, which is the source."""
    model = smelt.load(candidates["source"])
    symbols = {s for v in model.graph.inputs for d in v.shape or () for s in _symbols(d)}
    values = random_inputs(model, dict.fromkeys(symbols, SIZE))
    sessions = [OnnxRuntime(smelt.load(data), optimized=True) for data in candidates.values()]
    runs = [lambda session=session: session(*values) for session in sessions]
    timings = interleaved_timings(runs, seconds=seconds)
    return {tool: timing.ratio for tool, timing in zip(candidates, timings, strict=True)}


def _symbols(dim: Any) -> Sequence[str]:
    return [] if isinstance(dim, int) else sorted(dim.free_symbols())


def summary(scores: dict[str, Score], count: int) -> dict[str, Any]:
    """Return what ``bench/figures.json`` keeps: a row for each tool."""
    rows = [
        {
            "tool": tool,
            "version": _version(tool),
            "nodes": sum(score.nodes),
            "seconds": round(sum(score.seconds), 2),
            "latency": round(geometric_mean(score.latency), 3),
            "wrong": len(score.wrong) + len(score.failed),
        }
        for tool, score in scores.items()
    ]
    return {
        "models": count,
        "date": str(datetime.datetime.now(tz=datetime.UTC).date()),
        "onnxruntime": importlib.metadata.version("onnxruntime"),
        "rows": rows,
    }


def _version(tool: str) -> str:
    return "" if tool == "source" else importlib.metadata.version(DISTRIBUTIONS.get(tool, tool))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=Path, default=MODELS)
    parser.add_argument("--seconds", type=float, default=2.0, help="of measuring, for each model")
    parser.add_argument("--save", action="store_true", help="write bench/figures.json")
    arguments = parser.parse_args()
    scores = {tool: Score() for tool in ("source", *TOOLS)}
    # What a tool imports or sets up at its first use counts for none of the models.
    warm_up = smelt.to_proto(text.parse("g (float[B,4] x) => (float[B,4] y) { y = Relu(x) }", 20))
    for tool in TOOLS:
        optimized(tool, warm_up.SerializeToString())
    paths = sorted(arguments.models.glob("*.onnx"))
    for path in paths:
        judge(path, arguments.seconds, scores)
    kept = summary(scores, len(paths))
    print(figures.optimizers(kept))
    for tool, score in scores.items():
        for problem in (*score.wrong, *score.failed):
            print(f"\n{tool}: {problem}")
    if arguments.save:
        figures.save("optimizers", kept)


if __name__ == "__main__":
    main()
