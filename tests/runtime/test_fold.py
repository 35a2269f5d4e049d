"""Folding one node is right and bounded, and leaves nodes whose result ONNX does not define."""

import warnings

import numpy as np
import onnx_ir as ir
import pytest
from onnx.reference.ops import _op_list

from smelt.check.compare import Tolerance, compare
from smelt.errors import InternalError
from smelt.ir import text
from smelt.runtime import fold as folding
from smelt.runtime.fold import evaluate_node, evaluator


def node_of(text: str, opset: int = 20) -> ir.Node:
    return ir.from_onnx_text(f'<ir_version: 9, opset_import: ["" : {opset}]>\n{text}').graph.node(0)


def fold(text: str, *inputs: object, opset: int = 20) -> "list[np.ndarray] | None":
    arrays = [None if item is None else np.asarray(item) for item in inputs]
    return evaluate_node(node_of(text, opset), arrays, opset=opset)


def test_gives_read_only_arrays_of_the_declared_type():
    results = fold("g (int64[2] x) => (float[2] y) { y = Cast<to = 1>(x) }", np.int64([1, 2]))
    assert results is not None
    assert results[0].dtype == np.float32
    assert not results[0].flags.writeable


def test_a_weight_that_is_reshaped_is_not_copied():
    weight = np.arange(6, dtype=np.float32)
    text = "g (float[6] x, int64[2] s) => (float[2,3] y) { y = Reshape(x, s) }"
    (own,) = fold(text, weight, np.int64([2, 3]))
    assert not np.may_share_memory(own, weight)
    assert weight.flags.writeable
    text_of_expand = "g (float[6] x, int64[2] s) => (float[2,6] y) { y = Expand(x, s) }"
    (expanded,) = fold(text_of_expand, weight, np.int64([2, 6]))
    assert not np.may_share_memory(expanded, weight)
    weight.flags.writeable = False
    (view,) = fold(text, weight, np.int64([2, 3]))
    assert np.may_share_memory(view, weight)
    np.testing.assert_array_equal(view, [[0, 1, 2], [3, 4, 5]])


def test_bits_are_read_as_floats():
    text = "g (uint32[3] x) => (float[3] y) { y = smelt.Bitcast<to = 1>(x) }"
    bits = np.uint32([0x3F800000, 0x80000000, 0x7FC00001])
    np.testing.assert_array_equal(fold(text, bits)[0].view(np.uint32), bits)


def test_an_absent_operand_is_none():
    text = "g (float[2] x, float h) => (float[2] y) { y = Clip(x, , h) }"
    assert fold(text, np.float32([-5, 5]), None, np.float32(1))[0].tolist() == [-5, 1]


@pytest.mark.parametrize("rank", ["", "[1]"])
@pytest.mark.parametrize(
    ("node", "one", "right"),
    [
        ("CumSum(x, one)", 0, [3, 4, 6]),
        ("CumProd(x, one)", 0, [3, 3, 6]),
        ("OneHot<axis = 0>(x, one, w)", 4, [[0, 0, 0], [0, 1, 0], [0, 0, 1], [1, 0, 0]]),
    ],
)
def test_a_vector_of_one_is_a_scalar_to_runtimes(node, one, right, rank):
    """PyTorch's TorchScript exporter writes such an axis for CumSum."""
    shape = ",".join(map(str, np.shape(right)))
    text = f"g (int64[3] x, int64{rank} one, int64[2] w) => (int64[{shape}] y) {{ y = {node} }}"
    operands = (np.int64([3, 1, 2]), np.full((1,) if rank else (), one, np.int64), np.int64([0, 1]))
    operands = operands[: 3 if "w" in node else 2]
    assert fold(text, *operands, opset=26)[0].tolist() == right


def test_an_axis_of_two_numbers_is_none():
    text = "g (int64[3] x, int64[2] a) => (int64[3] y) { y = CumSum(x, a) }"
    assert fold(text, np.int64([3, 1, 2]), np.int64([0, 0])) is None


SUMS = {
    "ReduceL2": ("y = ReduceL2<keepdims=0>(x, a)", lambda x: np.sqrt((x * x).sum((0, 1)))),
    "ReduceMean": ("y = ReduceMean<keepdims=0>(x, a)", lambda x: x.mean((0, 1))),
    "ReduceSum": ("y = ReduceSum<keepdims=0>(x, a)", lambda x: x.sum((0, 1))),
    "ReduceSumSquare": ("y = ReduceSumSquare<keepdims=0>(x, a)", lambda x: (x * x).sum((0, 1))),
    "Einsum": ('y = Einsum<equation="abc->c">(x)', lambda x: x.sum((0, 1))),
}


