"""A bias made of sums and products of masks, tables and constants is kept finite."""

import numpy as np
import pytest
from convolutions import tensor
from rewrites import check_same_numbers, check_unchanged

from smelt import optimize
from smelt.ir import text
from smelt.passes.attention.fuse_attention import fuse_attention
from smelt.runtime.runner import open_runner

LOWEST = "-3.4028235e38"


def graph(body: str, inputs: str, *constants: str) -> str:
    """Return attention in which ``body`` computes ``w`` from the scores ``s``, masks and
    constants."""
    named = ", ".join(("float c = {0.35}", f"float low = {{{LOWEST}}}", *constants))
    return (
        f"g (float[N,3,5,8] q, float[N,3,8,7] k, float[N,3,7,6] v, {inputs}) => "
        f"(float[N,3,5,6] y) <{named}> {{ s = MatMul(q, k) {body} "
        "p = Softmax<axis=-1>(w) y = MatMul(p, v) }"
    )


ONE = "float one = {1}"
TABLE = tensor("d", (3, 9))
RAISED = "ReduceMax Mul Mul Add"
FUSED = {
    "a mask of truth, as a number": (graph(
        "f = Cast<to=1>(m) u = Sub(one, f) b = Mul(u, low) w = Add(s, b)", "bool[N,1,5,7] m", ONE
        ), "Cast Sub Mul"),
    "a mask of integers, times -10000": (graph(
        "f = Cast<to=1>(m) u = Sub(one, f) b = Mul(u, e) w = Add(s, b)", "int64[N,1,5,7] m", ONE,
        "float e = {-10000}"), "Cast Sub Mul"),
    "a mask of integers, times the lowest float": (graph(
        "f = Cast<to=1>(m) u = Sub(one, f) b = Mul(u, low) w = Add(s, b)", "int64[N,1,5,7] m", ONE
        ), "Cast Sub Mul " + RAISED),
    "integers where they hide nothing": (graph(
        "f = Cast<to=1>(m) u = Sub(one, f) h = Cast<to=9>(u) b = Where(h, low, u) w = Add(s, b)",
        "int32[N,1,5,7] m", ONE), "Cast Sub Cast Where"),
    "a mask that is given": (graph("w = Add(s, m)", "float[N,1,5,7] m"), RAISED),
    "two masks that are added": (graph(
        "e = Where(m, low, c) h = Where(n, low, c) b = Add(e, h) w = Add(s, b)",
        "bool[5,7] m, bool[N,1,5,7] n"), "Where Where Add " + RAISED),
    "two masks that are added, at least the lowest float": (graph(
        "e = Where(m, low, c) h = Where(n, low, c) b = Add(e, h) a = Add(s, b) w = Max(a, low)",
        "bool[5,7] m, bool[N,1,5,7] n"), "Where Where Add Max"),
    "a mask, at least the lowest float": (graph(
        "b = Where(m, c, low) a = Add(s, b) w = Max(a, low)", "bool[N,1,5,7] m"), "Where"),
    "positions by a network, as in Swin V2": (graph(
        "f = Sigmoid(m) b = Mul(f, e) w = Add(s, b)", "float[3,5,7] m", "float e = {16}"),
        "Sigmoid Mul Unsqueeze"),
    "a mask of truth that is subtracted": (graph(
        "f = Cast<to=1>(m) u = Mul(f, big) w = Sub(s, u)", "bool[N,1,5,7] m", "float big = {1e30}"
        ), "Cast Mul"),
    "a mask that is given, subtracted": (graph("w = Sub(s, m)", "float[N,1,5,7] m"), "Neg " + RAISED),
    "a table, a factor and a mask that is subtracted, as in XLNet": (graph(
        "a = Add(s, d) t = Mul(a, c) f = Cast<to=1>(m) u = Mul(f, big) w = Sub(t, u)",
        "bool[N,1,5,7] m", "float big = {1e30}", tensor("d", (5, 7))), "Cast Mul Mul Add"),
    "two tables and a small mask": (graph(
        "a = Add(s, d) t = Add(a, h) f = Cast<to=1>(m) u = Mul(f, e) w = Add(t, u)", "bool[N,1,5,7] m",
        "float e = {-100}", tensor("d", (5, 7)), tensor("h", (5, 7))), "Cast Mul Add Add"),
    "two tables and a mask of truth that is subtracted": (graph(
        "a = Add(s, d) t = Add(a, h) f = Cast<to=1>(m) u = Mul(f, big) w = Sub(t, u)",
        "bool[N,1,5,7] m", "float big = {1e30}", tensor("d", (5, 7)), tensor("h", (5, 7))),
        "Cast Mul Add Add"),
    "a mask that hides, after one whose size rounds": (graph(
        "b = Where(m, e, z) h = Where(n, low, z) a = Add(s, b) w = Add(a, h)",
        "bool[N,1,5,7] m, bool[5,7] n", "float e = {-1e4}", "float z = {0}"),
        "Where Where Add"),
    "positions and distances by products, as in DeBERTa": (graph(
        "d = MatMul(q, e) g = MatMul(q, h) a = Add(s, d) w = Add(a, g)", "bool[1] x",
        tensor("e", (8, 7)), tensor("h", (8, 7))), "MatMul MatMul Add"),
    "a mask whose size rounds, and a factor that does not": (graph(
        "f = Cast<to=1>(m) u = Mul(f, e) a = Add(s, u) w = Mul(a, h)", "bool[N,1,5,7] m",
        "float e = {-1e6}", "float h = {0.25}"), "Cast Mul Mul"),
    "a gate cut from two, as in WavLM": (graph(
        "f = Sigmoid(m) x, z = Split<axis=3, num_outputs=2>(f) b = Mul(x, d) w = Add(s, b)",
        "float[N,3,5,2] m", "float[5,7] d = {" + ",".join(["0.5"] * 35) + "}"), "Sigmoid Split Mul"),
    "a table, then a mask": (graph(
        "t = Gather<axis=1>(d, i) a = Add(s, t) e = Where(m, c, low) w = Add(a, e)",
        "int64[5,7] i, bool[N,1,5,7] m", TABLE).replace(
            "t = Gather", "t3 = Gather").replace("a = Add", "t = Unsqueeze(t3, z) a = Add").replace(
            "<float c", "<int64[1] z = {0}, float c"), "Gather Unsqueeze Where Add"),
    "zeros of a computed shape": (graph(
        "h = Shape<start=2>(m) n = Concat<axis=0>(u, h) z = ConstantOfShape(n) "
        "a = Add(s, z) w = Where(m, a, low)", "bool[N,1,5,7] m", "int64[2] u = {1,3}"),
        "Shape Concat ConstantOfShape Where"),
    "a mask, then a factor": (graph(
        "b = Where(m, c, low) a = Add(s, b) w = Mul(a, c)", "bool[N,1,5,7] m"), "Where Mul"),
    "a mask, then a divisor": (graph(
        "b = Where(m, c, low) a = Add(b, s) w = Div(a, e)", "bool[N,1,5,7] m", "float e = {4}"
        ), "Where Div"),
    "a bias, then what is shown": (graph(
        "a = Add(s, b) w = Where(m, a, low)", "bool[N,1,5,7] m", tensor("b", (3, 5, 7)).replace(
            "[3,", "[1,3,")), "Where"),
    "a bias, then what is hidden": (graph(
        "a = Add(s, b) w = Where(m, low, a)", "bool[N,1,5,7] m", tensor("b", (5, 7))), "Where"),
    "a product of queries and distances": (graph(
        "d = MatMul(q, e) b = GatherElements<axis=3>(d, i) w = Add(s, b)", "int64[N,3,5,7] i",
        tensor("e", (8, 9))), "MatMul GatherElements"),
    "a table by pairs of places": (graph(
        "g = GatherND(e, i) f = Flatten<axis=1>(g) b = Transpose<perm=[1,0]>(f) w = Add(s, b)",
        "int64[7,5,1] i", tensor("e", (8,)),), "GatherND Flatten"),
    "decomposed positions, then a mask": (graph(
        'd = Einsum<equation="bhqc,kc->bhqk">(q, e) a = Add(s, d) b = Where(m, c, low) w = Add(a, b)',
        "bool[N,1,5,7] m", tensor("e", (7, 8))), "Einsum Where Add"),
    "distances that are padded, joined and cut": (graph(
        "d = MatMul(q, e) f = Pad(d, pads) h = Concat<axis=3>(f, d) b = Slice(h, at, to, last) "
        "w = Add(s, b)", "bool[1] x", tensor("e", (8, 4)),
        "int64[8] pads = {0,0,0,0,0,0,0,1}, int64[1] at = {1}, int64[1] to = {8}, int64[1] last = {3}"),
        "MatMul Pad Concat Slice"),
    "what is shown, else -1e9": (graph("w = Where(m, s, e)", "bool[N,1,5,7] m", "float e = {-1e9}"),
        "Where"),
    "what is shown, then a mask, as in GPT-Neo": (graph(
        "a = Where(m, s, low) w = Add(a, b)", "bool[1,1,5,7] m, float[N,1,1,7] b"),
        "Where Add " + RAISED),
    "what is hidden, then a mask": (graph(
        "a = Where(m, low, s) w = Add(b, a)", "bool[5,7] m, float[N,1,5,7] b"),
        "Where Add " + RAISED),
}  # fmt: skip


