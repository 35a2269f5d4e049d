"""The node tests of ONNX: each passes, or is refused with a coded error before any file exists.

Operands that ONNX passes as inputs but that decide shapes (axes, starts, pads) are made constants
where the model is refused for them, as constant folding does in real models.
"""

from __future__ import annotations

import tempfile
import warnings
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from c_library import STRICT, compile_c
from onnx import numpy_helper
from onnx.backend.test.loader import load_model_tests

import smelt
from smelt.errors import SmeltError
from smelt.native.interface_file import bounds_of
from smelt.runtime.c_library import CLibrary, build
from smelt.runtime.interface import interface_of
from smelt.targets.base import Artifact

BATCH = 150
"""Models in one run of the C compiler."""

SUPPORTED = 1810
"""Cases that compile; raise it with every kernel, so that none is lost unnoticed."""


ROUNDED = {"bfloat16": (2**-6, 2**-9), "float16": (2**-9, 2**-12)}
"""Errors of chains of operations whose reference rounds to 16 bits in other places."""


UNKNOWN = ("while the model runs", "before the model runs", "is not known", "the branches give")
"""What refusals say where an operand decides a type or a size."""


INEXACT = {"test_dft_inverse": 1e-6, "test_dft_inverse_opset19": 1e-6}
"""Absolute errors of expected values that are rounded themselves: 1.9e-7 for 0."""


@dataclass
class Compiled:
    case: object
    model: ir.Model
    artifact: Artifact
    name: str
    kept: list[int]


def arrays(values) -> list[np.ndarray]:
    return [
        numpy_helper.to_array(v) if isinstance(v, onnx.TensorProto) else np.asarray(v)
        for v in values
    ]


@cache
def cases() -> list:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return load_model_tests(kind="node")


def bake(model: ir.Model, case) -> list[int]:
    """Turn all inputs but the first into constants; return the positions of the inputs that stay."""
    graph = model.graph
    for value, array in list(zip(graph.inputs, arrays(case.data_sets[0][0]), strict=True))[1:]:
        graph.inputs.remove(value)
        value.const_value = ir.Tensor(np.ascontiguousarray(array), name=value.name)
        graph.register_initializer(value)
    return [0]


def compiled(model: ir.Model, name: str) -> Artifact:
    """Compile kernel by kernel if each node has one, else through all passes, as users do."""
    try:
        return compile_c(model.clone(), name=name)
    except SmeltError:
        return smelt.compile(model, target="c", name=name)


def compile_case(case, name: str) -> Compiled | SmeltError:
    """Return the compiled case, or the reason why it is refused."""
    model = ir.from_proto(case.model)
    try:
        return Compiled(case, model, compiled(model, name), name, [])
    except SmeltError as error:
        refusal = error
    if not any(told in str(refusal) for told in UNKNOWN) or len(model.graph.inputs) < 2:
        return refusal
    model = ir.from_proto(case.model)
    kept = bake(model, case)
    try:
        return Compiled(case, model, compiled(model, name), name, kept)
    except SmeltError as error:
        return error


def check(compiled: Compiled, library: Path) -> None:
    plan = compiled.artifact.plan
    run = CLibrary(
        library,
        f"{compiled.name}_run",
        interface_of(compiled.artifact.model),
        max(plan.memory.arena_bytes, 1),
        64,
        lengths=bounds_of(plan.steps.returned_sizes),
    )
    sets = compiled.case.data_sets[:1] if compiled.kept else compiled.case.data_sets
    for inputs, outputs in sets:
        given = arrays(inputs)
        given = [given[i] for i in compiled.kept] if compiled.kept else given
        for got, want in zip(run(*given), arrays(outputs), strict=False):
            assert (got.dtype, got.shape) == (want.dtype, want.shape)
            rtol, atol = ROUNDED.get(str(want.dtype), (1e-3, 1e-7))
            atol = INEXACT.get(compiled.case.name, atol)
            np.testing.assert_allclose(
                got.astype(np.float64), want.astype(np.float64), rtol=rtol, atol=atol
            )


@pytest.mark.slow
def test_every_node_case_passes_or_is_refused_with_a_code() -> None:
    taken, refused = [], {}
    for case in cases():
        result = compile_case(case, f"m{len(taken)}")
        if isinstance(result, SmeltError):
            refused[case.name] = result.code
        else:
            taken.append(result)
    failures = []
    for start in range(0, len(taken), BATCH):
        batch = taken[start : start + BATCH]
        files = {name: data for item in batch for name, data in item.artifact.files.items()}
        with tempfile.TemporaryDirectory() as folder:
            library = build(files, Path(folder), STRICT)
            for item in batch:
                try:
                    check(item, library)
                except (AssertionError, SmeltError) as error:
                    failures.append(f"{item.case.name}: {error}")
    assert not failures, "\n".join(failures)
    assert set(refused.values()) <= {"E201", "E401", "E402", "E411"}, refused
    assert len(taken) >= SUPPORTED
