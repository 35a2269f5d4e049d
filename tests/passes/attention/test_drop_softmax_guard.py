"""NaN checks of attention weights, as PyTorch's exporters write them, are dropped."""

from __future__ import annotations

import numpy as np
import pytest
from rewrites import check_same_numbers, check_unchanged

from smelt import optimize
from smelt.ir import text
from smelt.passes.attention.drop_softmax_guard import drop_softmax_guard
from smelt.runtime.runner import run

HEAD = "g (float[2,3,5,8] q, float[2,3,8,7] k{}) => (float[2,3,5,7] y) <float z = {{0}}, {}>"
GUARD = "p = Softmax<axis=-1>({}) n = IsNaN(p) y = Where(n, z, p)"


def guarded(scores: str, last: str, constants: str = "float c = {0.5}", inputs: str = "") -> str:
    return f"{HEAD.format(inputs, constants)} {{ {scores} {GUARD.format(last)} }}"


WITHOUT_MASK = {
    "a product": guarded("s = MatMul(q, k)", "s"),
    "scaled": guarded("t = MatMul(q, k) s = Mul(t, c)", "s"),
    "divided": guarded("t = MatMul(q, k) s = Div(t, c)", "s"),
    "a finite bias": guarded("t = MatMul(q, k) s = Add(t, c)", "s"),
    "a constant that hides some keys": guarded(
        "t = MatMul(q, k) h = Log(c) s = Add(t, h)",
        "s",
        "float[7] c = {1,0,0,1,1,0,1}",
    ),
    "a choice between finite numbers": guarded(
        "t = MatMul(q, k) w = Where(m, z, c) s = Add(w, t)",
        "s",
        "float c = {-3e38}",
        ", bool[2,1,5,7] m",
    ),
    "a choice that is moved and expanded": guarded(
        "t = MatMul(q, k) c0 = Where(m, z, c) c1 = Reshape(c0, r) w = Expand(c1, e) s = Add(w, t)",
        "s",
        "float c = {-3e38}, int64[4] r = {2,1,1,7}, int64[4] e = {1,1,5,1}",
        ", bool[2,7] m",
    ),
}


@pytest.mark.parametrize("source", WITHOUT_MASK.values(), ids=WITHOUT_MASK)
def test_leaves_out_the_guard(source: str) -> None:
    model = optimize(text.parse(source, 20), pipeline="const-elimination,drop-softmax-guard")
    assert not {"IsNaN", "Where"} - {"Where"} & {node.op_type for node in model.graph}
    assert sum(node.op_type == "Where" for node in model.graph) == ("bool" in source)
    check_same_numbers(
        text.parse(source, 20), model, drop_softmax_guard.exactness, modes=("normal",)
    )


KEPT = {
    "a product plus what is computed": guarded(
        "t = MatMul(q, k) s = Add(t, b)", "s", inputs=", float[5,7] b"
    ),
    "no product": guarded("s = Sqrt(q) t = MatMul(s, k) r = Sqrt(t)", "r"),
    "a moved bias that is computed": guarded(
        "t = MatMul(q, k) w = Expand(b, e) s = Add(t, w)",
        "s",
        "int64[2] e = {5,7}",
        ", float[1,7] b",
    ),
    "a moved choice with infinity": guarded(
        "t = MatMul(q, k) c0 = Where(m, z, c) w = Expand(c0, e) s = Add(t, w)",
        "s",
        "float c = {-inf}, int64[2] e = {5,7}",
        ", bool[1,7] m",
    ),
    "times infinity": guarded("t = MatMul(q, k) s = Mul(t, q2)", "s", inputs=", float q2"),
    "a softmax over queries": guarded("s = MatMul(q, k)", "s").replace("axis=-1", "axis=2"),
}


@pytest.mark.parametrize("source", KEPT.values(), ids=KEPT)
def test_keeps_the_guard(source: str) -> None:
    check_unchanged(drop_softmax_guard, source, opset=20)


def test_a_row_that_a_constant_hides_keeps_the_guard() -> None:
    source = guarded("t = MatMul(q, k) h = Log(c) s = Add(t, h)", "s", "float[5,1] c = {1,1,0,1,1}")
    model = optimize(text.parse(source, 20), pipeline="const-elimination,drop-softmax-guard")
    assert "IsNaN" in [node.op_type for node in model.graph]


