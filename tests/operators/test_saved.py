"""Operators with a body, saved to a file: ONNX Runtime loads it and gives the same numbers.

Files hold bodies in line; as functions, ``load`` turns them back into operators.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime as ort
import pytest
from sampling import is_tried, sampled

import smelt
from smelt import operators
from smelt.ir.shapes.inference import ShapeInference
from smelt.operators.declare import Operator

HIGHEST = 23
WITH_BODY = [o for o in operators.all_operators() if o.body is not None and not o.runtime]
SIGNS = ("Eigh", "SVD")
"""Operators whose vectors may point either way."""

PHASES = {
    "ComplexEigh": ((0, 1),),
    "ComplexSVD": ((1, 2), (3, 4)),
    **dict.fromkeys(("Eig", "ComplexEig"), ((2, 3), (4, 5))),
}
"""Real and imaginary parts of vectors that may be turned by any phase."""


def uniform(*shape: int) -> np.ndarray:
    return np.random.default_rng(len(shape)).uniform(0.1, 0.9, shape).astype(np.float32)


ROOT = uniform(2, 3, 3)
POSITIVE = ROOT @ ROOT.transpose(0, 2, 1) + np.eye(3, dtype=np.float32)
SKEW = (ROOT - ROOT.transpose(0, 2, 1)) / 4
TRIANGULAR = np.triu(ROOT) + np.diag(np.arange(3, dtype=np.float32))
"""Its eigenvalues have an order."""

WORDS = np.arange(1, 6, dtype=np.uint32)

ARRAYS: dict[str, tuple[np.ndarray, ...]] = {
    "Acosh": (1 + uniform(2, 3),),
    **dict.fromkeys(("Cholesky", "Eigh", "LU", "Geqrf", "Geqp3", "SVD"), (POSITIVE,)),
    **dict.fromkeys(("SingularValues", "Hessenberg", "Tridiagonal"), (POSITIVE,)),
    **dict.fromkeys(("ComplexCholesky", "ComplexEigh", "ComplexSVD"), (POSITIVE, SKEW)),
    **dict.fromkeys(("Eig", "Schur"), (TRIANGULAR,)),
    **dict.fromkeys(("ComplexEig", "ComplexSchur"), (TRIANGULAR, TRIANGULAR / 2)),
    "TriangularSolve": (POSITIVE, uniform(2, 3, 2)),
    "ComplexTriangularSolve": (POSITIVE, SKEW, uniform(2, 3, 2), uniform(2, 3, 2)),
    "TridiagonalSolve": (uniform(2, 3), uniform(2, 3) + 3, uniform(2, 3), uniform(2, 3, 2)),
    "HouseholderProduct": (uniform(2, 3, 3), uniform(2, 3)),
    "PivotsToPermutation": (np.array([[2, 2, 3, 3]], np.int32),),
    "DotGeneral": (uniform(2, 3, 4), uniform(4, 5)),
    "ConcatInterleave": (uniform(2, 3, 4), uniform(2, 3, 4)),
    "Einsum": (uniform(2, 3, 3), uniform(3, 5), uniform(5, 2)),
    "Threefry2x32": (WORDS[:1], WORDS[1:2], WORDS, WORDS * 9),
    "ConvRelu": (uniform(1, 2, 5, 5), uniform(3, 2, 3, 3) - 0.5, uniform(3)),
    "Polygamma": (np.ones((2, 3), np.float32), uniform(2, 3)),
    "Zeta": (2 + uniform(2, 3), uniform(2, 3)),
}
ATTRIBUTES: dict[str, dict[str, Any]] = {
    "Bitcast": {"to": int(ir.DataType.INT32)},
    "PivotsToPermutation": {"permutation_size": 4},
    "DotGeneral": {"lhs_contracting": [2], "rhs_contracting": [0]},
    "ConcatInterleave": {"axis": 1},
    "Einsum": {"equation": "abb,bc,cd->da"},
    "ConvRelu": {"kernel_shape": [3, 3], "strides": [1, 1], "dilations": [1, 1], "pads": [1] * 4},
}


def model_of(operator: Operator, arrays: tuple[np.ndarray, ...], opset: int) -> ir.Model:
    """One node of ``operator``."""
    inputs = [
        ir.Value(
            name=f"x{i}",
            type=ir.TensorType(ir.DataType.from_numpy(array.dtype)),
            shape=ir.Shape(array.shape),
        )
        for i, array in enumerate(arrays)
    ]
    outputs = [ir.Value(name=f"y{i}") for i in range(len(operator.outputs))]
    attributes = ATTRIBUTES.get(operator.name, {})
    node = ir.node(
        operator.name, inputs, attributes, domain=operator.domain, outputs=outputs, name="one"
    )
    imports = {"": opset, operator.domain: operator.version}
    graph = ir.Graph(inputs, outputs, nodes=[node], opset_imports=imports, name="g")
    model = ir.Model(graph, ir_version=8)
    ShapeInference(model).infer_model()
    return model


def without_phases(name: str, results: Sequence[np.ndarray]) -> list[np.ndarray]:
    """``results`` with moduli in place of parts that may be turned."""
    kept = list(results)
    for real, imaginary in PHASES.get(name, ()):
        kept[real] = kept[imaginary] = np.hypot(results[real], results[imaginary])
    return kept


@pytest.mark.parametrize("operator", sampled(WITH_BODY, 3), ids=lambda operator: operator.name)
def test_a_saved_operator_runs_in_another_runtime(operator: Operator, tmp_path: Path) -> None:
    arrays = ARRAYS.get(operator.name, tuple(uniform(2, 3) for _ in operator.inputs))
    for opset in (operator.opset, *[HIGHEST][: is_tried(operator.name, 4)]):
        model = model_of(operator, arrays, opset)
        expected = operator.reference(arrays, operator.attributes_of(model.graph[0]))
        path = smelt.save(model, tmp_path / f"{opset}.onnx")
        onnx.checker.check_model(path, full_check=True)
        assert not onnx.load(path).functions
        session = ort.InferenceSession(path, providers=["CPUExecutionProvider"])
        results = session.run(None, {f"x{i}": array for i, array in enumerate(arrays)})
        results, expected = (without_phases(operator.name, each) for each in (results, expected))
        for ours, theirs in zip(results, expected, strict=True):
            assert ours.dtype == theirs.dtype
            pair = (abs(ours), abs(theirs)) if operator.name in SIGNS else (ours, theirs)
            np.testing.assert_allclose(*pair, rtol=1e-4, atol=1e-5)
        (node,) = smelt.load(smelt.to_proto(model, functions=True)).graph
        assert (node.domain, node.op_type) == operator.key
