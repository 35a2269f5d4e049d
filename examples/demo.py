"""smelt on nine real models, in one table: ``python -m examples.demo``.

Optimizes two flax models and five architectures that ship inside the ``onnx`` package, compiles two
flax models to C, and compares every result with its source. Files go to ``build/demo``. A second
call reads the rows of the first from ``report.json`` there, unless smelt or a package has changed.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from hashlib import sha256
from importlib import import_module, metadata
from pathlib import Path
from typing import Any

import onnx
import onnx_ir as ir

import smelt
from smelt.candidate import RunSettings, candidate
from smelt.check.compare import error_in_words
from smelt.cli.layout import table
from smelt.cli.progress import progress
from smelt.passes.run import count_nodes
from smelt.runtime.inputs import random_inputs
from smelt.runtime.latency import Timing, interleaved_timings
from smelt.targets.runner import at_full_speed

OUTPUT = Path("build/demo")
REPORT = OUTPUT / "report.json"
LIGHT = Path(onnx.__file__).parent / "backend/test/data/light"
PACKAGES = ("onnx", "onnx-ir", "onnxruntime", "numpy", "jax", "flax")
ROUNDS, SECONDS = 60, 3.0

FROM_JAX = {
    "cnn (flax)": ("examples.cnn", "f32[B,28,28,1]"),
    "transformer (flax)": ("examples.transformer", "i32[B,32]"),
}
FROM_ONNX = ("squeezenet", "shufflenet", "resnet50", "densenet121", "inception_v1")
FREEZE = "freeze-defaults,const-elimination{grow-limit=1000000000}"
TO_C = {
    "mlp (flax)": ("examples.mlp", "f32[B,16]"),
    "small cnn (flax)": ("examples.small_cnn", "f32[B,16,16,1]"),
}


@dataclass(frozen=True)
class Row:
    """One model: its nodes, the CPU seconds of smelt, the error, and times relative to the source.

    ``times`` are the median ratios of interleaved runs on one thread, in CPU time. ``noise`` names
    those that do not differ from the source by more than the noise.
    """

    model: str
    nodes: tuple[int, int]
    seconds: float
    error: str
    agrees: bool
    times: Mapping[str, float]
    noise: tuple[str, ...]
    arena_bytes: int = 0


def from_jax(name: str) -> Row:
    """Optimize a flax model with a symbolic batch; compare it with JAX at two batch sizes."""
    module, spec = FROM_JAX[name]
    function = import_module(module).model
    started = time.process_time()
    traced = smelt.trace(function, spec)
    optimized = smelt.optimize(traced)
    seconds = time.process_time() - started
    smelt.save(optimized, OUTPUT / f"{module.rpartition('.')[2]}.onnx")
    report = smelt.verify(function, optimized, dims={"B": (1, 3)})
    return _row(name, traced, optimized, seconds, report)


def from_onnx(name: str) -> Row:
    """Optimize an architecture of the onnx package; compare it with its file."""
    # These files list all weights as inputs and make them by ConstantOfShape: frozen and folded
    # they are the architectures as a framework would export them.
    source = smelt.optimize(LIGHT / f"light_{name}.onnx", pipeline=FREEZE)
    started = time.process_time()
    optimized = smelt.optimize(source)
    seconds = time.process_time() - started
    smelt.save(optimized, OUTPUT / f"{name}.onnx")
    return _row(f"{name} (onnx)", source, optimized, seconds, smelt.verify(source, optimized))


def to_c(name: str) -> Row:
    """Compile a flax model to C at batch 1, build it, run it, and compare it with JAX."""
    module, spec = TO_C[name]
    function = import_module(module).model
    started = time.process_time()
    traced = smelt.trace(function, spec)
    artifact = smelt.compile(traced, target="c", dims={"B": 1})
    seconds = time.process_time() - started
    folder = OUTPUT / module.rpartition(".")[2]
    artifact.save(folder)
    report = smelt.verify(function, artifact, inputs=random_inputs(artifact.model, {}, seed=1))
    row = _row(name, traced, smelt.optimize(traced), seconds, report, ("c",))
    return Row(**{**asdict(row), "arena_bytes": int(artifact.report["arena_bytes"])})


def _row(
    name: str,
    source: ir.Model,
    result: ir.Model,
    seconds: float,
    report: Any,
    targets: tuple[str, ...] = ("", "host"),
) -> Row:
    """Return the row of a model; no target is ONNX Runtime, which runs the result."""
    timings = _times(source, result, targets)
    return Row(
        name,
        (count_nodes(source), count_nodes(result)),
        seconds,
        error_in_words(report.worst),
        report.ok,
        {target: timing.ratio for target, timing in timings.items()},
        tuple(target for target, timing in timings.items() if not timing.differs),
    )


def _times(source: ir.Model, result: ir.Model, targets: tuple[str, ...]) -> dict[str, Timing]:
    """Time ``result`` in ONNX Runtime or compiled, taking turns with ``source`` at batch 1."""
    settings = RunSettings(optimized=True)
    sides = [candidate(source, "source", settings=settings)]
    sides += [candidate(result, "result", target or None, settings=settings) for target in targets]
    assert sides[0].interface is not None
    sizes = dict.fromkeys(sides[0].interface.symbols(), 1)
    inputs = random_inputs(source, sizes)
    runs: list[Callable[[], object]] = []
    for side in sides:
        run = side.open(sizes)
        at_full_speed(run)(*inputs)
        runs.append(partial(run, *inputs))
    timings = interleaved_timings(runs, rounds=ROUNDS, seconds=SECONDS, clock=time.process_time)
    return dict(zip(targets, timings[1:], strict=True))


def rows() -> Iterator[Row]:
    """Yield the row of each model; those of an earlier call with the same software are read."""
    jobs: dict[str, Callable[[str], Row]] = {
        **dict.fromkeys(FROM_JAX, from_jax),
        **dict.fromkeys(FROM_ONNX, from_onnx),
        **dict.fromkeys(TO_C, to_c),
    }
    known, stamp = {}, software()
    if REPORT.exists():
        report = json.loads(REPORT.read_text())
        known = report["rows"] if report.get("software") == stamp else {}
    with progress("") as shown:
        for name, job in jobs.items():
            shown.say(f"{name}: {len(known)} of {len(jobs)} done")
            if name not in known:
                known[name] = asdict(job(name))
                text = json.dumps({"software": stamp, "rows": known}, indent=1)
                REPORT.write_text(text)
            yield Row(**known[name])


def software() -> str:
    """Return a hash of smelt's files, this file, and the versions of the packages beside them."""
    whole = sha256()
    files = sorted(Path(smelt.__file__).parent.rglob("*.py"))
    for file in (*files, *sorted(Path(__file__).parent.glob("*.py"))):
        whole.update(file.read_bytes())
    whole.update(" ".join([sys.version, *map(metadata.version, PACKAGES)]).encode())
    return whole.hexdigest()


