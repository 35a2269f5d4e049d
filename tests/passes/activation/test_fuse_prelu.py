"""relu(x) + a * relu(-x) is PRelu with the slope -a."""

import pytest
from rewrites import check_rewrite, check_unchanged

from smelt.passes.activation.fuse_prelu import fuse_prelu

G = "g (float[N,3,2,2] x) => (float[N,3,2,2] y)"
A = "float[3,1,1] a = {0.5,-1.0,2.0}"
PLUS = "p = Relu(x) n = Neg(x) q = Relu(n) m = Mul(a, q) y = Add(p, m)"
SPELLINGS = {
    "plain": PLUS,
    "swapped": PLUS.replace("Mul(a, q)", "Mul(q, a)").replace("Add(p, m)", "Add(m, p)"),
    "times minus one": PLUS.replace("Neg(x)", "Mul(x, minus)"),
}


@pytest.mark.parametrize("body", SPELLINGS.values(), ids=SPELLINGS.keys())
def test_sum(body: str) -> None:
    check_rewrite(
        fuse_prelu,
        f"{G} <{A}, float minus = {{-1}}> {{ {body} }}",
        f"{G} <float[3,1,1] s = {{-0.5,1.0,-2.0}}> {{ y = PRelu(x, s) }}",
    )


def test_difference() -> None:
    check_rewrite(
        fuse_prelu,
        f"{G} <{A}> {{ {PLUS.replace('Add', 'Sub')} }}",
        f"{G} <{A}> {{ y = PRelu(x, a) }}",
    )


BY_SIGN = {
    "above": "c = Greater(x, zero) m = Mul(a, x) y = Where(c, x, m)",
    "above, swapped": "c = Less(zero, x) m = Mul(x, a) y = Where(c, x, m)",
    "not below": "c = GreaterOrEqual(x, zero) m = Mul(x, a) y = Where(c, x, m)",
    "below": "c = Less(x, zero) m = Mul(a, x) y = Where(c, m, x)",
    "not above": "c = LessOrEqual(x, zero) m = Mul(a, x) y = Where(c, m, x)",
    "both parts": "p = Relu(x) n = Min(zero, x) m = Mul(n, a) y = Add(m, p)",
}


@pytest.mark.parametrize("body", BY_SIGN.values(), ids=BY_SIGN.keys())
@pytest.mark.parametrize("opset", [13, 16, 25])
def test_by_sign(body: str, opset: int) -> None:
    check_rewrite(
        fuse_prelu,
        f"{G} <{A}, float zero = {{0}}> {{ {body} }}",
        f"{G} <{A}> {{ y = PRelu(x, a) }}",
        opset=opset,
    )


SLOPES = {
    "scalar": ("float", "0.5"),
    "rank 4": ("float[1,3,1,1]", "0.5,-1.0,2.0"),
    "channels last": ("float[2]", "0.5,-1.0"),
}


@pytest.mark.parametrize(("kind", "numbers"), SLOPES.values(), ids=SLOPES.keys())
def test_slopes_of_every_layout(kind: str, numbers: str) -> None:
    body = PLUS.replace("Add", "Sub")
    constant = f"<{kind} a = {{{numbers}}}>"
    check_rewrite(
        fuse_prelu, f"{G} {constant} {{ {body} }}", f"{G} {constant} {{ y = PRelu(x, a) }}"
    )


@pytest.mark.parametrize(("opset", "fires"), [(15, False), (16, True), (23, True)])
def test_bfloat16_has_a_kernel_from_opset_16_on(opset: int, fires: bool) -> None:
    slopes = "bfloat16[3,1,1] a = {16128,49024,16384}"  # the bits of 0.5, -1 and 2
    ports = G.replace("float", "bfloat16")
    graph = f"{ports} <{slopes}> {{ {PLUS.replace('Add', 'Sub')} }}"
    if fires:
        after = f"{ports} <{slopes}> {{ y = PRelu(x, a) }}"
        check_rewrite(fuse_prelu, graph, after, opset=opset, unrunnable="bfloat16 has no kernel")
    else:
        check_unchanged(fuse_prelu, graph, opset=opset)


KEPT = {
    "slope widens x": "g (float[1,3,1,2] x) => (float[1,3,5,2] y) "
    f"<float[1,3,5,1] a = {{1,2,3,4,5,6,7,8,9,10,11,12,13,14,15}}> {{ {PLUS} }}",
    "slope raises the rank": f"g (float[2] x) => (float[1,2] y) <float[1,2] a = {{1,2}}> {{ {PLUS} }}",
    "slope is infinite": f"{G} <float a = {{inf}}> {{ {PLUS} }}",
    "slope is an input": f"g (float[2] x, float[2] a) => (float[2] y) {{ {PLUS} }}",
    "two values": f"{G} <{A}> {{ z = Abs(x) {PLUS.replace('Neg(x)', 'Neg(z)')} }}",
    "not negated": f"{G} <{A}> {{ {PLUS.replace('Neg(x)', 'Abs(x)')} }}",
    "subtracted the other way": f"{G} <{A}> {{ {PLUS.replace('Add(p, m)', 'Sub(m, p)')} }}",
    "negative part is an output": f"{G[:-1]}, float[N,3,2,2] q) <{A}> {{ {PLUS} }}",
    "float64": f"g (double[2] x) => (double[2] y) <double a = {{2}}> {{ {PLUS} }}",
    "the other sign": f"{G} <{A}, float zero = {{0}}> "
    "{ c = Less(x, zero) m = Mul(a, x) y = Where(c, x, m) }",
    "another bound": f"{G} <{A}, float one = {{1}}> "
    "{ c = Greater(x, one) m = Mul(a, x) y = Where(c, x, m) }",
    "the sign of another value": f"{G} <{A}, float zero = {{0}}> "
    "{ z = Sin(x) c = Greater(z, zero) m = Mul(a, x) y = Where(c, x, m) }",
    "a choice that widens x": "g (float[1,2] x) => (float[2,2] y) <float[2,1] a = {1,2}, "
    "float zero = {0}> { c = Greater(x, zero) m = Mul(a, x) y = Where(c, x, m) }",
    "a choice with an infinite slope": f"{G} <float[2] a = {{inf, 1}}, float zero = {{0}}> "
    "{ c = Greater(x, zero) m = Mul(a, x) y = Where(c, x, m) }",
    "a choice of float64": "g (double[2] x) => (double[2] y) <double[2] a = {1,2}, double o = {0}> "
    "{ c = Greater(x, o) m = Mul(a, x) y = Where(c, x, m) }",
    "the scaled value is an output": f"{G[:-1]}, float[N,3,2,2] m) <{A}, float zero = {{0}}> "
    "{ c = Greater(x, zero) m = Mul(a, x) y = Where(c, x, m) }",
    "integers": f"g (int32[2] x) => (int32[2] y) <int32 a = {{2}}> {{ {PLUS} }}",
}


@pytest.mark.parametrize("graph", KEPT.values(), ids=KEPT.keys())
def test_keeps(graph: str) -> None:
    check_unchanged(fuse_prelu, graph)
