"""Exported models in ONNX Runtime: latency, nodes and results after each optimizer at hand.

    python -m bench.export_architectures FOLDER       (in an environment that has torch)
    python -m bench.ort FOLDER [--only 'bert*'] [--threads 1] [--rounds 30] [--batch 2]
                            [--dim NAME=SIZE ...]

Each tool optimizes each model in a process of its own: smelt for its targets ``onnx`` and ``ort``,
onnxslim, onnxsim, onnxscript and optimum where they are installed, and ONNX Runtime itself, which
saves what it optimizes, and has an optimizer for transformers besides. Then all run by turns with
all optimizations of ONNX Runtime; of the CPU times of rounds, the least counts, as a ratio to the
model as it came. What a tool fails at counts as 1, and is told. Results are wrong if they differ
from those of the source without any optimization by more than a thousandth of their largest number,
or in what is not finite; of models with numbers of 16 or 8 bits a twentieth, since kernels of
integers round a step of the quantization otherwise.
"""

from __future__ import annotations

import argparse
import fnmatch
import importlib.util
import math
import random
import tempfile
import time
from pathlib import Path
from statistics import geometric_mean
from typing import Any, TypeAlias

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime

import smelt
from bench.optimizers import PEERS, Simplify
from bench.process import in_own_process
from smelt.ir import scope
from smelt.ir.shapes.inference import ShapeInference
from smelt.runtime.inputs import random_inputs
from smelt.runtime.latency import interleaved_timings
from smelt.runtime.session import STOP_SPINNING
from smelt.targets.ort import ort

SIZES = {"batch": 2, "images": 2, "length": 32, "past": 31, "total": 32}
"""Of the symbolic dims that exporters are told."""

TOLERANCE = 1e-3
COARSE = 5e-2
SHORT = {ir.DataType.FLOAT16, ir.DataType.BFLOAT16, ir.DataType.INT8, ir.DataType.UINT8}
"""Element types of models whose results may differ by ``COARSE``."""

REBUILT = 5
"""How often all sessions are made anew."""


def _for_onnx_runtime(proto: onnx.ModelProto) -> onnx.ModelProto:
    with tempfile.TemporaryDirectory() as folder:
        smelt.compile(proto, target=ort).save(folder)
        return onnx.load(next(Path(folder).glob("*.onnx")))


def _offline(proto: onnx.ModelProto) -> onnx.ModelProto:
    """What ONNX Runtime saves: of its extended level, for the highest depends on the machine."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    with tempfile.TemporaryDirectory() as folder:
        options.optimized_model_filepath = str(Path(folder) / "model.onnx")
        onnxruntime.InferenceSession(proto.SerializeToString(), options)
        return onnx.load(options.optimized_model_filepath)


def _transformers(proto: onnx.ModelProto) -> onnx.ModelProto:
    """What the optimizer for transformers in ONNX Runtime's package makes of it, as of a BERT."""
    from onnxruntime.transformers import optimizer

    return optimizer.optimize_model(proto, model_type="bert", opt_level=0).model


def _optimum(level: str) -> Simplify:
    """Return what optimum makes of a BERT at ``level``, from O1 to O4."""

    def optimize(proto: onnx.ModelProto) -> onnx.ModelProto:
        """Optimize by files, as optimum reads and writes them."""
        import transformers
        from optimum.onnxruntime import AutoOptimizationConfig, ORTOptimizer

        config = transformers.BertConfig()
        with tempfile.TemporaryDirectory() as folder:
            source, result = Path(folder) / "model.onnx", Path(folder) / level
            onnx.save(proto, source)
            config.save_pretrained(folder)
            wanted = AutoOptimizationConfig.with_optimization_level(level)
            ORTOptimizer([source], config).optimize(wanted, save_dir=result, file_suffix="")
            return onnx.load(next(result.glob("*.onnx")))

    return optimize


OPTIMUM = ("O1", "O2", "O3", "O4") if importlib.util.find_spec("optimum") else ()

TOOLS: dict[str, Simplify] = {
    "smelt onnx": smelt.optimize,
    "smelt ort": _for_onnx_runtime,
    **{name: run for name, run in PEERS.items() if importlib.util.find_spec(name)},
    "ort offline": _offline,
    "ort transformers": _transformers,
    **{f"optimum {level}": _optimum(level) for level in OPTIMUM},
}


def _optimized(tool: str, data: bytes) -> bytes:
    return TOOLS[tool](onnx.ModelProto.FromString(data)).SerializeToString()


def session_of(data: bytes, threads: int, optimized: bool = True) -> Any:
    """Return a session of ONNX Runtime on the CPU whose threads stop spinning after a run."""
    levels = onnxruntime.GraphOptimizationLevel
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 4
    options.add_session_config_entry(STOP_SPINNING, "1")
    options.graph_optimization_level = (
        levels.ORT_ENABLE_ALL if optimized else levels.ORT_DISABLE_ALL
    )
    return onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])


def tolerance_of(model: ir.Model) -> float:
    """Return how far results may differ, relative to their largest number: by element types."""
    values = (value for node in scope.nodes(model) for value in node.outputs)
    return COARSE if any(value.dtype in SHORT for value in values) else TOLERANCE