def masked(choice: str, mask: str = "bool[2,1,5,7] m") -> str:
    return (
        f"g (float[2,3,5,8] q, float[2,3,8,7] k, float[2,3,7,4] v, {mask}) => (float[2,5,12] y) "
        "<float z = {0}, float one = {1}, int64[3] r = {2,5,12}> "
        f"{{ i = Log(z) {choice} t = MatMul(q, k) s = Add(t, w) p = Softmax<axis=-1>(s) "
        "n = IsNaN(p) g = Where(n, z, p) o = MatMul(g, v) h = Transpose<perm=[0,2,1,3]>(o) "
        "y = Reshape(h, r) }"
    )


MASKS = {
    "a mask for each batch": masked("w = Where(m, z, i)"),
    "what it hides": masked("w = Where(m, i, z)"),
    "a mask for all": masked("w = Where(m, z, i)", "bool[5,7] m"),
    "a mask of keys": masked("w = Where(m, z, i)", "bool[2,1,1,7] m"),
    "a choice that is reshaped": masked(
        "c = Where(m, z, i) r4 = Constant<value_ints=[2,1,5,7]>() w = Reshape(c, r4)",
        "bool[2,5,7] m",
    ),
    "a choice that is expanded": masked(
        "c = Where(m, z, i) e = Constant<value_ints=[2,1,5,7]>() w = Expand(c, e)", "bool[5,7] m"
    ),
}


@pytest.mark.parametrize("form", ["", "{products=true}"], ids=["choices", "products"])
@pytest.mark.parametrize("name", MASKS)
def test_rows_without_keys_are_zeros(name: str, form: str) -> None:
    opset = 17 if form else 20
    source = text.parse(MASKS[name], opset)
    model = optimize(source, pipeline=f"const-elimination,drop-softmax-guard{form}", opset=opset)
    kinds = [node.op_type for node in model.graph]
    assert "IsNaN" not in kinds
    assert kinds[-1] == ("Mul" if form else "Where")
    assert not form or not {"Where", "ReduceMax", "ReduceMin"} & set(kinds)
    rng = np.random.default_rng(0)
    shapes = ((2, 3, 5, 8), (2, 3, 8, 7), (2, 3, 7, 4))
    arrays = [rng.standard_normal(shape).astype(np.float32) for shape in shapes]
    mask = rng.random(source.graph.inputs[3].shape.numpy()) < 0.6
    mask[..., -1, :] = name == "what it hides"
    expected, got = run(source, [*arrays, mask])[0], run(model, [*arrays, mask])[0]
    assert not expected[:, -1].any()
    np.testing.assert_array_equal(got[:, -1], expected[:, -1])
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("queries", "width"), [("5", "60"), ("Q", "K")], ids=["5", "any"])
def test_several_queries_that_a_reshape_alone_merges_keep_the_guard(queries, width) -> None:
    """One row of the result then holds queries that the mask treats differently."""
    source = (
        MASKS["a mask for each batch"]
        .replace("h = Transpose<perm=[0,2,1,3]>(o)", "")
        .replace("Reshape(h, r)", "Reshape(o, r)")
        .replace("2,3,5,8", f"2,3,{queries},8")
        .replace("2,1,5,7", f"2,1,{queries},7")
        .replace("float[2,5,12] y", f"float[2,{width}] y")
        .replace("int64[3] r = {2,5,12}", "int64[2] r = {2,-1}")
    )
    model = optimize(text.parse(source, 20), pipeline="const-elimination,drop-softmax-guard")
    assert "IsNaN" in [node.op_type for node in model.graph]


