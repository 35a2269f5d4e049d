"""``python -m random_graphs.loop_trials START STOP``: random loops, held against ONNX Runtime.

Each model is optimized, and compiled for every target, at two sizes. A refusal with a code is no
failure; refusals are counted by code. The C of ``CHUNK`` models is one library, whose compiler
flags ``--flags`` gives.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import onnx_ir as ir
from c_library import build_together
from random_graphs.loops import loop_text

import smelt
from smelt.errors import ErrorList, SmeltError, Unsupported
from smelt.native.interface_file import bounds_of
from smelt.runtime.c_library import CLibrary
from smelt.runtime.interface import interface_of
from smelt.runtime.onnxruntime import OnnxRuntime

SIZES = ({"N": 2, "M": 3}, {"N": 4, "M": 1})
WAYS = ("optimize", "dims", "onnx", "ort", "numpy", "native", "c")
INVALID = "invalid"
CHUNK = 50
CLOSE = 1e-4

Arrays = Sequence[np.ndarray]
Run = Callable[..., Arrays]


@dataclass
class Trial:
    """One model, what it is run on, and what ONNX Runtime gives for that."""

    seed: int
    inputs: list[list[np.ndarray]] = field(default_factory=list)
    expected: list[Arrays] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.sizes: Sequence[dict[str, int]] = SIZES
        self.draw()
        runtime = OnnxRuntime(self.model())
        for sizes in self.sizes:
            self.inputs.append(self._drawn(sizes))
            self.expected.append(runtime(*self.inputs[-1]))

    def draw(self) -> None:
        """Draw the source and, if it has its own, its sizes."""
        self.text = loop_text(self.seed)

    def model(self) -> ir.Model:
        """The source, to be edited."""
        return ir.from_onnx_text(self.text)

    def dims(self, sizes: dict[str, int]) -> dict[str, int]:
        """Those of ``sizes`` that the model has names for."""
        shapes = [value.shape for value in self.model().graph.inputs if value.shape is not None]
        names = {dim.value for shape in shapes for dim in shape if isinstance(dim, ir.SymbolicDim)}
        return {name: size for name, size in sizes.items() if name in names}

    def _drawn(self, sizes: dict[str, int]) -> list[np.ndarray]:
        rng = np.random.default_rng(self.seed)
        arrays = []
        for value in self.model().graph.inputs:
            assert value.shape is not None
            shape = [dim if isinstance(dim, int) else sizes[str(dim)] for dim in value.shape]
            arrays.append(self.drawn(value, shape, rng))
        return arrays

    def drawn(self, value: ir.Value, shape: list[int], rng: np.random.Generator) -> np.ndarray:
        """The array given for one input."""
        assert value.dtype is not None
        count = value.dtype == ir.DataType.INT64
        drawn = rng.integers(1, 5) if count else rng.normal(size=shape)
        return np.asarray(drawn, value.dtype.numpy())

    def differences(self, which: int, actual: Arrays) -> list[str]:
        """Where the run at one of the two sizes is not what ONNX Runtime gave."""
        found = []
        for index, (x, y) in enumerate(zip(self.expected[which], actual, strict=True)):
            if x.shape != y.shape:
                found.append(f"output {index} at {self.sizes[which]}: {y.shape} for {x.shape}")
            elif not np.allclose(x, y, CLOSE, CLOSE, equal_nan=True):
                found.append(f"output {index} at {self.sizes[which]}: off by {np.abs(x - y).max()}")
        return found


def runs_of(trial: Trial, way: str) -> Iterator[Run]:
    """What runs the model of ``trial`` at each of the two sizes, in one of ``WAYS`` but ``c``."""
    if way == "dims":
        for sizes in trial.sizes:
            yield smelt.compile(trial.model(), target="onnx", dims=trial.dims(sizes))
        return
    if way == "optimize":
        run: Run = OnnxRuntime(smelt.optimize(trial.model()))
    else:
        options = {"engine": way} if way in ("numpy", "native") else {}
        run = smelt.compile(trial.model(), target="host" if options else way, **options)
    yield from [run] * len(trial.sizes)


def problems(trial: Trial, way: str) -> list[str]:
    """What is wrong in one way at both sizes. Raises SmeltError for what is refused."""
    found = []
    for which, run in enumerate(runs_of(trial, way)):
        found += trial.differences(which, run(*trial.inputs[which]))
    return found


def c_problems(trials: Sequence[Trial], flags: Sequence[str]) -> Iterator[tuple[int, object]]:
    """The seed, and what is wrong or the refusal, of each model at both sizes in one library."""
    artifacts: dict[tuple[int, int], smelt.Artifact] = {}
    for trial in trials:
        for which, sizes in enumerate(trial.sizes):
            try:
                artifacts[trial.seed, which] = smelt.compile(
                    trial.model(),
                    target="c",
                    dims=trial.dims(sizes),
                    name=f"m{trial.seed}_{which}",
                )
            except Exception as error:  # noqa: BLE001 - a crash is what is looked for
                yield trial.seed, error
    files = {name: data for each in artifacts.values() for name, data in each.files.items()}
    by_seed = {trial.seed: trial for trial in trials}
    with tempfile.TemporaryDirectory() as folder:
        library = build_together(files, Path(folder), flags)
        for (seed, which), artifact in artifacts.items():
            run = _runner(artifact, library, f"m{seed}_{which}_run")
            try:
                trial = by_seed[seed]
                yield seed, trial.differences(which, run(*trial.inputs[which]))
            except Exception as error:  # noqa: BLE001 - a crash is what is looked for
                yield seed, error


def _runner(artifact: smelt.Artifact, library: Path, function: str) -> CLibrary:
    program, memory = artifact.plan.steps, artifact.plan.memory
    return CLibrary(
        library,
        function,
        interface_of(artifact.model),
        max(memory.arena_bytes, 1),
        memory.alignment,
        sizes=bounds_of(program.input_sizes),
        lengths=bounds_of(program.returned_sizes),
    )


def outcomes(
    seeds: Sequence[int],
    ways: Sequence[str],
    flags: Sequence[str],
    make: Callable[[int], Trial] = Trial,
) -> Iterator[tuple]:
    """The seed, the way, and what is wrong or the error, of the models that ``make`` draws.

    A draw that ONNX Runtime refuses is no model: its only outcome has the way ``INVALID``.
    """
    trials = []
    for seed in seeds:
        try:
            trials.append(make(seed))
        except SmeltError as error:
            yield seed, INVALID, error
    for trial in trials:
        for way in ways:
            try:
                found: object = problems(trial, way) if way != "c" else []
            except Exception as error:  # noqa: BLE001 - a crash is what is looked for
                found = error
            yield trial.seed, way, found
    if "c" in ways:
        for seed, found in c_problems(trials, flags):
            yield seed, "c", found


def refusal(error: object) -> str:
    """The code and the reason of an error that refuses a model; empty for others."""
    first = error.errors[0] if isinstance(error, ErrorList) else error
    refuses = isinstance(first, Unsupported)
    return f"{first.code} {first.what} ({first.why})"[:150] if refuses else ""


def run_trials(description: str | None, make: Callable[[int], Trial]) -> int:
    """The command line: tries the models of ``make``, prints what is wrong; 1 if anything is."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("start", type=int)
    parser.add_argument("stop", type=int)
    parser.add_argument("--ways", default=",".join(WAYS))
    parser.add_argument("--flags", default="-std=c99 -O1 -DSMELT_NO_DISPATCH")
    given = parser.parse_args()
    wrong: dict[str, set[int]] = {way: set() for way in WAYS}
    invalid: list[int] = []
    refused: Counter[tuple[str, str]] = Counter()
    for start in range(given.start, given.stop, CHUNK):
        seeds = range(start, min(start + CHUNK, given.stop))
        for seed, way, found in outcomes(seeds, given.ways.split(","), given.flags.split(), make):
            if way == INVALID:
                invalid.append(seed)
            elif reason := refusal(found):
                refused[way, reason] += 1
            elif found:
                wrong[way].add(seed)
                what = found if isinstance(found, list) else _traceback(found)
                print(f"seed {seed}, {way}: {what}", flush=True)
        print(f"seeds up to {seeds.stop} are done", flush=True)
    seeds_wrong = {way: sorted(found) for way, found in wrong.items() if found}
    print(f"{given.stop - given.start} seeds, wrong: {seeds_wrong}, invalid: {invalid}")
    for (way, reason), count in refused.most_common(30):
        print(f"{count:6} {way}: {reason}")
    return 1 if seeds_wrong else 0


def _traceback(error: BaseException) -> str:
    return "".join(traceback.format_exception(error)[-4:])


if __name__ == "__main__":
    sys.exit(run_trials(__doc__, Trial))
