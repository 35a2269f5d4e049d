"""x * sigmoid(alpha * x) is Swish with that alpha."""

import pytest
from rewrites import check_refused, check_rewrite, check_unchanged

from smelt.passes.activation.fuse_gelu_sigmoid_approximation import fuse_gelu_sigmoid_approximation

G = "g (float[N,4] x) => (float[N,4] y)"
C = "c = Constant<value = float {1.702}>()"


@pytest.mark.parametrize("scaled", ["Mul(x, c)", "Mul(c, x)"])
@pytest.mark.parametrize("product", ["Mul(x, s)", "Mul(s, x)"])
def test_fuses(scaled: str, product: str) -> None:
    check_rewrite(
        fuse_gelu_sigmoid_approximation,
        f"{G} {{ {C} a = {scaled} s = Sigmoid(a) y = {product} }}",
        f"{G} {{ y = Swish<alpha=1.702>(x) }}",
        opset=24,
        modes=("normal",),
    )


KEPT = {
    "another gate": f"{G} {{ {C} n = Abs(x) a = Mul(n, c) s = Sigmoid(a) y = Mul(x, s) }}",
    "a factor for each channel": f"{G} <float[4] c = {{1,2,3,4}}> "
    "{ a = Mul(x, c) s = Sigmoid(a) y = Mul(x, s) }",
    "gate is an output": "g (float[N,4] x) => (float[N,4] y, float[N,4] s) "
    f"{{ {C} a = Mul(x, c) s = Sigmoid(a) y = Mul(x, s) }}",
    "a factor that float32 rounds": "g (double[4] x) => (double[4] y) "
    "{ c = Constant<value = double {1.702}>() a = Mul(x, c) s = Sigmoid(a) y = Mul(x, s) }",
}


@pytest.mark.parametrize("graph", KEPT.values(), ids=KEPT.keys())
def test_keeps(graph: str) -> None:
    check_unchanged(fuse_gelu_sigmoid_approximation, graph, opset=24)


def test_keeps_below_opset_24() -> None:
    graph = f"{G} {{ {C} a = Mul(x, c) s = Sigmoid(a) y = Mul(x, s) }}"
    check_unchanged(fuse_gelu_sigmoid_approximation, graph, opset=23)


def test_keeps_where_no_runtime_has_the_operator() -> None:
    graph = f"{G} {{ {C} a = Mul(x, c) s = Sigmoid(a) y = Mul(x, s) }}"
    check_refused(
        fuse_gelu_sigmoid_approximation, graph, "no runtime has Swish of opset 26", opset=26
    )