@pytest.mark.parametrize(("before", "made"), FUSED.values(), ids=FUSED.keys())
def test_fuses(before: str, made: str) -> None:
    source = text.parse(before, 23)
    model = optimize(source, pipeline="fuse-attention,merge-consecutive-transposes")
    kinds = [node.op_type for node in model.graph if node.op_type not in ("Constant", "Transpose")]
    assert kinds == [*made.split(), "Attention"]
    check_same_numbers(source, model, fuse_attention.exactness, modes=("normal",))


def run(model: str, *masks: np.ndarray, fused: bool) -> np.ndarray:
    rng = np.random.default_rng(0)
    shapes = [(2, 3, 5, 8), (2, 3, 8, 7), (2, 3, 7, 6)]
    q, k, v = (rng.standard_normal(shape).astype(np.float32) for shape in shapes)
    source = text.parse(model, 23)
    done = optimize(source, pipeline="fuse-attention") if fused else source
    return open_runner(done)(q, k, v, *masks)[0]


@pytest.mark.parametrize("low", [-np.inf, np.float32(LOWEST), -1e31, -5.0])
def test_rows_that_a_given_mask_hides(low: float) -> None:
    """A row of -inf gives NaN, a row of the lowest float gives the average, as without an
    Attention."""
    mask = np.zeros((2, 1, 5, 7), np.float32)
    mask[0, 0, 1], mask[1, 0, 2, :6], mask[1, 0, 3, 2] = low, low, np.nan
    mask[1, 0, 1], mask[1, 0, 1, 2:4] = -np.inf, low
    before = graph("w = Add(s, m)", "float[N,1,5,7] m")
    found, expected = (run(before, mask, fused=fused) for fused in (True, False))
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    assert np.isnan(found[0, :, 1]).all() == np.isnan(found[1, :, 1]).all() == np.isinf(low)
    assert np.isnan(found[1, :, 3]).all()


