"""Rotary embeddings as PyTorch and JAX write them become one operator."""

from __future__ import annotations

import numpy as np
import pytest
from rewrites import check_operators, check_refused, check_rewrite, check_unchanged

from smelt import optimize
from smelt.ir import text
from smelt.passes.attention.fuse_rotary_embedding import fuse_rotary_embedding
from smelt.runtime.runner import run

CUTS = "int64[1] o = {0}, int64[1] h = {2}, int64[1] e = {9223372036854775807}, int64[1] a = {3}"
HALVES = "p = Slice(x, o, h, a) q = Slice(x, h, e, a) "
TURNED = "n = Neg(q) r = Concat<axis=-1>(n, p) c = Mul(x, cos) s = Mul(sin, r) y = Add(c, s)"
PRODUCTS = (
    "pc = Mul(p, cos) qs = Mul(q, sin) l = Sub(pc, qs) qc = Mul(cos, q) ps = Mul(p, sin) "
    "m = Add(qc, ps) y = Concat<axis=3>(l, m)"
)
WAVE = "0.9,0.1,0.7,0.3,0.2,0.4"


def graph(shape: str, body: str, angles: str, constants: str = CUTS) -> str:
    return f"g (float[{shape}] x{angles}) => (float[{shape}] y) <{constants}> {{ {body} }}"


def doubled(rows: str) -> str:
    """Return rows of two numbers, repeated to rows of four."""
    numbers = rows.split(",")
    pairs = [numbers[i : i + 2] for i in range(0, len(numbers), 2)]
    return ",".join(number for pair in pairs for number in pair * 2)


CONSTANT = f"{CUTS}, float[1,1,3,4] cos = {{{doubled(WAVE)}}}, float[3,4] sin = {{{doubled(WAVE)}}}"


def test_constant_angles_become_rows_of_their_halves() -> None:
    check_rewrite(
        fuse_rotary_embedding,
        graph("2,5,3,4", HALVES + TURNED, "", CONSTANT),
        f"g (float[2,5,3,4] x) => (float[2,5,3,4] y) <float[1,1,3,2] cos = {{{WAVE}}}, "
        f"float[3,2] sin = {{{WAVE}}}, int64[2] rows = {{-1,2}}, int64[2,3] at = {{0,1,2,0,1,2}}> "
        "{ c = Reshape(cos, rows) s = Reshape(sin, rows) y = RotaryEmbedding(x, c, s, at) }",
    )


def test_positions_of_a_symbolic_batch_are_counted() -> None:
    before = graph("B,5,3,4", HALVES + TURNED, "", CONSTANT)
    check_operators(
        fuse_rotary_embedding,
        before,
        ["Reshape", "Reshape", "Shape", "Concat", "Expand", "RotaryEmbedding"],
    )


ANGLES = {
    "of each batch": (", float[B,1,S,2] w", "B,5,S,4", 3),
    "of one batch": (", float[1,1,S,2] w", "1,5,S,4", 3),
    "of all batches": (", float[S,2] w", "B,5,S,4", 4),
    "positions before heads": (", float[B,S,1,2] w", "B,S,5,4", 3),
    "all batches, positions before heads": (", float[S,1,2] w", "B,S,5,4", 4),
    "one position": (", float[B,1,1,2] w", "B,5,1,4", 3),
}


@pytest.mark.parametrize("wide", [True, False], ids=["joined", "halves"])
@pytest.mark.parametrize("name", ANGLES)
def test_computed_angles(name: str, wide: bool) -> None:
    inputs, shape, operands = ANGLES[name]
    joined = "w2 = Concat<axis=-1>(w, w) cos = Cos(w2) sin = Sin(w2) "
    body = joined + HALVES + TURNED if wide else "cos = Cos(w) sin = Sin(w) " + HALVES + PRODUCTS
    model = optimize(text.parse(graph(shape, body, inputs), 23), pipeline="fuse-rotary-embedding")
    (node,) = [node for node in model.graph if node.op_type == "RotaryEmbedding"]
    assert len(node.inputs) == operands
    rng = np.random.default_rng(0)
    sizes = {"B": 2, "S": 3, "g": 0}
    known = [int(sizes.get(dim, dim)) for dim in shape.split(",")]
    dims = [int(sizes.get(d, d)) for d in inputs[inputs.index("[") + 1 : -3].split(",")]
    x = rng.standard_normal(known).astype(np.float32)
    w = rng.standard_normal(dims).astype(np.float32)
    halves = x[..., :2], x[..., 2:]
    cos, sin = np.cos(w), np.sin(w)
    expected = [halves[0] * cos - halves[1] * sin, halves[1] * cos + halves[0] * sin]
    (y,) = run(model, [x, w])
    np.testing.assert_allclose(y, np.concatenate(expected, -1), atol=1e-6)


