"""Scores masked by products, and weights that are masked a second time, as Keras writes them."""

from __future__ import annotations

import numpy as np
import pytest
from rewrites import check_same_numbers, check_unchanged, run_pass

from smelt import optimize
from smelt.ir import text
from smelt.passes.attention.drop_softmax_guard import drop_softmax_guard
from smelt.passes.attention.fuse_attention import fuse_attention
from smelt.runtime.runner import run

HEAD = (
    "g (float[2,5,24] x, bool[2,1,1,5] c{}) => (float[2,5,24] y) <int64[4] heads = {{0,0,3,8}}, "
    "int64[3] rows = {{0,0,24}}, float low = {{-1000000000.0}}, float zero = {{0}}{}>"
)
SCORES = (
    "r = Reshape(x, heads) q = Transpose<perm=[0,2,1,3]>(r) k = Transpose<perm=[0,2,3,1]>(r) "
    "s = MatMul(q, k) "
)
MERGED = "h = MatMul(w, q) t = Transpose<perm=[0,2,1,3]>(h) y = Reshape(t, rows)"
CAST = "f = Cast<to=1>(c) n = Not(c) g = Cast<to=1>(n) "
BY_PRODUCTS = f"{CAST} fs = Mul(f, s) gl = Mul(low, g) m = Add(fs, gl) p = Softmax<axis=-1>(m) "
BY_CHOICE = "m = Where(c, s, low) p = Softmax<axis=-1>(m) "
HIDING = "o = Not(c) m = Where(o, low, s) p = Softmax<axis=-1>(m) "


def graph(body: str, inputs: str = "", constants: str = "") -> str:
    return f"{HEAD.format(inputs, constants)} {{ {SCORES} {body} {MERGED} }}"


MASKED = {
    "scores and weights by products": graph(
        BY_PRODUCTS + "fp = Mul(f, p) gz = Mul(zero, g) w = Add(fp, gz)"
    ),
    "the operands the other way round": graph(
        f"{CAST} fs = Mul(s, f) gl = Mul(g, low) m = Add(gl, fs) p = Softmax(m) "
        "fp = Mul(p, f) gz = Mul(g, zero) w = Add(gz, fp)"
    ),
    "scores and weights by choice": graph(BY_CHOICE + "w = Where(c, p, zero)"),
    "the condition hides": graph(HIDING + "w = Where(o, zero, p)"),
    "a mask that is added": graph(
        "k0 = Where(c, zero, low) m = Add(s, k0) p = Softmax(m) w = Where(c, p, zero)"
    ),
    "weights that are masked once": graph(BY_PRODUCTS + "w = Identity(p)"),
}


def feeds() -> dict[str, np.ndarray]:
    """Return inputs in which all keys of the first example are hidden."""
    x = np.random.default_rng(0).standard_normal((2, 5, 24)).astype(np.float32)
    return {"x": x, "c": np.array([[[[0] * 5]], [[[1, 1, 0, 1, 0]]]], bool)}


@pytest.mark.parametrize("case", MASKED)
def test_attention_takes_the_mask_in(case: str) -> None:
    source = text.parse(MASKED[case])
    model = optimize(text.parse(MASKED[case]))
    kinds = [node.op_type for node in model.graph]
    assert "Attention" in kinds
    assert not {"Softmax", "MatMul"} & {*kinds}
    check_same_numbers(source, model, fuse_attention.exactness, feeds(), modes=("normal",))


def test_a_row_without_a_key_is_zero() -> None:
    model = optimize(text.parse(MASKED["scores and weights by products"]))
    (y,) = run(model, [*feeds().values()])
    assert not y[0].any()
    assert y[1].any()


def test_a_hidden_score_that_is_nan_shows() -> None:
    """0 times NaN is NaN in the source, and so is NaN plus the mask."""
    source = graph(BY_PRODUCTS + "w = Identity(p)")
    given = feeds()
    given["x"][1, 2, 0] = np.nan
    before = run(text.parse(source), [*given.values()])[0]
    after = run(optimize(text.parse(source)), [*given.values()])[0]
    np.testing.assert_array_equal(np.isnan(before[1]), np.isnan(after[1]))