def test_rows_that_two_masks_hide_as_one_follows_the_other() -> None:
    """A key hidden by both masks is -inf, by one the lowest float, whatever its score."""
    shown = np.tri(5, 7, dtype=np.bool_)[None, None]
    shown[..., 3, :] = False
    padding = np.zeros((2, 1, 1, 7), np.float32)
    padding[0, ..., :3], padding[1, ...] = LOWEST, LOWEST
    before = FUSED["what is shown, then a mask, as in GPT-Neo"][0]
    found, expected = (run(before, shown, padding, fused=fused) for fused in (True, False))
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    assert np.isnan(found[1, :, 3]).all()
    assert np.isfinite(found[0]).all()


def test_rows_that_are_hidden_by_a_thousand_millions() -> None:
    """A row hidden by -1e9 gives the average of all values, whatever its scores."""
    shown = np.random.default_rng(1).random((2, 1, 5, 7)) < 0.5
    shown[0, 0, 1], shown[1, 0, 2] = False, np.arange(7) == 3
    before = FUSED["what is shown, else -1e9"][0]
    found, expected = (run(before, shown, fused=fused) for fused in (True, False))
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("number", [0, 1, 2, -1, 7])
def test_integers_that_are_no_mask(number: int) -> None:
    """Integers other than 0 and 1 times the lowest float may be infinite."""
    mask = np.ones((2, 1, 5, 7), np.int64)
    mask[0, 0, 1], mask[1, 0, 2, :6] = number, number
    before = FUSED["a mask of integers, times the lowest float"][0]
    found, expected = (run(before, mask, fused=fused) for fused in (True, False))
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


