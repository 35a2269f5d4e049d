"""Exact GELU in every form of x * (1 + erf(x / sqrt 2)) / 2, and similar graphs that stay."""

import itertools

import numpy as np
import pytest
from rewrites import check_operators, check_rewrite, check_unchanged

from smelt.passes.activation.fuse_gelu_exact import fuse_gelu_exact

CONSTANTS = """
    half = Constant<value = float {0.5}>()           one = Constant<value = float {1.0}>()
    two = Constant<value = float {2.0}>()            root = Constant<value = float {1.4142135}>()
    inverse = Constant<value = float {0.70710677}>() minus = Constant<value = float {-0.70710677}>()
    minus_root = Constant<value = float {-1.4142135}>()
"""
GATES = {
    "over root two": "z = Div(x, root)  e = Erf(z)  g = Add(e, one)",
    "times inverse": "z = Mul(x, inverse)  e = Erf(z)  g = Add(e, one)",
    "swapped": "z = Mul(inverse, x)  e = Erf(z)  g = Add(one, e)",
    "erfc of negated": "n = Neg(x)  z = Mul(n, inverse)  e = Erf(z)  g = Sub(one, e)",
    "erfc of divided": "n = Neg(x)  z = Div(n, root)  e = Erf(z)  g = Sub(one, e)",
    "erfc negated last": "n = Mul(inverse, x)  z = Neg(n)  e = Erf(z)  g = Sub(one, e)",
    "erfc by constant": "z = Mul(x, minus)  e = Erf(z)  g = Sub(one, e)",
    "erfc by divisor": "z = Div(x, minus_root)  e = Erf(z)  g = Sub(one, e)",
}
PRODUCTS = {
    "half last": "p = Mul(x, g)  y = Mul(p, half)",
    "half first": "p = Mul(half, x)  y = Mul(p, g)",
    "half of gate": "p = Mul(g, half)  y = Mul(p, x)",
    "divided last": "p = Mul(g, x)  y = Div(p, two)",
    "divided first": "p = Div(x, two)  y = Mul(g, p)",
    "divided gate": "p = Div(g, two)  y = Mul(x, p)",
}


def gelu(gate: str, product: str, more: str = "", constants: str = CONSTANTS) -> str:
    return f"g (float[N,4] x) => (float[N,4] y{more}) {{ {constants} {gate} {product} }}"


@pytest.mark.parametrize(("gate", "product"), list(itertools.product(GATES, PRODUCTS)))
def test_fuses_every_spelling(gate: str, product: str) -> None:
    after = "g (float[N,4] x) => (float[N,4] y) { y = Gelu(x) }"
    before = gelu(GATES[gate], PRODUCTS[product])
    # Gelu keeps the largest float; x * (1 + erf) overflows before it is halved.
    check_rewrite(fuse_gelu_exact, before, after, modes=("normal",))


def test_infinities_and_nan_stay() -> None:
    x = np.asarray([[np.inf, -np.inf, np.nan, -0.0]], np.float32)
    before = gelu(GATES["over root two"], PRODUCTS["half last"])
    check_operators(fuse_gelu_exact, before, ["Gelu"], feeds={"x": x})


def in_dtype(code: int, dtype: str) -> str:
    wide = """
        h = Constant<value = double {0.5}>()  o = Constant<value = double {1.0}>()
        r = Constant<value = double {1.4142135623730951}>()
    """
    casts = f"half = Cast<to={code}>(h) one = Cast<to={code}>(o) root = Cast<to={code}>(r)"
    body = GATES["over root two"] + PRODUCTS["half last"]
    return f"g ({dtype}[3,4] x) => ({dtype}[3,4] y) {{ {wide} {casts} {body} }}"


@pytest.mark.parametrize(("code", "dtype"), [(10, "float16"), (16, "bfloat16")])
def test_fuses_in_half_precision(code: int, dtype: str) -> None:
    check_operators(fuse_gelu_exact, in_dtype(code, dtype), ["Gelu"], modes=("normal",))


def test_keeps_doubles() -> None:
    """ONNX defines Gelu by a function with float32 constants; the error is 1.5e-8 here."""
    check_unchanged(fuse_gelu_exact, in_dtype(11, "double"))


ERFC = "n = Neg(x)  z = Mul(n, inverse)  g = smelt.Erfc(z)  p = Mul(x, g)  y = Mul(p, half)"


