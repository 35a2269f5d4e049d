"""Models whose sizes each run has of its own, in one C library, compared with ONNX Runtime."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import onnx_ir as ir
from c_library import STRICT, assert_same, build_together, with_values

import smelt
from smelt.native.interface_file import bounds_of
from smelt.runtime.c_library import CLibrary
from smelt.runtime.interface import Interface, interface_of
from smelt.runtime.onnxruntime import OnnxRuntime
from smelt.runtime.run_bounds import shape_in
from smelt.targets.base import Artifact


@dataclass(frozen=True)
class Sized:
    """A graph in ONNX text, the bounds of its dims, and the inputs that are initializers."""

    graph: str
    bounds: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    values: Mapping[str, np.ndarray] = field(default_factory=dict)

    @property
    def model(self) -> ir.Model:
        return with_values(self.graph, 19, self.values)

    def compile(self, **options: object) -> Artifact:
        return smelt.compile(self.model, target="c", dims=dict(self.bounds), **options)

    def trials(self, count: int = 4) -> list[dict[str, int]]:
        """The smallest and the largest sizes, and others between."""
        rng = np.random.default_rng(3)
        between = [
            {name: int(rng.integers(low, high + 1)) for name, (low, high) in self.bounds.items()}
            for _ in range(count)
        ]
        ends = [{name: ends[side] for name, ends in self.bounds.items()} for side in (0, 1)]
        return ends + between


def weights(seed: int = 0, **shapes: tuple[int, ...]) -> dict[str, np.ndarray]:
    """Random floats by name."""
    rng = np.random.default_rng(seed)
    return {
        name: rng.standard_normal(shape).astype(np.float32) / 2 for name, shape in shapes.items()
    }


class SizedLibrary:
    """``models`` compiled by smelt, then by the C compiler in one go."""

    def __init__(self, models: Mapping[str, Sized], flags=STRICT) -> None:
        self.models = models
        self.artifacts = {
            name: sized.compile(name=f"m{number}")
            for number, (name, sized) in enumerate(models.items())
        }
        files = {
            name: data for each in self.artifacts.values() for name, data in each.files.items()
        }
        self._folder = tempfile.TemporaryDirectory()
        library = build_together(files, Path(self._folder.name), flags)
        self._runners = {
            name: _runner(artifact, library, f"m{number}_run")
            for number, (name, artifact) in enumerate(self.artifacts.items())
        }
        self._references: dict[str, OnnxRuntime] = {}

    def interface(self, name: str) -> Interface:
        return interface_of(self.artifacts[name].model)

    def inputs(self, name: str, sizes: Mapping[str, int], seed: int = 0) -> list[np.ndarray]:
        """Random arrays: floats between -2 and 2, integers from 0 to 3, booleans."""
        rng = np.random.default_rng(seed)
        arrays = []
        for port in self.interface(name).inputs:
            shape, dtype = shape_in(port, sizes), port.dtype.numpy()
            drawn = rng.uniform(-2, 2, shape) if dtype.kind == "f" else rng.integers(0, 4, shape)
            arrays.append(np.asarray(drawn % 2 if dtype.kind == "b" else drawn).astype(dtype))
        return arrays

    def check(self, name: str, sizes: Mapping[str, int], seed: int = 0) -> None:
        """The results are those of ONNX Runtime, with its sizes."""
        inputs = self.inputs(name, sizes, seed)
        got = self._runners[name](*inputs)
        for mine, theirs in zip(got, self._reference(name)(*inputs), strict=True):
            assert_same(mine, np.asarray(theirs), rtol=1e-4, atol=1e-5)

    def _reference(self, name: str) -> OnnxRuntime:
        """The session of a model, which all of its sizes share."""
        if name not in self._references:
            self._references[name] = OnnxRuntime(self.models[name].model)
        return self._references[name]

    def run(self, name: str, *inputs: np.ndarray) -> tuple[np.ndarray, ...]:
        return self._runners[name](*inputs)


def _runner(artifact: Artifact, library: Path, function: str) -> CLibrary:
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
