"""The tanh approximation of GELU in many forms, and similar graphs that stay."""

import itertools

import numpy as np
import pytest
from rewrites import check_operators, check_rewrite, check_unchanged

from smelt.passes.activation.fuse_gelu_tanh_approximation import fuse_gelu_tanh_approximation

CONSTANTS = """
    half = Constant<value = float {0.5}>()       one = Constant<value = float {1.0}>()
    two = Constant<value = float {2.0}>()        three = Constant<value = float {3.0}>()
    c = Constant<value = float {0.044715}>()     k = Constant<value = float {0.7978846}>()
    k2 = Constant<value = float {1.5957691}>()
"""
CUBES = {
    "pow": "p = Pow(x, three)  q = Mul(p, c)",
    "x*(x*x)": "s = Mul(x, x)  p = Mul(x, s)  q = Mul(c, p)",
    "(x*x)*x": "s = Mul(x, x)  p = Mul(s, x)  q = Mul(p, c)",
    "((c*x)*x)*x": "s = Mul(x, c)  p = Mul(s, x)  q = Mul(p, x)",
    "(c*x)*(x*x)": "s = Mul(c, x)  p = Mul(x, x)  q = Mul(s, p)",
    "(c*x^2)*x": "s = Pow(x, two)  p = Mul(c, s)  q = Mul(p, x)",
}
TANH = "a = Add(x, q)  z = Mul(k, a)  t = Tanh(z)  g = Add(one, t)"
PRODUCTS = {
    "half last": "h = Mul(x, g)  y = Mul(h, half)",
    "half first": "h = Mul(half, x)  y = Mul(h, g)",
    "half of gate": "h = Mul(g, half)  y = Mul(x, h)",
    "divided": "h = Mul(x, g)  y = Div(h, two)",
}
OTHERS = {
    "x taken out": "s = Mul(x, k) p = Mul(c, x) q = Mul(p, x) a = Add(one, q) z = Mul(s, a) "
    "t = Tanh(z) g = Add(t, one) h = Mul(x, half) y = Mul(h, g)",
    "sigmoid": "p = Pow(x, three) q = Mul(c, p) a = Add(q, x) z = Mul(a, k2) t = Sigmoid(z) y = Mul(x, t)",
}


def gelu(body: str, more: str = "", constants: str = CONSTANTS) -> str:
    return f"g (float[N,4] x) => (float[N,4] y{more}) {{ {constants} {body} }}"


AFTER = 'g (float[N,4] x) => (float[N,4] y) { y = Gelu<approximate="tanh">(x) }'


@pytest.mark.parametrize(("cube", "product"), list(itertools.product(CUBES, PRODUCTS)))
def test_fuses_every_spelling(cube: str, product: str) -> None:
    before = gelu(CUBES[cube] + TANH + PRODUCTS[product])
    # A cube overflows before tanh would make it 1.
    check_rewrite(
        fuse_gelu_tanh_approximation,
        before,
        AFTER,
        modes=("normal",),
    )


@pytest.mark.parametrize("body", OTHERS.values(), ids=OTHERS.keys())
def test_fuses_other_arrangements(body: str) -> None:
    check_rewrite(fuse_gelu_tanh_approximation, gelu(body), AFTER, modes=("normal",))


def test_infinities_and_nan_stay() -> None:
    x = np.asarray([[np.inf, -np.inf, np.nan, -0.0]], np.float32)
    before = gelu(CUBES["pow"] + TANH + PRODUCTS["half last"])
    check_operators(fuse_gelu_tanh_approximation, before, ["Gelu"], feeds={"x": x})


def in_dtype(code: int, dtype: str) -> str:
    wide = CONSTANTS.replace("float {", "double {").replace("0.7978846", "0.7978845608028654")
    names = ("half", "one", "three", "c", "k")
    casts = " ".join(f"{n}_{code} = Cast<to={code}>({n})" for n in names)
    body = CUBES["pow"] + TANH + PRODUCTS["half last"]
    for n in names:
        body = body.replace(f"({n},", f"({n}_{code},").replace(f" {n})", f" {n}_{code})")
    return f"g ({dtype}[3,4] x) => ({dtype}[3,4] y) {{ {wide} {casts} {body} }}"


def test_fuses_in_float16() -> None:
    check_operators(
        fuse_gelu_tanh_approximation,
        in_dtype(10, "float16"),
        ["Gelu"],
        modes=("normal",),
    )


def test_keeps_float64() -> None:
    check_unchanged(fuse_gelu_tanh_approximation, in_dtype(11, "double"))


BODY = CUBES["pow"] + TANH + PRODUCTS["half last"]
KEPT = {
    "cubic factor off by 2 percent": gelu(BODY, constants=CONSTANTS.replace("0.044715", "0.0456")),
    "scale off by 1e-3": gelu(BODY, constants=CONSTANTS.replace("0.7978846", "0.7988")),
    "another power": gelu(BODY, constants=CONSTANTS.replace("{3.0}", "{3.001}")),
    "a square": gelu(BODY.replace("Pow(x, three)", "Pow(x, two)")),
    "cube of another value": gelu("w = Abs(x)" + BODY.replace("Pow(x", "Pow(w")),
    "sum without x": gelu("w = Abs(x)" + BODY.replace("Add(x, q)", "Add(w, q)")),
    "sine": gelu(BODY.replace("Tanh", "Sin")),
    "tanh is an output": gelu(BODY, more=", float[N,4] t"),
    "sum read elsewhere": gelu(BODY + " w = Neg(a)", more=", float[N,4] w"),
    "minus": gelu(BODY.replace("Add(one, t)", "Sub(one, t)")),
    "sigmoid of half the argument": gelu(OTHERS["sigmoid"].replace("k2", "k")),
}


@pytest.mark.parametrize("graph", KEPT.values(), ids=KEPT.keys())
def test_keeps(graph: str) -> None:
    check_unchanged(fuse_gelu_tanh_approximation, graph)


def test_keeps_below_opset_20() -> None:
    check_unchanged(fuse_gelu_tanh_approximation, gelu(BODY), opset=19)
