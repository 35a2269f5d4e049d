"""Inferred expressions of open dims give the sizes of the results, at each length of the dims."""

from __future__ import annotations

from itertools import product

import numpy as np
import onnx_ir as ir
import pytest

from smelt.errors import SmeltError
from smelt.ir import text
from smelt.ir.shapes.inference import ShapeInference
from smelt.ir.symbolic_dims.dims import size_of
from smelt.runtime.runner import open_runner

LENGTHS = range(1, 13)
WINDOW = 5
"""The longest window of ``POOLS``; ONNX Runtime does not refuse all images that are smaller."""

IMAGE, MATRIX, ROW = "float[1,1,N,9] x", "float[N,4] x", "float[N] x"
POOLS = [
    f"y = {pool}<kernel_shape=[{k},2], strides=[{s},1], pads=[{b},0,{e},0], ceil_mode={ceil}{more}>(x)"
    for pool, k, s, (b, e), ceil, more in [
        *product(["MaxPool"], (2, 3), (1, 2, 3), ((0, 0), (1, 0), (0, 1)), (0, 1), [""]),
        *product(["MaxPool"], (2, 3), (2,), ((1, 1),), (1,), [", dilations=[2,1]"]),
        *product(["AveragePool"], (3,), (2, 3), ((1, 1),), (0, 1), [", count_include_pad=1"]),
    ]
] + [
    f'y = {pool}<kernel_shape=[{k},2], strides=[{s},1], auto_pad="{auto}", ceil_mode={ceil}>(x)'
    for pool, k, s, auto, ceil in product(
        ["MaxPool"], (2, 3), (1, 2, 3), ("SAME_UPPER", "SAME_LOWER", "VALID"), (0, 1)
    )
]
POOLS += [
    f"y = MaxPool<kernel_shape=[3,2]{more}>(x)"
    for more in (', auto_pad="SAME_UPPER"', ", ceil_mode=1", ", ceil_mode=1, pads=[1,0,1,0]")
]
SPLITS = [f"{', '.join('yzuvw'[:count])} = Split<num_outputs={count}>(x)" for count in (2, 3, 4, 5)]
FAR = 2**63 - 1
ENDS = (1, 3, -1, -20, 20, FAR, -FAR - 1)


def sliced(start: int, end: int, step: int) -> str:
    names = {"s": start, "e": end, "a": 0, "t": step}
    given = " ".join(f"{name} = Constant<value_ints=[{n}]>()" for name, n in names.items())
    return f"{given} y = Slice(x, s, e, a, t)"


SLICES = [sliced(*each) for each in product((0, 2, -3, 20), ENDS, (1, 2, -1, -3))]
SHAPED = "h = Shape<end=1>(x) i = Constant<value_ints=[1]>() t = Constant<value_ints=[3]>() "
COMPUTED = [
    SHAPED + f"{body} o = Constant<value_float=1.0>() y = Expand(o, m)"
    for body in (
        "m = Add(h, t)", "m = Mul(h, t)", "m = Div(h, t)", "m = Mod(h, t)", "m = Max(h, t)",
        "m = Min(h, t)", "k = Sub(h, t) m = Max(k, i)", "k = Neg(h) n = Add(k, t) m = Max(n, i)",
        "k = Add(h, t) n = Sub(k, i) m = Div(n, t)", "k = Mul(h, t) n = Div(k, t) m = Mul(n, t)",
        "m = Concat<axis=0>(t, h, i)", "c = Equal(h, t) m = Where(c, i, t)",
        "c = Less(h, t) m = Where(c, i, h)", "k = Squeeze(h) n = Unsqueeze(k, first) m = Mul(n, n)",
    )
]  # fmt: skip
OTHERS = {
    IMAGE: [
        "f = Flatten(x) y = Flatten<axis=3>(x)",
        "p = Constant<value_ints=[0,0,2,-1,0,0,1,0]>() y = Pad(x, p)",
        "r = Constant<value_ints=[1,2,3,1]>() y = Tile(x, r)",
        "y = ReduceSum<keepdims=0>(x) z = ReduceMax(x) a = Constant<value_ints=[2]>() w = ReduceMin(x, a)",
        "g = Shape(x) y = Expand(x, g) s = Constant<value_ints=[1,5,1,1]>() z = Expand(x, s)",
        "s = Constant<value_floats=[1.0,1.0,2.0,0.5]>() y = Resize(x, , s)",
        "s = Constant<value_floats=[1.0,1.0,1.5,1.0]>() y = Resize(x, , s)",
        "s = Constant<value_ints=[1,-1,3]>() y = Reshape(x, s) r = Constant<value_ints=[0,-1]>() z = Reshape(x, r)",
        "y = Transpose<perm=[3,2,0,1]>(x)",
    ],
    MATRIX: [
        "y = Gather<axis=0>(x, none) z = Concat<axis=0>(x, x) w = Concat<axis=1>(x, x)",
        "t = Transpose(x) y = MatMul(x, t) z = MatMul(t, x)",
        "k = Constant<value_ints=[1]>() y, i = TopK<axis=0>(x, k)",
        "y = ArgMax<axis=0, keepdims=0>(x) z = CumSum(x, none) w = ReduceL2<keepdims=0>(x, second)",
        "d = Constant<value_int=5>() v = Constant<value_ints=[0,1]>() c = ArgMax(x) y = OneHot<axis=0>(c, d, v)",
    ],
    ROW: [
        "o = Constant<value_int=2>() h = Size(x) y = Range(none, h, o)",
        "m = Constant<value_int=-1>() h = Size(x) n = Add(h, m) y = Range(n, m, m)",
    ],
}  # fmt: skip
CONSTANTS = "<int64[1] first = {0}, int64 none = {0}, int64[1] second = {1}>"
UNTOLD = {
    *(body for body in COMPUTED if "c = " in body),
    *(sliced(-3, end, step) for end in ENDS for step in (-1, -3)),
    *(sliced(start, FAR, step) for start in (0, 2, 20) for step in (-1, -3)),
}
"""Bodies of which inference does not tell one size."""