@pytest.mark.parametrize("kind", SUMS)
@pytest.mark.parametrize(("name", "dtype"), [
    ("float16", np.float16), ("bfloat16", ir.DataType.BFLOAT16.numpy()), ("float", np.float32),
])  # fmt: skip
def test_long_sums_are_rounded_once(kind: str, name: str, dtype: type) -> None:
    """Added one after another, 8,192 float16 numbers give a sum that is a quarter too small."""
    body, exact = SUMS[kind]
    x = np.random.default_rng(0).uniform(0, 0.2, (128, 64, 3)).astype(dtype)
    text = f"g ({name}[128,64,3] x, int64[2] a) => ({name}[3] y) {{ {body} }}"
    operands = (x,) if kind == "Einsum" else (x, np.int64([0, 1]))
    (found,) = fold(text, *operands)
    expected = exact(x.astype(np.float64)).astype(dtype)
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, expected)


OF_WEIGHTS = {
    "MatMul": "y = MatMul(x, w)",
    "Gemm": "y = Gemm<transA=1>(x, w)",
    "Softmax": "y = Softmax(x)",
    "LogSoftmax": "y = LogSoftmax(x)",
    "LpNormalization": "y = LpNormalization(x)",
}


@pytest.mark.parametrize("kind", OF_WEIGHTS)
@pytest.mark.parametrize("name", ["float16", "float"])
def test_operators_that_accumulate_keep_their_type(kind: str, name: str) -> None:
    dtype = np.float16 if name == "float16" else np.float32
    text = f"g ({name}[4,4] x, {name}[4,4] w) => ({name}[4,4] y) {{ {OF_WEIGHTS[kind]} }}"
    eye = np.eye(4, dtype=dtype)
    (found,) = fold(text, *(eye, eye)[: text.count(", w)") + 1], opset=22)
    assert (found.dtype, found.shape) == (dtype, (4, 4))


OPEN = {
    "integer division by zero": (
        "g (int64[1] a, int64[1] b) => (int64[1] c) { c = Div(a, b) }",
        [1],
        [0],
    ),
    "lowest integer by -1": (
        "g (int64[1] a, int64[1] b) => (int64[1] c) { c = Div(a, b) }",
        [-(2**63)],
        [-1],
    ),
    "integer remainder of zero": (
        "g (int64[1] a, int64[1] b) => (int64[1] c) { c = Mod(a, b) }",
        [1],
        [0],
    ),
    "random": ("g (int64[1] a) => (float[2] b) { b = RandomUniformLike<dtype = 1>(a) }", [1]),
}


@pytest.mark.parametrize("case", OPEN.values(), ids=OPEN.keys())
def test_leaves_open_results_alone(case):
    text, *inputs = case
    assert fold(text, *[np.int64(item) for item in inputs]) is None


@pytest.mark.parametrize(
    ("node", "inputs", "folded"),
    [
        ("Pow(x, e)", ([3, 10], [4, 15]), [81, 10**15]),
        ("Pow(x, e)", ([3, 10], [40, 2]), None),
        ("Pow(x, e)", ([3, 7], [39, 22]), None),
        ("Pow(x, e)", ([-2, 2], [63, 2]), None),
        ("ReduceSum(x)", ([3, -10],), [-7]),
        ("ReduceSum(x)", ([2**62, -(2**62) + 1],), None),
        ("ReduceProd(x)", ([2**31, 2**31],), None),
        ("ReduceProd(x)", ([0, 2**62],), None),
        ("ReduceL1(x)", ([-(2**63), 1],), None),
        ("ReduceSumSquare(x)", ([2**27, 1],), None),
        ("ReduceSumSquare(x)", ([2**20, 1],), [2**40 + 1]),
    ],
)
def test_integers_that_runtimes_compute_as_doubles_are_exact_or_left(node, inputs, folded):
    """ONNX Runtime saturates where integers wrap, and rounds beyond 53 bits."""
    operands = "int64[2] x, int64[2] e"[: 10 if len(inputs) == 1 else None]
    node = node.replace("(x)", "<keepdims=1>(x)")
    found = fold(
        f"g ({operands}) => (int64[{2 if 'Pow' in node else 1}] y) {{ y = {node} }}",
        *(np.int64(x) for x in inputs),
    )
    assert (None if found is None else found[0].tolist()) == folded


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e10, -1e10])
def test_leaves_casts_out_of_range_alone(value):
    text = "g (float[1] a) => (int32[1] b) { b = Cast<to = 6>(a) }"
    assert fold(text, np.float32([value])) is None
    assert fold(text, np.float32([-1.5]))[0].tolist() == [-1]


