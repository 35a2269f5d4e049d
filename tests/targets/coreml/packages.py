"""Help for tests of the target: what it writes for ONNX text, and what the package computes."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

import smelt
from smelt.frontends.coreml.load import read_core_ml
from smelt.ir import text
from smelt.mlpackage.program import Operation
from smelt.runtime.rounded_half import round_each_half
from smelt.runtime.runner import open_runner
from smelt.targets.base import Artifact
from smelt.targets.coreml import coreml

WIDE = frozenset(map(np.dtype, ["bool", "int8", "uint8", "int16", "uint16", "uint32", "int64"]))
"""Element types that the interface of a package has as int32."""


def written(
    model: str, *, opset: int = 21, dims: dict | None = None, **options: object
) -> Artifact:
    """The artifact of ONNX text; float32 unless ``options`` say otherwise."""
    parsed = text.parse(model) if opset == 21 else text.parse(model, opset=opset)
    return smelt.compile(parsed, target=coreml, dims=dims, **{"precision": "fp32", **options})


def operations(artifact: Artifact, *, of: str = "main") -> list[Operation]:
    """The operations of the body, without constants."""
    body = artifact.plan.steps.program.functions[of].body
    return [each for each in body.operations if each.type != "const"]


def types(artifact: Artifact) -> list[str]:
    """The operators of the body in order, without constants."""
    return [each.type for each in operations(artifact)]


def constant(artifact: Artifact, operation: Operation, parameter: str) -> object:
    """The constant argument of an operation."""
    name = operation.inputs[parameter][0]
    body = artifact.plan.steps.program.functions["main"].body
    found = next(each for each in body.operations if each.outputs[0].name == name)
    return found.attributes["val"].value


def outside(array: np.ndarray) -> np.ndarray:
    """An array as the package takes or returns it: int32 for integers and bools, no scalars.

    uint32 keeps its bits.
    """
    array = np.asarray(array)
    array = array.reshape(1) if array.ndim == 0 else array
    return array.astype(np.int32) if array.dtype in WIDE else array


def computed(artifact: Artifact, *inputs: np.ndarray) -> tuple[np.ndarray, ...]:
    """What the saved package computes, read by the Core ML frontend."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "m.mlpackage"
        artifact.save(path)
        return tuple(open_runner(round_each_half(read_core_ml(path)))(*map(outside, inputs)))
