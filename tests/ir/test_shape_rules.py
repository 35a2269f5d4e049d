"""Rules of our own over the library's."""

from __future__ import annotations

import pytest

from smelt.ir import text
from smelt.ir.shapes import ShapeInference


@pytest.mark.parametrize(
    ("target", "dims"),
    [("[0,0,-1]", "N,C,6"), ("[-1,3]", "2*C*N,3"), ("[0,-1]", "N,6*C")],
)
def test_what_minus_one_stands_for(target: str, dims: str) -> None:
    model = text.parse(
        f"g (float[N,C,2,3] x) => (y) {{ d = Constant<value_ints={target}>() y = Reshape(x, d) }}"
    )
    ShapeInference(model).infer_model()
    shape = model.graph.outputs[0].shape
    assert shape is not None
    assert ",".join(str(dim) for dim in shape.dims) == dims
    assert all(isinstance(dim, int) == str(dim).isdecimal() for dim in shape.dims)
