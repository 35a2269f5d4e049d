"""float16 masks of -65504 hide keys, also in rows whose keys are all hidden."""

import numpy as np
import pytest
from rewrites import check_unchanged

from smelt import optimize
from smelt.ir import text
from smelt.passes.attention.drop_softmax_guard import drop_softmax_guard
from smelt.passes.attention.fuse_attention import fuse_attention
from smelt.runtime.runner import open_runner

LOWEST = -65504.0
BITS = 0xFBFF
"""Those of the lowest number, as which ONNX text takes half floats."""

CHOICE = "b = Where(m, z, low) w = Add(s, b)"
MASK = "bool[N,1,5,7] m"
GUARD = "p = Softmax<axis=-1>(w) n = IsNaN(p) u = Where(n, z, p) y = MatMul(u, v)"


def graph(body: str, inputs: str, end: str = "p = Softmax<axis=-1>(w) y = MatMul(p, v)") -> str:
    """Return attention in which ``body`` computes ``w`` from the scores ``s``, masks and
    constants."""
    return (
        f"g (float16[N,3,5,8] q, float16[N,3,8,7] k, float16[N,3,7,6] v, {inputs}) => "
        f"(float16[N,3,5,6] y) <float16 z = {{0}}, float16 low = {{{BITS}}}> {{"
        f" s = MatMul(q, k) {body} {end} }}"
    )


def run(source: str, *inputs: np.ndarray, pipeline: str | None, big: float) -> np.ndarray:
    rng = np.random.default_rng(0)
    shapes = [(2, 3, 5, 8), (2, 3, 8, 7), (2, 3, 7, 6)]
    q, k, v = (rng.standard_normal(shape).astype(np.float16) for shape in shapes)
    model = text.parse(source, 23)
    done = model if pipeline is None else optimize(model, pipeline=pipeline)
    (y,) = open_runner(done)((q * np.float16(big)), k, v, *inputs)
    return y.astype(np.float64)


def hiding_mask() -> np.ndarray:
    """Return a mask (True shows a key) in which two rows hide all keys and one hides all but
    one."""
    mask = np.random.default_rng(1).random((2, 1, 5, 7)) < 0.6
    mask[0, 0, 1], mask[1, 0, 4], mask[1, 0, 2] = False, False, np.arange(7) == 3
    return mask


@pytest.mark.parametrize("end", ["p = Softmax<axis=-1>(w) y = MatMul(p, v)", GUARD])
@pytest.mark.parametrize("big", [1, 16])
def test_a_mask_of_choices(end: str, big: float) -> None:
    source, mask = graph(CHOICE, MASK, end), hiding_mask()
    pipeline = "drop-softmax-guard,fuse-attention,merge-consecutive-transposes"
    kinds = [node.op_type for node in optimize(text.parse(source, 23), pipeline=pipeline).graph]
    assert kinds == ["Where", "ReduceMax", "Sub", "Transpose", "Attention"]
    found, expected = (run(source, mask, pipeline=p, big=big) for p in (pipeline, None))
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-2)
    assert np.isfinite(found).all()


def test_below_opset_18_where_axes_of_reduce_max_are_an_attribute_the_guard_stays() -> None:
    check_unchanged(drop_softmax_guard, graph(CHOICE, MASK, GUARD), opset=17)


@pytest.mark.parametrize("low", [-np.inf, LOWEST, -1e4, -5.0])
def test_a_mask_that_is_given(low: float) -> None:
    """A row of -inf gives NaN, a row of finite numbers depends on its scores, as without an
    Attention."""
    mask = np.where(hiding_mask(), 0, low).astype(np.float16)
    source = graph("w = Add(s, m)", "float16[N,1,5,7] m")
    found, expected = (run(source, mask, pipeline=p, big=1) for p in ("fuse-attention", None))
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-2)
    assert np.isnan(found[0, :, 1]).all() == np.isinf(low)


def test_a_constant_that_hides_a_row_says_what_its_scores_say() -> None:
    source = graph("b = Where(m, z, low) w = Add(s, b)", "float16[1] x")
    row = "1,0,0,1,1,0,1,"
    rows = f"bool[1,1,5,7] m = {{{row}0,0,0,0,0,0,0,{row}{row}{row[:-1]}}}, float16 z"
    source = source.replace("float16 z", rows, 1)
    inputs = np.zeros(1, np.float16)
    pipeline = "const-elimination,fuse-attention"
    found, expected = (run(source, inputs, pipeline=p, big=1) for p in (pipeline, None))
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-2)


