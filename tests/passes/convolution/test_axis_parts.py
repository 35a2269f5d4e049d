"""Layouts track where the elements of a tensor come from."""

from __future__ import annotations

from itertools import product
from math import prod

import numpy as np
import onnx_ir as ir
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smelt.ir import text
from smelt.passes.base import PassContext
from smelt.passes.convolution.axis_parts import (
    AxisPart,
    Layout,
    layout_after,
    reshape,
    source_layout,
)
from smelt.runtime.runner import open_runner


def elements(layout: Layout, dims: tuple[int, ...]) -> np.ndarray:
    """Return the tensor that ``layout`` describes, for a source of ``dims`` that counts its
    elements."""
    strides = [prod(dims[axis + 1 :]) for axis in range(len(dims))]
    offsets = []
    for parts in layout:
        steps = [range(int(part.size)) for part in parts]
        places = [part.stride * strides[part.axis] for part in parts]
        offsets.append([sum(np.multiply(at, places)) for at in product(*steps)])
    return np.asarray(sum(np.ix_(*offsets)) if offsets else 0, dtype=np.int64)


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_a_chain_of_reshapes_and_transposes(data: st.DataObject) -> None:
    dims = tuple(data.draw(st.lists(st.sampled_from([1, 2, 3, 4, 6]), min_size=1, max_size=4)))
    array = np.arange(prod(dims)).reshape(dims)
    layout: Layout | None = source_layout(dims)
    for _ in range(4):
        perm = data.draw(st.permutations(range(array.ndim)))
        array = array.transpose(perm)
        layout = tuple(layout[axis] for axis in perm)
        sizes = [d for d in array.shape for d in ([2, d // 2] if d % 2 == 0 else [d])]
        joint = data.draw(st.integers(0, len(sizes) - 1))
        shape = (*sizes[:joint], prod(sizes[joint : joint + 2]), *sizes[joint + 2 :])
        array, layout = array.reshape(shape), reshape(layout, shape)
        if layout is None:
            return
        assert elements(layout, dims).tolist() == array.tolist()


@pytest.mark.parametrize(
    "node",
    [
        "SpaceToDepth<blocksize=2>",
        'SpaceToDepth<blocksize=2, mode="CRD">',
        "DepthToSpace<blocksize=2>",
        'DepthToSpace<blocksize=2, mode="CRD">',
    ],
)
def test_blocks(node: str) -> None:
    dims = (2, 8, 4, 6)
    opset = 28 if node.startswith("Space") and "mode" in node else 23
    model = text.parse(f"g (float[2,8,4,6] x) => (y) {{ y = {node}(x) }}", opset)
    PassContext.of(model)
    layout = layout_after(source_layout(dims), model.graph[0], opset)
    assert layout is not None
    source = np.arange(prod(dims), dtype=np.float32).reshape(dims)
    (result,) = open_runner(model)(source)
    assert elements(layout, dims).tolist() == result.tolist()


def test_one_dim_may_be_unknown() -> None:
    n = ir.SymbolicDim("N")
    layout = reshape(source_layout([n, 6, 4]), [n * 2, 3, 4])
    assert layout == (
        (AxisPart(0, 1, n), AxisPart(1, 3, 2)),
        (AxisPart(1, 1, 3),),
        (AxisPart(2, 1, 4),),
    )
    assert reshape(layout, [n, 6, 4]) == source_layout([n, 6, 4])
    unknown = ir.SymbolicDim(None)
    assert reshape(source_layout([n, 6]), [unknown, 3]) == (
        (AxisPart(0, 1, n), AxisPart(1, 3, 2)),
        (AxisPart(1, 1, 3),),
    )
    assert reshape(source_layout([n, 6]), [unknown, unknown]) is None


@pytest.mark.parametrize("dims", [[5], [4, 3], [0, 6], [2, 3, 2]])
def test_reshapes_to_another_element_count_have_no_layout(dims: list[int]) -> None:
    assert reshape(source_layout([6]), dims) is None