def is_wrong(
    results: list[np.ndarray], expected: list[np.ndarray], tolerance: float = TOLERANCE
) -> bool:
    """True if shapes, dtypes, non-finite elements or numbers beyond ``tolerance`` differ."""
    for result, right in zip(results, expected, strict=True):
        if result.shape != right.shape or result.dtype != right.dtype:
            return True
        limit = tolerance * np.max(np.abs(right), initial=1e-6, where=np.isfinite(right))
        if not np.allclose(result, right, rtol=0, atol=limit, equal_nan=True):
            return True
    return False


Optimized: TypeAlias = dict[str, bytes | str]
"""The model by tool, that of ``source`` as it came; text where a tool failed."""


def optimized(path: Path) -> Optimized:
    """Return the model at ``path`` after each tool."""
    source = path.read_bytes()
    return {"source": source} | {t: in_own_process(_optimized, t, source) for t in TOOLS}


def judge(
    models: Optimized, threads: int, rounds: int, sizes: dict[str, int]
) -> dict[str, str | float]:
    """By tool, the latency as a ratio to the source, or what is wrong; nodes as ``TOOL nodes``."""
    source = models["source"]
    assert isinstance(source, bytes)
    model = smelt.load(source)
    values = random_inputs(model, sizes)
    feeds = {str(v.name): x for v, x in zip(model.graph.inputs, values, strict=True)}
    expected = session_of(source, threads, optimized=False).run(None, feeds)
    ShapeInference(model).infer_model()
    tolerance = tolerance_of(model)
    row: dict[str, str | float] = {}
    right: dict[str, bytes] = {}
    for tool, data in models.items():
        if isinstance(data, str):
            row[tool] = f"failed: {data}"
            continue
        row[f"{tool} nodes"] = len(onnx.ModelProto.FromString(data).graph.node)
        try:
            results = session_of(data, threads).run(None, feeds)
        except Exception as error:  # noqa: BLE001 - ONNX Runtime raises a type for each status
            row[tool] = f"fails: {str(error).splitlines()[0][:60]}"
            continue
        if is_wrong(results, expected, tolerance):
            row[tool] = "wrong"
            continue
        right[tool] = data
    least = least_seconds(right, feeds, threads, rounds)
    row |= {tool: seconds / least["source"] for tool, seconds in least.items()}
    return row


def least_seconds(
    models: dict[str, bytes], feeds: dict[str, Any], threads: int, rounds: int
) -> dict[str, float]:
    """The shortest run of each, over sessions made ``REBUILT`` times in random order.

    Where a session's weights come to lie in memory moves small models by more than any optimizer.
    """
    clock = time.process_time if threads == 1 else time.perf_counter
    least = dict.fromkeys(models, math.inf)
    order = list(models)
    for seed in range(REBUILT):
        random.Random(seed).shuffle(order)
        sessions = [session_of(models[tool], threads) for tool in order]
        runs = [lambda session=session: session.run(None, feeds) for session in sessions]
        timings = interleaved_timings(runs, rounds=max(3, rounds // REBUILT), clock=clock)
        for tool, timing in zip(order, timings, strict=True):
            least[tool] = min(least[tool], timing.minimum)
    return least


def table(rows: dict[str, dict[str, str | float]]) -> str:
    """Markdown: nodes and latency of each tool by model, and the geometric means."""
    lines = ["| | source |" + "".join(f" {tool} |" for tool in TOOLS)]
    lines.append("|---|" + "---|" * (len(TOOLS) + 1))
    for name, row in rows.items():
        cells = [f"{row['source nodes']}"]
        for tool in TOOLS:
            ratio = row.get(tool, "")
            shown = f"{ratio:.2f}" if isinstance(ratio, float) else ratio.split(":")[0]
            cells.append(f"{row.get(f'{tool} nodes', '')} · {shown}")
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    means = []
    for tool in TOOLS:
        ratios = [r if isinstance(r := row.get(tool), float) else 1.0 for row in rows.values()]
        means.append(f"{geometric_mean(ratios):.3f}, at most {max(ratios):.2f}")
    lines.append("| latency | 1 | " + " | ".join(means) + " |")
    for name, row in rows.items():
        lines += [f"\n{name}, {t}: {r}" for t in TOOLS if isinstance(r := row.get(t), str)]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="*")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--batch", type=int, default=SIZES["batch"])
    parser.add_argument("--dim", action="append", default=[], metavar="NAME=SIZE")
    options = parser.parse_args()
    others = {name: int(size) for name, size in (each.split("=") for each in options.dim)}
    sizes = SIZES | {"batch": options.batch, "images": options.batch} | others
    rows: dict[str, dict[str, str | float]] = {}
    for path in sorted(options.folder.glob("*.onnx")):
        if fnmatch.fnmatch(path.stem, options.only):
            rows[path.stem] = judge(optimized(path), options.threads, options.rounds, sizes)
            print(f"{path.stem} is measured", flush=True)
    print(table(rows))


if __name__ == "__main__":
    main()