def test_a_split_gives_halves_as_well() -> None:
    halves = "p, q = Split<axis=3, num_outputs=2>(x) "
    body = "cos = Cos(w) sin = Sin(w) " + halves + PRODUCTS
    check_operators(
        fuse_rotary_embedding,
        graph("2,5,3,4", body, ", float[2,1,3,2] w"),
        ["Cos", "Sin", "Squeeze", "Squeeze", "RotaryEmbedding"],
    )


FRONT = "int64[1] o = {0}, int64[1] h = {2}, int64[1] z = {4}, int64[1] e = {9}, int64[1] a = {3}"
TAKEN = "x = Slice(w, o, z, a) p = Slice(w, o, h, a) q = Slice(w, h, z, a) "
STEPS = "int64[1] o = {0}, int64[1] i = {1}, int64[1] r = {4}, int64[1] two = {2}, int64[1] a = {3}"
STACKED = (
    "p = Slice(x, o, r, a, two) q = Slice(x, i, r, a, two) n = Neg(q) nn = Unsqueeze(n, m) "
    "pp = Unsqueeze(p, m) st = Concat<axis=-1>(nn, pp) t = Reshape(st, whole) "
)
TWICE = "v1 = Unsqueeze(v, m) v2 = Expand(v1, pair) v3 = Reshape(v2, once) "
ENDS = "int64[1] m = {-1}, int64[4] whole = {0,0,3,4}, int64[4] pair = {1,1,1,2}"


def turned(x: np.ndarray, angles: np.ndarray, interleaved: bool) -> np.ndarray:
    """Return each pair of the last dim of ``x`` rotated by its angle."""
    half = x.shape[-1] // 2
    a, b = (x[..., ::2], x[..., 1::2]) if interleaved else (x[..., :half], x[..., half:])
    cos, sin = np.cos(angles), np.sin(angles)
    found = [a * cos - b * sin, a * sin + b * cos]
    return np.stack(found, -1).reshape(x.shape) if interleaved else np.concatenate(found, -1)


@pytest.mark.parametrize("dims", ["B,5,3,9", "B,3,5,9"], ids=["heads first", "heads behind"])
def test_the_first_numbers_of_a_head_are_turned(dims: str) -> None:
    """GPT-NeoX and Phi rotate the first part of each head only."""
    rows = "1,1,3,2" if dims == "B,5,3,9" else "1,3,1,2"
    joined = "v2 = Concat<axis=-1>(v, v) cos = Cos(v2) sin = Sin(v2) "
    body = joined + TAKEN + TURNED.replace("y =", "f =") + " back = Slice(w, z, e, a) "
    model = optimize(
        text.parse(
            f"g (float[{dims}] w, float[{rows}] v) => (float[{dims}] y) <{FRONT}> "
            f"{{ {body} y = Concat<axis=-1>(f, back) }}",
            23,
        ),
        pipeline="fuse-rotary-embedding,dead-code-elimination",
    )
    (node,) = [node for node in model.graph if node.op_type == "RotaryEmbedding"]
    assert node.attributes["rotary_embedding_dim"].as_int() == 4
    assert not {"Slice", "Neg"} & {each.op_type for each in model.graph}
    rng = np.random.default_rng(0)
    w = rng.standard_normal([int(n) for n in dims.replace("B", "2").split(",")]).astype(np.float32)
    angles = rng.standard_normal([int(n) for n in rows.split(",")]).astype(np.float32)
    (y,) = run(model, [w, angles])
    expected = np.concatenate([turned(w[..., :4], angles, interleaved=False), w[..., 4:]], -1)
    np.testing.assert_allclose(y, expected, atol=1e-6)