KEPT = {
    "two tables and a mask whose size rounds them, as in Funnel": graph(
        "a = Add(s, d) t = Add(a, h) f = Cast<to=1>(m) u = Mul(f, e) w = Sub(t, u)", "bool[N,1,5,7] m",
        "float e = {1e6}", tensor("d", (5, 7)), tensor("h", (5, 7))),
    "a table and a mask whose size rounds it": graph(
        "a = Add(s, d) f = Cast<to=1>(m) u = Mul(f, e) w = Add(a, u)", "bool[N,1,5,7] m",
        "float e = {-1e6}", tensor("d", (5, 7))),
    "a mask whose size rounds a table that is added after it": graph(
        "f = Cast<to=1>(m) u = Mul(f, e) a = Add(s, u) w = Add(a, d)", "bool[N,1,5,7] m",
        "float e = {-1e4}", tensor("d", (5, 7))),
    "two masks that hide by -10000": graph(
        "b = Where(m, e, z) h = Where(n, e, z) a = Add(s, b) w = Add(a, h)",
        "bool[N,1,5,7] m, bool[5,7] n", "float e = {-1e4}", "float z = {0}"),
    "a table and a mask that is given": graph(
        "a = Add(s, d) w = Add(a, m)", "float[N,1,5,7] m", tensor("d", (5, 7))),
    "distances by a product and a mask that rounds them": graph(
        "d = MatMul(q, h) a = Add(s, d) f = Cast<to=1>(m) u = Mul(f, e) w = Add(a, u)",
        "bool[N,1,5,7] m", "float e = {-1e6}", tensor("h", (8, 7))),
    "a mask that a factor rounds": graph(
        "f = Cast<to=1>(m) u = Mul(f, e) a = Add(s, u) w = Mul(a, c)", "bool[N,1,5,7] m",
        "float e = {-1e6}"),
    "two masks, one of them of a size that rounds, and a table": graph(
        "h = Where(m, low, z) a = Add(s, h) b = Where(n, e, z) t = Add(a, b) w = Add(t, d)",
        "bool[N,1,5,7] m, bool[5,7] n", "float e = {-1e4}", "float z = {0}", tensor("d", (5, 7))),
    "a table and a mask that is given, subtracted": graph(
        "a = Add(s, d) w = Sub(a, m)", "float[N,1,5,7] m", tensor("d", (5, 7))),
    "scores that are subtracted": graph("w = Sub(m, s)", "float[N,1,5,7] m"),
    "two tables and a mask that is given, subtracted": graph(
        "a = Add(s, d) t = Add(a, h) w = Sub(t, m)", "float[N,1,5,7] m",
        tensor("d", (5, 7)), tensor("h", (5, 7))),
    "two tables and a subtracted mask that rounds them, as in Funnel": graph(
        "a = Add(s, d) t = Add(a, h) f = Cast<to=1>(m) u = Mul(f, big) w = Sub(t, u)",
        "bool[N,1,5,7] m", "float big = {1e6}", tensor("d", (5, 7)), tensor("h", (5, 7))),
    "a table and scores that are subtracted from a mask": graph(
        "a = Add(s, d) w = Sub(m, a)", "float[N,1,5,7] m", tensor("d", (5, 7))),
    "a mask for each head that is subtracted, of unknown numbers": graph(
        "w = Sub(s, m)", "float[N,3,5,7] m"),
    "a product of each head that overflows": graph(
        "f = Cast<to=1>(m) b = Mul(f, low) w = Add(s, b)", "int64[N,3,5,7] m"),
    "numbers of another type for each head": graph(
        "f = Cast<to=1>(m) b = Mul(f, c) w = Add(s, b)", "double[N,3,5,7] m"),
    "a divisor that may be 0": graph(
        "f = Cast<to=1>(m) b = Div(c, f) w = Add(s, b)", "bool[N,3,5,7] m"),
    "what no constants make": graph(
        "f = Sqrt(m) b = Mul(f, c) w = Add(s, b)", "float[N,3,5,7] m"),
    "a mask that a factor makes infinite": graph(
        "b = Where(m, c, low) a = Add(s, b) w = Mul(a, e)", "bool[N,3,5,7] m", "float e = {4}"),
    "scores that are raised": graph(
        "a = Add(s, b) w = Max(a, e)", "bool[1] x", tensor("b", (5, 7)), "float e = {-2}"),
    "hidden by little, then a mask": graph(
        "a = Where(m, s, e) w = Add(a, b)", "bool[5,7] m, float[N,1,5,7] b", "float e = {-100}"),
    "hidden by -inf, then a mask": graph(
        "a = Where(m, s, e) w = Add(a, b)", "bool[5,7] m, float[N,1,5,7] b", "float e = {-inf}"),
    "what is shown, then a mask of each head": graph(
        "a = Where(m, s, low) w = Add(a, b)", "bool[5,7] m, float[N,3,5,7] b"),
    "what is shown of a bias, else -1e9": graph(
        "a = Add(s, b) w = Where(m, a, e)", "bool[N,1,5,7] m, float[N,1,5,7] b", "float e = {-1e9}"),
    "what is shown, else -1e8": graph("w = Where(m, s, e)", "bool[N,1,5,7] m", "float e = {-1e8}"),
    "distances that are padded with -inf": graph(
        "d = MatMul(q, e) b = Pad(d, pads, none) w = Add(s, b)", "bool[1] x", tensor("e", (8, 6)),
        "int64[8] pads = {0,0,0,0,0,0,0,1}, float none = {-inf}"),
    "distances beside what no product makes": graph(
        "d = MatMul(q, e) b = Concat<axis=3>(d, x) w = Add(s, b)", "float[N,3,5,1] x",
        tensor("e", (8, 6))),
    "a root of a product of each head": graph(
        "d = MatMul(q, e) f = Sqrt(d) w = Add(s, f)", "bool[1] x", tensor("e", (8, 7))),
    "a product of each head, times the lowest float": graph(
        "d = MatMul(q, e) f = Mul(d, low) w = Add(s, f)", "bool[1] x", tensor("e", (8, 7))),
    "a negative factor": graph(
        "b = Where(m, c, low) a = Add(s, b) w = Mul(a, e)", "bool[N,3,5,7] m", "float e = {-1}"),
}  # fmt: skip


