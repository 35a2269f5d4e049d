"""Folding by NumPy kernels gives the results of ONNX Runtime, or does not fold."""

import numpy as np
import onnx_ir as ir
import pytest

import smelt
from smelt.ir import text
from smelt.program.resampling import Sampling, depends_on_rounding
from smelt.runtime.fold import evaluate_node
from smelt.runtime.runner import open_runner
from smelt.targets.host.fold_node import compute_node

IMAGE = np.random.default_rng(0).normal(size=(1, 2, 6, 5)).astype(np.float32)
GRID = np.random.default_rng(1).uniform(-1.3, 1.3, size=(1, 3, 4, 2)).astype(np.float32)
STEPS = np.random.default_rng(2).normal(size=(3, 2, 4)).astype(np.float32)
SIZES = np.int64([1, 2, 9, 4])


def weights(gates: int, directions: int = 1) -> tuple[np.ndarray, ...]:
    numbers = np.random.default_rng(gates)
    shapes = [(directions, gates * 3, 4), (directions, gates * 3, 3), (directions, gates * 6)]
    return tuple(numbers.normal(size=shape).astype(np.float32) for shape in shapes)


FOLDED = {
    "cubic": ('Resize<mode="cubic">(x, , , s)', (IMAGE, SIZES), 18),
    "corners": (
        'Resize<mode="linear", coordinate_transformation_mode="align_corners">(x, , s)',
        (IMAGE, np.float32([1, 1, 1.7, 0.6])),
        18,
    ),
    "antialias": ('Resize<mode="linear", antialias=1>(x, , , s)', (IMAGE, SIZES), 18),
    "nearest": ("Resize(x, , s)", (IMAGE, np.float32([1, 1, 2, 3])), 13),
    "bytes": ("Resize(x, , s)", (IMAGE.astype(np.uint8), np.float32([1, 1, 2, 3])), 13),
    "grid": ('GridSample<mode="linear", padding_mode="border">(x, g)', (IMAGE, GRID), 20),
    "average": (
        "AveragePool<kernel_shape=[3,2], pads=[1,1,0,1], strides=[2,2], ceil_mode=1>(x)",
        (IMAGE,),
        19,
    ),
    "maximum": ("MaxPool<kernel_shape=[3,2], pads=[1,1,0,1]>(x)", (IMAGE,), 19),
    "norm": ("LpPool<kernel_shape=[3,2], pads=[1,1,0,1], p=3>(x)", (IMAGE,), 18),
    "global norm": ("GlobalLpPool<p=3>(x)", (IMAGE,), 18),
    "global": ("GlobalAveragePool(x)", (IMAGE,), 18),
    "erf": ("Gelu(x)", (IMAGE,), 20),
    "moments": ("MeanVarianceNormalization(x)", (IMAGE,), 13),
    "groups": (
        "GroupNormalization<num_groups=2>(x, a, b)",
        (IMAGE, np.float32([1, 2]), np.float32([0, 1])),
        21,
    ),
    "gru": ("GRU<hidden_size=3, linear_before_reset=1>(x, w, r, b)", (STEPS, *weights(3)), 14),
    "lstm": (
        'LSTM<hidden_size=3, direction="bidirectional">(x, w, r, b)',
        (STEPS, *weights(4, 2)),
        14,
    ),
    "rnn": ('RNN<hidden_size=3, direction="reverse">(x, w, r, b)', (STEPS, *weights(1)), 14),
    "attention": (
        "Attention(x, k, v)",
        (IMAGE, np.flip(IMAGE, 2).copy(), np.flip(IMAGE, 3).copy()),
        23,
    ),
    "boxes": (
        "NonMaxSuppression(x, s, m, i, t)",
        (
            np.float32([[[0, 0, 1, 1], [0, 0.1, 1, 1.1], [2, 2, 3, 3]]]),
            np.float32([[[0.9, 0.8, 0.7]]]),
            np.int64([2]),
            np.float32([0.5]),
            np.float32([0.1]),
        ),
        13,
    ),
}


def model_of(node: str, inputs: tuple[np.ndarray, ...], opset: int) -> ir.Model:
    """Return a model of one node, whose inputs have the types of ``inputs``, in order of their
    names.
    """
    names = [name for name in node.partition("(")[2].rstrip(")").split(", ") if name]
    names = list(dict.fromkeys(name.strip() for name in names))
    types = {np.float32: "float", np.int64: "int64", np.uint8: "uint8", np.float16: "float16"}
    declared = ", ".join(
        f"{types[array.dtype.type]}[{','.join(map(str, array.shape))}] {name}"
        for name, array in zip(names, inputs, strict=True)
    )
    result = "int64[n,3]" if "NonMax" in node else types[inputs[0].dtype.type]
    return text.parse(f"g ({declared}) => ({result} y) {{ y = {node} }}", opset)


