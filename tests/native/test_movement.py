"""Kernels that move elements, against ONNX Runtime."""

from __future__ import annotations

import numpy as np
import pytest
from c_library import Library, random_inputs


def _constant(name: str, *numbers: int) -> str:
    return f"{name} = Constant<value_ints = [{', '.join(map(str, numbers))}]>()"


def _slice(starts, ends, axes, steps) -> str:
    parts = zip("seap", (starts, ends, axes, steps), strict=True)
    return " ".join(_constant(*([name, *values])) for name, values in parts)


def _pad(mode: str, *pads: int) -> str:
    return f'{_constant("p", *pads)} y = Pad<mode = "{mode}">(x, p)'


GRAPHS = {
    "transpose": "g (float[2,3,4,5] x) => (float[5,3,2,4] y) { y = Transpose<perm = [3,1,0,2]>(x) }",
    "transpose in blocks": "g (float[37,51,9] x) => (float[9,51,37] y) { y = Transpose(x) }",
    "transpose in blocks, some loops around": "g (float[33,2,32,8] x) => (float[2,8,32,33] y) { y = Transpose<perm = [1,3,2,0]>(x) }",
    "transpose by default": "g (int64[2,3] x) => (int64[3,2] y) { y = Transpose(x) }",
    "transpose of size 1": "g (float[1,3,1,5] x) => (float[5,1,3,1] y) { y = Transpose<perm = [3,0,1,2]>(x) }",
    "transpose of rank 0": "g (float x) => (float y) { y = Transpose(x) }",
    "concat": "g (float[2,3] x, float[2,1] z) => (float[2,7] y) { y = Concat<axis = -1>(x, z, x) }",
    "concat of single elements": "g (float[1] x, float[1,1] z) => (float[3] y) { w = Neg(x) v = Flatten<axis = 0>(z) u = Squeeze(v) o = Constant<value_ints = [1]>() t = Reshape(u, o) y = Concat<axis = 0>(w, t, x) }",
    "concat of pairs": "g (float[37,1] x, float[37,1] z) => (float[37,2] y) { y = Concat<axis = -1>(x, z) }",
    "concat of pairs of rank 1": "g (double[1] x, double[1] z) => (double[2] y) { y = Concat<axis = 0>(x, z) }",
    "concat of pairs ahead": "g (int8[5,4,1,1] x, int8[5,4,1,1] z) => (int8[5,4,2,1] y) { y = Concat<axis = 2>(x, z) }",
    "concat of one tensor twice": "g (float[48,1] x) => (float[48,2] y) { y = Concat<axis = 1>(x, x) }",
    "concat of a pair that is repeated": "g (float[20,1] x) => (float[20,2] y) { s = Constant<value_ints = [20, 1]>() z = Expand(o, s) y = Concat<axis = 1>(x, z) }".replace(
        "{ s", "<float o = {3.0}> { s"
    ),
    "concat of slices": f"g (float[40,2] x) => (float[40,2] y) {{ {_slice([1], [2], [1], [1])} z = Slice(x, s, e, a, p) t = Constant<value_ints = [0]>() w = Slice(x, t, s, a, p) y = Concat<axis = 1>(z, w) }}",
    "concat of no pairs": "g (float[0,1] x, float[0,1] z) => (float[0,2] y) { y = Concat<axis = 1>(x, z) }",
    "concat of empty": "g (float[2,3] x, float[2,0] z) => (float[2,3] y) { y = Concat<axis = 1>(x, z) }",
    "concat of bool": "g (bool[2] x, bool[3] z) => (bool[5] y) { y = Concat<axis = 0>(x, z) }",
    "expand": f"g (float[3,1] x) => (float[2,3,4] y) {{ {_constant('s', 2, 1, 4)} y = Expand(x, s) }}",
    "tile": f"g (float[2,3] x) => (float[4,9] y) {{ {_constant('r', 2, 3)} y = Tile(x, r) }}",
    "slice": f"g (float[5,6] x) => (float[2,3] y) {{ {_slice([1, -4], [3, -1], [0, 1], [1, 1])} y = Slice(x, s, e, a, p) }}",
    "slice with steps": f"g (float[5,7] x) => (float[3,3] y) {{ {_slice([0, 6], [9, 0], [0, 1], [2, -2])} y = Slice(x, s, e, a, p) }}",
    "slice reversed": f"g (float[5] x) => (float[5] y) {{ {_slice([-1], [-99], [0], [-1])} y = Slice(x, s, e, a, p) }}",
    "slice to nothing": f"g (float[5] x) => (float[0] y) {{ {_slice([4], [2], [0], [1])} y = Slice(x, s, e, a, p) }}",
    "split": "g (float[2,7] x) => (float[2,3] y, float[2,4] z) { s = Constant<value_ints = [3, 4]>() y, z = Split<axis = 1>(x, s) }",
    "pad": f"g (float[2,3] x) => (float[5,4] y) {{ {_pad('constant', 1, 0, 2, 1)} }}",
    "pad with a value": f"g (int32[2,3] x) => (int32[2,6] y) {{ {_constant('p', 0, 1, 0, 2)} v = Constant<value = int32 {{7}}>() y = Pad(x, p, v) }}",
    "negative pad": f"g (float[4,5] x) => (float[3,4] y) {{ {_pad('constant', -1, 1, 0, -2)} }}",
    "reflect": f"g (float[3,4] x) => (float[5,8] y) {{ {_pad('reflect', 1, 3, 1, 1)} }}",
    "edge": f"g (float[3,4] x) => (float[5,8] y) {{ {_pad('edge', 1, 3, 1, 1)} }}",
    "edge of what is left": f"g (float[4,5] x) => (float[4,6] y) {{ {_pad('edge', -2, 2, 2, -1)} }}",
    "reflect what is left": f"g (float[4,5] x) => (float[3,5] y) {{ {_pad('reflect', 1, -2, -2, 2)} }}",
    "reflect to the last element": f"g (int8[3,4] x) => (int8[7,9] y) {{ {_pad('reflect', 2, 3, 2, 2)} }}",
    "edge of a dim in the middle": f"g (float[2,3,4] x) => (float[2,8,4] y) {{ {_pad('edge', 0, 4, 0, 0, 1, 0)} }}",
    "wrap all of the source": f"g (float[2,3] x) => (float[2,9] y) {{ {_pad('wrap', 0, 3, 0, 3)} }}",
    "wrap more than the source": f"g (float[2,3] x) => (float[7,14] y) {{ {_pad('wrap', 3, 7, 2, 4)} }}",
    "wrap": f"g (float[3,4] x) => (float[5,8] y) {{ {_pad('wrap', 1, 3, 1, 1)} }}",
    "reshape": f"g (float[2,6] x) => (float[3,4] y) {{ {_constant('s', 3, -1)} y = Reshape(x, s) }}",
    "reshape of a result": f"g (float[2,6] x) => (float[3,4] y) {{ {_constant('s', 3, -1)} t = Neg(x) y = Reshape(t, s) }}",
    "gather": "g (float[5,4] x, int64[2,3] i) => (float[2,3,4] y) { y = Gather(x, i) }",
    "gather inside": "g (float[2,5,4] x, int32[3] i) => (float[2,3,4] y) { y = Gather<axis = 1>(x, i) }",
    "gather a scalar": "g (float[5,4] x, int64 i) => (float[5] y) { y = Gather<axis = 1>(x, i) }",
    "depth to space": "g (float[1,8,2,3] x) => (float[1,2,4,6] y) { y = DepthToSpace<blocksize = 2>(x) }",
    "identity": "g (float[3] x) => (float[3] y) { y = Identity(x) }",
    "input returned twice": "g (float[3] x) => (float[3] y, float[3] z) { y = Identity(x) z = Identity(x) }",
    "constant returned": "g (float[1] x) => (float[2] y) { y = Constant<value_floats = [1.5, 2.5]>() }",
    "result and view returned": f"g (float[2,2] x) => (float[2,2] y, float[4] z) {{ {_constant('s', -1)} y = Neg(x) z = Reshape(y, s) }}",
    "view before its source is overwritten": f"g (float[2,2] x) => (float[4] y, float[2,2] w) {{ {_constant('s', -1)} t = Neg(x) v = Reshape(t, s) u = Relu(t) y = Exp(v) w = Abs(u) }}",
    "in place beside its own transpose": "g (float[2,2] x) => (float[2,2] y) { t = Exp(x) u = Transpose(t) w = Add(t, u) y = Neg(w) }",
    "in place beside a view of itself": f"g (float[2,2] x) => (float[4,2,2] y) {{ {_constant('s', 4, 1, 1)} t = Exp(x) v = Reshape(t, s) w = Add(t, v) y = Neg(w) }}",
}


@pytest.fixture(scope="module")
def library() -> Library:
    return Library(GRAPHS)


@pytest.mark.parametrize("name", GRAPHS)
def test_agrees_with_onnx_runtime(library: Library, name: str) -> None:
    library.check(name, random_inputs(library.models[name].source))


def test_an_index_out_of_range_reads_the_nearest_element() -> None:
    library = Library({"g": "g (float[3] x, int64[4] i) => (float[4] y) { y = Gather(x, i) }"})
    x = np.array([1, 2, 3], np.float32)
    (y,) = library.run("g", [x, np.array([-99, -1, 2, 99])])
    assert y.tolist() == [1, 3, 3, 3]
