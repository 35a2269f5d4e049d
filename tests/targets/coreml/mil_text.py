"""Programs of MIL from lines such as ``y = add(x=a, y=2.0)``, and models back as such programs."""

from __future__ import annotations

import ast
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
from frontends.coreml.mil import operation, package

import smelt
from smelt.mlpackage.program import Element, Operation, TensorType
from smelt.mlpackage.write import PackageFiles
from smelt.passes import pipeline
from smelt.passes.base import PassContext
from smelt.passes.run import run as run_passes
from smelt.runtime.fold import evaluator
from smelt.targets.coreml.emission import EXTENSIONS, emit_function
from smelt.targets.coreml.options import Options

WORDS = {
    "fp32": Element.FLOAT32,
    "fp16": Element.FLOAT16,
    "int32": Element.INT32,
    "bool": Element.BOOL,
    "int8": Element.INT8,
    "uint8": Element.UINT8,
}
RESULTS = {"shape": "int32", "greater": "bool", "less": "bool", "quantize": "int8"}
"""Element types of results that are not float32, by operator."""


def filled(kind: str, *sizes: int) -> np.ndarray:
    """Return an array: ``w`` random floats, ``i`` counted int8, ``ones``, ``full`` of the first number."""
    if kind == "full":
        return np.full(sizes[1:], sizes[0], np.float32)
    if kind == "ones":
        return np.ones(sizes, np.float32)
    if kind == "i":
        return (np.arange(np.prod(sizes)) % 7).reshape(sizes).astype(np.int8)
    return np.random.default_rng(list(sizes)).normal(size=sizes).astype(np.float32)


def argument(node: ast.expr) -> Any:
    """Return an argument: a name as ``%name``, an array for a call, else the literal."""
    if isinstance(node, ast.Name):
        return f"%{node.id}"
    if isinstance(node, ast.Call):
        assert isinstance(node.func, ast.Name)
        values = [ast.literal_eval(each) for each in node.args]
        if node.func.id in WORDS:
            return np.asarray(values[0], WORDS[node.func.id].numpy)
        return filled(node.func.id, *values)
    if isinstance(node, ast.Tuple):
        return [argument(each) for each in node.elts]
    return ast.literal_eval(node)


def operations_of(text: str) -> list[Operation]:
    """Return the operations of lines. A result has float32, what its operator says, or the type that
    a comment ``# int32`` names."""
    found = []
    for line in filter(None, map(str.strip, text.splitlines())):
        (statement,) = ast.parse(line.partition("#")[0]).body
        assert isinstance(statement, ast.Assign)
        target, call = statement.targets[0], statement.value
        assert isinstance(call, ast.Call)
        assert isinstance(call.func, ast.Name)
        names = target.elts if isinstance(target, ast.Tuple) else [target]
        inputs = {each.arg: argument(each.value) for each in call.keywords}
        word = line.partition("#")[2].strip() or RESULTS.get(call.func.id, "fp32")
        word = inputs["dtype"] if call.func.id == "cast" else word
        outputs = {each.id: TensorType(WORDS[word], None) for each in names}
        found.append(operation(call.func.id, outputs, **inputs))
    return found


def read(
    inputs: Mapping[str, TensorType], lines: str, outputs: Sequence[str], ios: int
) -> ir.Model:
    """Return the model that is read from the saved bytes of a program."""
    made = package(inputs, operations_of(lines), outputs, ios)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "m.mlpackage"
        for name, data in PackageFiles(made).files().items():
            (path / name).parent.mkdir(parents=True, exist_ok=True)
            (path / name).write_bytes(data)
        return smelt.load(path)


def after(model: ir.Model, passes: str) -> ir.Model:
    """Return ``model``, changed in place, after passes and what cleans up behind them."""
    steps = pipeline.parse(f"{passes},const-elimination,dead-code-elimination")
    cx = PassContext.of(model, evaluator(model))
    cx.operators = EXTENSIONS
    run_passes(cx, steps)
    return model


def written(model: ir.Model, ios: int = 17) -> list[Operation]:
    """Return the operations that the target writes for ``model`` in float32, without constants."""
    emission = emit_function(model, Options(ios=ios, precision="fp32"))
    (block,) = emission.function.blocks.values()
    return [each for each in block.operations if each.type != "const"]