def folded(
    model: ir.Model, inputs: tuple[np.ndarray, ...], shape: "tuple[int, ...] | None" = None
) -> "list[np.ndarray] | None":
    """Return the results of folding ``inputs``, if inference knows the result's ``shape``."""
    node, opset = model.graph.node(0), model.opset_imports[""]
    given = dict(zip([value.name for value in model.graph.inputs], inputs, strict=True))
    operands = [None if value is None else given[value.name] for value in node.inputs]
    if shape is not None and node.op_type != "NonMaxSuppression":
        node.outputs[0].shape = ir.Shape(shape)
    return evaluate_node(node, operands, opset=opset, kernels=compute_node)


@pytest.mark.parametrize("name", FOLDED)
def test_is_what_onnx_runtime_computes(name):
    node, inputs, opset = FOLDED[name]
    (expected,) = open_runner(model_of(node, inputs, opset))(*inputs)
    result = folded(model_of(node, inputs, opset), inputs, expected.shape)
    assert result is not None
    assert not result[0].flags.writeable
    scale = 8 * np.finfo(np.float32).eps * np.abs(inputs[0]).max()
    np.testing.assert_allclose(result[0], expected, rtol=0, atol=scale)


LEFT = {
    "crops": (
        'Resize<mode="linear", coordinate_transformation_mode="tf_crop_and_resize">(x, r, , s)',
        (IMAGE, np.float32([0, 0, 0.1, 0.1, 1, 1, 0.9, 0.9]), SIZES),
        18,
    ),
    "sums of bytes": (
        'Resize<mode="linear">(x, , s)',
        (IMAGE.astype(np.uint8), np.float32([1, 1, 2, 3])),
        13,
    ),
    "ties": (
        'Resize<nearest_mode="round_prefer_ceil", '
        'coordinate_transformation_mode="asymmetric">(x, , , s)',
        (np.zeros((1, 1, 1, 7), np.float32), np.int64([1, 1, 1, 2])),
        18,
    ),
    "cubic grid": (
        'GridSample<mode="cubic", padding_mode="border">(x, g)',
        (IMAGE, GRID),
        20,
    ),
    "half means": (
        "AveragePool<kernel_shape=[2,2]>(x)",
        (IMAGE.astype(np.float16),),
        18,
    ),
    "other activations": (
        'RNN<hidden_size=3, activations=["Relu"]>(x, w, r, b)',
        (STEPS, *weights(1)),
        14,
    ),
}


@pytest.mark.parametrize("name", LEFT)
def test_nodes_that_the_runtime_may_compute_differently_stay(name):
    node, inputs, opset = LEFT[name]
    (expected,) = open_runner(model_of(node, inputs, opset))(*inputs)
    assert folded(model_of(node, inputs, opset), inputs, expected.shape) is None


def test_a_coordinate_halfway_between_two_rows_is_not_folded():
    def axis(nearest: str, coordinates: str = "asymmetric") -> Sampling:
        return Sampling("nearest", coordinates, nearest, -0.75, False, False, None, 0, 1, 0)

    assert depends_on_rounding(axis("round_prefer_ceil"), 7, 2)
    assert depends_on_rounding(axis("floor"), 9, 21)
    assert not depends_on_rounding(axis("floor"), 7, 14)
    assert not depends_on_rounding(axis("round_prefer_floor", "half_pixel"), 5, 7)


TABLE = """
g (float[1,9,8] x, float[1,4,8] pos) => (float[1,9,8] y) {
    s = Constant<value_ints = [1,2,2,8]>() r = Reshape(pos, s)
    t = Transpose<perm = [0,3,1,2]>(r) n = Constant<value_ints = [1,8,3,3]>()
    z = Resize<mode = "cubic", coordinate_transformation_mode = "pytorch_half_pixel">(t, , , n)
    u = Transpose<perm = [0,2,3,1]>(z) m = Constant<value_ints = [1,9,8]>()
    q = Reshape(u, m) y = Add(x, q)
}
"""


@pytest.mark.parametrize("width", [8, 4000])
def test_a_resized_table_of_positions_is_folded(width):
    """Even beyond the bytes that a fold may usually add: 4 rows become 9."""
    model = text.parse(TABLE.replace(",8]", f",{width}]").replace("1,8,", f"1,{width},"), 18)
    table = np.random.default_rng(3).normal(size=(1, 4, width)).astype(np.float32)
    pos = model.graph.inputs.pop()
    pos.const_value = ir.tensor(table, name="pos")
    model.graph.register_initializer(pos)
    before = open_runner(model.clone())
    after = smelt.optimize(model, verify="off")
    assert [node.op_type for node in after.graph] == ["Add"]
    x = np.ones((1, 9, width), np.float32)
    np.testing.assert_allclose(open_runner(after)(x)[0], before(x)[0], rtol=0, atol=4e-6)
