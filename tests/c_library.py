"""Many models in one C library, each run between guard bytes and compared with ONNX Runtime."""

from __future__ import annotations

import ctypes
import re
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx_ir as ir

from smelt.errors import InternalError
from smelt.ir import text
from smelt.ir.constants import Constants
from smelt.ir.rewrite import Rewriter
from smelt.ir.shapes.inference import ShapeInference
from smelt.ir.tensors.packed import packed, unpacked
from smelt.ir.worklist import Worklist
from smelt.runtime.c_library import build
from smelt.runtime.onnxruntime import OnnxRuntime
from smelt.targets.base import Artifact, Plan
from smelt.targets.c import c
from smelt.targets.options import read_options
from smelt.targets.registry import find_target

STRICT = (
    *("-std=c99", "-Og", "-Wall", "-Wextra", "-pedantic", "-Wshadow", "-Wconversion"),
    *("-Werror", "-DSMELT_NO_DISPATCH"),
)
"""Values and warnings are judged here, not speed: GCC takes 0.6 of the time that it takes at -O1."""

GUARD = 256


def compile_c(model: ir.Model, **options: object) -> Artifact:
    """The phases of the target on ``model``, which is edited; no optimizing passes before them."""
    find_target(c)
    shapes = ShapeInference(model)
    shapes.infer_model()
    Worklist(Rewriter(model, shapes, Constants()), c.select).run()
    plan = Plan(model, read_options(c, options))
    c.schedule(plan)
    c.allocate(plan)
    return c.emit(plan)


def compile_text(graph: str, opset: int = 23, **options: object) -> Artifact:
    """The artifact of a graph in ONNX text."""
    return compile_c(text.parse(graph, opset), **options)


def with_constants(graph: str, opset: int, names: str) -> ir.Model:
    """The model of ``graph`` whose inputs called as in ``names`` are initializers."""
    model = text.parse(graph, opset)
    arrays = random_inputs(model, seed=1)
    for value, array in list(zip(model.graph.inputs, arrays, strict=True)):
        if value.name in names.split():
            value.const_value = ir.Tensor(array)
            model.graph.inputs.remove(value)
            model.graph.register_initializer(value)
    return model


def with_values(graph: str, opset: int, values: Mapping[str, np.ndarray]) -> ir.Model:
    """The model of ``graph`` whose inputs that ``values`` name are initializers."""
    model = text.parse(graph, opset)
    for value in list(model.graph.inputs):
        if value.name in values:
            value.const_value = ir.Tensor(np.asarray(values[value.name]), name=value.name)
            model.graph.inputs.remove(value)
            model.graph.register_initializer(value)
    return model


def ops(artifact: Artifact) -> list[str]:
    """The instructions that the artifact runs."""
    return [instruction.op for instruction in artifact.plan.steps.instructions]


