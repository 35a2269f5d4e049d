"""Einsum of empty operands, at which ONNX Runtime may end the process, gives the zeros it means."""

from __future__ import annotations

import numpy as np
import pytest

import smelt
from smelt.ir import text
from smelt.runtime.onnxruntime import OnnxRuntime

CASES = {
    "sum over nothing": ("float[2,0] x, float[3,0] y", "ab,cb->ac", (2, 3)),
    "nothing of an open size": ("float[N,2,0] x, float[M,3,0] y", "nab,ncb->ac", (2, 3)),
    "empty result": ("float[0,2] x, float[3,2] y", "ab,cb->ac", (0, 3)),
    "open sizes of the result": ("float[N,0] x, float[M,0] y", "ab,cb->ca", (1, 1)),
    "one number": ("float[0,2] x, float[2] y", "ab,b->", ()),
    "ellipsis": ("float[4,2,0] x, float[1,3,0] y", "...b,...b->...", None),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_empty_einsums_are_written_as_zeros(
    case: tuple[str, str, tuple[int, ...] | None],
) -> None:
    inputs, equation, shape = case
    if shape is None:
        inputs, shape = inputs.replace("3", "2"), (4, 2)
    node = f'y = Einsum<equation="{equation}">(x, z)'
    inputs = inputs.replace(" y", " z")
    model = text.parse(f"g ({inputs}) => (float y) {{ {node} }}", 18)
    model.graph.outputs[0].shape = None
    written = [node.op_type for node in smelt.to_proto(model).graph.node]
    assert written[-1] == "Expand"
    assert "Einsum" not in written
    arrays = [
        np.zeros([dim if isinstance(dim, int) else 1 for dim in value.shape], np.float32)
        for value in model.graph.inputs
    ]
    (result,) = OnnxRuntime(model)(*arrays)
    np.testing.assert_array_equal(result, np.zeros(shape, np.float32))


def test_a_run_may_find_that_operands_are_empty() -> None:
    model = text.parse(
        'g (float[2,N] x, float[3,N] z) => (float[2,3] y) { y = Einsum<equation="ab,cb->ac">(x, z) }'
    )
    assert [node.op_type for node in smelt.to_proto(model).graph.node] == ["Einsum"]
    run = OnnxRuntime(model)
    assert not run(np.ones((2, 0), np.float32), np.ones((3, 0), np.float32))[0].any()
    assert (run(np.ones((2, 4), np.float32), np.ones((3, 4), np.float32))[0] == 4).all()