INTERLEAVED = (
    f"g (float[B,S,3,4] x, float[1,S,1,2] v) => (float[B,S,3,4] y) <{STEPS}, {ENDS}, "
    "int64[5] pair5 = {1,1,1,1,2}, int64[4] once = {1,-1,1,4}> { "
    + TWICE.replace("pair)", "pair5)")
    + "cos = Cos(v3) sin = Sin(v3) "
    + STACKED
    + "c = Mul(x, cos) s = Mul(t, sin) y = Add(c, s) }"
)


def test_interleaved_pairs() -> None:
    """GPT-J rotates neighbours by one angle, which it repeats."""
    model = optimize(
        text.parse(INTERLEAVED, 23), pipeline="fuse-rotary-embedding,dead-code-elimination"
    )
    (node,) = [node for node in model.graph if node.op_type == "RotaryEmbedding"]
    assert node.attributes["interleaved"].as_int() == 1
    assert not {"Slice", "Neg"} & {each.op_type for each in model.graph}
    rng = np.random.default_rng(0)
    x = rng.standard_normal((2, 5, 3, 4)).astype(np.float32)
    angles = rng.standard_normal((1, 5, 1, 2)).astype(np.float32)
    (y,) = run(model, [x, angles])
    np.testing.assert_allclose(y, turned(x, angles, interleaved=True), atol=1e-6)


def test_a_factor_goes_behind() -> None:
    """An Attention absorbs a factor behind the rotation as its scale, as in ESM."""
    source = (
        "g (float[B,3,5,4] x, float[B,5,2] cos, float[B,5,2] sin) => (float[B,3,5,4] y) "
        "<float c = {0.5}> { m = Mul(x, c) q = RotaryEmbedding(m, cos, sin) "
        "y = Attention<scale=3.0>(q, x, x) }"
    )
    model = optimize(text.parse(source, 23), pipeline="fuse-rotary-embedding,fuse-attention")
    assert [node.op_type for node in model.graph] == ["RotaryEmbedding", "Attention"]
    assert model.graph.node(-1).attributes["scale"].as_float() == 1.5


def test_heads_go_last() -> None:
    check_rewrite(
        fuse_rotary_embedding,
        "g (float[B,3,5,4] x, float[B,3,2] c, float[B,3,2] s) => (float[B,5,3,4] y) "
        "{ t = Transpose<perm=[0,2,1,3]>(x) y = RotaryEmbedding(t, c, s) }",
        "g (float[B,3,5,4] x, float[B,3,2] c, float[B,3,2] s) => (float[B,5,3,4] y) "
        "<int64[3] flat = {0,0,20}, int64[4] heads = {0,0,5,4}> { f = Reshape(x, flat) "
        "r = RotaryEmbedding<num_heads=5>(f, c, s) h = Reshape(r, heads) "
        "y = Transpose<perm=[0,2,1,3]>(h) }",
    )


def test_one_head_goes_last() -> None:
    check_rewrite(
        fuse_rotary_embedding,
        "g (float[B,5,4] x, float[B,5,2] c, float[B,5,2] s) => (float[B,1,5,4] y) "
        "<int64[1] one = {1}> { t = Unsqueeze(x, one) y = RotaryEmbedding(t, c, s) }",
        "g (float[B,5,4] x, float[B,5,2] c, float[B,5,2] s) => (float[B,1,5,4] y) "
        "<int64[1] one = {1}> { r = RotaryEmbedding<num_heads=1>(x, c, s) y = Unsqueeze(r, one) }",
    )


