"""Sizes with nested floor divisions."""

from __future__ import annotations

import onnx_ir as ir
import pytest

from smelt.ir import text
from smelt.ir.shapes.floors import one_floor
from smelt.ir.shapes.inference import ShapeInference
from smelt.ir.symbolic_dims.dims import size_of

FLATTENED = {
    "floor(floor(N/5)/2)": "floor(N/10)",
    "floor(floor(floor(N/5)/2)/2) - 1": "floor(N/20) - 1",
    "floor((floor(N/2) + 3)/4)": None,
    "floor((floor((N - 1)/2) - 1)/2) + 1": None,
    "2*floor(floor(N/5)/2) + M": None,
    "floor(floor(N/3 + M/2)/2)": None,
}
KEPT = [
    "floor(N/5) - 1",
    "floor(2*floor(N/5)/3)",
    "floor((floor(N/2) + M)/3)",
    "floor(floor(N/2)/M)",
    "floor(N/2) + floor(M/2)",
    "floor((floor(N/2) + floor(M/2))/2)",
]


@pytest.mark.parametrize(("before", "after"), FLATTENED.items())
def test_one_floor_is_left(before: str, after: str | None) -> None:
    size = one_floor(ir.SymbolicDim(before))
    assert isinstance(size, ir.SymbolicDim)
    assert str(size).count("floor(") == 1
    assert after is None or str(size) == after
    for n in range(60):
        for m in (1, 2, 7):
            sizes = {"N": n, "M": m}
            assert size_of(size, sizes) == size_of(ir.SymbolicDim(before), sizes)


@pytest.mark.parametrize("size", KEPT)
def test_other_expressions_stay(size: str) -> None:
    assert str(one_floor(ir.SymbolicDim(size))) == str(ir.SymbolicDim(size))


def test_lengths_of_strided_convolutions_are_those_that_exporters_compute() -> None:
    """As in wav2vec 2: samples become frames, to which positions are added."""
    graph = (
        "g (float[B,1,N] x, float[4,1,10] a, float[4,4,3] b) => () "
        "{ c = Conv<strides=[5]>(x, a) d = Conv<strides=[2]>(c, b) e = Conv<strides=[2]>(d, b) "
        "padded = Conv<pads=[1,2]>(e, b) start = Constant<value_ints=[0]>() end = Constant<value_ints=[-1]>() "
        "axis = Constant<value_ints=[2]>() cut = Slice(padded, start, end, axis) y = Add(e, cut) }"
    )
    model = text.parse(graph)
    ShapeInference(model).infer_model()
    shapes = {v.name: v.shape for n in model.graph for v in n.outputs}
    assert shapes["e"] == shapes["y"] == ["B", 4, "floor(N/20) - 1"]