TRIANGLE = ", ".join("1" if column <= row else "0" for row in range(5) for column in range(5))
ABOVE = ", ".join("0" if column <= row else "-1e9" for row in range(5) for column in range(5))


def test_a_constant_triangle_is_the_causal_mask() -> None:
    constants = f", float[5,5] f = {{{TRIANGLE}}}, float[5,5] a = {{{ABOVE}}}"
    source = graph(
        "fs = Mul(f, s) m = Add(fs, a) p = Softmax(m) w = Mul(f, p)", constants=constants
    )
    model = optimize(text.parse(source))
    (attention,) = [node for node in model.graph if node.op_type == "Attention"]
    assert attention.attributes.get_int("is_causal", 0) == 1
    check_same_numbers(text.parse(source), model, fuse_attention.exactness, modes=("normal",))


KEPT = {
    "zeros that repeat the weights": graph(
        "m = Where(c, s, low) p = Softmax(m) f = Cast<to=1>(c) fp = Mul(f, p) w = Add(fp, o)",
        constants=", float[2,1,1,1] o = {0, 0}",
    )
    .replace("float[2,5,24] x", "float[N,5,24] x")
    .replace("float[2,5,24] y", "float[M,5,24] y")
    .replace("bool[2,", "bool[N,"),
    "a mask that repeats the weights": graph(
        "fs = Mul(f, s) m = Add(fs, a) p = Softmax(m) w = Mul(g, p)",
        constants=f", float[5,5] f = {{{TRIANGLE}}}, float[5,5] a = {{{ABOVE}}}, "
        f"float[2,1,5,5] g = {{{TRIANGLE}, {TRIANGLE}}}",
    )
    .replace("float[2,5,24] x", "float[N,5,24] x")
    .replace("float[2,5,24] y", "float[M,5,24] y"),
    "another mask for the weights": graph(
        BY_CHOICE + "w = Where(d, p, zero)", inputs=", bool[2,1,1,5] d"
    ),
    "the weights get the opposite": graph(BY_CHOICE + "w = Where(c, zero, p)"),
    "what is hidden has a weight": graph(BY_CHOICE + "w = Where(c, p, low)"),
    "a number that scores may reach": graph(
        "m = Where(c, s, ten) p = Softmax(m) w = Where(c, p, zero)",
        constants=", float ten = {-10}",
    ),
    "no mask before": graph("p = Softmax(s) w = Where(c, p, zero)"),
    "a softmax over other dims": graph(
        "m = Where(c, s, low) p = Softmax<axis=1>(m) w = Where(c, p, zero)"
    ),
    "a mask that differs between heads": graph(BY_CHOICE + "w = Where(c, p, zero)").replace(
        "bool[2,1,1,5] c", "bool[2,3,1,5] c"
    ),
}


@pytest.mark.parametrize("case", KEPT)
def test_weights_that_stay_masked(case: str) -> None:
    check_unchanged(drop_softmax_guard, KEPT[case])


FLOATS = {
    "a factor that is no truth": graph(
        "fs = Mul(f, s) gl = Mul(low, g) m = Add(fs, gl) w = Softmax(m)",
        inputs=", float[2,1,1,5] f, float[2,1,1,5] g",
    ),
    "two conditions": graph(
        f"{CAST} fs = Mul(f, s) e = Cast<to=1>(d) gl = Mul(low, e) m = Add(fs, gl) w = Softmax(m)",
        inputs=", bool[2,1,1,5] d",
    ),
    "a number that scores may reach": graph(
        BY_PRODUCTS.replace("low", "ten") + "w = Identity(p)", constants=", float ten = {-10}"
    ),
    "double precision": graph(BY_PRODUCTS.replace("to=1", "to=11") + "w = Identity(p)").replace(
        "float", "double"
    ),
}


@pytest.mark.parametrize("case", FLOATS)
def test_products_that_stay(case: str) -> None:
    model = text.parse(FLOATS[case])
    kinds = [node.op_type for node in model.graph]
    run_pass(fuse_attention, model)
    assert [node.op_type for node in model.graph] == kinds