W = ", float[2,1,3,2] cos, float[2,1,3,2] sin"
WIDE = ", float[2,1,3,4] cos, float[2,1,3,4] sin"
KEPT = {
    "angles of which the halves may differ": graph("2,5,3,4", HALVES + TURNED, WIDE),
    "constants of which the halves differ": graph(
        "2,5,3,4",
        HALVES + TURNED,
        "",
        f"{CUTS}, float[4] cos = {{1,2,1,3}}, float[4] sin = {{1,2,1,2}}",
    ),
    "angles of each head": graph(
        "2,5,3,4", HALVES + PRODUCTS, ", float[2,5,3,2] cos, float[2,5,3,2] sin"
    ),
    "angles of one position for all": graph(
        "2,5,3,4", HALVES + PRODUCTS, ", float[2,1,1,2] cos, float[2,1,1,2] sin"
    ),
    "halves in the other order": graph("2,5,3,4", HALVES + PRODUCTS.replace("l, m", "m, l"), W),
    "turned the other way": graph(
        "2,5,3,4",
        HALVES + PRODUCTS.replace("Sub(pc, qs)", "Add(pc, qs)").replace("Add(qc", "Sub(qc"),
        W,
    ),
    "parts that are no halves": graph(
        "2,5,3,4", HALVES + PRODUCTS, W, CUTS.replace("h = {2}", "h = {1}")
    ).replace("float[2,1,3,2]", "float[2,1,3,1]").replace("(float[2,5,3,4] y)", "(float[2,5,3,?] y)"),
    "parts of sizes known at run time": graph(
        "2,5,3,4", "p, q = Split<axis=3>(x, n) " + PRODUCTS, W + ", int64[2] n"
    ),
    "halves along another axis": graph(
        "2,5,4,4", "p, q = Split<axis=2, num_outputs=2>(x) " + PRODUCTS.replace("axis=3", "axis=2"), W
    ).replace("float[2,1,3,2]", "float[2,1,2,4]"),
    "pairs stacked the other way": INTERLEAVED.replace("(nn, pp)", "(pp, nn)"),
    "pairs of other neighbours": INTERLEAVED.replace("p = Slice(x, o", "p = Slice(x, i"),
    "angles that differ within a pair": INTERLEAVED.replace("Cos(v3)", "Cos(w)").replace(
        "v) =>", "v, float[1,S,1,4] w) =>"),
    "a rest that is no rest": (
        f"g (float[B,5,3,9] w, float[B,3,2] c, float[B,3,2] s) => (float[B,5,3,9] y) <{FRONT}, "
        "int64[1] last = {5}> { x = Slice(w, o, z, a) "
        "f = RotaryEmbedding(x, c, s) back = Slice(w, o, last, a) y = Concat<axis=3>(f, back) }"),
    "doubles": graph("2,5,3,4", HALVES + PRODUCTS, W).replace("float[", "double["),
    "cut along another axis": graph(
        "2,5,4,4", HALVES + PRODUCTS.replace("axis=3", "axis=2"), W, CUTS.replace("a = {3}", "a = {2}")
    ).replace("float[2,1,3,2]", "float[2,1,2,4]"),
    "a result of more rows than x": graph(
        "2,5,1,4", HALVES + PRODUCTS, W
    ).replace("(float[2,5,1,4] y)", "(float[2,5,3,4] y)"),
}  # fmt: skip


@pytest.mark.parametrize("source", KEPT.values(), ids=KEPT)
def test_keeps(source: str) -> None:
    check_unchanged(fuse_rotary_embedding, source)


OPEN_HEADS = {
    "behind a Transpose": (
        "g (float[B,S,H,8] x, float[B,S,4] c, float[B,S,4] s) => (float[B,H,S,8] y) "
        "{ t = Transpose<perm=[0,2,1,3]>(x) y = RotaryEmbedding(t, c, s) }"
    ),
    "behind a Reshape": (
        "g (float[B,1,D] x, float[B,1,4] c, float[B,1,4] s) => (float[B,H,1,8] y) "
        "<int64[4] r = {0,-1,1,8}> { t = Reshape(x, r) y = RotaryEmbedding(t, c, s) }"
    ),
}


@pytest.mark.parametrize("source", OPEN_HEADS.values(), ids=OPEN_HEADS)
def test_heads_whose_number_is_not_known_stay(source: str) -> None:
    check_refused(fuse_rotary_embedding, source, "the head count is not constant")


def test_a_half_that_is_an_output_stays() -> None:
    source = graph("2,5,3,4", HALVES + TURNED, ", float[2,1,3,2] w")
    before = source.replace("y)", "y, float[2,5,3,4] r)").replace(
        HALVES, "v = Concat<axis=-1>(w, w) cos = Cos(v) sin = Sin(v) " + HALVES
    )
    check_unchanged(fuse_rotary_embedding, before)