@pytest.mark.parametrize("before", KEPT.values(), ids=KEPT.keys())
def test_keeps(before: str) -> None:
    check_unchanged(fuse_attention, before)


def test_one_sum_serves_every_layer() -> None:
    """T5 adds a table of distances and then a mask."""
    source = text.parse(
        "g (float[N,3,5,8] q, float[N,3,8,5] k, float[N,3,5,8] v, bool[N,1,1,5] m) "
        f"=> (float[N,3,5,8] y) <{tensor('t', (3, 5, 5)).replace('[3,', '[1,3,')}, "
        f"float low = {{{LOWEST}}}, float none = {{0}}> "
        "{ b = Where(m, none, low) s = MatMul(q, k) c = Add(s, t) d = Add(c, b) p = Softmax(d) "
        "x = MatMul(p, v) s2 = MatMul(x, k) c2 = Add(s2, t) d2 = Add(c2, b) p2 = Softmax(d2) "
        "y = MatMul(p2, v) }",
        23,
    )
    model = optimize(source)
    kinds = [node.op_type for node in model.graph if node.op_type != "Transpose"]
    assert kinds == ["Where", "Add", "Attention", "Attention"]
    check_same_numbers(source, model, fuse_attention.exactness, modes=("normal",))


def test_the_causal_mask_is_seen_through_a_factor() -> None:
    before = graph("b = Where(m, z, low) a = Add(s, b) w = Mul(a, c)", "bool[1] x", "float z = {0}")
    square = ",".join("1" if i >= j else "0" for i in range(7) for j in range(7))
    before = before.replace(", bool[1] x", "").replace("N,3,5,", "N,3,7,")
    source = text.parse(before.replace("<float c", f"<bool[7,7] m = {{{square}}}, float c"), 23)
    model = optimize(source)
    (node,) = [node for node in model.graph if node.op_type == "Attention"]
    assert node.attributes["is_causal"].as_int() == 1
    check_same_numbers(source, model, fuse_attention.exactness, modes=("normal",))
