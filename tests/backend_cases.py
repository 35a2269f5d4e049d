"""The node cases of the ONNX backend tests: models, inputs and expected outputs."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.backend.test.loader import load_model_tests
from sampling import is_tried

from smelt.errors import SmeltError
from smelt.runtime.runner import open_runner


@dataclass(frozen=True)
class Case:
    """One case with the inputs of its first data set."""

    name: str
    model: onnx.ModelProto
    inputs: tuple[object, ...]

    def run(self, model: onnx.ModelProto) -> tuple[object, ...]:
        """The outputs of ``model`` in ONNX Runtime without its optimizations."""
        return open_runner(model, "onnxruntime")(*self.inputs)


@cache
def node_cases() -> tuple[Case, ...]:
    """All node cases whose inputs are tensors or lists of them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = load_model_tests(kind="node")
    return tuple(_case(case) for case in found if case.data_sets)


@cache
def tried_cases() -> tuple[Case, ...]:
    """The cases of this run: of those that write an operator as its function, CI takes a part."""
    return tuple(c for c in node_cases() if "_expanded" not in c.name or is_tried(c.name, 4))


def _case(case: object) -> Case:
    model = case.model if case.model is not None else onnx.load(Path(case.model_dir) / "model.onnx")
    inputs = tuple(_value(item) for item in case.data_sets[0][0])
    return Case(case.name, model, inputs)


def _value(item: object) -> object:
    if isinstance(item, onnx.TensorProto):
        return numpy_helper.to_array(item)
    if isinstance(item, onnx.SequenceProto):
        return numpy_helper.to_list(item)
    if isinstance(item, onnx.OptionalProto):
        return numpy_helper.to_optional(item)
    return item


def reference(case: Case) -> tuple[object, ...] | None:
    """What ONNX Runtime makes of the case unoptimized; None if it cannot run it."""
    try:
        return case.run(case.model)
    except SmeltError:
        return None


def differences(expected: tuple[object, ...], actual: tuple[object, ...], rtol: float) -> str:
    """The first difference in a few words, empty if there is none."""
    if len(expected) != len(actual):
        return f"{len(actual)} outputs for {len(expected)}"
    for index, (x, y) in enumerate(zip(expected, actual, strict=True)):
        if isinstance(x, list) and isinstance(y, list):
            inner = differences(tuple(x), tuple(y), rtol)
            if inner:
                return f"output {index}: {inner}"
        elif isinstance(x, np.ndarray) and isinstance(y, np.ndarray):
            if x.dtype != y.dtype or x.shape != y.shape:
                return f"output {index}: {x.dtype}{x.shape} became {y.dtype}{y.shape}"
            if not _close(x, y, rtol):
                return f"output {index}: other numbers"
        elif x is not y:
            return f"output {index}: {type(x)} became {type(y)}"
    return ""


def _close(x: np.ndarray, y: np.ndarray, rtol: float) -> bool:
    if x.dtype.kind not in "fcV":
        return bool(np.array_equal(x, y))
    wide = np.complex128 if x.dtype.kind == "c" else np.float64
    if x.dtype.itemsize == 2:
        # A few units in the last place: folding in NumPy rounds in other places than a runtime.
        rtol = max(rtol, 2e-2 if x.dtype.kind == "V" else 2e-3)
    return bool(np.allclose(x.astype(wide), y.astype(wide), rtol, 1e-7, equal_nan=True))