def test_fuses_our_erfc() -> None:
    before = f"g (float[N,4] x) => (float[N,4] y) {{ {CONSTANTS} {ERFC} }}"
    check_operators(fuse_gelu_exact, before, ["Gelu"], modes=("normal",))


def test_doubles_keep_the_precision_of_our_erfc() -> None:
    constants = CONSTANTS.replace("float {", "double {").replace("0.70710677", "0.7071067811865476")
    check_unchanged(
        fuse_gelu_exact, f"g (double[N,4] x) => (double[N,4] y) {{ {constants} {ERFC} }}"
    )


GATE, PRODUCT = GATES["over root two"], PRODUCTS["half last"]
KEPT = {
    "root of two off by 1e-3": gelu(
        GATE, PRODUCT, constants=CONSTANTS.replace("1.4142135", "1.415")
    ),
    "half off by 1e-3": gelu(GATE, PRODUCT, constants=CONSTANTS.replace("{0.5}", "{0.5005}")),
    "one off": gelu(GATE, PRODUCT, constants=CONSTANTS.replace("{1.0}", "{1.001}")),
    "erf is an output": gelu(GATE, PRODUCT, more=", float[N,4] e"),
    "gate read elsewhere": gelu(GATE, PRODUCT + " w = Neg(g)", more=", float[N,4] w"),
    "erf of another value": gelu("q = Abs(x) z = Div(q, root) e = Erf(z) g = Add(e, one)", PRODUCT),
    "product with another value": gelu(GATE, "q = Abs(x) p = Mul(q, g) y = Mul(p, half)"),
    "divided by erf": gelu(GATE, "p = Mul(x, g)  y = Div(half, p)"),
    "root over x": gelu("z = Div(root, x) e = Erf(z) g = Add(e, one)", PRODUCT),
    "erf minus one": gelu("z = Div(x, root) e = Erf(z) g = Sub(e, one)", PRODUCT),
    "1 - erf(x)": gelu("z = Div(x, root) e = Erf(z) g = Sub(one, e)", PRODUCT),
    "1 + erf(-x)": gelu("z = Mul(x, minus) e = Erf(z) g = Add(one, e)", PRODUCT),
    "captured": gelu(
        GATE,
        PRODUCT + " c = ReduceMax<keepdims=0>(x) b = Cast<to=9>(c) "
        "w = If (b) <then_branch = t () => (float[N,4] u) { u = Neg(e) },"
        " else_branch = f () => (float[N,4] v) { v = Neg(x) }>",
        more=", float[N,4] w",
    ),
}


@pytest.mark.parametrize("graph", KEPT.values(), ids=KEPT.keys())
def test_keeps(graph: str) -> None:
    check_unchanged(fuse_gelu_exact, graph)


def test_keeps_a_constant_of_higher_rank() -> None:
    constants = CONSTANTS.replace("float {0.5}", "float[1,1,1] {0.5}")
    graph = gelu(GATE, PRODUCT, constants=constants).replace("[N,4] y", "[1,N,4] y")
    check_unchanged(fuse_gelu_exact, graph)


def test_keeps_a_constant_that_callers_may_override() -> None:
    constants = CONSTANTS.replace("half = Constant<value = float {0.5}>()", "")
    body = f"{constants} {GATE} {PRODUCT}"
    check_unchanged(
        fuse_gelu_exact,
        f"g (float[N,4] x, float half = {{0.5}}) => (float[N,4] y) {{ {body} }}",
    )


def test_keeps_below_opset_20() -> None:
    check_unchanged(fuse_gelu_exact, gelu(GATE, PRODUCT), opset=19)


def test_fuses_in_a_branch() -> None:
    graph = f"""g (bool b, float[2,4] x) => (float[2,4] w) {{
        {CONSTANTS}
        w = If (b) <then_branch = t () => (float[2,4] y) {{ {GATE} {PRODUCT} }},
                    else_branch = f () => (float[2,4] v) {{ v = Neg(x) }}> }}"""
    model = check_operators(fuse_gelu_exact, graph, ["If"])
    branch = next(n for n in model.graph if n.op_type == "If").attributes["then_branch"].as_graph()
    assert [node.op_type for node in branch] == ["Gelu"]
