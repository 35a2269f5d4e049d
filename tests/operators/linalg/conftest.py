"""``both``: the results of an operator by its ONNX body and by its reference."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest

from smelt import operators
from smelt.ir import text
from smelt.ir.shapes.inference import ShapeInference
from smelt.runtime.onnxruntime import OnnxRuntime

TYPES = {"float32": "float", "float64": "double", "int32": "int32"}
Results = tuple[tuple[np.ndarray, ...], tuple[np.ndarray, ...]]
Both = Callable[..., Results]


def _both(name: str, *arrays: np.ndarray, **attributes: int) -> Results:
    operator = operators.find("smelt", name)
    assert operator is not None
    # Sizes are symbols, so the body cannot know them.
    inputs = ", ".join(
        f"{TYPES[str(a.dtype)]}[{','.join(f'D{i}_{j}' for j in range(a.ndim))}] x{i}"
        for i, a in enumerate(arrays)
    )
    operands = ", ".join(f"x{i}" for i in range(len(arrays)))
    results = ", ".join(f"y{i}" for i in range(len(operator.outputs)))
    listed = ", ".join(f"{key}={value}" for key, value in attributes.items())
    written = f"<{listed}>" if listed else ""
    body = _body(f"g ({inputs}) => ({results}) {{ {results} = smelt.{name}{written}({operands}) }}")
    defaults = {attribute.name: attribute.default for attribute in operator.attributes}
    expected = tuple(operator.reference(arrays, {**defaults, **attributes}))
    got = body(*arrays)
    for ours, theirs in zip(got, expected, strict=True):
        assert ours.shape == theirs.shape
        assert ours.dtype == theirs.dtype
    return got, expected


@cache
def _body(graph: str) -> OnnxRuntime:
    """The ONNX body of the operator in ``graph``, which all arrays of its types and ranks share."""
    model = text.parse(graph)
    ShapeInference(model).infer_model()
    assert operators.attach_functions(model) == ()
    return OnnxRuntime(model)


@pytest.fixture
def both() -> Both:
    return _both
