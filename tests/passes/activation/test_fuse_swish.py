import pytest
from rewrites import check_rewrite, check_unchanged

from smelt.passes.activation.fuse_swish import fuse_swish


@pytest.mark.parametrize("mul", ["Mul(x, s)", "Mul(s, x)"])
@pytest.mark.parametrize("dtype", ["float", "float16", "double"])
def test_fuses_either_order(mul: str, dtype: str) -> None:
    check_rewrite(
        fuse_swish,
        before=f"g ({dtype}[N,4] x) => ({dtype}[N,4] y) {{ s = Sigmoid(x)  y = {mul} }}",
        after=f"g ({dtype}[N,4] x) => ({dtype}[N,4] y) {{ y = Swish<alpha=1.0>(x) }}",
        opset=24,
    )


KEPT = {
    "sigmoid read elsewhere": (
        "g (float[4] x) => (float[4] y, float[4] z) { s = Sigmoid(x)  y = Mul(x, s)  z = Neg(s) }"
    ),
    "sigmoid is an output": (
        "g (float[4] x) => (float[4] y, float[4] s) { s = Sigmoid(x)  y = Mul(x, s) }"
    ),
    "gate of another value": (
        "g (float[4] x, float[4] z) => (float[4] y) { s = Sigmoid(z)  y = Mul(x, s) }"
    ),
}


@pytest.mark.parametrize("graph", KEPT.values(), ids=KEPT.keys())
def test_keeps(graph: str) -> None:
    check_unchanged(fuse_swish, graph, opset=24)


@pytest.mark.parametrize("opset", [25, 26, 28])
def test_keeps_where_no_runtime_has_it(opset: int) -> None:
    check_unchanged(
        fuse_swish, "g (float[4] x) => (float[4] y) { s = Sigmoid(x)  y = Mul(x, s) }", opset=opset
    )


def test_keeps_below_opset_24() -> None:
    check_unchanged(
        fuse_swish, "g (float[4] x) => (float[4] y) { s = Sigmoid(x)  y = Mul(x, s) }", opset=23
    )