HUGE = {
    "ConstantOfShape": (
        "g (int64[N] s) => (float[A,B] y) { y = ConstantOfShape(s) }",
        np.int64([10**6, 10**6]),
    ),
    "Expand": (
        "g (float[1] x, int64[N] s) => (float[A] y) { y = Expand(x, s) }",
        np.float32([1]),
        np.int64([10**12]),
    ),
    "Tile": (
        "g (float[1] x, int64[N] s) => (float[A] y) { y = Tile(x, s) }",
        np.float32([1]),
        np.int64([10**12]),
    ),
    "Range": (
        "g (int64 a, int64 b, int64 c) => (int64[A] y) { y = Range(a, b, c) }",
        np.int64(0),
        np.int64(10**12),
        np.int64(1),
    ),
    "step of zero": (
        "g (int64 a, int64 b, int64 c) => (int64[A] y) { y = Range(a, b, c) }",
        np.int64(0),
        np.int64(1),
        np.int64(0),
    ),
    "outer product": (
        "g (float[30000,1] a, float[1,30000] b) => (float[30000,30000] y) { y = MatMul(a, b) }",
        np.ones((30000, 1), np.float32),
        np.ones((1, 30000), np.float32),
    ),
    "a billion multiplications": (
        "g (float[1000,1000] a, float[1000,1000] b) => (float[1000,1000] y) { y = Gemm<transA = 1>(a, b) }",
        np.ones((1000, 1000), np.float32),
        np.ones((1000, 1000), np.float32),
    ),
    "unknown size": (
        "g (float[4] x, int64[2] p) => (float[A] y) { y = Pad(x, p) }",
        np.float32([1, 2, 2, 3]),
        np.int64([1, 1]),
    ),
}


@pytest.mark.parametrize("case", HUGE.values(), ids=HUGE.keys())
def test_computes_nothing_whose_size_is_large_or_unknown(case):
    text, *inputs = case
    assert fold(text, *inputs) is None


THIN = {
    "MatMul": ("float[9000,2]", "MatMul(a, b)"),
    "Gemm": ("float[9000,2]", "Gemm(a, b)"),
    "Gemm of columns": ("float[2,9000]", "Gemm<transA = 1>(a, b)"),
}


@pytest.mark.parametrize(("first", "product"), THIN.values(), ids=THIN.keys())
def test_a_thin_product_is_little_work_however_long_it_is(first, product):
    graph = f"g ({first} a, float[2,300] b) => (float[9000,300] y) {{ y = {product} }}"
    shape = (2, 9000) if "transA" in product else (9000, 2)
    (y,) = fold(graph, np.ones(shape, np.float32), np.ones((2, 300), np.float32))
    assert y.shape == (9000, 300)
    assert (y == 2).all()


def test_computes_sizes_that_values_decide():
    assert fold("g (int64[2] s) => (float[A,B] y) { y = ConstantOfShape(s) }", np.int64([2, 3]))[
        0
    ].shape == (2, 3)
    text = "g (float[2,1] x, int64[2] s) => (float[A,B] y) { y = Expand(x, s) }"
    assert fold(text, np.ones((2, 1), np.float32), np.int64([1, 3]))[0].shape == (2, 3)


def test_old_softmax_had_another_meaning():
    text = "g (float[2,2,2] x) => (float[2,2,2] y) { y = Softmax<axis = 1>(x) }"
    x = np.zeros((2, 2, 2), np.float32)
    assert fold(text, x, opset=11) is None
    assert fold(text, x, opset=13) is not None


def test_an_evaluator_knows_the_opset_of_each_function():
    model = ir.from_onnx_text(
        '<ir_version: 9, opset_import: ["" : 20, "f" : 1]>\n'
        "g (float[2,2] x) => (float[2,2] y) { y = f.soft(x) }\n"
        '<domain: "f", opset_import: ["" : 11]> soft (x) => (y) { y = Softmax(x) }'
    )
    inner = next(iter(model.functions.values())).graph.node(0)
    inner.outputs[0].type, inner.outputs[0].shape = (
        ir.TensorType(ir.DataType.FLOAT),
        ir.Shape((2, 2)),
    )
    assert evaluator(model)(inner, [np.zeros((2, 2), np.float32)]) is None