@pytest.mark.parametrize("rows", [1, 2], ids=["its own keys", "keys for two heads"])
@pytest.mark.parametrize("sizes", ["2,12", "2,1,12"])
@pytest.mark.parametrize("name", ["a mask for each batch", "what it hides"])
def test_heads_of_one_query_are_merged_by_a_reshape(name: str, sizes: str, rows: int) -> None:
    """Heads that share keys are rows, as in a cache with grouped queries."""
    sizes = sizes.replace("12", str(12 * rows))
    before = (
        MASKS[name]
        .replace("5,", "1,")
        .replace("float[2,3,1,8] q", f"float[2,3,{rows},8] q")
        .replace("h = Transpose<perm=[0,2,1,3]>(o)", "")
        .replace("Reshape(h, r)", "Reshape(o, r)")
        .replace("float[2,1,12] y", f"float[{sizes}] y")
        .replace("int64[3] r = {2,1,12}", f"int64[{sizes.count(',') + 1}] r = {{{sizes}}}")
    )
    source = text.parse(before, 20)
    model = optimize(source, pipeline="const-elimination,drop-softmax-guard")
    assert [node.op_type for node in model.graph][-1] == "Where"
    rng = np.random.default_rng(0)
    shapes = ((2, 3, rows, 8), (2, 3, 8, 7), (2, 3, 7, 4))
    arrays = [rng.standard_normal(shape).astype(np.float32) for shape in shapes]
    mask = np.zeros((2, 1, 1, 7), np.bool_)
    mask[0] = True
    for given in (mask, ~mask):
        expected, got = run(source, [*arrays, given])[0], run(model, [*arrays, given])[0]
        assert (expected == 0).all(-1).any()
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)


def test_rows_that_are_masked_apart_are_merged_by_no_reshape() -> None:
    source = (
        MASKS["a mask for each batch"]
        .replace("h = Transpose<perm=[0,2,1,3]>(o)", "")
        .replace("Reshape(h, r)", "Reshape(o, r)")
        .replace("float[2,5,12] y", "float[2,1,60] y")
        .replace("int64[3] r = {2,5,12}", "int64[3] r = {2,1,60}")
    )
    model = optimize(text.parse(source, 20), pipeline="const-elimination,drop-softmax-guard")
    assert "IsNaN" in [node.op_type for node in model.graph]


def test_a_mask_that_differs_between_heads_keeps_the_guard() -> None:
    source = masked("w = Where(m, z, i)", "bool[2,3,5,7] m").replace("i = Log(z)", "")
    source = source.replace("float one = {1}", "float i = {-inf}")
    check_unchanged(drop_softmax_guard, source, opset=20)


def test_before_opset_20_the_guard_stays() -> None:
    model = optimize(
        text.parse(MASKS["a mask for all"], 17),
        pipeline="const-elimination,drop-softmax-guard",
        opset=17,
    )
    assert "IsNaN" in [node.op_type for node in model.graph]


def test_products_need_the_number_of_keys() -> None:
    open_keys = MASKS["a mask of keys"].replace("bool[2,1,1,7] m", "bool[2,1,1,K] m")
    pipeline = "const-elimination,drop-softmax-guard{products=true}"
    model = optimize(
        text.parse(open_keys.replace("8,7]", "8,K]").replace("7,4]", "K,4]"), 20), pipeline=pipeline
    )
    assert "IsNaN" in [node.op_type for node in model.graph]


CHOSEN = "g (float[2,3] s, bool[1,3] m) => (float[2,3] y) <float low = {{{}}}> {{ w = {} y = Softmax<axis=-1>(w) }}"


@pytest.mark.parametrize("choice", ["Where(m, s, low)", "Where(m, low, s)"])
def test_scores_that_a_choice_hides_are_masked_by_products(choice: str) -> None:
    source = text.parse(CHOSEN.format("-3.4028235e38", choice), 17)
    model = optimize(source, pipeline="drop-softmax-guard{products=true}")
    assert "Where" not in {node.op_type for node in model.graph}
    scores = np.array([[1, 2, 3], [-4, 0, 5]], np.float32)
    for mask in ([True, False, True], [False] * 3, [True] * 3):
        feeds = [scores, np.array([mask])]
        np.testing.assert_allclose(run(model, feeds)[0], run(source, feeds)[0], rtol=1e-6)


@pytest.mark.parametrize("low", ["-inf", "-10"])
def test_choices_of_infinity_and_of_small_numbers_stay(low: str) -> None:
    source = CHOSEN.format(low, "Where(m, s, low)")
    check_unchanged(drop_softmax_guard, source, opset=17, products=True)
