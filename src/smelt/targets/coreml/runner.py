"""Run a package here: its saved bytes are read by the Core ML frontend, which gives an ONNX model.

This checks the package, not Apple's kernels: the frontend has its own meaning of each operation.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir

from smelt.errors import UsageError
from smelt.frontends.coreml.load import read_core_ml
from smelt.ir.constants import tensor_of
from smelt.mlpackage.write import PackageFiles
from smelt.runtime.rounded_half import round_each_half
from smelt.runtime.runner import open_runner
from smelt.targets.coreml.options import Options
from smelt.targets.runner import Runner


def package_runner(
    model: ir.Model, files: PackageFiles, names: Mapping[str, str], options: Options
) -> Runner:
    """Return a function that takes and returns arrays as ``model`` does, computed by the package.

    ``names`` maps ONNX names to those of the package. If the package has several functions, the
    shapes of the inputs choose one.
    """
    functions = [(model, open_runner(round_each_half(model))) for model in read_back(files)]
    inputs = [value for value in model.graph.inputs if tensor_of(value) is None]
    states = {after: before for before, after in options.state_names.items()}

    def run(*arrays: Any) -> Sequence[Any]:
        """Run one function of the package."""
        named = {names[v.name or ""]: a for v, a in zip(inputs, arrays, strict=False)}
        given = {name: as_package_array(array) for name, array in named.items()}
        function = _fitting(functions, given)
        by_name = _results(function, given)
        results = []
        for value in model.graph.outputs:
            state = states.get(value.name or "")
            label = names[value.name or ""] if state is None else f"{names[state]}_out"
            results.append(_as_declared(value, by_name[label]))
        return results

    return run


def read_back(files: PackageFiles) -> list[ir.Model]:
    """Return the functions of the saved package as models."""
    with tempfile.TemporaryDirectory() as folder:
        for name, data in files.files().items():
            path = Path(folder) / "m.mlpackage" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        return [
            read_core_ml(f"{folder}/m.mlpackage#{name}") for name in files.package.program.functions
        ]


def _fitting(
    functions: Sequence[tuple[ir.Model, Runner]], given: Mapping[str, np.ndarray]
) -> tuple[ir.Model, Runner]:
    """Return the first function whose fixed sizes are those of the arrays.

    Raises UsageError E616 if there is none.
    """
    for model, run in functions:
        pairs = [(value.shape, given[value.name or ""].shape) for value in model.graph.inputs]
        if all(
            shape is not None
            and len(shape) == len(sizes)
            and all(not isinstance(d, int) or d == n for d, n in zip(shape, sizes, strict=True))
            for shape, sizes in pairs
        ):
            return model, run
    shapes = {name: list(array.shape) for name, array in given.items()}
    raise UsageError(
        "E616",
        f"no function of the package takes inputs of the shapes {shapes}",
        why="each function has one of the listed sizes",
        fix="give inputs of a listed size, or list this size in the option sizes",
    )


def _results(
    function: tuple[ir.Model, Runner], given: Mapping[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """Run one function, and return its outputs by name; inputs are cast to its float types.

    A state is float16, though the array that is given for it may be float32.
    """
    model, run = function
    arrays = []
    for value in model.graph.inputs:
        array = given[value.name or ""]
        if value.dtype is not None and value.dtype.is_floating_point():
            array = array.astype(value.dtype.numpy())
        arrays.append(array)
    results = [np.asarray(each) for each in run(*arrays)]
    return {v.name or "": a for v, a in zip(model.graph.outputs, results, strict=True)}


def _as_declared(value: ir.Value, array: np.ndarray) -> np.ndarray:
    """Return an output with the element type and rank of the ONNX model."""
    array = array.reshape(()) if value.shape is not None and not len(value.shape) else array
    return array if value.dtype is None else array.astype(value.dtype.numpy())


def as_package_array(value: object) -> np.ndarray:
    """Return an array in a form that packages have: int32 for integers and bools, float32 for
    float64, no scalars. uint32 keeps its bits.

    Raises UsageError E632 for integers beyond 32 bits, and for finite numbers beyond float32.
    """
    array = np.atleast_1d(np.asarray(value))
    if array.dtype == np.float64:
        with np.errstate(over="ignore"):
            single = array.astype(np.float32)
        if (np.isinf(single) & np.isfinite(array)).any():
            what = "an array for a Core ML package has numbers beyond float32"
            why = "Core ML has no wider floats"
            raise UsageError("E632", what, why=why, fix="give numbers of at most 3.4e38")
        return single
    if array.dtype == np.uint32:
        return array.view(np.int32)
    if array.dtype.kind not in "biu":
        return array
    narrow = array.astype(np.int32)
    if not np.array_equal(narrow, array):
        what = "an array for a Core ML package has integers beyond 32 bits"
        raise UsageError("E632", what, why="Core ML has no wider ones", fix="give smaller integers")
    return narrow