def test_an_evaluator_finds_graphs_that_a_pass_made_later():
    model = text.parse("g (bool c, float[2] x) => (float[2] y) { y = Identity(x) }", 20)
    evaluate = evaluator(model)
    later = text.parse(
        """g (bool c, float[2] x) => (float[2] y) { y = If (c) <
            then_branch = t () => (float[2] a) { a = Neg(x) },
            else_branch = e () => (float[2] b) { b = Abs(x) }> }""",
        20,
    )
    branch = later.graph.node(0).attributes["then_branch"].as_graph()
    inner = branch.node(0)
    assert evaluate(inner, [np.ones(2, np.float32)]) is None  # it is of another model
    made = later.graph.node(0)
    later.graph.remove(made)
    model.graph.insert_before(model.graph.node(0), made)
    assert evaluate(inner, [np.ones(2, np.float32)])[0].tolist() == [-1, -1]


@pytest.mark.slow
def test_agrees_with_the_onnx_node_tests():
    from onnx.backend.test.case.node import collect_testcases

    checked = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cases = collect_testcases(None)
    for case in cases:
        if case.model is None or len(case.model.graph.node) != 1 or case.model.graph.node[0].domain:
            continue
        model = ir.from_proto(case.model)
        node = model.graph.node(0)
        for inputs, outputs in case.data_sets:
            given = dict(zip([value.name for value in model.graph.inputs], inputs, strict=False))
            if (
                not all(isinstance(item, np.ndarray) for item in inputs)
                or node.op_type == "QuantizeLinear"
            ):
                continue
            results = evaluator(model)(
                node, [None if v is None else given.get(v.name) for v in node.inputs]
            )
            if results is None:
                continue
            found = dict(zip([value.name for value in node.outputs], results, strict=True))
            actual = [found[value.name] for value in model.graph.outputs]
            tolerance = Tolerance(ulp=8, rtol=case.rtol, atol=case.atol)
            wrong = [str(item) for item in compare(outputs, actual, tolerance) if not item.ok]
            assert not wrong, f"{case.name}: {wrong}"
            checked += 1
    assert checked > 800


@pytest.fixture
def add() -> ir.Node:
    """Return a node that adds two floats."""
    values = [
        ir.Value(name=name, type=ir.TensorType(ir.DataType.FLOAT), shape=ir.Shape([2]))
        for name in "xyz"
    ]
    return ir.Node("", "Add", values[:2], outputs=values[2:])


TWO = np.ones(2, np.float32)


@pytest.mark.parametrize("change", ["signature", "module", "result"])
def test_uncallable_kernels_raise_an_internal_error(add, monkeypatch, change):
    """A new version of onnx may rename, move or rewrite the functions that are called here."""
    folding._check_kernels.cache_clear()
    if change == "signature":
        monkeypatch.setattr(_op_list, "load_op", lambda domain, op_type: None)
    elif change == "module":
        monkeypatch.delattr(_op_list, "load_op")
    else:
        monkeypatch.setattr(folding, "_call", lambda *_: [np.float32(3)])
    with pytest.raises(InternalError, match="reference kernels") as caught:
        evaluate_node(add, [TWO, TWO], opset=18)
    assert caught.value.code == "E908"
    monkeypatch.undo()
    folding._check_kernels.cache_clear()
    (result,) = evaluate_node(add, [TWO, TWO], opset=18)
    np.testing.assert_array_equal(result, 2)


def test_operands_that_a_kernel_does_not_take_are_left_alone(add):
    assert evaluate_node(add, [TWO, np.ones(3, np.float32)], opset=18) is None


def test_out_of_memory_is_not_taken_for_bad_operands(add, monkeypatch):
    folding._check_kernels()

    def fail(*_):
        raise MemoryError

    monkeypatch.setattr(folding, "_call", fail)
    with pytest.raises(MemoryError):
        evaluate_node(add, [TWO, TWO], opset=18)


def test_no_memory_for_the_kernels_is_no_unknown_onnx(monkeypatch) -> None:
    def load(*_: object, **__: object) -> None:
        raise ImportError("mtrand.so: failed to map segment from shared object")

    folding._check_kernels.cache_clear()
    monkeypatch.setattr(_op_list, "load_op", load)
    with pytest.raises(ImportError, match="failed to map segment"):
        folding._check_kernels()
