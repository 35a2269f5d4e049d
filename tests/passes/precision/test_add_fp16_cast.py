"""float32 nodes compute in float16, with casts only at the borders."""

from __future__ import annotations

import numpy as np
import pytest
from rewrites import check_operators, check_unchanged

from smelt.ir.constants import tensor_of
from smelt.passes import pipeline
from smelt.passes.precision.add_fp16_cast import add_fp16_cast

G = "g (float[N,4] x) => (float[N,4] y)"
LOOSE = {"modes": ("normal",)}
MIXED = {
    "a chain": (f"{G} {{ a = Relu(x) b = Sigmoid(a) y = Tanh(b) }}", "Cast Relu Sigmoid Tanh Cast"),
    "a shared input is cast once": (
        f"{G} {{ a = Relu(x) b = Sigmoid(x) y = Mul(a, b) }}",
        "Cast Relu Sigmoid Mul Cast",
    ),
    "an inner output": (
        "g (float[N,4] x) => (float[N,4] a, float[N,4] y) { a = Relu(x) y = Tanh(a) }",
        "Cast Relu Cast Tanh Cast",
    ),
    "a constant": (f"{G} <float[4] w = {{1,2,3,4}}> {{ y = Mul(x, w) }}", "Cast Mul Cast"),
    "an infinite constant": (f"{G} <float w = {{inf}}> {{ y = Min(x, w) }}", "Cast Min Cast"),
    "comparisons": (
        "g (float[4] x, float[4] z) => (bool[4] y) { y = Less(x, z) }",
        "Cast Cast Less",
    ),
    "integers stay": (
        "g (float[4] x, int64[2] i) => (float[2] y) { y = Gather(x, i) }",
        "Cast Gather Cast",
    ),
    "a power": (f"{G} <float two = {{2}}> {{ y = Pow(x, two) }}", "Cast Pow Cast"),
    "a running sum stays": (
        f"{G} <int64 a = {{1}}> {{ r = Relu(x) s = CumSum(r, a) y = Neg(s) }}",
        "Cast Relu Cast CumSum Cast Neg Cast",
    ),
    "statistics stay": (
        "g (float[N,2,3] x) => (float[N,2,3] y) <float[2] k = {1,2}> "
        "{ y = BatchNormalization(x, k, k, k, k) }",
        "Cast BatchNormalization Cast",
    ),
    "scales of Resize stay": (
        "g (float[1,1,4] x) => (float[1,1,8] y) <float[3] s = {1,1,2}> { y = Resize(x, , s) }",
        "Cast Resize Cast",
    ),
    "half of it is in float16": (
        "g (float16[4] x) => (float16[4] y) { a = Cast<to=1>(x) b = Relu(a) y = Cast<to=10>(b) }",
        "Relu Cast",
    ),
}


@pytest.mark.parametrize(("graph", "operators"), MIXED.values(), ids=MIXED.keys())
def test_casts_stand_at_the_borders(graph: str, operators: str) -> None:
    check_operators(add_fp16_cast, graph, operators.split(), **LOOSE)


def test_constants_are_stored_in_float16_and_do_not_vanish() -> None:
    graph = f"{G} <float[4] w = {{1e-12,-1e-12,0.0,1.0}}> {{ y = Add(x, w) }}"
    model = check_operators(add_fp16_cast, graph, ["Cast", "Add", "Cast"], **LOOSE)
    [add] = [node for node in model.graph if node.op_type == "Add"]
    assert add.inputs[1] is not None
    tensor = tensor_of(add.inputs[1])
    assert tensor is not None
    assert tensor.numpy().dtype == np.float16
    assert tensor.numpy().tolist() == [2.0**-24, -(2.0**-24), 0.0, 1.0]
    assert list(model.graph.initializers) == [add.inputs[1].name]


def test_a_constant_that_others_read_in_float32_stays() -> None:
    graph = f"{G} <float[4] w = {{1,2,3,4}}, int64 a = {{0}}> {{ c = CumSum(w, a) y = Mul(x, w) z = Mul(x, c) }}"
    text = graph.replace("y)", "y, float[N,4] z)", 1)
    check_operators(
        add_fp16_cast, text, ["Cast", "CumSum", "Cast", "Mul", "Cast", "Mul", "Cast"], **LOOSE
    )


@pytest.mark.parametrize(
    ("options", "operators"),
    [
        ({"skip_ops_by_type": ("Tanh",)}, "Cast Relu Cast Tanh"),
        ({"skip_nodes": ("*head*",)}, "Cast Relu Cast Tanh"),
        ({"only_nodes": ("/body/*",)}, "Cast Relu Cast Tanh"),
        ({"only_nodes": ("*",), "skip_nodes": ("*relu",)}, "Relu Cast Tanh Cast"),
    ],
)
def test_selection(options: dict[str, tuple[str, ...]], operators: str) -> None:
    graph = f'{G} {{ ["/body/relu"] a = Relu(x) ["/head/tanh"] y = Tanh(a) }}'
    check_operators(add_fp16_cast, graph, operators.split(), **LOOSE, **options)


def test_selection_in_a_pipeline() -> None:
    text = "add-fp16-cast{skip-ops-by-type=Resize,Range only-nodes=/body/*}"
    [step] = pipeline.parse(text)
    assert isinstance(step, pipeline.Step)
    assert step.options.skip_ops_by_type == ("Resize", "Range")
    assert step.options.only_nodes == ("/body/*",)


def test_inside_branches() -> None:
    graph = """g (bool c, float[4] x) => (float[4] y) {
        r = Relu(x)
        y = If (c) <then_branch = t () => (float[4] u) { u = Neg(r) },
                    else_branch = f () => (float[4] v) { v = Abs(x) }> }"""
    model = check_operators(add_fp16_cast, graph, ["Cast", "Relu", "If"], **LOOSE)
    node = next(n for n in model.graph if n.op_type == "If")
    branches = [node.attributes[name].as_graph() for name in ("then_branch", "else_branch")]
    assert [[n.op_type for n in branch] for branch in branches] == [
        ["Neg", "Cast"],
        ["Abs", "Cast"],  # both read the float16 of one Cast outside
    ]


KEPT = {
    "a large constant": f"{G} <float w = {{65505}}> {{ y = Mul(x, w) }}",
    "random": "g (float[4] x) => (float[4] y) { y = RandomNormalLike<seed=1.0>(x) }",
    "float64": "g (double[4] x) => (double[4] y) { y = Relu(x) }",
    "integers": "g (int64[4] x) => (int64[4] y) { y = Abs(x) }",
    "a shape": "g (float[N,4] x) => (int64[2] y) { y = Shape(x) }",
    "boxes": "g (float[1,2,4] x, float[1,1,2] s) => (int64[M,3] y) { y = NonMaxSuppression(x, s) }",
    "quantized": "g (float[4] x, float s, uint8 z) => (uint8[4] y) { y = QuantizeLinear(x, s, z) }",
}


@pytest.mark.parametrize("graph", KEPT.values(), ids=KEPT.keys())
def test_keeps(graph: str) -> None:
    check_unchanged(add_fp16_cast, graph)
