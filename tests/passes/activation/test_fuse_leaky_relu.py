"""max(x, alpha * x), and JAX's Where by sign, become LeakyRelu."""

import pytest
from rewrites import check_rewrite, check_unchanged

from smelt.passes.activation.fuse_leaky_relu import fuse_leaky_relu

G = "g (float[N,4] x) => (float[N,4] y)"


def constants(alpha: str) -> str:
    return f"a = Constant<value = float {{{alpha}}}>() zero = Constant<value = float {{0.0}}>()"


@pytest.mark.parametrize("alpha", ["0.25", "1.0", "-0.5"])
@pytest.mark.parametrize("body", ["m = Mul(x, a) y = Max(x, m)", "m = Mul(a, x) y = Max(m, x)"])
def test_the_larger(body: str, alpha: str) -> None:
    check_rewrite(
        fuse_leaky_relu,
        f"{G} {{ {constants(alpha)} {body} }}",
        f"{G} {{ y = LeakyRelu<alpha={alpha}>(x) }}",
    )


CHOICES = {
    "x > 0": "b = Greater(x, zero) y = Where(b, x, m)",
    "x >= 0": "b = GreaterOrEqual(x, zero) y = Where(b, x, m)",
    "0 < x": "b = Less(zero, x) y = Where(b, x, m)",
    "0 <= x": "b = LessOrEqual(zero, x) y = Where(b, x, m)",
    "x < 0": "b = Less(x, zero) y = Where(b, m, x)",
    "x <= 0": "b = LessOrEqual(x, zero) y = Where(b, m, x)",
    "0 > x": "b = Greater(zero, x) y = Where(b, m, x)",
}


@pytest.mark.parametrize("alpha", ["0.25", "2.0", "0.0"])
@pytest.mark.parametrize("body", CHOICES.values(), ids=CHOICES.keys())
def test_the_choice_by_sign(body: str, alpha: str) -> None:
    check_rewrite(
        fuse_leaky_relu,
        f"{G} {{ {constants(alpha)} m = Mul(x, a) {body} }}",
        f"{G} {{ y = LeakyRelu<alpha={alpha}>(x) }}",
        modes=("normal", "edges") if alpha != "0.0" else ("normal",),
    )


def test_float16() -> None:
    g = "g (float16[4] x) => (float16[4] y)"
    body = "b = Constant<value = float {0.25}>() a = Cast<to=10>(b) m = Mul(x, a) y = Max(x, m)"
    check_rewrite(fuse_leaky_relu, f"{g} {{ {body} }}", f"{g} {{ y = LeakyRelu<alpha=0.25>(x) }}")


MAX = "m = Mul(x, a) y = Max(x, m)"
KEPT = {
    "alpha over 1": f"{G} {{ {constants('1.5')} {MAX} }}",
    "alpha of 0": f"{G} {{ {constants('0.0')} {MAX} }}",
    "alpha for each channel": f"{G} <float[4] a = {{0.1,0.2,0.3,0.4}}> {{ {MAX} }}",
    "alpha is infinite": f"{G} <float a = {{-inf}}> {{ {MAX} }}",
    "alpha that raises the rank": "g (float[4] x) => (float[1,4] y) "
    f"<float[1,1] a = {{0.5}}> {{ {MAX} }}",
    "a Max of three": f"{G} {{ {constants('0.5')} m = Mul(x, a) y = Max(x, m, a) }}",
    "another value": f"{G} {{ {constants('0.5')} n = Neg(x) m = Mul(n, a) y = Max(x, m) }}",
    "product is an output": "g (float[4] x) => (float[4] y, float[4] m) "
    f"{{ {constants('0.5')} {MAX} }}",
    "integers": f"g (int32[4] x) => (int32[4] y) <int32 a = {{1}}> {{ {MAX} }}",
    "float64": f"g (double[4] x) => (double[4] y) <double a = {{0.5}}> {{ {MAX} }}",
    "the other branch": f"{G} {{ {constants('0.5')} m = Mul(x, a) b = Greater(x, zero) "
    "y = Where(b, m, x) }",
    "another threshold": f"{G} {{ {constants('0.5')} m = Mul(x, a) b = Greater(x, a) "
    "y = Where(b, x, m) }",
}


@pytest.mark.parametrize("graph", KEPT.values(), ids=KEPT.keys())
def test_keeps(graph: str) -> None:
    check_unchanged(fuse_leaky_relu, graph)


BRANCH = (
    "g (float[N,3] x, bool c) => (float[N,3] y) {0} {{ {1} y = If(c) <then_branch = t () => "
    "(float[N,3] p) {{ {2} }}, else_branch = e () => (float[N,3] q) {{ {3} }}> }}"
)
ALPHA = "<float a = {0.5}>"


def test_in_a_branch_with_the_product_outside() -> None:
    check_rewrite(
        fuse_leaky_relu,
        BRANCH.format(ALPHA, "m = Mul(a, x)", "p = Max(x, m)", "q = Exp(x)"),
        BRANCH.format("", "", "p = LeakyRelu<alpha=0.5>(x)", "q = Exp(x)"),
    )


def test_keeps_a_product_that_both_branches_read() -> None:
    check_unchanged(
        fuse_leaky_relu,
        BRANCH.format(ALPHA, "m = Mul(a, x)", "p = Max(x, m)", "q = Exp(m)"),
    )