def joined(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """``files`` with one text that includes the weights of all models.

    A compiler is started for each text, and most models of tests have few weights or none.
    """
    weights = {
        name: name.removesuffix(".c") + ".inc"
        for name, data in files.items()
        if name.endswith("_weights.c") and b".incbin" not in data
    }
    every = "".join(f'#include "{name}"\n' for name in weights.values())
    given = {weights.get(name, name): data for name, data in files.items()}
    return given | ({"weights.c": every.encode()} if weights else {})


_STATIC = re.compile(
    r"^static\b[^;={(]*?\b(\w+)\(|^static\b[^;=(]*?\b(\w+)(?:\[|\s*=|;)"
    r"|^\s*typedef\b[^;{]*?\b(\w+)\s*(?:__attribute__|\[|;)",
    re.MULTILINE,
)
"""The names of functions, arrays and types that a text of C keeps to itself."""
_MACRO = re.compile(r"^\s*#\s*define\s+(\w+)", re.MULTILINE)


def one_text(files: Mapping[str, bytes], flags: Sequence[str]) -> dict[str, bytes]:
    """``files`` with one text that includes those of all models, whose static names get prefixes.

    To start the compiler takes four fifths of its time for a model of tests. Macros of a model end
    with it, but for those that ``flags`` define.
    """
    kept = {flag[2:].partition("=")[0] for flag in flags if flag.startswith("-D")}
    given = joined(files)
    texts = [name for name in given if name.endswith(".c") and "weights" not in name]
    lines = []
    for name in texts:
        stem, code = name.removesuffix(".c"), given.pop(name).decode()
        own = {found for each in _STATIC.findall(code) for found in each if found}
        own = {found for found in own if not found.startswith(f"{stem}_")}
        if own:
            code = re.sub(rf"\b({'|'.join(sorted(own))})\b", rf"{stem}_\1", code)
        given[f"{stem}.inc"] = code.encode()
        macros = sorted(set(_MACRO.findall(code)) - kept)
        lines += [f'#include "{stem}.inc"', *(f"#undef {macro}" for macro in macros)]
    return given | {"models.c": "\n".join([*lines, ""]).encode()}


def build_together(files: Mapping[str, bytes], folder: Path, flags: Sequence[str]) -> Path:
    """The library of the models in ``files``: of one text if it compiles, else of one for each.

    Versions of a model for several CPUs are texts that include themselves, which stay apart.
    """
    if "-DSMELT_NO_DISPATCH" in flags:
        with suppress(InternalError):
            return build(one_text(files, flags), folder, flags)
    return build(joined(files), folder, flags)


@dataclass
class Built:
    """One model in the library."""

    source: ir.Model
    artifact: Artifact
    function: str


class Library:
    """Graphs in ONNX text by name, compiled by smelt and then by the C compiler, in one go.

    Inputs called as in ``constant`` become initializers; those of a graph that ``values`` have,
    too. ``options`` are those of the target.
    """

    def __init__(
        self,
        graphs: Mapping[str, str],
        opset: int = 23,
        flags=STRICT,
        constant: str = "",
        values: Mapping[str, Mapping[str, np.ndarray]] | None = None,
        **options: object,
    ) -> None:
        files: dict[str, bytes] = {}
        self.graphs, self.opset, self.constant = graphs, opset, constant
        self.models: dict[str, Built] = {}
        for number, (name, graph) in enumerate(graphs.items()):
            if values is None:
                sources = [with_constants(graph, opset, constant) for _ in range(2)]
            else:
                sources = [with_values(graph, opset, values[name]) for _ in range(2)]
            source, copy = sources
            artifact = compile_c(copy, name=f"m{number}", **options)
            files.update(artifact.files)
            self.models[name] = Built(source, artifact, f"m{number}_run")
        self._folder = tempfile.TemporaryDirectory()
        self._library = ctypes.CDLL(str(build_together(files, Path(self._folder.name), flags)))

    def run(self, name: str, inputs: list[np.ndarray]) -> list[np.ndarray]:
        """Run in garbage-filled memory; nothing around the outputs and the arena may change."""
        built = self.models[name]
        program, memory = built.artifact.plan.steps, built.artifact.plan.memory
        slots = [program.slots[slot] for slot in program.outputs]
        blocks = [_block(slot.nbytes) for slot in slots]
        arena = _block(memory.arena_bytes)
        types = [program.slots[slot].dtype for slot in program.inputs]
        arrays = [packed(np.ascontiguousarray(a), t) for a, t in zip(inputs, types, strict=True)]
        kept = [array.copy() for array in arrays]
        run = getattr(self._library, built.function)
        run.argtypes = (ctypes.c_void_p,) * 3
        status = run(
            _pointers([array.ctypes.data for array in arrays]),
            _pointers([_inside(block) for block in blocks]),
            _inside(arena),
        )
        assert status == 0, f"status {status}"
        for before, after in zip(kept, arrays, strict=True):
            assert before.tobytes() == after.tobytes(), "an input was written"
        _check_guard(arena, memory.arena_bytes)
        results = []
        for slot, block in zip(slots, blocks, strict=True):
            _check_guard(block, slot.nbytes)
            start = _inside(block) - block.ctypes.data
            data = block[start : start + slot.nbytes].copy()
            results.append(unpacked(data, slot.dtype, slot.shape))
        return results

    def check(self, name: str, inputs: list[np.ndarray], rtol=2e-5, atol=2e-6) -> None:
        """The results are those of ONNX Runtime."""
        expected = OnnxRuntime(self.models[name].source)(*inputs)
        for got, want in zip(self.run(name, inputs), expected, strict=True):
            assert_same(got, np.asarray(want), rtol, atol)


def assert_same(got: np.ndarray, want: np.ndarray, rtol=2e-5, atol=2e-6) -> None:
    """Equal element types and shapes, close floats (NaN equals NaN), equal integers."""
    assert got.dtype == want.dtype
    assert got.shape == want.shape
    if got.dtype.kind == "f":
        np.testing.assert_allclose(got, want, rtol=rtol, atol=atol)
    else:
        np.testing.assert_array_equal(got, want)


def random_inputs(model: ir.Model, seed: int = 0, low: float = -2, high: float = 2):
    """One array an input: floats between the bounds, small integers, booleans."""
    rng = np.random.default_rng(seed)
    inputs = []
    for value in model.graph.inputs:
        shape = [int(dim) for dim in value.shape.dims]
        dtype = value.dtype.numpy()
        if dtype.kind == "f":
            inputs.append(rng.uniform(low, high, shape).astype(dtype))
        elif dtype.kind == "b":
            inputs.append(rng.random(shape) < 0.5)
        else:
            inputs.append(rng.integers(0 if dtype.kind == "u" else -3, 4, shape).astype(dtype))
    return inputs


def _block(size: int) -> np.ndarray:
    return np.full(size + 2 * GUARD, 0xA5, np.uint8)


def _inside(block: np.ndarray) -> int:
    """A 64-aligned address at least 64 bytes into the block."""
    address = block.ctypes.data + 64
    return address + -address % 64


def _check_guard(block: np.ndarray, size: int) -> None:
    start = _inside(block) - block.ctypes.data
    assert (block[:start] == 0xA5).all(), "bytes in front were written"
    assert (block[start + size :] == 0xA5).all(), "bytes behind were written"


def _pointers(addresses: list[int]):
    return (ctypes.c_void_p * max(len(addresses), 1))(*addresses)
