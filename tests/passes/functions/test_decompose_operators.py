"""Operators that a consumer does not take become others that compute the same."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest

from smelt.ir import text, verify
from smelt.ir.worklist import RuleStats
from smelt.operators.decompositions import ROWS, spellings
from smelt.passes.base import PassContext
from smelt.passes.functions.decompose_operators import decompose_operators
from smelt.runtime.inputs import random_inputs
from smelt.runtime.reference import Reference

X = "float[2,3,4] x"
IMAGE = "float[2,4,3,3] x"
C = "<float[4] s = {1, 2, 3, 4}, float[4] b = {1, 0, 1, 0}, float[4] v = {1, 2, 1, 3}>"
UNARY = [
    "Abs",
    "Celu",
    "Elu",
    "Erf",
    "Gelu",
    "HardSigmoid",
    "HardSwish",
    "LeakyRelu",
    "Mish",
    "Neg",
    "Reciprocal",
    "Relu",
    "Selu",
    "Softplus",
    "Softsign",
]
MODELS = {
    **{op: f"g ({X}) => (float[2,3,4] y) {{ y = {op}(x) }}" for op in UNARY},
    "Gelu tanh": f'g ({X}) => (float[2,3,4] y) {{ y = Gelu<approximate="tanh">(x) }}',
    "Swish": f"g ({X}) => (float[2,3,4] y) {{ y = Swish<alpha=1.5>(x) }}",
    "PRelu": f"g ({X}) => (float[2,3,4] y) <float[4] s = {{1, 2, -1, 0.5}}> {{ y = PRelu(x, s) }}",
    **{
        op: f"g (bool[2,3] x, bool[3] z) => (bool[2,3] y) {{ y = {op}(x, z) }}"
        for op in ("And", "Or", "Xor")
    },
    "Not": "g (bool[2,3] x) => (bool[2,3] y) { y = Not(x) }",
    "Sign": f"g ({X}) => (float[2,3,4] y) {{ y = Sign(x) }}",
    "Max": f"g ({X}, float[4] z) => (float[2,3,4] y) {{ y = Max(x, z, x) }}",
    "Min": f"g ({X}, float[4] z) => (float[2,3,4] y) {{ y = Min(x, z, x) }}",
    "Mean": f"g ({X}, float[4] z) => (float[2,3,4] y) {{ y = Mean(x, z, x) }}",
    "Sum": f"g ({X}, float[4] z) => (float[2,3,4] y) {{ y = Sum(x, z, x) }}",
    "GreaterOrEqual": f"g ({X}) => (bool[2,3,4] y) {{ y = GreaterOrEqual(x, x) }}",
    "LessOrEqual": f"g ({X}) => (bool[2,3,4] y) {{ y = LessOrEqual(x, x) }}",
    "Where": "g (bool[2,3] c) => (float[2,3] y) <float a = {0}, float b = {-3.4028235e38}> "
    "{ y = Where(c, a, b) }",
    "Where of a table": "g (bool[2,3] c, int64[2] i) => (float[2,3] y) "
    "<float[2,3] t = {1, 2, 3, 4, 5, 6}, float b = {-3.4028235e38}> "
    "{ a = Gather(t, i) y = Where(c, a, b) }",
    "Gemm": "g (float[3,2] x, float[4,3] w, float[4] z) => (float[2,4] y) "
    "{ y = Gemm<transA=1, transB=1, alpha=0.5, beta=2.0>(x, w, z) }",
    "BatchNormalization": f"g ({IMAGE}) => (float[2,4,3,3] y) {C} "
    "{ y = BatchNormalization(x, s, b, b, v) }",
    "GlobalAveragePool": f"g ({IMAGE}) => (float[2,4,1,1] y) {{ y = GlobalAveragePool(x) }}",
    "GroupNormalization": f"g ({IMAGE}) => (float[2,4,3,3] y) {C} "
    "{ y = GroupNormalization<num_groups=2>(x, s, b) }",
    "InstanceNormalization": f"g ({IMAGE}) => (float[2,4,3,3] y) {C} "
    "{ y = InstanceNormalization(x, s, b) }",
    "LayerNormalization": f"g ({X}) => (float[2,3,4] y) {C} "
    "{ y = LayerNormalization<epsilon=0.01>(x, s, b) }",
    "LayerNormalization of two axes": f"g ({X}, float[3,4] s) => (float[2,3,4] y) "
    "{ y = LayerNormalization<axis=1>(x, s) }",
    "RMSNormalization": f"g ({X}) => (float[2,3,4] y) {C} {{ y = RMSNormalization(x, s) }}",
    **{
        op: f"g ({X}) => (float[2,1,4] y) <int64[1] a = {{1}}> {{ y = {op}(x, a) }}"
        for op in ("ReduceL1", "ReduceL2", "ReduceMin", "ReduceSum", "ReduceSumSquare")
    },
    **{
        f"{op} of opset 13": f"g ({X}) => (float[2,1,4] y) {{ y = {op}<axes=[1]>(x) }}"
        for op in ("ReduceL1", "ReduceL2", "ReduceMin", "ReduceSumSquare")
    },
    "ReduceSum of all": f"g ({X}) => (float y) {{ y = ReduceSum<keepdims=0>(x) }}",
    "ReduceMin of all": f"g ({X}) => (float y) {{ y = ReduceMin<keepdims=0>(x) }}",
    "Expand": f"g ({X}) => (float[2,2,3,4] y) <int64[4] n = {{2, 1, 1, 1}}> {{ y = Expand(x, n) }}",
    "Expand of five dims": "g (float[2,3,1,4,2] x) => (float[2,3,3,4,2] y) <int64[5] n = "
    "{1, 1, 3, 1, 1}> { y = Expand(x, n) }",
    "Pow": f"g ({X}) => (float[2,3,4] y) <float e = {{3}}> {{ y = Pow(x, e) }}",
    "Pow of 4": f"g ({X}) => (float[2,3,4] y) <float e = {{4}}> {{ y = Pow(x, e) }}",
    "Pow of 2": f"g ({X}) => (float[2,3,4] y) <int64 e = {{2}}> {{ y = Pow(x, e) }}",
    "Flatten": f"g ({X}) => (float[6,4] y) {{ y = Flatten<axis=2>(x) }}",
    "Conv": "g (float[1,2,7] x, float[4,1,3] w, float[4] b) => (float[1,4,4] y) "
    "{ y = Conv<group=2, pads=[1, 2], strides=[2], dilations=[1]>(x, w, b) }",
    "Resize": "g (float[1,1,2,2] x) => (float[1,1,4,4] y) <float[4] s = {1, 1, 2, 2}> "
    '{ y = Resize<mode="nearest">(x, "", s) }',
    "Gather": f"g ({X}) => (float[2,4] y) <int64 i = {{-1}}> {{ y = Gather<axis=1>(x, i) }}",
    "Gather of a run": f"g ({X}) => (float[2,2,4] y) <int64[2] i = {{1, 2}}> "
    "{ y = Gather<axis=1>(x, i) }",
    "GatherElements": "g (float[2,2,4] x) => (float[2,2,3] y) <int64[2,2,3] i = "
    "{2, -1, 0, 1, 1, 3, 2, -1, 0, 1, 1, 3}> { y = GatherElements<axis=2>(x, i) }",
    "GatherElements of different matrices": "g (float[2,1,4] x) => (float[2,1,2] y) "
    "<int64[2,1,2] i = {2, -1, 0, 1}> { y = GatherElements<axis=2>(x, i) }",
    "GatherElements along the middle": "g (float[2,3,2] x) => (float[2,1,2] y) "
    "<int64[2,1,2] i = {2, -1, 2, -1}> { y = GatherElements<axis=1>(x, i) }",
    "Pad": f"g ({X}) => (float[3,3,6] y) <int64[6] p = {{0, 0, 2, 1, 0, 0}}, float v = {{7}}> "
    "{ y = Pad(x, p, v) }",
    "Split": f"g ({X}) => (float[2,1,4] y, float[2,2,4] z) <int64[2] n = {{1, 2}}> "
    "{ y, z = Split<axis=1>(x, n) }",
    "Squeeze": "g (float[2,1,4] x) => (float[2,4] y) <int64[1] a = {1}> { y = Squeeze(x, a) }",
    "Tile": f"g ({X}) => (float[4,3,4] y) <int64[3] n = {{2, 1, 1}}> {{ y = Tile(x, n) }}",
    "Unsqueeze": f"g ({X}) => (float[2,1,3,4] y) <int64[1] a = {{1}}> {{ y = Unsqueeze(x, a) }}",
}


def opset_of(name: str) -> int:
    if name.endswith("opset 13"):
        return 13
    return 24 if name == "Swish" else 23


def decompose(model: ir.Model, taken: frozenset[str]) -> RuleStats:
    """Run the pass for a consumer that takes the operators ``taken``; returns its statistics."""
    cx = PassContext.of(model)
    cx.kernels, cx.computes = taken, lambda node: node.op_type in taken and _is_final(node)
    stats = RuleStats()
    while (found := decompose_operators.run(cx)).rewrites:
        stats.fired += found.fired
    verify.verify(model)
    cx.shapes.restore_interface()
    return stats


def _is_final(node: ir.Node) -> bool:
    """False for the forms of Conv and Resize that decompositions change, not replace."""
    shape = node.inputs[0].shape
    return None not in node.inputs and not (node.op_type == "Conv" and len(shape) == 3)


def test_every_operator_of_the_table_has_a_model() -> None:
    spelled = {name for name in spellings.ROWS if ROWS[name] == spellings.ROWS[name]}
    assert {name.split()[0] for name in MODELS} | spelled == ROWS.keys()


SPELLED = [row for rows in spellings.ROWS.values() for row in rows]

CHOICES = [
    (name, place)
    for name in MODELS
    for place, _ in enumerate(ROWS[name.split()[0]])
    if ROWS[name.split()[0]][place] not in SPELLED  # they have tests of their own
    if name.split()[0] != "Gather" or place == 1  # rows of axis 0 have a test of their own
    if name != "Where of a table" or place == 1  # the first row takes constants only
]


@pytest.mark.parametrize(("name", "place"), CHOICES)
def test_a_decomposition_computes_the_same_with_the_operators_that_it_lists(name, place) -> None:
    op_type = name.split()[0]
    source, model = (text.parse(MODELS[name], opset_of(name)) for _ in range(2))
    taken = frozenset(ROWS[op_type][place].operators()) | ({"Gather"} - {op_type})
    assert decompose(model, taken).fired[op_type] == 1
    assert {node.op_type for node in model.graph} <= taken
    check_equal(source, model)


def check_equal(source: ir.Model, model: ir.Model) -> None:
    """Both models give results that are equal to 1e-5 of their magnitude."""
    for mode in ("normal", "edges"):
        feeds = random_inputs(source, {}, mode=mode)
        with np.errstate(all="ignore"):
            expected, found = (Reference(each)(*feeds) for each in (source, model))
        for one, other in zip(expected, found, strict=True):
            finite = np.isfinite(one)
            assert one.shape == other.shape
            assert one.dtype == other.dtype
            np.testing.assert_allclose(other[finite], one[finite], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("op_type", ["Max", "Min"])
def test_a_choice_by_comparisons_returns_nan_of_either_operand(op_type) -> None:
    graph = f"g (float[4] x, float[4] z) => (float[4] y) {{ y = {op_type}(x, z) }}"
    model = text.parse(graph, 20)
    decompose(model, frozenset(ROWS[op_type][0].operators()))
    nan, inf = np.float32("nan"), np.float32("inf")
    x, z = np.array([nan, 1, -inf, inf], np.float32), np.array([1, nan, inf, inf], np.float32)
    with np.errstate(all="ignore"):
        [found] = Reference(model)(x, z)
    expected = {"Max": [nan, nan, inf, inf], "Min": [nan, nan, -inf, inf]}[op_type]
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("op_type", ["Max", "Min", "Sign"])
@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_choices_of_integers_are_exact(op_type, dtype) -> None:
    operands = "x" if op_type == "Sign" else "x, z"
    graph = f"g ({dtype}[3] x, {dtype}[3] z) => ({dtype}[3] y) {{ y = {op_type}({operands}) }}"
    source, model = text.parse(graph, 20), text.parse(graph, 20)
    assert decompose(model, frozenset(ROWS[op_type][0].operators())).fired
    top = np.iinfo(dtype).max
    feeds = [np.array([top, -top - 1, 0], dtype), np.array([-top - 1, -5, 0], dtype)]
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(Reference(model)(*feeds)[0], Reference(source)(*feeds)[0])


def test_the_sign_of_unsigned_integers_stays() -> None:
    model = text.parse("g (uint8[3] x) => (uint8[3] y) { y = Sign(x) }", 20)
    assert not decompose(model, frozenset({"Greater", "Less", "Where"})).fired


@pytest.mark.parametrize("table", ["{1, -inf}", "{1, nan}"])
def test_a_choice_of_what_may_be_infinite_stays(table) -> None:
    graph = f"g (bool[2] c) => (float[2] y) <float[2] t = {table}, float b = {{0}}> {{ y = Where(c, t, b) }}"
    model = text.parse(graph, 20)
    assert not decompose(model, frozenset({"Cast", "Sub", "Mul", "Add"})).fired
    computed = "g (bool[2] c, float[2] x) => (float[2] y) <float b = {0}> { y = Where(c, x, b) }"
    assert not decompose(text.parse(computed, 20), frozenset({"Cast", "Sub", "Mul", "Add"})).fired


def test_elements_at_computed_places_stay() -> None:
    graph = "g (float[2,3] x, int64[2,2] i) => (float[2,2] y) { y = GatherElements<axis=1>(x, i) }"
    model = text.parse(graph, 20)
    assert not decompose(model, frozenset({"Reshape", "Gather", "Transpose", "GatherND"})).fired


def test_copies_of_five_dims_are_joined_with_three() -> None:
    model = text.parse(MODELS["Expand of five dims"], 20)
    decompose(model, frozenset({"Concat", "Reshape", "Identity"}))
    assert [len(node.outputs[0].shape) for node in model.graph] == [3, 3, 5]


@pytest.mark.parametrize(
    "places", ["int64 i = {-1}", "int64[3] i = {0, -1, 2}", "int64[2,2] i = {0, 3, 1, 1}"]
)
def test_parts_along_another_axis_become_gathernd_of_the_transpose(places) -> None:
    head = (
        "g (float[2,4,3] x) => (float[2,N,M] y)"
        if "2,2" not in places
        else "g (float[2,4,3] x) => (float[2,A,B,C] y)"
    )
    head = head.replace("2,N,M", "2,3") if "-1}" in places and "3]" not in places else head
    graph = f"{head} <{places}> {{ y = Gather<axis=1>(x, i) }}"
    source, model = text.parse(graph, 20), text.parse(graph, 20)
    assert decompose(model, frozenset({"GatherND", "Unsqueeze", "Transpose"})).fired
    check_equal(source, model)


def test_rows_of_axis_0_become_gathernd_that_counts_from_the_end_too() -> None:
    graph = (
        "g (float[5,3] x) => (float[2,2,3] y) <int64[2,2] i = {0, -1, 4, 2}> { y = Gather(x, i) }"
    )
    source, model = text.parse(graph, 20), text.parse(graph, 20)
    decompose(model, frozenset({"GatherND", "Unsqueeze"}))
    assert [node.op_type for node in model.graph][-1] == "GatherND"
    check_equal(source, model)


def test_decompositions_follow_each_other() -> None:
    graph = f"g ({X}) => (float[2,3,4] y) {{ y = Gelu(x) }}"
    source, model = text.parse(graph, 20), text.parse(graph, 20)
    decompose(model, frozenset({"Clip", "Mul", "Add", "Div", "Tanh"}))
    assert {node.op_type for node in model.graph} == {"Clip", "Mul", "Add", "Div"}
    check_equal(source, model)


@pytest.mark.parametrize(
    ("op_type", "row", "graph"),
    [
        ("Gather", "axis", "g (int64[2] i) => (float[2,2] y) <float[3,2] t = {1, 2, 3, 4, 5, 6}> { y = Gather<axis=0>(t, i) }"),
        ("Pad", "mode", f"g ({X}) => (float[2,3,5] y) <int64[6] p = {{0, 0, 1, 0, 0, 0}}> {{ y = Pad(x, p) }}"),
        ("Split", "sizes", f"g ({X}) => (float[2,3,2] y, float[2,3,2] z) {{ y, z = Split<axis=2, num_outputs=2>(x) }}"),
        ("Add", "one sample", "g (float[2,1,2] x) => (float[2,1,2] y) <float[2,1,2] k = {1, 2, 1, 2}> { y = Add(x, k) }"),
        ("Sub", "one sample", "g (float[2,1,2] x) => (float[2,1,2] y) <float[2,1,2] k = {1, 2, 1, 2}> { y = Sub(k, x) }"),
        ("MatMul", "one sample", "g (float[2,2,1] x) => (float[2,1,1] y) <float[2,1,2] k = {1, 2, 1, 2}> { y = MatMul(k, x) }"),
        ("LayerNormalization", "bias", f"g ({X}) => (float[2,3,4] y) <float[4] s = {{1, 2, 3, 4}}> {{ y = LayerNormalization(x, s) }}"),
    ],
)  # fmt: skip
def test_a_consumer_of_one_spelling_gets_it_once(op_type, row, graph) -> None:
    source, model = text.parse(graph, 20), text.parse(graph, 20)

    def is_spelled(node: ir.Node) -> bool:
        return {
            "axis": "axis" not in node.attributes,
            "mode": "mode" in node.attributes,
            "sizes": len(node.inputs) == 2,
            "bias": len(node.inputs) == 3,
            "one sample": any(value.shape[0] == 1 for value in node.inputs),
        }[row]

    cx = PassContext.of(model)
    cx.kernels, cx.computes = frozenset({op_type}), is_spelled
    assert decompose_operators.run(cx).rewrites == 1
    [node] = [node for node in model.graph if node.op_type == op_type]
    assert is_spelled(node)
    check_equal(source, model)
    assert not decompose_operators.run(cx).rewrites


SPELLED_ALREADY = {
    "a Gather of another axis, for a consumer of the first": (
        f"g ({X}, int64[2] i) => (float[2,2,4] y) {{ y = Gather<axis=1>(x, i) }}"
    ),
    "samples that differ": (
        "g (float[2,1,2] x) => (float[2,1,2] y) <float[2,1,2] k = {1, 2, 1, 3}> { y = Add(x, k) }"
    ),
    "samples that broadcast": (
        "g (float[1,1,2] x) => (float[2,1,2] y) <float[2,1,2] k = {1, 2, 1, 2}> { y = Add(x, k) }"
    ),
    "zeros of two signs": (
        "g (float[2,1,1] x) => (float[2,1,1] y) <float[2,1,1] k = {0, -0.0}> { y = Div(x, k) }"
    ),
    "a Pad with its mode": (
        'g (float[3] x) => (float[4] y) <int64[2] p = {1, 0}> { y = Pad<mode="edge">(x, p) }'
    ),
    "sizes that are an input": (
        "g (float[3] x, int64[2] n) => (float[A] y, float[B] z) { y, z = Split(x, n) }"
    ),
    "parts of an open size": (
        "g (float[N] x) => (float[A] y, float[B] z) { y, z = Split<num_outputs=2>(x) }"
    ),
    "a norm with a bias": (
        "g (float[1,2] x, float[2] s) => (float[1,2] y) { y = LayerNormalization(x, s, s) }"
    ),
    "a computed scale": (
        "g (float[1,2] x, float[2] s) => (float[1,2] y) { y = LayerNormalization(x, s) }"
    ),
}


@pytest.mark.parametrize("graph", SPELLED_ALREADY.values(), ids=SPELLED_ALREADY)
def test_operators_without_another_spelling_stay(graph) -> None:
    model = text.parse(graph, 20)
    before = [(node.op_type, len(node.inputs), set(node.attributes)) for node in model.graph]
    cx = PassContext.of(model)
    cx.kernels, cx.computes = frozenset(op for op, _, _ in before), lambda node: False
    assert not decompose_operators.run(cx).rewrites
    assert before == [
        (node.op_type, len(node.inputs), set(node.attributes)) for node in model.graph
    ]


KEPT = {
    "a root": ("g (float[2] x) => (float[2] y) <float e = {0.5}> { y = Pow(x, e) }", "Mul"),
    "an exponent that raises the rank": (
        "g (float[2] x) => (float[1,2] y) <float[1,1] e = {2}> { y = Pow(x, e) }",
        "Mul",
    ),
    "powers of integers": (
        "g (int32[2] x) => (int32[2] y) <int32 e = {3}> { y = Pow(x, e) }",
        "Mul",
    ),
    "a sum of nothing": (
        "g (float[2,0] x) => (float[2] y) <int64[1] a = {1}> { y = ReduceSum<keepdims=0>(x, a) }",
        "ReduceMean Mul",
    ),
    "a sum of an open size": (
        "g (float[2,N] x) => (float[2] y) <int64[1] a = {1}> { y = ReduceSum<keepdims=0>(x, a) }",
        "ReduceMean Mul",
    ),
    "a sum of integers": (
        "g (int64[2,3] x) => (int64[2] y) <int64[1] a = {1}> { y = ReduceSum<keepdims=0>(x, a) }",
        "ReduceMean Mul",
    ),
    "a sum of halves, whose mean is rounded": (
        "g (float16[2,3] x) => (float16[2] y) <int64[1] a = {1}> { y = ReduceSum<keepdims=0>(x, a) }",
        "ReduceMean Mul",
    ),
    "a sum of no axes, which is the operand": (
        "g (float[2,3] x) => (float[2,3] y) { y = ReduceSum<noop_with_empty_axes=1>(x) }",
        "ReduceMean Mul",
    ),
    "a sum of axes that a run decides": (
        "g (float[2,3] x, int64[1] a) => (float[2,1] y) { y = ReduceSum(x, a) }",
        "ReduceMean Mul",
    ),
    "a choice of numbers that are not constant": (
        "g (bool[2] c, float[2] x) => (float[2] y) <float b = {0}> { y = Where(c, x, b) }",
        "Cast Mul Add",
    ),
    "a choice whose step overflows": (
        "g (bool[2] c) => (float[2] y) <float a = {3.0e38}, float b = {-3.0e38}> { y = Where(c, a, b) }",
        "Cast Mul Add",
    ),
    "integers, whose least number has no negative": (
        "g (int64[2] x) => (int64[2] y) { y = Abs(x) }",
        "Max Mul",
    ),
    "a quotient by 0": (
        "g (float[2] x) => (float[2] y) { y = Celu<alpha=0.0>(x) }",
        "Relu Mul Div Exp Sub",
    ),
    "Erf of doubles": ("g (double[2] x) => (double[2] y) { y = Erf(x) }", "Clip Mul Add Div"),
    "statistics that are no constants": (
        "g (float[1,1,2] x, float[1] s) => (float[1,1,2] y) { y = BatchNormalization(x, s, s, s, s) }",
        "Mul Add Reshape",
    ),
    "a scale of another type": (
        "g (float16[2,1] x) => (float16[2,1] y) <float[1] s = {1}> { y = BatchNormalization(x, s, s, s, s) }",
        "Mul Add Reshape",
    ),
    "channels of an unknown rank": (
        "g (float[2] x, int64[N] n) => (float y) <float[1] s = {1}> "
        "{ z = Reshape(x, n) y = BatchNormalization(z, s, s, s, s) }",
        "Mul Add Reshape",
    ),
    **{
        f"{call}, whose squares overflow": (
            "g (float16[2,2,3] x, float16[2] s, float16[3] t) => (float16[2,2,3] y) "
            f"{{ y = {call} }}",
            "ReduceMean Sub Mul Add Sqrt Div Reshape",
        )
        for call in (
            "LayerNormalization(x, t)",
            "RMSNormalization(x, t)",
            "InstanceNormalization(x, s, s)",
            "GroupNormalization<num_groups=1>(x, s, s)",
        )
    },
    "indices that skip": (
        "g (float[5] x) => (float[2] y) <int64[2] i = {0, 2}> { y = Gather(x, i) }",
        "Slice Squeeze",
    ),
    "pads below 0": (
        "g (float[3] x) => (float[2] y) <int64[2] p = {-1, 0}> { y = Pad(x, p) }",
        "Concat Identity",
    ),
    "pads of an open size": (
        "g (float[A,3] x) => (float[A,4] y) <int64[4] p = {0, 1, 0, 0}> { y = Pad(x, p) }",
        "Concat Identity",
    ),
    "two open sizes": (
        "g (float[A,B] x) => (float[A,1,B] y) <int64[1] a = {1}> { y = Unsqueeze(x, a) }",
        "Reshape",
    ),
    "a region that is read": (
        "g (float[1,1,2,2] x) => (float[1,1,4,4] y) <float[4] s = {1, 1, 2, 2}> "
        '{ y = Resize<coordinate_transformation_mode="tf_crop_and_resize">(x, "", s) }',
        "Resize",
    ),
    "pads that depend on the size": (
        "g (float[1,1,4] x, float[1,1,3] w) => (float[1,1,4] y) "
        '{ y = Conv<auto_pad="SAME_UPPER">(x, w) }',
        "Unsqueeze Conv Squeeze",
    ),
    "a part that the consumer lacks": ("g (float[2] x) => (float[2] y) { y = Gelu(x) }", "Mul Add"),
}


@pytest.mark.parametrize("name", KEPT)
def test_nodes_that_no_decomposition_fits_stay(name) -> None:
    graph, taken = KEPT[name]
    model = text.parse(graph, 23)
    before = [node.op_type for node in model.graph]
    assert not decompose(model, frozenset(taken.split())).fired
    assert [node.op_type for node in model.graph] == before


def test_without_a_consumer_nothing_changes() -> None:
    model = text.parse(f"g ({X}) => (float[2,3,4] y) {{ y = Gelu(x) }}", 20)
    assert not decompose_operators.run(PassContext.of(model)).rewrites


def test_an_attribute_of_the_enclosing_function_stays() -> None:
    model = text.parse(
        """<ir_version: 10, opset_import: ["" : 20, "f" : 1]>
        g (float[2] x) => (float[2] y) { y = f.act<a = 2.0>(x) }
        <domain: "f", opset_import: ["" : 20]>
        act <a> (x) => (y) { y = LeakyRelu<alpha: float = @a>(x) }"""
    )
    assert not decompose(model, frozenset({"Relu", "Mul", "Sub"})).fired
