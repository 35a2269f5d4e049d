"""The main job on real input, and one table of what became of it: ``python -m examples.demo``.

Traces flax models, optimizes them and the architectures that ship inside the ``onnx`` package,
compiles two models to C, and compares every result with its source. Files go to ``build/demo``.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
from rich.console import Console
from rich.table import Table

import smelt
from smelt.passes.run import count_nodes
from smelt.runtime.inputs import random_inputs
from smelt.runtime.interface import interface_of
from smelt.runtime.latency import measure_latency

OUTPUT = Path("build/demo")
LIGHT = Path(onnx.__file__).parent / "backend/test/data/light"
SIZES = (1, 3)

FROM_JAX = {
    "cnn (flax)": ("examples.cnn", "f32[B,28,28,1]"),
    "transformer (flax)": ("examples.transformer", "i32[B,32]"),
}
FROM_ONNX = ("squeezenet", "shufflenet", "resnet50", "densenet121", "inception_v1")
FREEZE = "freeze-defaults,const-elimination{grow-limit=1000000000}"
TO_C = {
    "mlp (C)": ("examples.mlp", "f32[B,16]"),
    "small cnn (C)": ("examples.small_cnn", "f32[B,16,16,1]"),
}


@dataclass
class Row:
    """One model. Latencies are milliseconds, ``seconds`` CPU seconds of trace and optimize."""

    model: str
    nodes_before: int
    nodes_after: int
    seconds: float
    ulp: float
    error: float
    agrees: bool
    latency_before: float | None = None
    latency_after: float | None = None
    arena_bytes: int | None = None


def jax_rows() -> Iterator[Row]:
    """JAX functions with a symbolic batch, compared with JAX itself at two batch sizes."""
    for name, (module, spec) in FROM_JAX.items():
        fn = _model_of(module)
        started = time.process_time()
        traced = smelt.trace(fn, spec)
        optimized = smelt.optimize(traced)
        seconds = time.process_time() - started
        smelt.save(optimized, OUTPUT / f"{module.rsplit('.', 1)[1]}.onnx")
        report = smelt.verify(fn, optimized, dims={"B": SIZES})
        before, after = _latency(traced, optimized)
        yield Row(
            name,
            count_nodes(traced),
            count_nodes(optimized),
            seconds,
            report.worst.ulp,
            report.worst.error,
            report.ok,
            before,
            after,
        )


def onnx_rows() -> Iterator[Row]:
    """Architectures of the onnx package, compared with their files."""
    for name in FROM_ONNX:
        # These files list all weights as inputs and make them by ConstantOfShape: frozen and folded
        # they are the architectures as a framework would export them.
        source = smelt.optimize(LIGHT / f"light_{name}.onnx", pipeline=FREEZE)
        started = time.process_time()
        optimized = smelt.optimize(source)
        seconds = time.process_time() - started
        smelt.save(optimized, OUTPUT / f"{name}.onnx")
        report = smelt.verify(source, optimized)
        before, after = _latency(source, optimized)
        yield Row(
            f"{name} (onnx)",
            count_nodes(source),
            count_nodes(optimized),
            seconds,
            report.worst.ulp,
            report.worst.error,
            report.ok,
            before,
            after,
        )


def c_rows() -> Iterator[Row]:
    """JAX functions compiled to C, built with the C compiler, run, compared with JAX."""
    for name, (module, spec) in TO_C.items():
        fn = _model_of(module)
        started = time.process_time()
        traced = smelt.trace(fn, spec)
        artifact = smelt.compile(traced, target="c", dims={"B": 1})
        seconds = time.process_time() - started
        artifact.save(OUTPUT / module.rsplit(".", 1)[1])
        report = smelt.verify(fn, artifact, inputs=random_inputs(artifact.model, {}, seed=1))
        before, after = _latency(traced, artifact)
        yield Row(
            name,
            count_nodes(traced),
            count_nodes(artifact.model),
            seconds,
            report.worst.ulp,
            report.worst.error,
            report.ok,
            before,
            after,
            int(artifact.report["arena_bytes"]),
        )


def _model_of(module: str) -> Callable[..., object]:
    from importlib import import_module

    fn: Callable[..., object] = import_module(module).model
    return fn


def _latency(before: ir.Model, after: ir.Model | smelt.Artifact) -> tuple[float, float]:
    """Milliseconds of one run at batch 1, taking turns in one process."""
    symbols = interface_of(before).symbols()
    inputs = random_inputs(before, dict.fromkeys(symbols, 1))
    if isinstance(after, ir.Model):
        first, second = measure_latency([before, after], inputs)
        return 1e3 * first, 1e3 * second
    [first] = measure_latency([before], inputs)
    return 1e3 * first, 1e3 * _median_time(after, inputs)


def _median_time(artifact: smelt.Artifact, inputs: list[np.ndarray]) -> float:
    times = []
    for _ in range(21):
        started = time.perf_counter()
        artifact(*inputs)
        times.append(time.perf_counter() - started)
    return sorted(times)[len(times) // 2]


def show(rows: list[Row]) -> None:
    """The table, on stdout."""
    table = Table(title="what smelt made of them")
    for heading in ("model", "nodes", "compile s", "error", "ulp", "ms before", "ms after"):
        table.add_column(heading, justify="left" if heading == "model" else "right")
    table.add_column("arena bytes", justify="right")
    table.add_column("result")
    for row in rows:
        table.add_row(
            row.model,
            f"{row.nodes_before} -> {row.nodes_after}",
            f"{row.seconds:.2f}",
            f"{row.error:.1e}",
            f"{row.ulp:.2g}",
            "" if row.latency_before is None else f"{row.latency_before:.3f}",
            "" if row.latency_after is None else f"{row.latency_after:.3f}",
            "" if row.arena_bytes is None else f"{row.arena_bytes:,}",
            "same" if row.agrees else "DIFFERS",
        )
    Console(width=max(Console().width, 120)).print(table)


def main() -> int:
    """Exit status 0 if every result agrees with its source, else 1."""
    OUTPUT.mkdir(parents=True, exist_ok=True)
    rows = [*jax_rows(), *onnx_rows(), *c_rows()]
    (OUTPUT / "report.json").write_text(json.dumps([asdict(row) for row in rows], indent=1))
    show(rows)
    print(f"files and report.json are in {OUTPUT}/")
    return 0 if all(row.agrees for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