def shown(row: Row) -> tuple[str, ...]:
    """Return the cells of ``row``: model, nodes, times, CPU seconds of smelt, error."""
    before, after = row.nodes
    return (
        row.model,
        f"{before} -> {after}",
        *(_time(row, target) for target in ("", "host", "c")),
        f"{row.seconds:.1f}",
        row.error if row.agrees else f"DIFFERS: {row.error}",
    )


def _time(row: Row, target: str) -> str:
    """Return the time relative to the source; ``same`` if the difference is within the noise."""
    if target not in row.times:
        return ""
    return "same" if target in row.noise else f"{row.times[target]:.2f}"


def main() -> int:
    """Print the table and what to try next; 0 if every result agrees with its source, else 1."""
    OUTPUT.mkdir(parents=True, exist_ok=True)
    made = list(rows())
    header = ("model", "nodes", "ort", "host", "c", "smelt s", "compared with the source")
    print(table([shown(row) for row in made], header, limit=100))
    print(
        "\nort, host, c: time of the result, where the source in ONNX Runtime takes 1.00 (CPU time"
        "\non one thread, batch 1, interleaved runs). smelt s: CPU seconds of smelt."
    )
    for row in made:
        if row.arena_bytes:
            print(f"{row.model} as C needs {row.arena_bytes:,} bytes of memory for a run.")
    print(
        f"\nThe models are in {OUTPUT}/. Next, your own:\n"
        "  smelt optimize model.onnx -o out.onnx --verify final --report report.html\n"
        "  smelt bench model.onnx out.onnx out.onnx@host"
    )
    return 0 if all(row.agrees for row in made) else 1


if __name__ == "__main__":
    sys.exit(main())