def model_of(head: str, body: str) -> ir.Model:
    """Return the model of a body; its outputs are the results whose names are among the last
    letters.
    """
    model = text.parse(f"g ({head}) => () {CONSTANTS} {{ {body} }}", 18)
    results = [value for node in model.graph for value in node.outputs]
    model.graph.outputs.extend(v for v in results if v.name is not None and v.name in "uvwyz")
    return model


CASES = [
    *product([IMAGE], POOLS),
    *product([ROW], [*SPLITS, *COMPUTED]),
    *product([MATRIX], SLICES),
    *((head, body) for head, bodies in OTHERS.items() for body in bodies),
]


@pytest.mark.parametrize(("head", "body"), CASES, ids=[body for _, body in CASES])
def test_sizes(head: str, body: str) -> None:
    model = model_of(head, body)
    run = open_runner(model.clone())
    ShapeInference(model).infer_model()
    (x,) = model.graph.inputs
    assert x.shape is not None
    ran, is_told = 0, body not in UNTOLD
    for length in LENGTHS[WINDOW - 1 if "kernel" in body else 0 :]:
        try:
            results = run(np.ones([size_of(dim, {"N": length}) for dim in x.shape], np.float32))
        except SmeltError:  # more parts than elements, or windows that stand apart
            continue
        ran += 1
        for value, result in zip(model.graph.outputs, results, strict=True):
            assert value.shape is not None
            dims = [size_of(dim, {"N": length}) for dim in value.shape]
            assert sum(not isinstance(dim, int) for dim in dims) == (not is_told)
            told = [
                dim if isinstance(dim, int) else n
                for dim, n in zip(dims, result.shape, strict=True)
            ]
            assert tuple(told) == np.shape(result), f"{value.name}: {value.shape} at {length}"
    assert ran > 2


@pytest.mark.parametrize(("size", "count"), [(5, 4), (1, 3), (4, 3), (6, 4), (7, 3), (3, 2)])
def test_parts_that_are_together_too_long_have_no_size(size: int, count: int) -> None:
    """Such a Split fails, and readers of ONNX files infer different sizes for it."""
    names = "yzuv"[:count]
    graph = f"g (float[{size},2] x) => ({', '.join(f'float {n}' for n in names)}) "
    source = text.parse(f"{graph} {{ {', '.join(names)} = Split<num_outputs={count}>(x) }}", 18)
    for value in source.graph.outputs:
        value.shape = None
    ShapeInference(source).infer_model()
    shapes = [value.shape for value in source.graph.outputs]
    sizes = [None if shape is None else shape[0] for shape in shapes]
    part = -(-size // count)
    fits = part * (count - 1) <= size
    assert all(isinstance(each, int) == fits for each in sizes)
    assert not fits or sizes == [*[part] * (count - 1), size - part * (count - 1)]