def test_a_table_of_each_head_and_windows_that_are_hidden_by_a_hundred() -> None:
    """No number is low enough to hide a row, so no maximum is subtracted."""
    source = graph("b = Where(m, z, low) d = Add(b, t) w = Add(s, d)", MASK)
    table = f"float16[1,3,5,7] t = {{{','.join(str(0x3C00 + i) for i in range(105))}}}, float16 z"
    source = source.replace("float16 z", table, 1).replace(str(BITS), str(0xD640))  # -100
    kinds = [n.op_type for n in optimize(text.parse(source, 23), pipeline="fuse-attention").graph]
    assert sorted(kinds) == ["Add", "Attention", "Transpose", "Where"]
    pipelines = ("fuse-attention", None)
    found, expected = (run(source, hiding_mask(), pipeline=p, big=1) for p in pipelines)
    np.testing.assert_allclose(found, expected, rtol=0, atol=8e-2)


def with_table(bits: int) -> str:
    """Return attention whose scores get a table of 7 keys, then a mask of the number of ``bits``."""
    source = graph("a = Add(s, d) b = Where(m, z, low) w = Add(a, b)", MASK)
    table = f"float16[1,7] d = {{{','.join(['13653'] * 7)}}}, float16 z"
    return source.replace("float16 z", table, 1).replace(str(BITS), str(bits))


@pytest.mark.parametrize("bits", [BITS, 0xD640], ids=["-65504", "-100"])
def test_a_table_then_a_mask(bits: int) -> None:
    model = optimize(text.parse(with_table(bits), 23), pipeline="fuse-attention")
    assert [node.op_type for node in model.graph].count("Attention") == 1


KEPT = {
    "a mask of each head": graph(CHOICE, "bool[N,3,5,7] m"),
    "scores that are replaced, where the mask may hide all keys of a row": graph(
        "w = Where(m, s, low)", MASK
    ),
    "scores that are replaced, then a mask": graph(
        "a = Where(m, s, low) w = Add(a, b)", MASK + ", float16[N,1,1,7] b"
    ),
    "a table, then a mask of a size that rounds it": with_table(0xF0E2),  # -1e4
    "a product of each head": graph("d = MatMul(q, e) w = Add(s, d)", "float16[N,3,8,7] e"),
    "scores that are raised": graph("a = Add(s, m) w = Max(a, low)", "float16[N,1,5,7] m"),
}


@pytest.mark.parametrize("source", KEPT.values(), ids=KEPT)
def test_keeps(source: str) -> None:
    check_unchanged(fuse_attention, source)


def test_keeps_the_guard_of_each_head() -> None:
    check_unchanged(drop_softmax_guard, graph(CHOICE, "bool[N,3,5,7] m", GUARD))


def test_scores_that_a_causal_mask_replaces() -> None:
    """A triangle shows each query its own key, so -inf hides the other keys safely."""
    body = "t = Trilu<upper=0>(ones) m = Cast<to=9>(t) w = Where(m, s, low)"
    source = (
        "g (float16[N,3,4,8] q, float16[N,3,8,4] k, float16[N,3,4,6] v) => (float16[N,3,4,6] y) "
        f"<float16 low = {{{BITS}}}, float[4,4] ones = {{{','.join('1' * 16)}}}> "
        f"{{ s = MatMul(q, k) {body} p = Softmax<axis=-1>(w) y = MatMul(p, v) }}"
    )
    model = optimize(text.parse(source, 23))
    assert [node.op_type for node in model.graph if node.op_type != "Transpose"] == ["Attention"]
    rng = np.random.default_rng(2)
    shapes = [(2, 3, 4, 8), (2, 3, 8, 4), (2, 3, 4, 6)]
    arrays = [rng.standard_normal(shape).astype(np.float16) for shape in shapes]
    found, expected = (open_runner(m)(*arrays)[0] for m in (model, text.parse(source, 23)))
    np.testing.assert_allclose(found.astype(float), expected.astype(float), rtol=0, atol=2e-2)
